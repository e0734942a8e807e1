// SPDX-License-Identifier: Apache-2.0
//! One end of an SCTP flow.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_transport::candidates::{Candidate, Candidates, Verdict};
use netjoule_transport::preface::{self, Preface, ACCEPTED, PREFACE_BYTES};
use netjoule_transport::{
    timestamp_counts, Arrival, Congestion, FlowSpec, IpVersion, Packetisation, PollFd, Result, Role, State,
    Stop, Transport, TransportError, Values,
};
use socket2::Socket;

use crate::kernel::{self, Read, Statistics};
use crate::options::{Choice, Reliability};
use crate::reader::Reader;

/// Names this transport in the client's first message.
const MAGIC: &[u8; 4] = b"NJSC";

/// Messages per [`Transport::receive`].
const MESSAGES_PER_RECEIVE: usize = 256;
/// SCTP's common header, and the header of a DATA chunk, in bytes (RFC 9260 sections 3.1 and 3.3.1). Chunks are padded to
/// 4 bytes.
const COMMON_HEADER_BYTES: u64 = 12;
const DATA_CHUNK_HEADER_BYTES: u64 = 16;

enum Phase {
    /// Server: waiting for an association with the right first message.
    Listening(Candidates),
    /// Client: waiting for SCTP's handshake.
    Connecting,
    /// Client: first message written, waiting for the answer.
    Asking,
    Open,
    Closed,
}

pub(crate) struct End {
    phase: Phase,
    choice: Choice,
    /// The association; the listener has its own socket.
    socket: Option<Socket>,
    preface: Preface,
    peer: Option<SocketAddr>,
    role: Role,
    /// Only at a receiving end, once it is open.
    reader: Option<Reader>,
    /// Messages sent, each padded as in its DATA chunk, bytes.
    padded_bytes_sent: u64,
    /// The kernel took nothing the last time: wait until it is writable.
    full: bool,
    blocked: u64,
    started: Option<Statistics>,
}

impl End {
    pub(crate) fn connect(local: Option<IpAddr>, remote: SocketAddr, flow: &FlowSpec) -> Result<Self> {
        let choice = Choice::of(&flow.options)?;
        let socket = kernel::open(remote)?;
        kernel::prepare(&socket, choice)?;
        // Bound to any address, an association has all of this host's, and may move to another network.
        let ip = match local {
            Some(ip) => ip,
            None => socket::source_towards(remote)
                .map_err(TransportError::io(format!("find a way to {remote}")))?,
        };
        bind(&socket, SocketAddr::new(ip, 0))?;
        match socket.connect(&remote.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(refused(remote, &error)),
        }
        Ok(Self::new(Phase::Connecting, choice, Some(socket), Some(remote), flow))
    }

    pub(crate) fn listen(local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> Result<Self> {
        let choice = Choice::of(&flow.options)?;
        let socket = kernel::open(local)?;
        kernel::prepare(&socket, choice)?;
        bind(&socket, local)?;
        let listener = Candidates::listen(socket, allowed_peer)
            .map_err(TransportError::io(format!("listen on SCTP {local}")))?;
        Ok(Self::new(Phase::Listening(listener), choice, None, None, flow))
    }

    fn new(
        phase: Phase,
        choice: Choice,
        socket: Option<Socket>,
        peer: Option<SocketAddr>,
        flow: &FlowSpec,
    ) -> Self {
        Self {
            phase,
            choice,
            socket,
            preface: preface::encode(MAGIC, &flow.token),
            peer,
            role: flow.role,
            reader: None,
            padded_bytes_sent: 0,
            full: false,
            blocked: 0,
            started: None,
        }
    }

    fn connection(&self) -> Result<&Socket> {
        self.socket
            .as_ref()
            .ok_or_else(|| TransportError::Lost("the SCTP flow has no association yet".into()))
    }

    fn peer_name(&self) -> String {
        self.peer.map_or_else(|| "the peer".into(), |peer| peer.to_string())
    }

    fn lost(&self, error: &io::Error) -> TransportError {
        TransportError::Lost(format!("the SCTP association with {} broke: {error}", self.peer_name()))
    }

    fn opened(&mut self) -> Result<Phase> {
        let socket = self.connection()?;
        match self.role {
            Role::Sender => kernel::prepare_sending(socket, self.choice)?,
            Role::Receiver => self.reader = Some(Reader::new(socket, self.choice.ordered)?),
        }
        let socket = self.connection()?;
        self.started = Statistics::read(socket.as_raw_fd());
        Ok(Phase::Open)
    }

    fn listen_step(&mut self, mut listener: Candidates) -> Result<Phase> {
        let proven = listener.step(&mut |candidate| read_preface(candidate, &self.preface))?;
        let Some(Candidate { socket, from, .. }) = proven else { return Ok(Phase::Listening(listener)) };
        kernel::prepare(&socket, self.choice)?;
        self.peer = Some(from);
        socket.send_with_flags(ACCEPTED, libc::MSG_NOSIGNAL).map_err(|error| self.lost(&error))?;
        self.socket = Some(socket);
        self.opened()
    }

    fn connect_step(&mut self) -> Result<Phase> {
        let remote = self.peer.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        let socket = self.connection()?;
        if let Some(error) = socket.take_error().map_err(TransportError::io("ask for the socket's error"))? {
            return Err(refused(remote, &error));
        }
        match socket.send_with_flags(&self.preface, libc::MSG_NOSIGNAL) {
            Ok(_) => Ok(Phase::Asking),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Phase::Connecting),
            // Linux says EPIPE while the handshake is under way; one that failed has left an error at the socket.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::EPIPE)) => {
                Ok(Phase::Connecting)
            }
            Err(error) => Err(refused(remote, &error)),
        }
    }

    fn ask_step(&mut self) -> Result<Phase> {
        let mut answer = [0; ACCEPTED.len()];
        match kernel::receive(self.connection()?, &mut answer) {
            Ok(Read::Nothing) => Ok(Phase::Asking),
            Ok(Read::Bytes(length, true)) if answer[..length] == *ACCEPTED => self.opened(),
            Ok(Read::Bytes(..)) => {
                Err(TransportError::Refused(format!("{} is not a netjoule server", self.peer_name())))
            }
            Ok(Read::End) => Err(TransportError::Refused(format!(
                "{} closed the association without accepting the flow",
                self.peer_name()
            ))),
            // The first message was taken before the handshake was done.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(TransportError::Refused(format!("cannot connect to SCTP {}: {error}", self.peer_name())))
            }
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// A sending end reads nothing but the peer's goodbye.
    fn watch(&mut self) -> Result<Phase> {
        match kernel::receive(self.connection()?, &mut [0]) {
            Ok(Read::End) => Ok(Phase::Closed),
            Ok(_) => Ok(Phase::Open),
            Err(error) => Err(self.lost(&error)),
        }
    }
}

/// Whether a candidate is proven. Its first message must be the preface, whole.
fn read_preface(candidate: &mut Candidate, expected: &Preface) -> Verdict {
    let mut bytes = [0; PREFACE_BYTES];
    match kernel::receive(&candidate.socket, &mut bytes) {
        Ok(Read::Nothing) => Verdict::More,
        Ok(Read::Bytes(length, true)) if bytes[..length] == *expected => Verdict::Proven,
        Ok(Read::Bytes(..) | Read::End) | Err(_) => Verdict::Wrong,
    }
}

fn bind(socket: &Socket, local: SocketAddr) -> Result<()> {
    socket.bind(&local.into()).map_err(TransportError::io(format!("bind SCTP {local}")))
}

fn refused(remote: SocketAddr, error: &io::Error) -> TransportError {
    TransportError::Refused(format!("cannot connect to SCTP {remote}: {error}"))
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let socket = match &self.phase {
            Phase::Listening(listener) => listener.socket(),
            _ => self.connection()?,
        };
        socket::local_address(socket, "SCTP")
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        kernel::path_mtu_bytes(self.socket.as_ref()?.as_raw_fd())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        if let Phase::Listening(listener) = &self.phase {
            listener.poll_fds(fds);
        }
        let Some(socket) = &self.socket else { return };
        let fd = socket.as_raw_fd();
        match self.phase {
            Phase::Connecting => fds.push(PollFd { fd, read: false, write: true }),
            Phase::Asking => fds.push(PollFd { fd, read: true, write: false }),
            Phase::Open => fds.push(PollFd { fd, read: self.role == Role::Receiver, write: self.full }),
            Phase::Listening(_) | Phase::Closed => {}
        }
    }

    fn service(&mut self, _now_ns: i64) -> Result<State> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Listening(listener) => self.listen_step(listener)?,
            Phase::Connecting => self.connect_step()?,
            Phase::Asking => self.ask_step()?,
            Phase::Open if self.role == Role::Sender => self.watch()?,
            other => other,
        };
        Ok(match self.phase {
            Phase::Open => State::Open,
            Phase::Closed => State::Closed,
            _ => State::Connecting,
        })
    }

    fn send(&mut self, message: &[u8], _now_ns: i64) -> Result<Stop> {
        // A message is taken whole or not at all.
        match self.connection()?.send_with_flags(message, libc::MSG_NOSIGNAL) {
            Ok(_) => {
                self.full = false;
                self.padded_bytes_sent += message.len().next_multiple_of(4) as u64;
                Ok(Stop::None)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.full = true;
                self.blocked += 1;
                Ok(Stop::WouldBlock)
            }
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn receive(&mut self, _now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        if !matches!(self.phase, Phase::Open) {
            return Ok(0);
        }
        let (Some(socket), Some(reader)) = (&self.socket, &mut self.reader) else { return Ok(0) };
        let mut total = 0;
        while total < MESSAGES_PER_RECEIVE {
            match reader.read(socket, sink) {
                Ok(Some(messages)) => total += messages,
                Ok(None) => {
                    self.phase = Phase::Closed;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(total)
    }

    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        self.full = false;
        Ok(())
    }

    fn drained(&self) -> bool {
        self.socket
            .as_ref()
            .and_then(|socket| kernel::queued_bytes(socket.as_raw_fd()))
            .is_none_or(|bytes| bytes == 0)
    }

    fn path_statistics(&mut self) -> Values {
        let Some(socket) = &self.socket else { return Values::new() };
        let fd = socket.as_raw_fd();
        let mut values = kernel::values(fd);
        values.insert("nodelay".into(), kernel::nodelay(fd).into());
        values.insert("send_buffer_bytes".into(), socket.send_buffer_size().unwrap_or(0).into());
        values.insert("receive_buffer_bytes".into(), socket.recv_buffer_size().unwrap_or(0).into());
        if self.role == Role::Sender {
            values.insert("times_blocked".into(), self.blocked.into());
            if let Some((unordered, reliability)) = kernel::sending(fd) {
                values.insert("ordered".into(), (!unordered).into());
                match reliability {
                    Reliability::Full => None,
                    Reliability::Lifetime(ms) => values.insert("lifetime_ms".into(), ms.into()),
                    Reliability::Retransmissions(most) => {
                        values.insert("max_retransmissions".into(), most.into())
                    }
                };
            }
        }
        if let Some(reader) = &self.reader {
            timestamp_counts::report(reader.timestamp_counts(), &mut values);
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        kernel::congestion(self.socket.as_ref()?.as_raw_fd())
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let figures = self.socket.as_ref().zip(self.peer).zip(self.started.as_ref()).and_then(
            |((socket, peer), start)| {
                let now = Statistics::read(socket.as_raw_fd())?;
                measured(start, &now, IpVersion::of(peer.ip()), messages_sent, self.padded_bytes_sent)
            },
        );
        Packetisation::measured(figures)
    }

    fn close(&mut self, _now_ns: i64) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Packets per message and mean IP packet size between two readings: packets and chunks are the kernel's counts, sizes
/// follow from them and `payload`, the messages' padded bytes. A sending end's packets are its data; retransmissions count.
fn measured(
    start: &Statistics,
    end: &Statistics,
    ip_version: IpVersion,
    messages: u64,
    payload: u64,
) -> Option<(f64, f64)> {
    let difference = |name| Some(end.field(name)?.saturating_sub(start.field(name)?));
    let packets = difference("packets_sent").filter(|packets| *packets > 0 && messages > 0)?;
    let first = end.data_chunks_sent()?.saturating_sub(start.data_chunks_sent()?).max(1);
    let again = difference("data_chunks_retransmitted")?;
    let resent = payload as f64 / first as f64 * again as f64;
    let headers = packets * (ip_version.header_bytes() as u64 + COMMON_HEADER_BYTES)
        + (first + again) * DATA_CHUNK_HEADER_BYTES;
    let bytes = payload as f64 + resent + headers as f64;
    Some((packets as f64 / messages as f64, bytes / packets as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_packet_of_messages_of_several_sizes_is_that_of_their_bytes() {
        let counts = |packets, ordered| {
            Statistics::of(&[("packets_sent", packets), ("ordered_data_chunks_sent", ordered)])
        };
        // 100 messages of 64 and 1,000 bytes in turn, one packet each: 20 + 12 + 16 bytes of headers.
        let payload = 50 * (64 + 1_000);
        let (frames, bytes) =
            measured(&counts(4, 1), &counts(104, 101), IpVersion::V4, 100, payload).unwrap();
        assert_eq!((frames, bytes), (1.0, 532.0 + 48.0));
    }
}
