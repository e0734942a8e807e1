// SPDX-License-Identifier: Apache-2.0
//! One end of an SCTP flow.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_transport::kernel_structure::KernelStructure;
use netjoule_transport::opening::{self, Opening, Step, Stream};
use netjoule_transport::{
    timestamp_counts, Arrival, Congestion, FlowSpec, IpVersion, Packetisation, PollFd, Result, Role, State,
    Stop, Transport, TransportError, Values,
};
use socket2::Socket;

use crate::kernel;
use crate::options::{Choice, Reliability};
use crate::reader::Reader;

/// Linux says EPIPE while the handshake is under way; one that failed has left an error at the socket.
const SCTP: Stream = Stream {
    name: "SCTP",
    connection: "association",
    magic: b"NJSC",
    under_way: &[libc::ENOTCONN, libc::EPIPE],
};

/// Messages per [`Transport::receive`].
const MESSAGES_PER_RECEIVE: usize = 256;
/// SCTP's common header, and the header of a DATA chunk, in bytes (RFC 9260 sections 3.1 and 3.3.1). Chunks are padded to
/// 4 bytes.
const COMMON_HEADER_BYTES: u64 = 12;
const DATA_CHUNK_HEADER_BYTES: u64 = 16;

enum Phase {
    Opening(Opening),
    Open,
    Closed,
}

pub(crate) struct End {
    phase: Phase,
    choice: Choice,
    /// The association, once it is open, with its peer.
    socket: Option<Socket>,
    peer: Option<SocketAddr>,
    role: Role,
    /// Only at a receiving end, once it is open.
    reader: Option<Reader>,
    /// Messages sent, each padded as in its DATA chunk, bytes.
    padded_bytes_sent: u64,
    /// The kernel took nothing the last time: wait until it is writable.
    full: bool,
    blocked: u64,
    started: Option<KernelStructure>,
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
        let opening = SCTP.connect(socket, Some(ip), remote, &flow.token)?;
        Ok(Self::new(opening, choice, flow))
    }

    pub(crate) fn listen(local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> Result<Self> {
        let choice = Choice::of(&flow.options)?;
        let socket = kernel::open(local)?;
        kernel::prepare(&socket, choice)?;
        let opening = SCTP.listen(socket, local, allowed_peer, &flow.token)?;
        Ok(Self::new(opening, choice, flow))
    }

    fn new(opening: Opening, choice: Choice, flow: &FlowSpec) -> Self {
        Self {
            phase: Phase::Opening(opening),
            choice,
            socket: None,
            peer: None,
            role: flow.role,
            reader: None,
            padded_bytes_sent: 0,
            full: false,
            blocked: 0,
            started: None,
        }
    }

    fn connection(&self) -> Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| SCTP.none())
    }

    fn lost(&self, error: &io::Error) -> TransportError {
        self.peer.map_or_else(|| SCTP.none(), |peer| SCTP.lost(peer, error))
    }

    fn open_step(&mut self, opening: Opening) -> Result<Phase> {
        match opening.step(&SCTP)? {
            Step::Waiting(opening) => Ok(Phase::Opening(opening)),
            Step::Proven(socket, peer) => {
                kernel::prepare(&socket, self.choice)?;
                SCTP.welcome(&socket, peer)?;
                self.opened(socket, peer)
            }
            Step::Open(socket, peer) => self.opened(socket, peer),
        }
    }

    fn opened(&mut self, socket: Socket, peer: SocketAddr) -> Result<Phase> {
        match self.role {
            Role::Sender => kernel::prepare_sending(&socket, self.choice)?,
            Role::Receiver => self.reader = Some(Reader::new(&socket, self.choice.ordered)?),
        }
        self.started = kernel::statistics(socket.as_raw_fd());
        (self.socket, self.peer) = (Some(socket), Some(peer));
        Ok(Phase::Open)
    }

    /// A sending end reads nothing but the peer's goodbye.
    fn watch(&mut self) -> Result<Phase> {
        match opening::read(self.connection()?, &mut [0]) {
            Ok(0) => Ok(Phase::Closed),
            Ok(_) => Ok(Phase::Open),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Phase::Open),
            Err(error) => Err(self.lost(&error)),
        }
    }
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let socket = match &self.phase {
            Phase::Opening(opening) => opening.socket(),
            Phase::Open | Phase::Closed => self.connection()?,
        };
        socket::local_address(socket, "SCTP")
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        kernel::path_mtu_bytes(self.socket.as_ref()?.as_raw_fd())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        match (&self.phase, &self.socket) {
            (Phase::Opening(opening), _) => opening.poll_fds(fds),
            (Phase::Open, Some(socket)) => {
                let fd = socket.as_raw_fd();
                fds.push(PollFd { fd, read: self.role == Role::Receiver, write: self.full });
            }
            _ => {}
        }
    }

    fn service(&mut self, _now_ns: i64) -> Result<State> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Opening(opening) => self.open_step(opening)?,
            Phase::Open if self.role == Role::Sender => self.watch()?,
            other => other,
        };
        Ok(match self.phase {
            Phase::Opening(_) => State::Connecting,
            Phase::Open => State::Open,
            Phase::Closed => State::Closed,
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
                let now = kernel::statistics(socket.as_raw_fd())?;
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
    start: &KernelStructure,
    end: &KernelStructure,
    ip_version: IpVersion,
    messages: u64,
    payload: u64,
) -> Option<(f64, f64)> {
    let difference = |name| Some(end.field(name)?.saturating_sub(start.field(name)?));
    let packets = difference("packets_sent").filter(|packets| *packets > 0 && messages > 0)?;
    let first = difference("ordered_data_chunks_sent")? + difference("unordered_data_chunks_sent")?;
    let first = first.max(1);
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
            kernel::statistics_of(&[("packets_sent", packets), ("ordered_data_chunks_sent", ordered)])
        };
        // 100 messages of 64 and 1,000 bytes in turn, one packet each: 20 + 12 + 16 bytes of headers.
        let payload = 50 * (64 + 1_000);
        let (frames, bytes) =
            measured(&counts(4, 1), &counts(104, 101), IpVersion::V4, 100, payload).unwrap();
        assert_eq!((frames, bytes), (1.0, 532.0 + 48.0));
    }
}
