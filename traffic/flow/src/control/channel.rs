// SPDX-License-Identifier: Apache-2.0
//! The control connection: lines over TCP with limits on length, on their sum, on their order and on waiting. Never
//! blocks longer than told.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use netjoule_transport::PollFd;
use socket2::{SockRef, Socket, TcpKeepalive};

use crate::control::order::{Order, Side};
use crate::control::{self, take_line, Message, LINE_BYTES};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::wait::Waiter;

/// How long a peer may take to accept our lines, ns.
const WRITE_NS: i64 = 10_000_000_000;
/// A silent connection is probed after this long, so that a vanished host is noticed at all.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_PROBE: Duration = Duration::from_secs(10);
/// What was said and not acknowledged for so long is lost, and the connection with it (TCP_USER_TIMEOUT, RFC 5482): a path
/// that comes back sooner costs a flow nothing, one that does not ends it in bounded time.
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// Most bytes that a client may say during a flow: it asks for the time and says when to go and to stop.
const CLIENT_BYTES: usize = 16 << 20;
/// Most bytes that a server may say: its half of the report with every interval.
const SERVER_BYTES: usize = 256 << 20;

/// Lines to and from the peer.
#[derive(Debug)]
pub struct Channel {
    stream: TcpStream,
    received: Vec<u8>,
    /// Bytes that the peer may still say.
    left_bytes: usize,
    order: Order,
    waiter: Waiter,
}

impl Channel {
    /// Connect to a server's control port within `timeout`.
    pub fn connect(remote: SocketAddr, local: Option<IpAddr>, timeout: Duration) -> Outcome<Self> {
        let refused = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrNotAvailable => "no local port is free: net.ipv4.ip_local_port_range",
                _ => "is netjoule-traffic serve running there?",
            };
            Failure::new(
                Code::Refused,
                format!("cannot reach the server's control port {remote}: {error} ({hint})"),
            )
        };
        let socket = Socket::new(socket2::Domain::for_address(remote), socket2::Type::STREAM, None)
            .map_err(Failure::system("open the control socket"))?;
        if let Some(ip) = local {
            socket
                .bind(&SocketAddr::new(ip, 0).into())
                .map_err(|error| Failure::new(Code::Refused, format!("cannot bind to {ip}: {error}")))?;
        }
        socket.connect_timeout(&remote.into(), timeout).map_err(refused)?;
        Self::new(socket.into(), Side::Server)
    }

    /// Take over a connection with this kind of peer. Nothing that it said is waiting elsewhere.
    pub fn new(stream: TcpStream, peer: Side) -> Outcome<Self> {
        let prepare = || {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let socket = SockRef::from(&stream);
            socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_PROBE);
            socket.set_tcp_keepalive(&keepalive)
        };
        prepare().map_err(Failure::system("prepare the control connection"))?;
        let waiter = Waiter::new().map_err(Failure::system("open a timer"))?;
        let left_bytes = match peer {
            Side::Client => CLIENT_BYTES,
            Side::Server => SERVER_BYTES,
        };
        Ok(Self { stream, received: Vec::new(), left_bytes, order: Order::of(peer), waiter })
    }

    /// Descriptor to wait for.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// The peer's address.
    pub fn peer(&self) -> Outcome<SocketAddr> {
        self.stream.peer_addr().map_err(Failure::system("read the control peer's address"))
    }

    /// Send a line; waits at most [`WRITE_NS`] for a slow peer.
    pub fn send(&mut self, message: &Message) -> Outcome<()> {
        let line = control::encode(message);
        let mut rest = line.as_bytes();
        let deadline_ns = host::now_ns() + WRITE_NS;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(length) => rest = &rest[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_writable(deadline_ns)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error.to_string())),
            }
        }
        Ok(())
    }

    fn wait_writable(&mut self, deadline_ns: i64) -> Outcome<()> {
        let now_ns = host::now_ns();
        if now_ns >= deadline_ns {
            return Err(lost("the peer does not read"));
        }
        let fds = [PollFd { fd: self.stream.as_raw_fd(), read: false, write: true }];
        self.waiter
            .wait(&fds, Some(deadline_ns), now_ns)
            .map_err(Failure::system("wait for the control connection"))
    }

    /// Messages that have arrived. An end of the connection is an error once everything before it was taken.
    pub fn receive(&mut self) -> Outcome<Vec<Message>> {
        let ended = self.fill()?;
        let mut messages = Vec::new();
        while let Some(line) = take_line(&mut self.received)? {
            let message = control::decode(&line)?;
            self.order.admit(&message)?;
            messages.push(message);
        }
        match ended {
            Some(reason) if messages.is_empty() => Err(lost(&reason)),
            _ => Ok(messages),
        }
    }

    /// Read what is there, a few lines at most; why the connection ended, if it did.
    fn fill(&mut self) -> Outcome<Option<String>> {
        let mut bytes = [0; 16 << 10];
        while self.received.len() < 2 * LINE_BYTES {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Some("the peer closed it".into())),
                Ok(length) => {
                    self.left_bytes = self.left_bytes.checked_sub(length).ok_or_else(talks_too_much)?;
                    self.received.extend_from_slice(&bytes[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    }
}

fn talks_too_much() -> Failure {
    Failure::new(Code::Protocol, "the peer said more than any flow needs")
}

fn lost(reason: &str) -> Failure {
    Failure::new(Code::ControlLost, format!("the control connection was lost: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        (Channel::new(near, Side::Server).unwrap(), far)
    }

    fn receive_some(channel: &mut Channel) -> Outcome<Vec<Message>> {
        loop {
            let messages = channel.receive()?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn lines_come_whole_and_the_end_comes_last() {
        let (mut channel, mut far) = pair();
        far.write_all(b"{\"type\":\"open\"}\n{\"type\":\"sta").unwrap();
        assert_eq!(receive_some(&mut channel).unwrap(), [Message::Open]);
        far.write_all(b"rted\"}\n").unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(receive_some(&mut channel).unwrap(), [Message::Started]);
        assert_eq!(receive_some(&mut channel).unwrap_err().code, Code::ControlLost);
    }

    #[test]
    fn an_endless_line_is_an_error_and_not_a_growing_buffer() {
        let (mut channel, mut far) = pair();
        let writer = std::thread::spawn(move || while far.write_all(&[b'x'; 4096]).is_ok() {});
        assert_eq!(receive_some(&mut channel).unwrap_err().code, Code::Protocol);
        assert!(channel.received.len() <= 2 * LINE_BYTES + (16 << 10));
        drop(channel);
        writer.join().unwrap();
    }

    #[test]
    fn a_peer_that_speaks_out_of_turn_is_cut_off() {
        let lines: [&[u8]; 4] =
            [b"{\"type\":\"started\"}\n", b"{\"type\":\"go\",\"offset_ns\":0}\n", b"\n", b"\xff\n"];
        for line in lines {
            let (mut channel, mut far) = pair();
            far.write_all(line).unwrap();
            assert_eq!(receive_some(&mut channel).unwrap_err().code, Code::Protocol, "{line:?}");
        }
    }

    #[test]
    fn a_client_cannot_talk_for_ever() {
        let (channel, mut far) = pair();
        let mut channel = Channel::new(channel.stream, Side::Client).unwrap();
        let question = control::encode(&Message::Clock { asked_ns: 0 }).repeat(1_000);
        let writer = std::thread::spawn(move || while far.write_all(question.as_bytes()).is_ok() {});
        let mut heard_bytes = 0;
        let failure = loop {
            match channel.receive() {
                Ok(messages) => heard_bytes += messages.len() * 20,
                Err(failure) => break failure,
            }
        };
        assert_eq!((failure.code, heard_bytes <= CLIENT_BYTES), (Code::Protocol, true));
        drop(channel);
        writer.join().unwrap();
    }

    #[test]
    fn a_closed_port_is_a_clear_refusal() {
        // It is bound but does not listen, and nobody else can.
        let silent = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let closed = silent.local_addr().unwrap().as_socket().unwrap();
        let error = Channel::connect(closed, None, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.code, Code::Refused);
        assert!(error.message.contains(&closed.to_string()));
    }
}
