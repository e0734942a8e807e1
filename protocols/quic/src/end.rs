// SPDX-License-Identifier: Apache-2.0
//! One end of a QUIC flow as the traffic engine sees it.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use netjoule_sockets::socket;
use netjoule_transport::{
    timestamp_counts, Arrival, BatchOutcome, Congestion, FlowSpec, IpVersion, Kind, Packetisation, PollFd,
    Result, Role, State, Stop, Transport, TransportError, Values,
};

use crate::config::{connection_id, Options, MAX_MTU_BYTES};
use crate::endpoint::Endpoint;
use crate::error::QuicError;
use crate::fingerprint::Fingerprint;
use crate::messages::datagram::Inbox;
use crate::messages::packetisation::DataPackets;
use crate::messages::stream::{StreamReceiver, StreamSender};
use crate::messages::{datagram, packetisation};
use crate::opening::client::{Opening, Target};
use crate::opening::listener::Listener;
use crate::options::Choice;
use crate::path::clock::Anchor;
use crate::path::packet_io::{route_mtu_bytes, PacketIo};
use crate::statistics;

/// Name of the fingerprint in a listening end's offer.
const OFFERED_FINGERPRINT: &str = "certificate_sha256";

/// Messages after which `receive` lets the engine look around.
const MESSAGES_PER_RECEIVE: usize = 512;

enum Phase {
    Listening(Listener),
    Opening(Opening),
    Open(Endpoint, Messages),
    /// Only while one phase becomes the next, or after a failure in between.
    Gone,
}

/// How messages travel at this end.
enum Messages {
    StreamOut(StreamSender),
    StreamIn(StreamReceiver),
    DatagramsOut,
    DatagramsIn(Inbox),
}

pub(crate) struct End {
    phase: Phase,
    kind: Kind,
    choice: Choice,
    role: Role,
    payload_bytes: usize,
    /// Messages that are due together share packets of a stream.
    joins: bool,
    ip_version: IpVersion,
    clock: Anchor,
    /// What had been sent before the first message.
    before_messages: Option<DataPackets>,
    /// How long a client's opening took.
    opening: Values,
}

impl End {
    pub(crate) fn connect(
        kind: Kind,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        offer: &Values,
        now_ns: i64,
    ) -> Result<Self> {
        let fingerprint: Fingerprint = offer
            .get(OFFERED_FINGERPRINT)
            .and_then(|value| value.as_str())
            .ok_or(QuicError::NoFingerprint)?
            .parse()
            .map_err(QuicError::from)?;
        let target = Target {
            options: options(flow)?,
            fingerprint,
            local: local.map_or_else(|| socket::unspecified_like(remote), |ip| SocketAddr::new(ip, 0)),
            remote,
            connection_id: connection_id(kind, flow.seed),
            token: flow.token,
            gso: flow.gso,
            event_log: flow.event_log.clone(),
        };
        Self::new(Phase::Opening(Opening::start(target, now_ns)?), kind, flow, remote.ip())
    }

    pub(crate) fn listen(
        kind: Kind,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
    ) -> Result<Self> {
        let wire = PacketIo::bind(local, flow.gso)?;
        // The client draws from the same seed: its ids and these must differ.
        let id = connection_id(kind, !flow.seed);
        let log = flow.event_log.clone();
        let listener = Listener::new(wire, allowed_peer, flow.token, id, options(flow)?, log)?;
        Self::new(Phase::Listening(listener), kind, flow, local.ip())
    }

    fn new(phase: Phase, kind: Kind, flow: &FlowSpec, address: IpAddr) -> Result<Self> {
        let clock =
            Anchor::take().map_err(|errno| TransportError::io("read CLOCK_MONOTONIC")(errno.into()))?;
        Ok(Self {
            phase,
            kind,
            choice: Choice::of(&flow.options)?,
            role: flow.role,
            payload_bytes: flow.payload_bytes,
            joins: flow.gso && kind == Kind::Stream,
            ip_version: IpVersion::of(address),
            clock,
            before_messages: None,
            opening: Values::new(),
        })
    }

    fn wire(&self) -> Option<&PacketIo> {
        match &self.phase {
            Phase::Listening(listener) => Some(listener.wire()),
            Phase::Opening(opening) => Some(opening.endpoint().wire()),
            Phase::Open(endpoint, _) => Some(endpoint.wire()),
            Phase::Gone => None,
        }
    }

    fn open(&mut self) -> Result<(&mut Endpoint, &mut Messages)> {
        match &mut self.phase {
            Phase::Open(endpoint, messages) => Ok((endpoint, messages)),
            _ => Err(not_open()),
        }
    }

    fn service_listener(&mut self) -> Result<State> {
        let Phase::Listening(listener) = &mut self.phase else { return Ok(State::Connecting) };
        if !listener.service()? {
            return Ok(State::Connecting);
        }
        let Phase::Listening(listener) = std::mem::replace(&mut self.phase, Phase::Gone) else {
            return Ok(State::Connecting);
        };
        match listener.into_endpoint()? {
            Ok(endpoint) => self.become_open(endpoint),
            Err(listener) => {
                self.phase = Phase::Listening(*listener);
                Ok(State::Connecting)
            }
        }
    }

    fn service_opening(&mut self, now_ns: i64) -> Result<State> {
        let Phase::Opening(opening) = &mut self.phase else { return Ok(State::Connecting) };
        if !opening.service(now_ns)? {
            return Ok(State::Connecting);
        }
        let Phase::Opening(opening) = std::mem::replace(&mut self.phase, Phase::Gone) else {
            return Ok(State::Connecting);
        };
        let (endpoint, times) = opening.into_open(now_ns);
        self.opening = times;
        self.become_open(endpoint)
    }

    fn become_open(&mut self, endpoint: Endpoint) -> Result<State> {
        if self.kind == Kind::Datagram && self.role == Role::Sender {
            datagram::check_size(&endpoint.driver.quic, self.payload_bytes)?;
        }
        let messages = match (self.kind, self.role) {
            (Kind::Datagram, Role::Sender) => Messages::DatagramsOut,
            (Kind::Datagram, Role::Receiver) => Messages::DatagramsIn(Inbox::default()),
            (Kind::Stream, Role::Sender) => Messages::StreamOut(StreamSender::default()),
            (Kind::Stream, Role::Receiver) => Messages::StreamIn(StreamReceiver::new(self.payload_bytes)),
        };
        self.phase = Phase::Open(endpoint, messages);
        Ok(State::Open)
    }

    /// Offers whole messages (one, of datagrams) and makes packets of what the window allows.
    fn offer(&mut self, batch: &[u8], payload_bytes: usize) -> Result<BatchOutcome> {
        let Phase::Open(endpoint, messages) = &mut self.phase else { return Err(not_open()) };
        self.before_messages.get_or_insert(endpoint.data());
        let is_held_up = endpoint.has_waiting_packet();
        let quic = &mut endpoint.driver.quic;
        let outcome = match messages {
            Messages::StreamOut(sender) => {
                let offered = sender.offer(quic, batch, payload_bytes, is_held_up);
                offered.map_err(|source| stream_error(endpoint, source))?
            }
            Messages::DatagramsOut => {
                let stop = datagram::offer(quic, batch)?;
                BatchOutcome { sent: usize::from(stop == Stop::None), stop }
            }
            Messages::StreamIn(_) | Messages::DatagramsIn(_) => {
                return Err(TransportError::Unsupported("this end receives; it cannot send".to_owned()))
            }
        };
        // Like a TCP socket with nodelay and like a UDP socket: what the window allows becomes a packet now.
        endpoint.packetise().map_err(lost)?;
        Ok(outcome)
    }

    fn service_open(&mut self) -> Result<State> {
        let (endpoint, messages) = self.open()?;
        let inbox = if let Messages::DatagramsIn(inbox) = messages { Some(inbox) } else { None };
        endpoint.drain(inbox).map_err(lost)?;
        endpoint.run_timers();
        if let Messages::StreamOut(sender) = messages {
            let quic = &mut endpoint.driver.quic;
            sender
                .watch(quic)
                .and_then(|()| sender.push_pending(quic))
                .map_err(|source| stream_error(endpoint, source))?;
        }
        endpoint.flush().map_err(lost)?;
        match endpoint.driver.health() {
            Ok(()) => Ok(State::Open),
            Err(QuicError::Closed { .. }) => Ok(State::Closed),
            Err(error) => Err(lost(error)),
        }
    }
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let gone = || TransportError::Lost("the QUIC flow is gone".to_owned());
        Ok(self.wire().ok_or_else(gone)?.local_address()?)
    }

    fn offer(&self) -> Values {
        let mut values = Values::new();
        if let Phase::Listening(listener) = &self.phase {
            values.insert(OFFERED_FINGERPRINT.to_owned(), listener.fingerprint().to_string().into());
        }
        values
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        match &self.phase {
            Phase::Open(endpoint, _) => {
                socket::path_mtu_bytes(endpoint.wire().fd(), endpoint.peer().is_ipv4())
                    .or_else(|| route_mtu_bytes(endpoint.wire().local_address().ok()?, endpoint.peer()))
            }
            _ => None,
        }
    }

    fn discard_held(&mut self) -> u64 {
        match &mut self.phase {
            Phase::Open(endpoint, Messages::DatagramsOut) => {
                datagram::discard_queued(&mut endpoint.driver.quic)
            }
            _ => 0,
        }
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        if let Some(wire) = self.wire() {
            fds.push(PollFd { fd: wire.fd(), read: true, write: wire.is_blocked() });
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        let at: Option<Instant> = match &self.phase {
            Phase::Listening(listener) => listener.wakeup_at(),
            Phase::Opening(opening) => opening.endpoint().wakeup_at(),
            Phase::Open(endpoint, _) => endpoint.wakeup_at(),
            Phase::Gone => None,
        };
        at.map(|instant| self.clock.monotonic_ns(instant))
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        match self.phase {
            Phase::Listening(_) => self.service_listener(),
            Phase::Opening(_) => self.service_opening(now_ns),
            Phase::Open(..) => self.service_open(),
            Phase::Gone => Ok(State::Closed),
        }
    }

    fn send(&mut self, message: &[u8], _now_ns: i64) -> Result<Stop> {
        let BatchOutcome { sent, stop } = self.offer(message, message.len())?;
        Ok(match stop {
            _ if sent == 1 => Stop::None,
            Stop::QueueFull => Stop::QueueFull,
            _ => Stop::WouldBlock,
        })
    }

    fn send_batch(&mut self, batch: &mut [u8], payload_bytes: usize, _now_ns: i64) -> Result<BatchOutcome> {
        let at_once = if self.joins { batch.len() } else { payload_bytes };
        let mut sent = 0;
        for some in batch.chunks(at_once.max(1)) {
            let outcome = self.offer(some, payload_bytes)?;
            sent += outcome.sent;
            if outcome.stop != Stop::None {
                return Ok(BatchOutcome { sent, stop: outcome.stop });
            }
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        match &mut self.phase {
            Phase::Open(endpoint, _) => endpoint.flush().map_err(lost),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, _now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let Phase::Open(endpoint, messages) = &mut self.phase else { return Ok(0) };
        let mut total = 0;
        while total < MESSAGES_PER_RECEIVE {
            let (packets, count) = match messages {
                Messages::DatagramsIn(inbox) => {
                    let packets = endpoint.drain(Some(inbox)).map_err(lost)?;
                    endpoint.take_in(inbox);
                    (packets, inbox.give(sink))
                }
                Messages::StreamIn(receiver) => {
                    let packets = endpoint.drain(None).map_err(lost)?;
                    let arrived_ns = endpoint.arrived_ns();
                    let mut deliver = |bytes: &[u8]| sink(Arrival { bytes, arrived_ns });
                    let collected = receiver.collect(&mut endpoint.driver.quic, &mut deliver);
                    (packets, collected.map_err(|error| own_reason(endpoint, error))?)
                }
                Messages::StreamOut(_) | Messages::DatagramsOut => (endpoint.drain(None).map_err(lost)?, 0),
            };
            total += count;
            endpoint.flush().map_err(lost)?;
            if packets == 0 && count == 0 {
                break;
            }
        }
        Ok(total)
    }

    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        let (endpoint, messages) = self.open()?;
        if let Messages::StreamOut(sender) = messages {
            sender.finish();
            sender
                .push_pending(&mut endpoint.driver.quic)
                .map_err(|source| stream_error(endpoint, source))?;
        }
        endpoint.flush().map_err(lost)
    }

    fn drained(&self) -> bool {
        match &self.phase {
            Phase::Open(_, Messages::StreamOut(sender)) => sender.is_drained(),
            Phase::Open(endpoint, _) => {
                endpoint.driver.quic.dgram_send_queue_len() == 0 && !endpoint.has_waiting_packet()
            }
            _ => true,
        }
    }

    fn path_statistics(&mut self) -> Values {
        let Phase::Open(endpoint, messages) = &self.phase else { return Values::new() };
        let wire = endpoint.wire().counters();
        let mut values = statistics::of(&endpoint.driver.quic, self.choice, wire, endpoint.waits());
        values.extend(self.opening.clone());
        values.insert("gso".to_owned(), endpoint.wire().uses_gso().into());
        match self.kind {
            // Every accepted message becomes packets at once, whenever the congestion window allows.
            Kind::Stream => values.insert("nodelay".to_owned(), true.into()),
            Kind::Datagram => endpoint
                .driver
                .quic
                .dgram_max_writable_len()
                .and_then(|bytes| values.insert("max_message_bytes".to_owned(), bytes.into())),
        };
        if let Messages::StreamIn(receiver) = messages {
            values.insert("partial_message_bytes".to_owned(), receiver.partial_bytes().into());
        }
        if self.role == Role::Receiver {
            timestamp_counts::report(endpoint.wire().timestamp_counts(), &mut values);
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        match &self.phase {
            Phase::Open(endpoint, _) => statistics::congestion(&endpoint.driver.quic),
            _ => None,
        }
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let (before, now) = match &self.phase {
            Phase::Open(endpoint, _) => (self.before_messages.unwrap_or_default(), endpoint.data()),
            _ => Default::default(),
        };
        packetisation::between(before, now, self.ip_version, messages_sent)
    }

    fn close(&mut self, _now_ns: i64) {
        match &mut self.phase {
            Phase::Opening(opening) => opening.close(),
            Phase::Open(endpoint, _) => {
                endpoint.driver.close();
                // Best effort: a peer that misses it learns of the end over the control channel.
                let _ = endpoint.flush();
            }
            Phase::Listening(_) | Phase::Gone => (),
        }
    }
}

/// Before the route is known.
fn options(flow: &FlowSpec) -> Result<Options> {
    let choice = Choice::of(&flow.options)?;
    Ok(Options { mtu_bytes: MAX_MTU_BYTES, choice, payload_bytes: flow.payload_bytes })
}

fn not_open() -> TransportError {
    TransportError::Lost("the QUIC flow is not open".to_owned())
}

/// A stream call fails when the connection has.
fn stream_error(endpoint: &Endpoint, source: quiche::Error) -> TransportError {
    own_reason(endpoint, QuicError::Library { doing: "using the stream", source })
}

/// When the connection has failed, its own reason says more than `error`.
fn own_reason(endpoint: &Endpoint, error: QuicError) -> TransportError {
    lost(endpoint.driver.health().err().unwrap_or(error))
}

/// Of an open connection every failure is a loss.
fn lost(error: QuicError) -> TransportError {
    match TransportError::from(error) {
        TransportError::Refused(sentence) => TransportError::Lost(sentence),
        other => other,
    }
}
