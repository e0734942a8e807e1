// SPDX-License-Identifier: Apache-2.0
//! One end of a DCCP flow on the user-space stack, over any [`Carrier`].
//!
//! A sending end reads acknowledgements when it sends, and lets its socket wake it only while it cannot send (congestion
//! control, a full socket) or when nothing is due soon: arrival times are the kernel's, so reading late costs
//! congestion control nothing but time. A receiving end sends acknowledgements while it takes messages.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{End as Ending, SendError, Spacing};
use netjoule_dccp::{Config, Connection, Listener, ResetCode, State as Stage};
use netjoule_transport::datagram::{self, GRO_BYTES};
use netjoule_transport::{
    socket, stamps, Arrival, BatchOutcome, Congestion, FlowSpec, IpVersion, Packetisation,
    PacketisationSource, PollFd, Result, Role, SendOutcome, State, Stop, Transport, TransportError, Values,
};

use crate::carrier::Carrier;
use crate::congestion;
use crate::link::Link;
use crate::options::Choice;
use crate::reception::{self, Proven, Reception};
use crate::token::{self, Judge, Prover, Verdict};
use crate::{early::Early, queue, random, SERVICE_CODE};

/// `recvmmsg` calls per [`Transport::receive`].
const CALLS_PER_RECEIVE: usize = 8;
/// Longest DCCP header (RFC 4340 section 5.1: Data Offset is one byte of words) and longest IPv4 header, in bytes.
const HEADER_BYTES: usize = 1_020 + 60;
/// First guess at the MTU, before the socket knows the way.
const USUAL_MTU_BYTES: u32 = 1_500;
/// First Sequence Window; the connection adapts it to the rate.
const SEQUENCE_WINDOW: u64 = 1_000;
/// Half-open connections kept; beyond that the listener answers statelessly.
const BACKLOG: usize = 8;
/// A message that is due within this time is "soon": acknowledgements wait for it, ns.
const SOON_NS: i64 = 50_000_000;
/// A sender that is not held up reads acknowledgements at most this often, ns.
const READ_NS: i64 = 1_000_000;
/// One that is held up looks again when the last look is older than this, ns.
const READ_AGAIN_NS: i64 = 50_000;

/// Greatest whole number that every reader of a report holds exactly.
pub(crate) const MOST_FIGURE: f64 = ((1_u64 << 53) - 1) as f64;

/// How far this end has come.
enum Entry {
    /// Server: nobody has proved the token yet.
    Receiving(Box<Reception>),
    /// Client: DCCP's handshake, then the token.
    Proving(Prover),
    /// Messages can flow.
    Done,
}

pub(crate) struct End<C> {
    link: Link<C>,
    entry: Entry,
    /// None at a server that receives clients.
    connection: Option<Box<Connection>>,
    peer: Option<SocketAddr>,
    /// The server's half stays after opening: a repeated question means that the answer was lost.
    judge: Option<Judge>,
    role: Role,
    gso: bool,
    /// Messages that arrived before [`Transport::receive`] was called; `None` once it was.
    early: Option<Early>,
    any_message: bool,
    /// Length of the header of most data packets.
    headroom_bytes: usize,
    /// When the engine offers its next message.
    next_send_ns: Option<i64>,
    /// When the socket was last read.
    read_ns: i64,
}

impl<C: Carrier> End<C> {
    pub(crate) fn connect(
        carrier: C,
        remote: SocketAddr,
        flow: &FlowSpec,
        choice: Choice,
        now_ns: i64,
    ) -> Result<Self> {
        let link = link(carrier, flow, choice.ecn)?;
        let config = config(&link, remote, flow, choice.ccid)?;
        let connection = Connection::connect(config, now_ns, &mut random::number);
        let mut end = Self::new(link, Entry::Proving(Prover::new(flow.token, now_ns)), flow, choice.ccid);
        end.connection = Some(Box::new(connection));
        end.peer = Some(remote);
        end.allow_trains()?;
        Ok(end)
    }

    pub(crate) fn listen(
        carrier: C,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
        choice: Choice,
    ) -> Result<Self> {
        let link = link(carrier, flow, choice.ecn)?;
        let local = link.carrier.local()?;
        let config = config(&link, local, flow, choice.ccid)?;
        let listener = Listener::new(config, vec![SERVICE_CODE], BACKLOG, random::bytes());
        let judge = Judge::new(flow.token);
        let reception = Box::new(Reception::new(listener, allowed_peer, judge.clone()));
        let mut end = Self::new(link, Entry::Receiving(reception), flow, choice.ccid);
        end.judge = Some(judge);
        Ok(end)
    }

    fn new(link: Link<C>, entry: Entry, flow: &FlowSpec, ccid: Ccid) -> Self {
        Self {
            link,
            entry,
            connection: None,
            peer: None,
            judge: None,
            role: flow.role,
            gso: flow.gso,
            early: (flow.role == Role::Receiver).then(Early::default),
            any_message: false,
            headroom_bytes: if C::TRAINS { Connection::data_header_bytes(ccid) } else { 0 },
            next_send_ns: None,
            read_ns: i64::MIN,
        }
    }

    /// The socket is connected: all that arrives is the peer's, and may come in trains.
    fn allow_trains(&self) -> Result<()> {
        if C::TRAINS && self.gso && self.role == Role::Receiver {
            datagram::join_trains(self.link.carrier.socket())?;
        }
        Ok(())
    }

    /// Server: this is the client.
    fn welcome(&mut self, mut proven: Proven, now_ns: i64) -> Result<()> {
        self.link.carrier.adopt(proven.peer)?;
        self.link.outbox.set_destination(None);
        reception::empty_queue(&self.link, &mut proven, now_ns)?;
        self.peer = Some(proven.peer);
        self.allow_trains()?;
        if let Some(mtu_bytes) = self.link.mtu_bytes() {
            proven.connection.set_mtu_bytes(mtu_bytes);
        }
        say(&mut proven.connection, &proven.answer, now_ns);
        self.connection = Some(proven.connection);
        self.entry = Entry::Done;
        Ok(())
    }

    /// Client: ask until the server accepts the token.
    fn prove(&mut self, now_ns: i64) -> Result<()> {
        let (Entry::Proving(prover), Some(connection)) = (&mut self.entry, &mut self.connection) else {
            return Ok(());
        };
        let mut accepted = false;
        self.link.read(connection, 1, false, &mut |arrival| accepted |= prover.on_message(arrival.bytes))?;
        // The question travels in the packet that completes the handshake, or later ones.
        if !accepted && matches!(connection.state(), Stage::PartOpen | Stage::Open) {
            if let Some(question) = prover.on_time(now_ns) {
                say(connection, &question, now_ns);
            }
        }
        if accepted {
            self.entry = Entry::Done;
        }
        Ok(())
    }

    /// Read acknowledgements, and at a receiving end messages that came early.
    fn read(&mut self, now_ns: i64) -> Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        self.read_ns = now_ns;
        let (judge, any_message, early) = (&self.judge, self.any_message, &mut self.early);
        let mut answer = None;
        self.link.read(connection, 1, false, &mut |arrival| {
            if token::is_proof(arrival.bytes) {
                answer =
                    judge.as_ref().filter(|_| !any_message).and_then(|judge| asked(judge, arrival.bytes));
            } else if let Some(early) = early {
                early.keep(arrival);
            }
        })?;
        if let Some(answer) = answer {
            say(connection, &answer, now_ns);
        }
        Ok(())
    }

    /// Whether [`Transport::service`] reads the socket: not at a receiving end whose messages [`Transport::receive`]
    /// takes from there.
    fn service_reads(&self) -> bool {
        let is_open = self.connection.as_ref().is_some_and(|connection| connection.state() == Stage::Open);
        self.role == Role::Sender || self.early.is_some() || !is_open
    }

    /// Whether this end can wait for acknowledgements until it sends its next message.
    fn reads_when_sending(&self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let last_look_ns = self.read_ns.saturating_add(SOON_NS);
        self.role == Role::Sender
            && matches!(self.entry, Entry::Done)
            && connection.queued() == 0
            && self.next_send_ns.is_some_and(|at_ns| at_ns <= last_look_ns)
    }

    fn state(&self) -> Result<State> {
        let Some(connection) = &self.connection else { return Ok(State::Connecting) };
        match connection.end() {
            Some(Ending::ResetByPeer(code)) if *code != ResetCode::Closed => {
                Err(self.broken(&format!("{code:?}")))
            }
            Some(Ending::ResetHere(code)) if *code != ResetCode::Closed => {
                Err(TransportError::Lost(format!("this end reset the DCCP connection: {code:?}")))
            }
            Some(Ending::TimedOut) => Err(self.broken("no answer")),
            Some(_) if !matches!(self.entry, Entry::Done) => Err(self.broken("it closed at once")),
            Some(_) => Ok(State::Closed),
            None if matches!(self.entry, Entry::Done) => Ok(match connection.state() {
                Stage::Open | Stage::PartOpen => State::Open,
                _ => State::Closed,
            }),
            None => Ok(State::Connecting),
        }
    }

    fn broken(&self, why: &str) -> TransportError {
        let peer = self.peer.map_or_else(|| "the peer".into(), |peer| peer.to_string());
        if matches!(self.entry, Entry::Done) {
            TransportError::Lost(format!("{peer} ended the DCCP connection: {why}"))
        } else {
            TransportError::Refused(format!("{peer} refused the DCCP connection: {why}"))
        }
    }

    /// What was offered leaves now.
    fn hand_over(&mut self) -> Result<()> {
        self.link.flush()?;
        if let Some(connection) = &mut self.connection {
            self.link.heed_mtu(connection);
        }
        Ok(())
    }

    /// Offer the first messages of `batch` to the connection: how many were taken, and why not more if none were.
    /// `may_read`: acknowledgements may be waiting in the socket that make room.
    fn offer(
        &mut self,
        batch: &mut [u8],
        spacing: Spacing,
        now_ns: i64,
        may_read: &mut bool,
    ) -> Result<BatchOutcome> {
        loop {
            let Some(connection) = &mut self.connection else { return Err(not_open()) };
            let sent = self.link.send_train(connection, batch, spacing, now_ns)?;
            if sent > 0 {
                return Ok(BatchOutcome { sent, stop: Stop::None });
            }
            if !std::mem::take(may_read) {
                let Spacing { headroom_bytes, message_bytes } = spacing;
                return match connection.send(now_ns, &batch[headroom_bytes..][..message_bytes]) {
                    Ok(()) => Ok(BatchOutcome { sent: 1, stop: Stop::None }),
                    Err(SendError::QueueFull) => Ok(BatchOutcome { sent: 0, stop: Stop::QueueFull }),
                    Err(SendError::TooLarge) => Err(too_large(message_bytes, connection.max_payload_bytes())),
                    Err(SendError::NotOpen) => Err(not_open()),
                };
            }
            self.read(now_ns)?;
            if let Some(connection) = &mut self.connection {
                self.link.transmit(connection, now_ns)?;
            }
        }
    }

    /// [`Transport::send_batch`].
    fn send_spaced(&mut self, batch: &mut [u8], spacing: Spacing, now_ns: i64) -> Result<BatchOutcome> {
        if !std::mem::replace(&mut self.any_message, true) {
            self.link.outbox.forget_counts();
        }
        let since_read_ns = now_ns.saturating_sub(self.read_ns);
        let mut may_read = since_read_ns > READ_AGAIN_NS && since_read_ns < READ_NS;
        if since_read_ns >= READ_NS {
            self.read(now_ns)?;
            if let Some(connection) = &mut self.connection {
                self.link.transmit(connection, now_ns)?;
            }
        }
        let stride = (spacing.headroom_bytes + spacing.message_bytes).max(1);
        let (mut sent, mut stop) = (0, Stop::None);
        while stop == Stop::None && batch.len() >= (sent + 1) * stride {
            if self.link.outbox.is_blocked() {
                self.link.flush()?;
            }
            let outcome = if self.link.outbox.is_blocked() {
                BatchOutcome { sent: 0, stop: Stop::QueueFull }
            } else {
                self.offer(&mut batch[sent * stride..], spacing, now_ns, &mut may_read)?
            };
            (sent, stop) = (sent + outcome.sent, outcome.stop);
        }
        self.hand_over()?;
        Ok(BatchOutcome { sent, stop })
    }
}

/// The link of a flow. Only messages, and trains of them, need big buffers to arrive in.
fn link<C: Carrier>(carrier: C, flow: &FlowSpec, ecn: bool) -> Result<Link<C>> {
    let slot_bytes = match flow.role {
        Role::Receiver if C::TRAINS && flow.gso => GRO_BYTES,
        Role::Receiver => HEADER_BYTES + flow.message_bytes.max(token::MESSAGE_BYTES),
        Role::Sender => HEADER_BYTES + token::MESSAGE_BYTES,
    };
    Link::new(carrier, flow.gso, slot_bytes, ecn)
}

/// How to connect to, or listen beside, `remote` (at a listener: any address of the right IP version).
fn config<C: Carrier>(link: &Link<C>, remote: SocketAddr, flow: &FlowSpec, ccid: Ccid) -> Result<Config> {
    Ok(Config {
        carriage: link.carrier.carriage(remote)?,
        local_port: link.carrier.local()?.port(),
        remote_port: remote.port(),
        service_code: SERVICE_CODE,
        ccids: vec![ccid],
        mtu_bytes: link.mtu_bytes().unwrap_or(USUAL_MTU_BYTES),
        queue_messages: queue::messages(flow),
        //= rfc6773#3.5
        //# A DCCP-UDP endpoint SHOULD follow the procedures of DCCP-STD in [RFC4340], Section 12
        //= rfc6773#3.5
        //# Implementations that do not support ECN MUST follow the procedures of DCCP-STD in [RFC4340],
        //# Section 12.1 with regard to implementations that are not ECN capable.
        ecn: link.ecn,
        checksum_coverage: 0,
        sequence_window: SEQUENCE_WINDOW,
    })
}

/// Send a message about the token. When it cannot go now, the client's repetition brings it back.
fn say(connection: &mut Connection, message: &token::Message, now_ns: i64) {
    let _ = connection.send(now_ns, message);
}

fn asked(judge: &Judge, message: &[u8]) -> Option<token::Message> {
    match judge.on_message(message) {
        Verdict::Proven(answer) => Some(answer),
        Verdict::Wrong | Verdict::Other => None,
    }
}

fn not_open() -> TransportError {
    TransportError::Lost("the DCCP connection is not open".into())
}

fn too_large(message_bytes: usize, most_bytes: usize) -> TransportError {
    TransportError::Unsupported(format!(
        "a message of {message_bytes} bytes does not fit a DCCP packet on this path: the limit is {most_bytes} bytes"
    ))
}

impl<C: Carrier> Transport for End<C> {
    fn local_address(&self) -> Result<SocketAddr> {
        self.link.carrier.local()
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        self.link.mtu_bytes()
    }

    fn expect_send(&mut self, at_ns: Option<i64>) {
        self.next_send_ns = at_ns;
    }

    fn discard_held(&mut self) -> u64 {
        self.connection.as_mut().map_or(0, |connection| connection.discard_queued() as u64)
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let write = self.link.outbox.is_blocked();
        let read = !self.reads_when_sending();
        if read || write {
            fds.push(PollFd { fd: self.link.carrier.socket().as_raw_fd(), read, write });
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        if self.link.outbox.is_blocked() {
            // Nothing can leave before the socket is writable, and that is announced.
            return None;
        }
        let connection_ns = self.connection.as_ref().and_then(|connection| connection.next_wakeup_ns());
        let entry_ns = match &self.entry {
            Entry::Receiving(reception) => reception.next_wakeup_ns(),
            Entry::Proving(prover) if self.can_ask() => Some(prover.due_ns()),
            _ => None,
        };
        connection_ns.into_iter().chain(entry_ns).min()
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        match &mut self.entry {
            Entry::Receiving(reception) => {
                if let Some(proven) = reception.step(&mut self.link, now_ns)? {
                    self.welcome(proven, now_ns)?;
                }
            }
            Entry::Proving(_) => self.prove(now_ns)?,
            Entry::Done => {
                if self.service_reads() {
                    self.read(now_ns)?;
                }
            }
        }
        if let Some(connection) = &mut self.connection {
            self.link.transmit(connection, now_ns)?;
        }
        self.state()
    }

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<SendOutcome> {
        let spacing = Spacing { headroom_bytes: 0, message_bytes: message.len() };
        let outcome = self.send_spaced(&mut message.to_vec(), spacing, now_ns)?;
        Ok(if outcome.stop == Stop::None { SendOutcome::Sent } else { SendOutcome::QueueFull })
    }

    fn headroom_bytes(&self) -> usize {
        self.headroom_bytes
    }

    fn send_batch(&mut self, batch: &mut [u8], message_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        let spacing = Spacing { headroom_bytes: self.headroom_bytes, message_bytes };
        self.send_spaced(batch, spacing, now_ns)
    }

    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let mut total = self.early.take().map_or(0, |early| early.give(sink));
        let Some(connection) = &mut self.connection else { return Ok(total) };
        let (judge, any_message) = (&self.judge, &mut self.any_message);
        let mut answer = None;
        total += self.link.read(connection, CALLS_PER_RECEIVE, true, &mut |arrival| {
            if token::is_proof(arrival.bytes) {
                answer =
                    judge.as_ref().filter(|_| !*any_message).and_then(|judge| asked(judge, arrival.bytes));
            } else {
                *any_message = true;
                sink(arrival);
            }
        })?;
        if let Some(answer) = answer {
            say(connection, &answer, now_ns);
            self.link.transmit(connection, now_ns)?;
        }
        Ok(total)
    }

    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        self.next_send_ns = None;
        Ok(())
    }

    fn drained(&self) -> bool {
        let nothing_queued = self.connection.as_ref().is_none_or(|connection| connection.queued() == 0);
        let fd = self.link.carrier.socket().as_raw_fd();
        nothing_queued && !self.link.outbox.is_blocked() && socket::unsent_bytes(fd).unwrap_or(0) == 0
    }

    fn path_statistics(&mut self) -> Values {
        let mut values = Values::new();
        if let Some(connection) = &self.connection {
            // A threshold that was never set is no figure.
            let told = connection.figures().into_iter().filter(|(_, value)| value.abs() <= MOST_FIGURE);
            values.extend(told.map(|(name, value)| (name.to_owned(), value.into())));
        }
        let fd = self.link.carrier.socket().as_raw_fd();
        if let Some(drops) = socket::dropped_datagrams(fd) {
            values.insert("kernel_drops".into(), drops.into());
        }
        let option = |name| socket::get_option(fd, libc::SOL_SOCKET, name).unwrap_or(0);
        values.insert("receive_buffer_bytes".into(), option(libc::SO_RCVBUF).into());
        values.insert("send_buffer_bytes".into(), option(libc::SO_SNDBUF).into());
        values.insert("refused_packets".into(), self.link.outbox.refused_packets.into());
        if self.role == Role::Receiver {
            stamps::report(self.link.stamp_counts(), &mut values);
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        let figures = self.connection.as_ref()?.figures();
        let outbox = &self.link.outbox;
        let packet_bytes =
            (outbox.data_packets > 0).then(|| outbox.data_bytes as f64 / outbox.data_packets as f64);
        let figure = |wanted: &str| figures.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        Some(congestion::of(figure, packet_bytes))
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let outbox = &self.link.outbox;
        let headers = self.peer.map(|peer| IpVersion::of(peer.ip()).header_bytes() + C::HEADER_BYTES);
        let measured = headers.filter(|_| outbox.data_packets > 0 && messages_sent > 0);
        let mean_bytes = outbox.data_bytes as f64 / outbox.data_packets as f64;
        Packetisation {
            frames_per_message: measured.map(|_| outbox.data_packets as f64 / messages_sent as f64),
            mean_ip_packet_bytes: measured.map(|headers| mean_bytes + headers as f64),
            source: if measured.is_some() {
                PacketisationSource::Measured
            } else {
                PacketisationSource::Unknown
            },
        }
    }

    fn close(&mut self, now_ns: i64) {
        if self.connection.is_none() {
            return;
        }
        // The peer may have closed already: then its Close is answered instead. Nobody is left to be told of errors.
        let _ = self.read(now_ns);
        if let Some(connection) = &mut self.connection {
            connection.close(now_ns);
            let _ = self.link.transmit(connection, now_ns);
        }
    }

    fn parted(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.end().is_some())
    }
}

impl<C: Carrier> End<C> {
    /// Client: the handshake has come far enough to carry the question.
    fn can_ask(&self) -> bool {
        let stage = self.connection.as_ref().map(|connection| connection.state());
        matches!(stage, Some(Stage::PartOpen | Stage::Open))
    }
}
