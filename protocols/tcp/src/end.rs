// SPDX-License-Identifier: Apache-2.0
//! One end of a TCP flow.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_sockets::stream::TimestampedReader;
use netjoule_transport::deframer::Deframer;
use netjoule_transport::kernel_structure::KernelStructure;
use netjoule_transport::opening::{self, Opening, Step};
use netjoule_transport::{
    timestamp_counts, Arrival, BatchOutcome, Congestion, FlowSpec, IpVersion, Packetisation, PollFd, Result,
    Role, State, Stop, Transport, TransportError, Values,
};
use socket2::{SockRef, Socket};

use crate::congestion;
use crate::flavour::Flavour;
use crate::options::Choice;
use crate::tcp_info;
use crate::writer::Writer;

/// Bytes read per call.
const READ_BYTES: usize = 256 << 10;
/// Reads per [`Transport::receive`].
const READS_PER_RECEIVE: usize = 4;
/// TCP header without options in bytes.
const TCP_HEADER_BYTES: u64 = 20;
/// Time stamp option with padding in bytes (RFC 7323), and the `tcpi_options` bit that says it is in use.
const TIMESTAMP_OPTION_BYTES: u64 = 12;
const TIMESTAMP_OPTION_BIT: u64 = 1;

enum Phase {
    Opening(Opening),
    Open,
    Closed,
}

pub(crate) struct End {
    flavour: Flavour,
    choice: Choice,
    /// Messages that are due together go to the kernel in one call.
    joins: bool,
    phase: Phase,
    /// The connection, once it is open, with its peer.
    socket: Option<Socket>,
    peer: Option<SocketAddr>,
    role: Role,
    deframer: Deframer,
    buffer: Vec<u8>,
    /// Only at a receiving end, once it is open.
    reader: Option<TimestampedReader>,
    writer: Writer,
    /// The kernel took nothing the last time: wait until it is writable.
    full: bool,
    blocked: u64,
    started: Option<KernelStructure>,
}

impl End {
    pub(crate) fn connect(
        flavour: Flavour,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
    ) -> Result<Self> {
        let socket = flavour.open(remote)?;
        Choice::of(&flow.options).apply(&socket, flavour, flow.role)?;
        let opening = flavour.stream().connect(socket, local, remote, &flow.token)?;
        Ok(Self::new(flavour, opening, flow))
    }

    pub(crate) fn listen(
        flavour: Flavour,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
    ) -> Result<Self> {
        let socket = flavour.open(local)?;
        socket.set_reuse_address(true).map_err(TransportError::io("set SO_REUSEADDR"))?;
        let opening = flavour.stream().listen(socket, local, allowed_peer, &flow.token)?;
        // What this host lacks is said before a client comes.
        Choice::of(&flow.options).apply(opening.socket(), flavour, flow.role)?;
        Ok(Self::new(flavour, opening, flow))
    }

    fn new(flavour: Flavour, opening: Opening, flow: &FlowSpec) -> Self {
        let receives = flow.role == Role::Receiver;
        let choice = Choice::of(&flow.options);
        Self {
            flavour,
            joins: flow.gso,
            phase: Phase::Opening(opening),
            socket: None,
            peer: None,
            role: flow.role,
            deframer: Deframer::new(flow.payload_bytes),
            buffer: vec![0; if receives { READ_BYTES } else { 0 }],
            reader: None,
            writer: Writer::new(choice.zero_copy && !receives),
            choice,
            full: false,
            blocked: 0,
            started: None,
        }
    }

    fn connection(&self) -> Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| self.flavour.stream().none())
    }

    fn lost(&self, error: &io::Error) -> TransportError {
        let stream = self.flavour.stream();
        self.peer.map_or_else(|| stream.none(), |peer| stream.lost(peer, error))
    }

    fn open_step(&mut self, opening: Opening) -> Result<Phase> {
        match opening.step(self.flavour.stream())? {
            Step::Waiting(opening) => Ok(Phase::Opening(opening)),
            Step::Proven(socket, peer) => {
                self.choice.apply(&socket, self.flavour, self.role)?;
                self.flavour.stream().welcome(&socket, peer)?;
                self.opened(socket, peer)
            }
            Step::Open(socket, peer) => self.opened(socket, peer),
        }
    }

    fn opened(&mut self, socket: Socket, peer: SocketAddr) -> Result<Phase> {
        self.started = tcp_info::read(socket.as_raw_fd());
        if self.role == Role::Receiver {
            self.reader = Some(match self.flavour {
                Flavour::Tcp => TimestampedReader::new(&socket)?,
                // Its kernel joins packets that wait under the stamp of the first: bytes arrived before they were sent.
                Flavour::Mptcp => TimestampedReader::without_stamps(),
            });
        }
        (self.socket, self.peer) = (Some(socket), Some(peer));
        Ok(Phase::Open)
    }

    /// Write what the kernel took only in part before; true when nothing is left.
    fn push_pending(&mut self) -> Result<bool> {
        let Some(socket) = &self.socket else { return Ok(true) };
        self.writer.push_pending(socket).map_err(|error| self.lost(&error))
    }

    /// Offer whole messages in one call; how many were accepted.
    fn offer(&mut self, messages: &[u8], payload_bytes: usize) -> Result<usize> {
        // Full until the next attempt, whatever becomes free meanwhile: the socket's readiness must wake the engine.
        self.full = true;
        let mut accepted = 0;
        if self.push_pending()? {
            let Some(socket) = &self.socket else { return Err(self.flavour.stream().none()) };
            accepted =
                self.writer.offer(socket, messages, payload_bytes).map_err(|error| self.lost(&error))?;
        }
        self.full = accepted * payload_bytes < messages.len();
        self.blocked += u64::from(self.full);
        Ok(accepted)
    }

    /// A sending end reads nothing but the peer's goodbye.
    fn peer_has_closed(&self) -> Result<bool> {
        match opening::read(self.connection()?, &mut [0]) {
            Ok(length) => Ok(length == 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.lost(&error)),
        }
    }
}

/// Bytes that the peer has not acknowledged, with those not yet sent.
fn unacknowledged_bytes(socket: &Socket) -> usize {
    // For a TCP socket the kernel counts what is in flight as well.
    socket::unsent_bytes(socket.as_raw_fd()).unwrap_or(0)
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let socket = match &self.phase {
            Phase::Opening(opening) => opening.socket(),
            Phase::Open | Phase::Closed => self.connection()?,
        };
        socket::local_address(socket, "TCP")
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        socket::path_mtu_bytes(self.socket.as_ref()?.as_raw_fd(), self.peer?.is_ipv4())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        match (&self.phase, &self.socket) {
            (Phase::Opening(opening), _) => opening.poll_fds(fds),
            (Phase::Open, Some(socket)) => {
                let write = self.full || self.writer.has_pending();
                fds.push(PollFd { fd: socket.as_raw_fd(), read: self.role == Role::Receiver, write });
            }
            _ => {}
        }
    }

    fn service(&mut self, _now_ns: i64) -> Result<State> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Opening(opening) => self.open_step(opening)?,
            Phase::Open if self.role == Role::Sender => {
                self.push_pending()?;
                let serviced = self.socket.as_ref().map_or(Ok(()), |socket| self.writer.service(socket));
                serviced.map_err(|error| self.lost(&error))?;
                if self.peer_has_closed()? {
                    Phase::Closed
                } else {
                    Phase::Open
                }
            }
            other => other,
        };
        Ok(match self.phase {
            Phase::Opening(_) => State::Connecting,
            Phase::Open => State::Open,
            Phase::Closed => State::Closed,
        })
    }

    fn send(&mut self, message: &[u8], _now_ns: i64) -> Result<Stop> {
        match self.offer(message, message.len())? {
            0 => Ok(Stop::WouldBlock),
            _ => Ok(Stop::None),
        }
    }

    fn send_batch(&mut self, batch: &mut [u8], payload_bytes: usize, _now_ns: i64) -> Result<BatchOutcome> {
        let messages = batch.len() / payload_bytes;
        let at_once = if self.joins { messages } else { 1 };
        let mut sent = 0;
        for some in batch.chunks(at_once.max(1) * payload_bytes) {
            sent += self.offer(some, payload_bytes)?;
            if self.full {
                return Ok(BatchOutcome { sent, stop: Stop::WouldBlock });
            }
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        self.push_pending().map(drop)
    }

    fn receive(&mut self, _now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let mut total = 0;
        if !matches!(self.phase, Phase::Open) {
            return Ok(0);
        }
        let (Some(socket), Some(reader)) = (&self.socket, &mut self.reader) else { return Ok(0) };
        for _ in 0..READS_PER_RECEIVE {
            match reader.read(socket, &mut self.buffer) {
                Ok((0, _)) => {
                    self.phase = Phase::Closed;
                    break;
                }
                Ok((length, arrived_ns)) => {
                    let mut deliver = |bytes: &[u8]| sink(Arrival { bytes, arrived_ns });
                    total += self.deframer.feed(&self.buffer[..length], &mut deliver)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(total)
    }

    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        self.full = false;
        self.push_pending().map(drop)
    }

    fn drained(&self) -> bool {
        self.writer.is_clear() && self.socket.as_ref().is_none_or(|socket| unacknowledged_bytes(socket) == 0)
    }

    fn path_statistics(&mut self) -> Values {
        let Some(socket) = &self.socket else { return Values::new() };
        let mut values = tcp_info::read(socket.as_raw_fd()).map_or_else(Values::new, |info| info.values());
        let reference = SockRef::from(socket);
        values.insert("nodelay".into(), reference.nodelay().unwrap_or(false).into());
        let low_water = socket::get_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
        if let Ok(bytes) = low_water {
            values.insert("not_sent_low_water_bytes".into(), bytes.into());
        }
        values.insert("receive_buffer_bytes".into(), reference.recv_buffer_size().unwrap_or(0).into());
        values.insert("send_buffer_bytes".into(), reference.send_buffer_size().unwrap_or(0).into());
        if let Some(name) = congestion::in_use(socket) {
            values.insert("congestion_control".into(), name.into());
        }
        values.extend(self.flavour.values(socket.as_raw_fd()));
        if self.role == Role::Sender {
            values.insert("times_blocked".into(), self.blocked.into());
            values.extend(self.writer.values());
        }
        if let Some(reader) = &self.reader {
            timestamp_counts::report(reader.timestamp_counts(), &mut values);
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        tcp_info::read(self.socket.as_ref()?.as_raw_fd()).map(|info| tcp_info::congestion(&info))
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let figures = self.socket.as_ref().and_then(|socket| {
            let fd = socket.as_raw_fd();
            let now = tcp_info::read(fd).filter(|_| self.flavour.has_one_path(fd))?;
            let headers = header_bytes(&now, IpVersion::of(self.peer?.ip())) + self.flavour.option_bytes(fd);
            measured(self.started.as_ref()?, &now, headers, messages_sent)
        });
        Packetisation::measured(figures)
    }

    fn close(&mut self, _now_ns: i64) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Bytes of IP and TCP header in a data segment.
fn header_bytes(info: &KernelStructure, ip_version: IpVersion) -> u64 {
    let options =
        if tcp_info::options(info) & TIMESTAMP_OPTION_BIT == 0 { 0 } else { TIMESTAMP_OPTION_BYTES };
    ip_version.header_bytes() as u64 + TCP_HEADER_BYTES + options
}

/// Data segments per message and mean IP packet size between two readings; `None` when nothing was sent or the
/// kernel is too old to count (data segments: Linux 4.6, bytes sent: 4.19). Retransmissions count as packets.
fn measured(
    start: &KernelStructure,
    end: &KernelStructure,
    header_bytes: u64,
    messages: u64,
) -> Option<(f64, f64)> {
    let difference = |name| Some(end.field(name)?.saturating_sub(start.field(name)?));
    let segments = difference("data_segments_out").filter(|segments| *segments > 0)?;
    let bytes = difference("bytes_sent")?;
    let frames_per_message = (messages > 0).then(|| segments as f64 / messages as f64)?;
    Some((frames_per_message, bytes as f64 / segments as f64 + header_bytes as f64))
}

#[cfg(test)]
mod tests;
