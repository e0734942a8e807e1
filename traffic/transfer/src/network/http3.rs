// SPDX-License-Identifier: Apache-2.0
//! HTTP/3 by quiche: one connection, driven by a task of its own, which requests reach through a queue.
//!
//! quiche renews a window when less than half of it is left, so that a long path sees half of what is set:
//! [`effective_window_bytes`].

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{response, Request};
use netjoule_sockets::datagram::{self, ReceiveBatch};
use netjoule_sockets::{random, socket};
use quiche::h3::{self, NameValue};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, AlertDescription};

use crate::fault::{Fault, Trouble};
use crate::network::options::{Options, Server};
use crate::network::origin::Origin;
use crate::network::socket::PathFacts;
use crate::network::tls;

/// Windows where none is given, bytes: of a stream, and of a connection.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;

/// Silence after which a connection is given up, and longest wait for a handshake.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// Room for one packet to send, bytes.
const PACKET_BYTES: usize = 1500;

/// Most of a body that is handed on in one piece, bytes.
const PIECE_BYTES: usize = 256 << 10;

type Head = Result<(response::Parts, Body), String>;

struct Command {
    headers: Vec<h3::Header>,
    answer: oneshot::Sender<Head>,
}

/// The way to the task of a connection.
pub(crate) struct Requests {
    commands: mpsc::UnboundedSender<Command>,
    is_closed: Rc<Cell<bool>>,
}

/// What comes behind the head of an answer.
pub(crate) struct Body(mpsc::UnboundedReceiver<Result<Bytes, String>>);

impl Body {
    /// The next bytes; none at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        self.0.recv().await.transpose()
    }
}

impl Requests {
    /// Ask for something.
    pub(crate) fn ask<B>(&self, request: &Request<B>) -> impl Future<Output = Head> + 'static + use<B> {
        let (answer, answered) = oneshot::channel();
        // Where the task is gone, so is the sender, and the wait ends at once.
        let _ = self.commands.send(Command { headers: headers_of(request), answer });
        async { answered.await.unwrap_or_else(|_| Err("the connection was closed".into())) }
    }

    /// Whether no further request is taken.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }
}

fn headers_of<B>(request: &Request<B>) -> Vec<h3::Header> {
    let uri = request.uri();
    let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let own = [
        (":method", request.method().as_str()),
        (":scheme", "https"),
        (":authority", uri.authority().map_or("", http::uri::Authority::as_str)),
        (":path", target),
    ];
    let own = own.iter().map(|(name, value)| h3::Header::new(name.as_bytes(), value.as_bytes()));
    let given = request.headers().iter();
    own.chain(given.map(|(name, value)| h3::Header::new(name.as_str().as_bytes(), value.as_bytes())))
        .collect()
}

/// What a long path sees of the windows: half of the smaller one.
pub(crate) fn effective_window_bytes(window_bytes: Option<u32>) -> u64 {
    u64::from(window_bytes.unwrap_or(STREAM_WINDOW_BYTES)) / 2
}

/// Open a connection to the first of `addresses` that answers.
pub(crate) async fn open(
    origin: &Origin,
    addresses: &[SocketAddr],
    options: &Options,
) -> Result<(Requests, Server), Trouble> {
    if !origin.is_tls {
        let words = format!("{origin}: HTTP/3 needs https");
        return Err(Trouble::Server(Fault::new("http_version", words)));
    }
    let mut failed = unreachable(origin, "it has no address");
    for peer in addresses {
        match connect(origin, *peer, options).await {
            Ok(wire) => return begin(wire, options).map_err(|error| unreachable(origin, &error.to_string())),
            Err(Trouble::Unanswered(words)) => failed = Trouble::Unanswered(words),
            Err(other) => return Err(other),
        }
    }
    Err(failed)
}

fn unreachable(origin: &Origin, why: &str) -> Trouble {
    Trouble::Unanswered(format!("{origin} cannot be reached over HTTP/3: {why}"))
}

/// QUIC with one address, its handshake done.
async fn connect(origin: &Origin, peer: SocketAddr, options: &Options) -> Result<Wire, Trouble> {
    let why = Arc::new(OnceLock::new());
    let mut config = config(origin, options, why.clone())
        .map_err(|why| Trouble::Server(Fault::new("tls", format!("setting up QUIC for {origin}: {why}"))))?;
    // An address is no name that TLS may tell.
    let name = Some(origin.host.as_str()).filter(|host| host.parse::<IpAddr>().is_err());
    let wire = Wire::new(name, peer, &mut config).await;
    let mut wire = wire.map_err(|error| unreachable(origin, &error.to_string()))?;
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, wire.shake_hands()).await {
        Err(_) => Err(unreachable(origin, "no answer")),
        Ok(Err(Broken::Tls(alert))) => {
            let alert = rustls::Error::AlertReceived(alert);
            Err(tls::refused(origin, why.get().unwrap_or(&alert), options.ca_file.as_deref()))
        }
        Ok(Err(Broken::Other(why))) => Err(unreachable(origin, &why)),
        Ok(Ok(())) => Ok(wire),
    }
}

/// HTTP/3 over it, driven from now on.
fn begin(mut wire: Wire, options: &Options) -> Result<(Requests, Server), h3::Error> {
    options.facts.window(effective_window_bytes(options.window_bytes));
    let h3 = h3::Connection::with_transport(&mut wire.quic, &h3::Config::new()?)?;
    let (commands, queue) = mpsc::unbounded_channel();
    let is_closed = Rc::new(Cell::new(false));
    let driver = Driver {
        wire,
        h3,
        waiting: VecDeque::new(),
        streams: HashMap::new(),
        is_closed: is_closed.clone(),
        facts: options.facts.clone(),
    };
    tokio::task::spawn_local(driver.run(queue));
    let server = Server { http_version: Some("3"), tls_version: Some("1.3"), software: None };
    Ok((Requests { commands, is_closed }, server))
}

fn config(
    origin: &Origin,
    options: &Options,
    why: Arc<OnceLock<rustls::Error>>,
) -> Result<quiche::Config, String> {
    let judge = options.judge().map_err(|failure| failure.message)?;
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| error.to_string())?;
    let tls = tls::quic(judge, name, why).map_err(|error| error.to_string())?;
    let config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls);
    let mut config = config.map_err(|error| error.to_string())?;
    config.set_application_protos(h3::APPLICATION_PROTOCOL).map_err(|error| error.to_string())?;
    let stream = u64::from(options.window_bytes.unwrap_or(STREAM_WINDOW_BYTES));
    let connection = u64::from(options.window_bytes.unwrap_or(CONNECTION_WINDOW_BYTES));
    config.set_initial_max_data(connection);
    config.set_max_connection_window(connection);
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_max_stream_window(stream);
    // The server's control stream and QPACK's two.
    config.set_initial_max_stream_data_uni(64 << 10);
    config.set_initial_max_streams_uni(8);
    config.set_max_idle_timeout(IDLE_TIMEOUT.as_millis() as u64);
    config.set_disable_active_migration(true);
    config.discover_pmtu(false);
    Ok(config)
}

/// Why a connection is of no use.
enum Broken {
    Tls(AlertDescription),
    Other(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// QUIC on its socket.
struct Wire {
    quic: quiche::Connection,
    socket: UdpSocket,
    arrivals: ReceiveBatch,
    packet: Vec<u8>,
    addresses: quiche::RecvInfo,
}

impl Wire {
    async fn new(name: Option<&str>, peer: SocketAddr, config: &mut quiche::Config) -> io::Result<Self> {
        let socket = UdpSocket::bind(socket::unspecified_like(peer)).await?;
        socket.connect(peer).await?;
        // A window of packets has to wait somewhere when this host is busy.
        socket::grow_receive_buffer(&socket);
        // Without it packets come one by one.
        let _ = datagram::enable_gro(&socket);
        let local = socket.local_addr()?;
        let id: [u8; 16] = random::try_bytes()?;
        let id = quiche::ConnectionId::from_ref(&id);
        let quic = quiche::connect(name, &id, local, peer, config).map_err(io::Error::other)?;
        let addresses = quiche::RecvInfo { from: peer, to: local };
        let arrivals = ReceiveBatch::of_trains();
        Ok(Self { quic, socket, arrivals, packet: vec![0; PACKET_BYTES], addresses })
    }

    async fn shake_hands(&mut self) -> Result<(), Broken> {
        while !self.quic.is_established() {
            self.flush().await?;
            if self.quic.is_closed() {
                return Err(self.why_closed());
            }
            let timeout = self.quic.timeout().unwrap_or(IDLE_TIMEOUT);
            tokio::select! {
                ready = self.socket.readable() => { ready?; self.receive()?; }
                () = tokio::time::sleep(timeout) => self.quic.on_timeout(),
            }
        }
        Ok(())
    }

    fn why_closed(&self) -> Broken {
        // RFC 9001 section 4.8: 0x100 and the TLS alert.
        let is_tls =
            |error: &quiche::ConnectionError| !error.is_app && (0x100..0x200).contains(&error.error_code);
        match self.quic.local_error().or(self.quic.peer_error()) {
            Some(error) if is_tls(error) => Broken::Tls((error.error_code as u8).into()),
            Some(error) => Broken::Other(format!("closed with error {:#x}", error.error_code)),
            None => Broken::Other("no answer".into()),
        }
    }

    /// Take in what has come, at most one batch.
    fn receive(&mut self) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        let arrivals = &mut self.arrivals;
        let taken = self.socket.try_io(Interest::READABLE, || match arrivals.receive(fd)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        });
        let count = match taken {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            other => other?,
        };
        for index in 0..count {
            let segment_bytes = arrivals.datagram(index).segment_bytes.unwrap_or(usize::MAX);
            let bytes = arrivals.bytes_mut(index);
            for packet in bytes.chunks_mut(segment_bytes.clamp(1, 1 << 16)) {
                // What is wrong with a packet shows in the state of the connection, if it matters.
                let _ = self.quic.recv(packet, self.addresses);
            }
        }
        Ok(())
    }

    /// Send what is due.
    async fn flush(&mut self) -> io::Result<()> {
        while let Ok((length, _)) = self.quic.send(&mut self.packet) {
            self.socket.send(&self.packet[..length]).await?;
        }
        Ok(())
    }
}

/// One answer under way.
struct Stream {
    answer: Option<oneshot::Sender<Head>>,
    body: Option<mpsc::UnboundedSender<Result<Bytes, String>>>,
}

struct Driver {
    wire: Wire,
    h3: h3::Connection,
    /// Requests that found no room.
    waiting: VecDeque<Command>,
    streams: HashMap<u64, Stream>,
    is_closed: Rc<Cell<bool>>,
    facts: Rc<PathFacts>,
}

impl Driver {
    /// Until the connection ends, or nobody is left who could ask.
    async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let why = match self.drive(&mut commands).await {
            Ok(()) => "the connection was closed".to_owned(),
            Err(error) => error.to_string(),
        };
        self.is_closed.set(true);
        for (_, stream) in self.streams.drain() {
            stream.fail(&why);
        }
    }

    async fn drive(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>) -> io::Result<()> {
        loop {
            self.ask_waiting();
            self.take_events();
            self.wire.flush().await?;
            if let Some(path) = self.wire.quic.path_stats().next() {
                self.facts.round_trip(path.min_rtt.unwrap_or(path.rtt).as_micros() as u64);
            }
            if self.wire.quic.is_closed() {
                return Ok(());
            }
            let timeout = self.wire.quic.timeout().unwrap_or(IDLE_TIMEOUT);
            tokio::select! {
                ready = self.wire.socket.readable() => { ready?; self.wire.receive()?; }
                () = tokio::time::sleep(timeout) => self.wire.quic.on_timeout(),
                command = commands.recv(), if !self.wire.quic.is_draining() => match command {
                    Some(command) => self.waiting.push_back(command),
                    None => self.close(),
                },
            }
        }
    }

    fn close(&mut self) {
        // It may be closing already.
        let _ = self.wire.quic.close(true, h3::WireErrorCode::NoError as u64, b"");
    }

    fn ask_waiting(&mut self) {
        while let Some(command) = self.waiting.pop_front() {
            match self.h3.send_request(&mut self.wire.quic, &command.headers, true) {
                Ok(id) => {
                    self.streams.insert(id, Stream { answer: Some(command.answer), body: None });
                }
                // Streams, or room in the congestion window, come with answers.
                Err(h3::Error::StreamBlocked | h3::Error::TransportError(quiche::Error::StreamLimit)) => {
                    self.waiting.push_front(command);
                    return;
                }
                Err(error) => {
                    self.is_closed.set(true);
                    let _ = command.answer.send(Err(error.to_string()));
                }
            }
        }
    }

    fn take_events(&mut self) {
        loop {
            match self.h3.poll(&mut self.wire.quic) {
                Ok((id, h3::Event::Headers { list, .. })) => self.head(id, &list),
                Ok((id, h3::Event::Data)) => self.data(id),
                Ok((id, h3::Event::Finished)) => drop(self.streams.remove(&id)),
                Ok((id, h3::Event::Reset(code))) => {
                    self.fail(id, &format!("the server reset the stream ({code:#x})"))
                }
                Ok((_, h3::Event::GoAway)) => self.is_closed.set(true),
                Ok((_, h3::Event::PriorityUpdate)) => (),
                Err(h3::Error::Done) => return,
                // quiche closes the connection itself where the error is one of the connection.
                Err(_) => return,
            }
        }
    }

    fn head(&mut self, id: u64, list: &[h3::Header]) {
        let Some(answer) = self.streams.get_mut(&id).and_then(|stream| stream.answer.take()) else { return };
        let (sender, receiver) = mpsc::unbounded_channel();
        let Some(head) = head_of(list) else {
            let _ = answer.send(Err("the head of the answer is not HTTP".into()));
            return self.cancel(id);
        };
        if head.status.is_informational() {
            // The one that counts is still to come.
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.answer = Some(answer);
            }
            return;
        }
        if answer.send(Ok((head, Body(receiver)))).is_err() {
            return self.cancel(id);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.body = Some(sender);
        }
    }

    fn data(&mut self, id: u64) {
        loop {
            let mut piece = BytesMut::with_capacity(PIECE_BYTES).limit(PIECE_BYTES);
            let length = match self.h3.recv_body_buf(&mut self.wire.quic, id, &mut piece) {
                Ok(length) => length,
                Err(h3::Error::Done) => return,
                // A stream that was reset has no other event.
                Err(error) => return self.fail(id, &format!("the answer broke off: {error}")),
            };
            let bytes = piece.into_inner().freeze();
            debug_assert_eq!(length, bytes.len());
            let body = self.streams.get(&id).and_then(|stream| stream.body.as_ref());
            if body.is_none_or(|body| body.send(Ok(bytes)).is_err()) {
                return self.cancel(id);
            }
        }
    }

    /// Nobody wants the rest.
    fn cancel(&mut self, id: u64) {
        self.streams.remove(&id);
        let code = h3::WireErrorCode::RequestCancelled as u64;
        let _ = self.wire.quic.stream_shutdown(id, quiche::Shutdown::Read, code);
    }

    fn fail(&mut self, id: u64, why: &str) {
        if let Some(stream) = self.streams.remove(&id) {
            stream.fail(why);
        }
    }
}

impl Stream {
    fn fail(self, why: &str) {
        if let Some(answer) = self.answer {
            let _ = answer.send(Err(why.into()));
        }
        if let Some(body) = self.body {
            let _ = body.send(Err(why.into()));
        }
    }
}

/// Status and headers; none where they are not of HTTP.
fn head_of(list: &[h3::Header]) -> Option<response::Parts> {
    let mut answer = http::Response::builder();
    for header in list {
        answer = match header.name() {
            b":status" => answer.status(header.value()),
            name => answer.header(name, header.value()),
        };
    }
    answer.body(()).ok().map(|answer| answer.into_parts().0)
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use super::*;
    use crate::network::options::Http;

    #[tokio::test]
    async fn the_next_address_is_tried_where_one_does_not_answer() {
        let own = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        let ca_file = std::env::temp_dir().join(format!("netjoule-addresses-{}.pem", std::process::id()));
        std::fs::write(&ca_file, own.cert.pem()).unwrap();
        let options = Options {
            http: Http::Three,
            protocols: &[],
            judge: OnceCell::new(),
            tls: OnceCell::new(),
            ca_file: Some(ca_file.clone()),
            window_bytes: None,
            patience: Duration::ZERO,
            facts: Rc::default(),
        };
        options.judge().unwrap();
        std::fs::remove_file(ca_file).unwrap();
        let listener = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addresses = ["127.0.0.1:9".parse().unwrap(), listener.local_addr().unwrap()];
        let origin = Origin { is_tls: true, host: "a".to_owned(), port: 9 };
        let mut packet = [0; PACKET_BYTES];
        tokio::select! {
            _ = open(&origin, &addresses, &options) => panic!("the second address was not waited for"),
            heard = listener.recv(&mut packet) => assert!(heard.unwrap() > 0),
        }
    }
}
