// SPDX-License-Identifier: Apache-2.0
//! One connection to a server, whatever HTTP it speaks: requests go in, answers come out.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::{poll_fn, Future};
use std::net::SocketAddr;

use bytes::Bytes;
use http::{response, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ProtocolVersion};
use tokio_rustls::TlsConnector;

use crate::fault::{Fault, Trouble};
use crate::network::http3;
use crate::network::options::{Http, Options, Server};
use crate::network::origin::Origin;
use crate::network::socket::{Watched, CONNECT_TIMEOUT};
use crate::network::tls;

/// HTTP/2's windows where none is given, bytes: of a stream, and of a connection.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// HTTP/2's largest frame, bytes: each costs a header and a wake-up.
const FRAME_BYTES: u32 = 256 << 10;

enum Channel {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
    Three(http3::Requests),
}

/// A connection that is open.
pub(crate) struct Connection {
    channel: RefCell<Channel>,
    /// Requests under way.
    pub(crate) streams: Cell<u32>,
    /// Requests that were answered before.
    pub(crate) answered: Cell<u64>,
    /// It takes no further request.
    is_retired: Cell<bool>,
    /// The other end answered with something else than the HTTP that it was asked in.
    pub(crate) speaks_otherwise: Cell<bool>,
    /// TLS and HTTP.
    pub(crate) server: Server,
}

/// An answer whose body is still to come.
pub(crate) struct Answer {
    /// Status and headers.
    pub(crate) head: response::Parts,
    body: Body,
}

enum Body {
    Hyper(Incoming),
    Three(http3::Body),
}

impl Answer {
    /// The next bytes; none at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match &mut self.body {
            Body::Three(body) => body.chunk().await,
            Body::Hyper(body) => loop {
                match body.frame().await {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(reason(&error)),
                    Some(Ok(frame)) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Ok(Some(bytes));
                        }
                    }
                }
            },
        }
    }
}

impl Connection {
    /// Open one.
    pub(crate) async fn open(
        origin: &Origin,
        addresses: &[SocketAddr],
        options: &Options,
    ) -> Result<Self, Trouble> {
        if options.http == Http::Three {
            let (requests, server) = http3::open(origin, addresses, options).await?;
            return Ok(Self::new(Channel::Three(requests), server));
        }
        let connected = Watched::connect(addresses, options.window_bytes, options.facts.clone()).await;
        let socket = connected.map_err(|error| unreachable(origin, &error))?;
        let mut server = Server::default();
        let channel = if origin.is_tls {
            over_tls(socket, origin, options, &mut server).await?
        } else {
            speak(socket, options.http == Http::Two, options, &mut server).await?
        };
        Ok(Self::new(channel, server))
    }

    fn new(channel: Channel, server: Server) -> Self {
        Self {
            channel: RefCell::new(channel),
            streams: Cell::new(0),
            answered: Cell::new(0),
            is_retired: Cell::new(false),
            speaks_otherwise: Cell::new(false),
            server,
        }
    }

    /// Ask for something. On HTTP/1.1 the answer before must be at its end.
    pub(crate) async fn ask(&self, request: Request<Empty<Bytes>>) -> Result<Answer, String> {
        poll_fn(|context| match &mut *self.channel.borrow_mut() {
            Channel::One(channel) => channel.poll_ready(context),
            Channel::Two(channel) => channel.poll_ready(context),
            Channel::Three(_) => std::task::Poll::Ready(Ok(())),
        })
        .await
        .map_err(|error| reason(&error))?;
        let hyper = |answer: http::Response<Incoming>| {
            let (head, body) = answer.into_parts();
            Answer { head, body: Body::Hyper(body) }
        };
        // The requests are made here and waited for outside, where nothing is borrowed.
        let asked = match &mut *self.channel.borrow_mut() {
            Channel::One(channel) => Asking::One(channel.send_request(request)),
            Channel::Two(channel) => Asking::Two(channel.send_request(request)),
            Channel::Three(channel) => Asking::Three(channel.ask(&request)),
        };
        match asked {
            Asking::One(answer) => answer.await.map(hyper).map_err(|error| reason(&error)),
            Asking::Two(answer) => answer.await.map(hyper).map_err(|error| {
                self.speaks_otherwise.set(is_no_frame(&error));
                reason(&error)
            }),
            Asking::Three(answer) => {
                let (head, body) = answer.await?;
                Ok(Answer { head, body: Body::Three(body) })
            }
        }
    }

    /// Take no further request.
    pub(crate) fn retire(&self) {
        self.is_retired.set(true);
    }

    /// Whether it takes a request.
    pub(crate) fn is_usable(&self) -> bool {
        let is_open = match &*self.channel.borrow() {
            Channel::One(channel) => !channel.is_closed(),
            Channel::Two(channel) => !channel.is_closed(),
            Channel::Three(channel) => !channel.is_closed(),
        };
        is_open && !self.is_retired.get()
    }

    /// Requests that it carries at once, at most.
    pub(crate) fn most_streams(&self, asked: u32) -> u32 {
        if matches!(&*self.channel.borrow(), Channel::One(_)) {
            1
        } else {
            asked
        }
    }
}

enum Asking<One, Two, Three> {
    One(One),
    Two(Two),
    Three(Three),
}

fn unreachable(origin: &Origin, error: &std::io::Error) -> Trouble {
    Trouble::Unanswered(format!("{origin} cannot be reached: {error}"))
}

async fn over_tls(
    socket: Watched,
    origin: &Origin,
    options: &Options,
    server: &mut Server,
) -> Result<Channel, Trouble> {
    let refused = |words: String| Trouble::Server(Fault::new("tls", words));
    let name = ServerName::try_from(origin.host.clone())
        .map_err(|_| refused(format!("{origin} has no name that a certificate could have")))?;
    let connector = TlsConnector::from(options.tls().map_err(|failure| refused(failure.message))?);
    let silent = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer TLS");
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, socket)).await;
    let stream = stream.unwrap_or_else(|_| Err(silent())).map_err(|error| {
        let why = error.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>());
        why.map_or_else(
            || unreachable(origin, &error),
            |why| tls::refused(origin, why, options.ca_file.as_deref()),
        )
    })?;
    let tls = stream.get_ref().1;
    server.tls_version = match tls.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => Some("1.2"),
        Some(ProtocolVersion::TLSv1_3) => Some("1.3"),
        _ => None,
    };
    let is_two = tls.alpn_protocol() == Some(b"h2");
    if options.http == Http::Two && !is_two {
        return Err(origin.speaks_otherwise());
    }
    speak(stream, is_two, options, server).await
}

/// Shake hands over a stream that is open, and have the connection driven from then on.
async fn speak<S>(stream: S, is_two: bool, options: &Options, server: &mut Server) -> Result<Channel, Trouble>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    let failed = |error: hyper::Error| Trouble::Unanswered(reason(&error));
    let io = TokioIo::new(stream);
    if !is_two {
        let (channel, connection) = http1::Builder::new().handshake(io).await.map_err(failed)?;
        // Why it ends is told by its requests.
        tokio::task::spawn_local(async { drop(connection.await) });
        server.http_version = Some("1.1");
        return Ok(Channel::One(channel));
    }
    let window_bytes = options.window_bytes;
    let mut builder = http2::Builder::new(Local);
    builder.initial_stream_window_size(window_bytes.unwrap_or(STREAM_WINDOW_BYTES));
    builder.initial_connection_window_size(window_bytes.unwrap_or(CONNECTION_WINDOW_BYTES));
    builder.max_frame_size(FRAME_BYTES);
    let (channel, connection) = builder.handshake(io).await.map_err(failed)?;
    tokio::task::spawn_local(async { drop(connection.await) });
    server.http_version = Some("2");
    Ok(Channel::Two(channel))
}

/// Has futures driven by this thread.
#[derive(Clone)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Whether what came is no frame of HTTP/2: the letters of an answer of /1.1 are one of 4 MB.
fn is_no_frame(error: &hyper::Error) -> bool {
    let behind = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    behind.is_some_and(|error| !error.is_remote() && error.reason() == Some(h2::Reason::FRAME_SIZE_ERROR))
}

/// hyper's error with what is behind it.
fn reason(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
