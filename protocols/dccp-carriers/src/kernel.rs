// SPDX-License-Identifier: Apache-2.0
//! One end of a DCCP flow on the kernel's own socket (Linux up to 6.15).
//!
//! The kernel refuses a message with EAGAIN once its queue is full, also on a blocking socket, and `poll` never says
//! when there is room again. A refused message is not sent, and the next try waits for a time computed from how fast the
//! queue empties ([`Retry`]): no spinning, no helper thread whose switching would be measured with the flow.
//! What the kernel still holds when the flow's time to drain is over counts as lost: it cannot be asked for.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_sockets::timestamps::{now_ns, TimestampCounts};
use netjoule_transport::candidates::{self, Candidate, Candidates};
use netjoule_transport::{
    timestamp_counts, Arrival, Congestion, FlowSpec, IpVersion, Packetisation, PacketisationSource, PollFd,
    Result, Role, State, Stop, Transport, TransportError, Values,
};
use socket2::Socket;

use crate::congestion;
use crate::early_data::EarlyData;
use crate::options::Choice;
use crate::retry::Retry;
use crate::token::{self, Prover, Verdict, Verifier};
use crate::{kernel_socket, queue_length};

/// Messages per [`Transport::receive`].
const MESSAGES_PER_RECEIVE: usize = 256;
/// Header of the kernel's Data packets (RFC 4340 section 5.4), in bytes.
const DATA_HEADER_BYTES: usize = 16;

enum Phase {
    /// Server: those that have not proved the token.
    Receiving(Candidates),
    /// Client: waits for the handshake.
    Connecting(Socket, Prover),
    /// Client: waits for the answer to its token.
    Proving(Socket, Prover),
    Open(Socket),
}

pub(crate) struct KernelEnd {
    phase: Phase,
    peer: Option<SocketAddr>,
    verifier: Option<Verifier>,
    closed: bool,
    role: Role,
    payload_bytes: usize,
    buffer: Vec<u8>,
    early: Option<EarlyData>,
    any_message: bool,
    messages_read: u64,
    retry: Retry,
}

/// What [`read_one`] found.
enum Read {
    Message(usize),
    Nothing,
    End,
}

fn read_one(mut socket: &Socket, buffer: &mut [u8]) -> Result<Read> {
    match socket.read(buffer) {
        // No message of ours is empty: the peer closed.
        Ok(0) => Ok(Read::End),
        Ok(length) => Ok(Read::Message(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(Read::End),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            Err(TransportError::Lost("the peer reset the DCCP connection".into()))
        }
        Err(error) => Err(TransportError::io("receive from the DCCP socket")(error)),
    }
}

impl KernelEnd {
    pub(crate) fn connect(
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        choice: Choice,
        now_ns: i64,
    ) -> Result<Self> {
        let socket = kernel_socket::open(remote, flow, choice.ccid)?;
        if let Some(local) = local {
            let local = SocketAddr::new(local, 0);
            socket.bind(&local.into()).map_err(TransportError::io(format!("bind DCCP {local}")))?;
        }
        match socket.connect(&remote.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(TransportError::io(format!("reach {remote} over DCCP"))(error)),
        }
        let mut end = Self::new(Phase::Connecting(socket, Prover::new(flow.token, now_ns)), flow);
        end.peer = Some(remote);
        Ok(end)
    }

    pub(crate) fn listen(
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
        choice: Choice,
    ) -> Result<Self> {
        let listener = kernel_socket::open(local, flow, choice.ccid)?;
        listener.bind(&local.into()).map_err(TransportError::io(format!("bind DCCP {local}")))?;
        let candidates = Candidates::listen(listener, allowed_peer)
            .map_err(TransportError::io(format!("listen on DCCP {local}")))?;
        let mut end = Self::new(Phase::Receiving(candidates), flow);
        end.verifier = Some(Verifier::new(flow.token));
        Ok(end)
    }

    fn new(phase: Phase, flow: &FlowSpec) -> Self {
        Self {
            phase,
            peer: None,
            verifier: None,
            closed: false,
            role: flow.role,
            payload_bytes: flow.payload_bytes,
            // One byte more than a message, so that a longer one is seen to be longer.
            buffer: vec![0; flow.payload_bytes.max(token::MESSAGE_BYTES) + 1],
            early: (flow.role == Role::Receiver).then(EarlyData::default),
            any_message: false,
            messages_read: 0,
            retry: Retry::new(queue_length::messages(flow)),
        }
    }

    fn socket(&self) -> &Socket {
        match &self.phase {
            Phase::Receiving(candidates) => candidates.socket(),
            Phase::Connecting(socket, _) | Phase::Proving(socket, _) | Phase::Open(socket) => socket,
        }
    }

    /// Server: take new connections and hear the token of those that are there.
    fn receive_clients(&mut self) -> Result<()> {
        let (Phase::Receiving(candidates), Some(verifier)) = (&mut self.phase, &self.verifier) else {
            return Ok(());
        };
        let (mut answer, buffer) = (None, &mut self.buffer);
        let proven =
            candidates.step(&mut |candidate| hear(verifier, &candidate.socket, buffer, &mut answer))?;
        if let (Some(Candidate { socket, from, .. }), Some(answer)) = (proven, answer) {
            // When it cannot go now, the client asks again.
            let _ = socket.send(&answer);
            self.peer = Some(from);
            self.phase = Phase::Open(socket);
        }
        Ok(())
    }

    /// Client: has the handshake ended?
    fn finish_handshake(&mut self) -> Result<bool> {
        let Phase::Connecting(socket, prover) = &self.phase else { return Ok(true) };
        let error = socket.take_error().map_err(TransportError::io("read the DCCP socket's error"))?;
        if let Some(error) = error {
            let peer = self.peer.map_or_else(String::new, |peer| peer.to_string());
            return Err(TransportError::Refused(format!("{peer} refused the DCCP connection: {error}")));
        }
        if socket.peer_addr().is_err() || !socket::is_writable(socket) {
            return Ok(false);
        }
        let socket = socket.try_clone().map_err(TransportError::io("hand the DCCP socket on"))?;
        self.phase = Phase::Proving(socket, prover.clone());
        Ok(true)
    }

    /// Client: ask until the server accepts the token.
    fn prove(&mut self, now_ns: i64) -> Result<()> {
        let Phase::Proving(socket, prover) = &mut self.phase else { return Ok(()) };
        loop {
            match read_one(socket, &mut self.buffer)? {
                Read::Message(length) if prover.on_message(&self.buffer[..length]) => break,
                Read::Message(_) => {}
                Read::End => {
                    return Err(TransportError::Refused("the server closed the DCCP connection".into()))
                }
                Read::Nothing => {
                    if let Some(question) = prover.on_time(now_ns) {
                        // When it cannot go now, the next one will.
                        let _ = socket.send(&question);
                    }
                    return Ok(());
                }
            }
        }
        let socket = socket.try_clone().map_err(TransportError::io("hand the DCCP socket on"))?;
        self.phase = Phase::Open(socket);
        Ok(())
    }

    /// Read at most `most` messages; those of the flow go to `sink`, or are kept when they come early.
    fn read(&mut self, most: usize, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let mut total = 0;
        while total < most && !self.closed {
            let Phase::Open(socket) = &self.phase else { break };
            let length = match read_one(socket, &mut self.buffer)? {
                Read::Message(length) => length,
                Read::Nothing => break,
                Read::End => {
                    self.closed = true;
                    break;
                }
            };
            let bytes = &self.buffer[..length];
            if token::is_proof(bytes) {
                if let (Some(verifier), false) = (&self.verifier, self.any_message) {
                    if let Verdict::Proven(answer) = verifier.on_message(bytes) {
                        let _ = socket.send(&answer);
                    }
                }
                continue;
            }
            total += 1;
            self.messages_read += 1;
            // dccp_recvmsg (net/dccp/proto.c) gives no time stamps.
            sink(Arrival { bytes, arrived_ns: now_ns() });
        }
        Ok(total)
    }
}

/// What a candidate says of the token; what to answer to a right one.
fn hear(
    verifier: &Verifier,
    socket: &Socket,
    buffer: &mut [u8],
    answer: &mut Option<token::Message>,
) -> candidates::Verdict {
    match read_one(socket, buffer) {
        Ok(Read::Message(length)) => match verifier.on_message(&buffer[..length]) {
            Verdict::Proven(message) => {
                *answer = Some(message);
                candidates::Verdict::Proven
            }
            Verdict::Wrong | Verdict::Other => candidates::Verdict::Wrong,
        },
        Ok(Read::Nothing) => candidates::Verdict::More,
        Ok(Read::End) | Err(_) => candidates::Verdict::Wrong,
    }
}

impl Transport for KernelEnd {
    fn local_address(&self) -> Result<SocketAddr> {
        socket::local_address(self.socket(), "DCCP")
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        socket::path_mtu_bytes(self.socket().as_raw_fd(), self.peer?.is_ipv4())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let readable = |socket: &Socket| PollFd { fd: socket.as_raw_fd(), read: true, write: false };
        match &self.phase {
            Phase::Receiving(candidates) => candidates.poll_fds(fds),
            Phase::Connecting(socket, _) => {
                fds.push(PollFd { fd: socket.as_raw_fd(), read: false, write: true });
            }
            Phase::Proving(socket, _) => fds.push(readable(socket)),
            // A closed socket would be ready for ever.
            Phase::Open(socket) => fds.extend((!self.closed).then(|| readable(socket))),
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        match &self.phase {
            Phase::Proving(_, prover) => Some(prover.due_ns()),
            Phase::Open(_) => self.retry.due_ns(),
            _ => None,
        }
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        match &self.phase {
            Phase::Receiving(_) => self.receive_clients()?,
            Phase::Connecting(..) | Phase::Proving(..) => {
                if self.finish_handshake()? {
                    self.prove(now_ns)?;
                }
            }
            Phase::Open(_) if self.role == Role::Sender => {
                self.read(MESSAGES_PER_RECEIVE, &mut |_| {})?;
            }
            Phase::Open(_) => {
                if let Some(mut early) = self.early.take() {
                    self.read(MESSAGES_PER_RECEIVE, &mut |arrival| _ = early.keep(arrival))?;
                    self.early = Some(early);
                }
            }
        }
        Ok(match self.phase {
            Phase::Open(_) if self.closed => State::Closed,
            Phase::Open(_) => State::Open,
            _ => State::Connecting,
        })
    }

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<Stop> {
        self.any_message = true;
        match self.socket().send_with_flags(message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
            Ok(_) => {
                self.retry.accepted();
                Ok(Stop::None)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.retry.full(now_ns);
                Ok(Stop::QueueFull)
            }
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                let most_bytes = kernel_socket::most_bytes(self.socket().as_raw_fd()).unwrap_or(0);
                Err(TransportError::Unsupported(format!(
                    "a message of {} bytes does not fit a DCCP packet on this path: the limit is {most_bytes} bytes",
                    message.len()
                )))
            }
            Err(error) => Err(TransportError::Lost(format!("the DCCP connection broke: {error}"))),
        }
    }

    fn receive(&mut self, _now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let early = self.early.take().map_or(0, |early| early.give(sink));
        let read = self.read(MESSAGES_PER_RECEIVE, sink)?;
        self.any_message |= read > 0;
        Ok(early + read)
    }

    fn drained(&self) -> bool {
        socket::unsent_bytes(self.socket().as_raw_fd()).unwrap_or(0) == 0
    }

    fn path_statistics(&mut self) -> Values {
        let mut values = Values::new();
        match self.role {
            Role::Sender => kernel_socket::figures(self.socket().as_raw_fd(), &mut values),
            Role::Receiver => {
                let counts = TimestampCounts { read: self.messages_read, ..TimestampCounts::default() };
                timestamp_counts::report(counts, &mut values);
            }
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        let mut values = Values::new();
        kernel_socket::figures(self.socket().as_raw_fd(), &mut values);
        let figure = |name: &str| values.get(name).and_then(serde_json::Value::as_f64);
        Some(congestion::of(figure, None))
    }

    fn packetisation(&mut self, _messages_sent: u64) -> Packetisation {
        let headers = self.peer.map(|peer| IpVersion::of(peer.ip()).header_bytes() + DATA_HEADER_BYTES);
        Packetisation {
            frames_per_message: Some(1.0),
            mean_ip_packet_bytes: headers.map(|headers| (headers + self.payload_bytes) as f64),
            source: PacketisationSource::Computed,
        }
    }

    fn close(&mut self, _now_ns: i64) {
        // Data that nobody read would make the kernel's close a Reset.
        let _ = self.read(usize::MAX, &mut |_| {});
        self.closed = true;
    }

    /// A server that closed first would send CloseReq across the client's Close; the client's mandatory second Close
    /// (RFC 4340 section 8.3) would then find nobody and be reset. So the server's end waits for the first.
    fn parted(&self) -> bool {
        self.closed || self.verifier.is_none()
    }
}
