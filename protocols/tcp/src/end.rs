// SPDX-License-Identifier: Apache-2.0
//! One end of a TCP flow.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_transport::stream::StampedReader;
use netjoule_transport::{
    socket, stamps, Arrival, Congestion, FlowSpec, IpVersion, Packetisation, PacketisationSource, PollFd,
    Result, Role, SendOutcome, State, Transport, TransportError, Values,
};
use socket2::{SockRef, Socket};

use crate::cutter::Cutter;
use crate::listener::Listener;
use crate::preface::{self, Verdict, ACCEPTED};
use crate::tcp_info::TcpInfo;

/// Bytes read per call.
const READ_BYTES: usize = 256 << 10;
/// Reads per [`Transport::receive`].
const READS_PER_RECEIVE: usize = 4;
/// Unsent bytes the kernel may hold before the stream counts as full. Without it a sender could put megabytes
/// into the kernel at once, and a message would count as sent long before it leaves.
const NOT_SENT_LOW_WATER_BYTES: libc::c_int = 128 << 10;
/// TCP header without options in bytes.
const TCP_HEADER_BYTES: u64 = 20;
/// Time stamp option with padding in bytes (RFC 7323), and the `tcpi_options` bit that says it is in use.
const TIMESTAMP_OPTION_BYTES: u64 = 12;
const TIMESTAMP_OPTION_BIT: u8 = 1;

enum Phase {
    /// Server: waiting for a connection with the right preface.
    Listening(Listener),
    /// Client: waiting for TCP's handshake.
    Connecting,
    /// Client: preface written, waiting for the answer.
    Asking(Vec<u8>),
    Open,
    Closed,
}

pub(crate) struct End {
    phase: Phase,
    /// The connection; the listener's socket while there is none.
    socket: Option<Socket>,
    preface: Vec<u8>,
    peer: Option<SocketAddr>,
    role: Role,
    cutter: Cutter,
    buffer: Vec<u8>,
    /// Only at a receiving end, once it is open.
    reader: Option<StampedReader>,
    /// Tail of a message that the kernel took only in part.
    pending: Vec<u8>,
    /// The kernel took nothing the last time: wait until it is writable.
    full: bool,
    blocked: u64,
    started: Option<TcpInfo>,
}

impl End {
    pub(crate) fn connect(local: Option<IpAddr>, remote: SocketAddr, flow: &FlowSpec) -> Result<Self> {
        let socket = socket::stream(remote)?;
        prepare(&socket)?;
        if let Some(ip) = local {
            let local = SocketAddr::new(ip, 0);
            socket.bind(&local.into()).map_err(TransportError::io(format!("bind TCP {local}")))?;
        }
        match socket.connect(&remote.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(refused(remote, &error)),
        }
        Ok(Self::new(Phase::Connecting, Some(socket), Some(remote), flow))
    }

    pub(crate) fn listen(local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> Result<Self> {
        let listener = Listener::bind(local, allowed_peer, &flow.token)?;
        Ok(Self::new(Phase::Listening(listener), None, None, flow))
    }

    fn new(phase: Phase, socket: Option<Socket>, peer: Option<SocketAddr>, flow: &FlowSpec) -> Self {
        let receives = flow.role == Role::Receiver;
        Self {
            phase,
            socket,
            preface: preface::encode(&flow.token).to_vec(),
            peer,
            role: flow.role,
            cutter: Cutter::new(flow.message_bytes.max(1)),
            buffer: vec![0; if receives { READ_BYTES } else { 0 }],
            reader: None,
            pending: Vec::new(),
            full: false,
            blocked: 0,
            started: None,
        }
    }

    fn connection(&self) -> Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| TransportError::Lost("the TCP flow has no connection yet".into()))
    }

    fn peer_name(&self) -> String {
        self.peer.map_or_else(|| "the peer".into(), |peer| peer.to_string())
    }

    fn lost(&self, error: &io::Error) -> TransportError {
        TransportError::Lost(format!("the TCP connection with {} broke: {error}", self.peer_name()))
    }

    fn opened(&mut self) -> Result<Phase> {
        self.started = self.socket.as_ref().and_then(|socket| TcpInfo::read(socket.as_raw_fd()));
        if self.role == Role::Receiver {
            self.reader = Some(StampedReader::new(self.connection()?)?);
        }
        Ok(Phase::Open)
    }

    fn listen_step(&mut self, mut listener: Listener) -> Result<Phase> {
        let Some((socket, peer)) = listener.step()? else { return Ok(Phase::Listening(listener)) };
        prepare(&socket)?;
        self.peer = Some(peer);
        // Four bytes into an empty send buffer: the kernel takes them whole or the connection is gone.
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
            Ok(length) if length == self.preface.len() => Ok(Phase::Asking(Vec::new())),
            Ok(_) => Err(TransportError::Lost("the kernel took only a part of the preface".into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Phase::Connecting),
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(Phase::Connecting),
            Err(error) => Err(refused(remote, &error)),
        }
    }

    fn ask_step(&mut self, mut answer: Vec<u8>) -> Result<Phase> {
        let mut bytes = [0; ACCEPTED.len()];
        let wanted = ACCEPTED.len() - answer.len();
        let mut socket = self.connection()?;
        match socket.read(&mut bytes[..wanted]) {
            Ok(0) => Err(TransportError::Refused(format!(
                "{} closed the connection without accepting the flow",
                self.peer_name()
            ))),
            Ok(length) => {
                answer.extend_from_slice(&bytes[..length]);
                match preface::judge(&answer, ACCEPTED) {
                    Verdict::Proven => self.opened(),
                    Verdict::More => Ok(Phase::Asking(answer)),
                    Verdict::Wrong => {
                        Err(TransportError::Refused(format!("{} is not a netjoule server", self.peer_name())))
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Phase::Asking(answer)),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Write what the kernel took only in part before; true when nothing is left.
    fn push_pending(&mut self) -> Result<bool> {
        while !self.pending.is_empty() {
            match self.connection()?.send_with_flags(&self.pending, libc::MSG_NOSIGNAL) {
                Ok(length) => {
                    self.pending.drain(..length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(true)
    }

    /// A sending end reads nothing but the peer's goodbye.
    fn heard_goodbye(&self) -> Result<bool> {
        match self.connection()?.read(&mut [0]) {
            Ok(length) => Ok(length == 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.lost(&error)),
        }
    }
}

fn refused(remote: SocketAddr, error: &io::Error) -> TransportError {
    TransportError::Refused(format!("cannot connect to TCP {remote}: {error}"))
}

/// Nagle off, so that each message leaves when it is due; a small unsent queue, so that "full" is felt at once.
fn prepare(socket: &Socket) -> Result<()> {
    socket.set_nodelay(true).map_err(TransportError::io("set TCP_NODELAY"))?;
    socket::set_option(
        socket.as_raw_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
        NOT_SENT_LOW_WATER_BYTES,
    )
    .map_err(TransportError::io("set TCP_NOTSENT_LOWAT"))
}

/// Bytes that the peer has not acknowledged, with those not yet sent.
fn unacknowledged_bytes(socket: &Socket) -> i32 {
    let mut queued: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the same number as SIOCOUTQ) writes one int into a live int.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut queued) };
    if outcome == 0 {
        queued
    } else {
        0
    }
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let socket = match &self.phase {
            Phase::Listening(listener) => listener.socket(),
            _ => self.connection()?,
        };
        let address = socket.local_addr().map_err(TransportError::io("read the local TCP address"))?;
        address.as_socket().ok_or_else(|| TransportError::Lost("the TCP socket has no IP address".into()))
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        socket::path_mtu_bytes(self.socket.as_ref()?.as_raw_fd(), self.peer?.is_ipv4())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        if let Phase::Listening(listener) = &self.phase {
            listener.poll_fds(fds);
        }
        let Some(socket) = &self.socket else { return };
        let fd = socket.as_raw_fd();
        match self.phase {
            Phase::Connecting => fds.push(PollFd { fd, read: false, write: true }),
            Phase::Asking(_) => fds.push(PollFd { fd, read: true, write: false }),
            Phase::Open => {
                let write = self.full || !self.pending.is_empty();
                fds.push(PollFd { fd, read: self.role == Role::Receiver, write });
            }
            Phase::Listening(_) | Phase::Closed => {}
        }
    }

    fn service(&mut self, _now_ns: i64) -> Result<State> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Listening(listener) => self.listen_step(listener)?,
            Phase::Connecting => self.connect_step()?,
            Phase::Asking(answer) => self.ask_step(answer)?,
            Phase::Open if self.role == Role::Sender => {
                self.push_pending()?;
                if self.heard_goodbye()? {
                    Phase::Closed
                } else {
                    Phase::Open
                }
            }
            other => other,
        };
        Ok(match self.phase {
            Phase::Open => State::Open,
            Phase::Closed => State::Closed,
            _ => State::Connecting,
        })
    }

    fn send(&mut self, message: &[u8], _now_ns: i64) -> Result<SendOutcome> {
        // Full until the next attempt, whatever becomes free meanwhile: the socket's readiness must wake the engine.
        self.full = true;
        if !self.push_pending()? {
            self.blocked += 1;
            return Ok(SendOutcome::WouldBlock);
        }
        match self.connection()?.send_with_flags(message, libc::MSG_NOSIGNAL) {
            Ok(length) => {
                self.full = false;
                self.pending.extend_from_slice(&message[length..]);
                Ok(SendOutcome::Sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked += 1;
                Ok(SendOutcome::WouldBlock)
            }
            Err(error) => Err(self.lost(&error)),
        }
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
                    self.cutter.push(&self.buffer[..length], |bytes| {
                        total += 1;
                        sink(Arrival { bytes, arrived_ns });
                    });
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
        self.pending.is_empty() && self.socket.as_ref().is_none_or(|socket| unacknowledged_bytes(socket) == 0)
    }

    fn path_statistics(&mut self) -> Values {
        let Some(socket) = &self.socket else { return Values::new() };
        let mut values = TcpInfo::read(socket.as_raw_fd()).map_or_else(Values::new, |info| info.values());
        let reference = SockRef::from(socket);
        values.insert("nodelay".into(), reference.nodelay().unwrap_or(false).into());
        values.insert("not_sent_low_water_bytes".into(), NOT_SENT_LOW_WATER_BYTES.into());
        values.insert("receive_buffer_bytes".into(), reference.recv_buffer_size().unwrap_or(0).into());
        values.insert("send_buffer_bytes".into(), reference.send_buffer_size().unwrap_or(0).into());
        if let Some(name) = congestion_control(socket) {
            values.insert("congestion_control".into(), name.into());
        }
        if self.role == Role::Sender {
            values.insert("times_blocked".into(), self.blocked.into());
        }
        if let Some(reader) = &self.reader {
            stamps::report(reader.stamp_counts(), &mut values);
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        TcpInfo::read(self.socket.as_ref()?.as_raw_fd()).map(|info| info.congestion())
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let figures = self.socket.as_ref().and_then(|socket| {
            let now = TcpInfo::read(socket.as_raw_fd())?;
            measured(self.started.as_ref()?, &now, IpVersion::of(self.peer?.ip()), messages_sent)
        });
        match figures {
            Some((frames_per_message, mean_ip_packet_bytes)) => Packetisation {
                frames_per_message: Some(frames_per_message),
                mean_ip_packet_bytes: Some(mean_ip_packet_bytes),
                source: PacketisationSource::Measured,
            },
            None => Packetisation {
                frames_per_message: None,
                mean_ip_packet_bytes: None,
                source: PacketisationSource::Unknown,
            },
        }
    }

    fn close(&mut self, _now_ns: i64) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Data segments per message and mean IP packet size between two readings; `None` when nothing was sent or the
/// kernel is too old to count (data segments: Linux 4.6, bytes sent: 4.19). Retransmissions count as packets.
fn measured(start: &TcpInfo, end: &TcpInfo, ip_version: IpVersion, messages: u64) -> Option<(f64, f64)> {
    let difference = |name| Some(end.field(name)?.saturating_sub(start.field(name)?));
    let segments = difference("data_segments_out").filter(|segments| *segments > 0)?;
    let bytes = difference("bytes_sent")?;
    let options = if end.options() & TIMESTAMP_OPTION_BIT == 0 { 0 } else { TIMESTAMP_OPTION_BYTES };
    let headers = ip_version.header_bytes() as u64 + TCP_HEADER_BYTES + options;
    let frames_per_message = (messages > 0).then(|| segments as f64 / messages as f64)?;
    Some((frames_per_message, bytes as f64 / segments as f64 + headers as f64))
}

fn congestion_control(socket: &Socket) -> Option<String> {
    let mut bytes = [0; 16];
    socket::get_option_bytes(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut bytes).ok()?;
    let name = bytes.split(|byte| *byte == 0).next()?;
    String::from_utf8(name.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::message::Header;
    use netjoule_transport::TOKEN_BYTES;

    fn flow(role: Role, token: u8) -> FlowSpec {
        FlowSpec {
            message_bytes: 1000,
            role,
            token: [token; TOKEN_BYTES],
            gso: false,
            seed: 0,
            rate_bps: 0,
            options: Values::new(),
        }
    }

    fn service_both(client: &mut End, server: &mut End) -> (Result<State>, Result<State>) {
        let mut states = (Ok(State::Connecting), Ok(State::Connecting));
        for _ in 0..10_000 {
            states = (client.service(0), server.service(0));
            if !matches!(states, (Ok(State::Connecting), Ok(_)) | (Ok(_), Ok(State::Connecting))) {
                break;
            }
            std::thread::yield_now();
        }
        states
    }

    #[test]
    fn a_stream_keeps_every_message_and_feels_back_pressure() {
        for any_port in ["127.0.0.1:0", "[::1]:0"] {
            let mut server = End::listen(any_port.parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
            let address = server.local_address().unwrap();
            let mut client = End::connect(None, address, &flow(Role::Sender, 1)).unwrap();
            assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
            let mut message = vec![0; 1000];
            let mut sent = 0;
            loop {
                Header { sequence: sent, sent_ns: 0 }.write(&mut message);
                match client.send(&message, 0).unwrap() {
                    SendOutcome::Sent => sent += 1,
                    SendOutcome::WouldBlock => break,
                    SendOutcome::Refused | SendOutcome::QueueFull => {
                        panic!("a stream refuses nothing")
                    }
                }
            }
            client.finish(0).unwrap();
            let mut received = 0;
            while received < sent || !client.drained() {
                client.service(0).unwrap();
                server
                    .receive(7, &mut |arrival| {
                        assert_eq!(Header::read(arrival.bytes).unwrap().sequence, received);
                        received += 1;
                    })
                    .unwrap();
            }
            assert_eq!(received, sent);
            let figures = client.packetisation(sent);
            assert_eq!(figures.source, PacketisationSource::Measured);
            assert!(figures.mean_ip_packet_bytes.unwrap() > 1000.0, "{figures:?}");
        }
    }

    /// Whether the engine would be woken when the socket becomes writable.
    fn waits_for_room(end: &End) -> bool {
        let mut fds = Vec::new();
        end.poll_fds(&mut fds);
        fds.iter().any(|fd| fd.write)
    }

    #[test]
    fn a_full_stream_asks_to_be_woken_until_the_next_attempt() {
        let mut server = End::listen("127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
        let mut client = End::connect(None, server.local_address().unwrap(), &flow(Role::Sender, 1)).unwrap();
        assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
        assert!(!waits_for_room(&client));
        let message = vec![0; 1000];
        while client.send(&message, 0).unwrap() == SendOutcome::Sent {}
        assert!(waits_for_room(&client));
        // Room is made and what was begun is written, so the stream now stands exactly at a message border.
        while !client.pending.is_empty() || unacknowledged_bytes(client.socket.as_ref().unwrap()) > 0 {
            server.receive(0, &mut |_| {}).unwrap();
            client.flush(0).unwrap();
        }
        assert!(waits_for_room(&client), "nothing would wake the engine for the message that waits");
        assert_eq!(client.send(&message, 0).unwrap(), SendOutcome::Sent);
        assert!(!waits_for_room(&client));
    }

    #[test]
    fn a_wrong_token_is_turned_away_and_the_right_one_still_gets_in() {
        let mut server = End::listen("127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
        let address = server.local_address().unwrap();
        let mut stranger = End::connect(None, address, &flow(Role::Sender, 2)).unwrap();
        let (refusal, _) = service_both(&mut stranger, &mut server);
        assert!(matches!(refusal, Err(TransportError::Refused(_) | TransportError::Lost(_))), "{refusal:?}");
        let mut client = End::connect(None, address, &flow(Role::Sender, 1)).unwrap();
        assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
    }

    #[test]
    fn a_closed_port_refuses() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut outcome = None;
        match End::connect(None, closed, &flow(Role::Sender, 1)) {
            Err(error) => outcome = Some(error),
            Ok(mut client) => {
                for _ in 0..10_000 {
                    outcome = client.service(0).err();
                    if outcome.is_some() {
                        break;
                    }
                }
            }
        }
        assert!(matches!(outcome, Some(TransportError::Refused(_))), "{outcome:?}");
    }
}
