// SPDX-License-Identifier: Apache-2.0
//! An HTTP/1.1 server with the manners that a test gives it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) if_range: Option<String>,
    /// Requests before this one: of the server, and of the connection.
    pub(crate) number: usize,
    pub(crate) on_connection: usize,
}

/// What comes back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Close the connection after so many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Send pieces of 16 KiB, with a pause after each.
    pub(crate) pause: Option<Duration>,
    /// In chunks, so that nobody is told how long it is.
    pub(crate) is_chunked: bool,
    /// Close without a word.
    pub(crate) is_silent: bool,
}

impl Reply {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn silent() -> Self {
        Self { is_silent: true, ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// A file as a good server sends it: the range that was asked for, if the ETag is the one that was named.
    pub(crate) fn file(asked: &Asked, body: &[u8], etag: &str) -> Self {
        let is_same = asked.if_range.as_ref().is_none_or(|wanted| wanted == etag);
        let size = body.len() as u64;
        let Some((first, last)) = asked.range.filter(|_| is_same) else {
            let reply = Self::new(200).with("etag", etag).with("accept-ranges", "bytes");
            return Self { body: body.to_vec(), ..reply };
        };
        if first >= size {
            return Self::new(416);
        }
        let last = last.min(size - 1);
        let place = format!("bytes {first}-{last}/{size}");
        let reply = Self::new(206).with("etag", etag).with("content-range", place);
        Self { body: body[first as usize..=last as usize].to_vec(), ..reply }
    }
}

/// The server; it ends with the test's process.
pub(crate) struct Server {
    pub(crate) url: String,
    log: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn start(manners: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (manners, shared) = (Arc::new(manners), log.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (manners, log) = (manners.clone(), shared.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), &*manners, &log));
            }
        });
        Self { url, log }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, manners: &dyn Fn(&Asked) -> Reply, log: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream);
    for on_connection in 0.. {
        let Some(mut asked) = read(&mut reader) else { return };
        {
            let mut log = log.lock().unwrap();
            asked.number = log.len();
            asked.on_connection = on_connection;
            log.push(asked.clone());
        }
        // The client may be gone by now.
        if answer(stream, &manners(&asked)).is_none() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let lines: Vec<String> =
        reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = lines.first()?.split(' ').nth(1)?.to_owned();
    let header = |name: &str| {
        let pairs = lines.iter().filter_map(|line| line.split_once(": "));
        pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let range = header("range").and_then(|text| {
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().unwrap_or(u64::MAX)))
    });
    Some(Asked { path, range, if_range: header("if-range"), number: 0, on_connection: 0 })
}

/// None when the connection ends with it.
fn answer(mut stream: &TcpStream, reply: &Reply) -> Option<()> {
    if reply.is_silent {
        return None;
    }
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = match reply.is_chunked {
        true => "transfer-encoding: chunked".to_owned(),
        false => format!("content-length: {}", reply.body.len()),
    };
    let head = format!("HTTP/1.1 {} x\r\n{length}\r\n{headers}\r\n", reply.status);
    stream.write_all(head.as_bytes()).ok()?;
    if reply.is_chunked {
        let first = if reply.body.is_empty() { String::new() } else { format!("{:x}\r\n", reply.body.len()) };
        let last: &[u8] = if reply.body.is_empty() { b"0\r\n\r\n" } else { b"\r\n0\r\n\r\n" };
        let whole = [first.as_bytes(), &reply.body, last].concat();
        return stream.write_all(&whole).ok();
    }
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len())];
    for piece in body.chunks(16 << 10) {
        stream.write_all(piece).ok()?;
        std::thread::sleep(reply.pause.unwrap_or_default());
    }
    let is_last = reply.headers.iter().any(|header| *header == ("connection", "close".to_owned()));
    (reply.cut.is_none() && !is_last).then_some(())
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn content(seed: u64, range: Range<u64>) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    range.map(byte).collect()
}

/// What is left of a connection, read to its end.
pub(crate) fn rest(mut stream: impl Read) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}
