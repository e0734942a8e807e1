// SPDX-License-Identifier: Apache-2.0
//! One end of a DCCP flow on the user-space stack, over any [`Carrier`].
//!
//! A sending end reads acknowledgements when it sends, and lets its socket wake it only while it cannot send (congestion
//! control, a full socket) or when nothing is due soon: arrival times are the kernel's, so reading late costs
//! congestion control nothing but time. A receiving end sends acknowledgements while it takes messages.

mod opening;
mod sending;

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{End as Ending, Spacing};
use netjoule_dccp::options::data_dropped::DropCode;
use netjoule_dccp::{Connection, ResetCode, State as Stage};
use netjoule_sockets::socket;
use netjoule_transport::{
    timestamp_counts, Arrival, BatchOutcome, Congestion, FlowSpec, IpVersion, Packetisation, PollFd, Result,
    Role, State, Stop, Transport, TransportError, Values,
};

use self::opening::say;
use crate::accept_queue::AcceptQueue;
use crate::carrier::Carrier;
use crate::congestion;
use crate::early_data::EarlyData;
use crate::link::Link;
use crate::token::{self, Prover, Verdict, Verifier};

/// `recvmmsg` calls per [`Transport::receive`].
const CALLS_PER_RECEIVE: usize = 8;

/// How far this end has come.
enum Entry {
    /// Server: nobody has proved the token yet.
    Receiving(Box<AcceptQueue>),
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
    verifier: Option<Verifier>,
    role: Role,
    gso: bool,
    /// Messages that arrived before [`Transport::receive`] was called; `None` once it was.
    early: Option<EarlyData>,
    any_message: bool,
    /// Length of the header of most data packets.
    headroom_bytes: usize,
    /// When the engine offers its next message.
    next_send_ns: Option<i64>,
    /// When the socket was last read.
    read_ns: i64,
}

impl<C: Carrier> End<C> {
    fn new(link: Link<C>, entry: Entry, flow: &FlowSpec, ccid: Ccid) -> Self {
        Self {
            link,
            entry,
            connection: None,
            peer: None,
            verifier: None,
            role: flow.role,
            gso: flow.gso,
            early: (flow.role == Role::Receiver).then(EarlyData::default),
            any_message: false,
            headroom_bytes: if C::TRAINS { Connection::data_header_bytes(ccid) } else { 0 },
            next_send_ns: None,
            read_ns: i64::MIN,
        }
    }

    /// Read acknowledgements, and at a receiving end messages that came early.
    fn read(&mut self, now_ns: i64) -> Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        self.read_ns = now_ns;
        let (verifier, any_message, early) = (&self.verifier, self.any_message, &mut self.early);
        let mut answer = None;
        self.link.read(connection, 1, false, &mut |arrival| {
            if token::is_proof(arrival.bytes) {
                answer = verifier
                    .as_ref()
                    .filter(|_| !any_message)
                    .and_then(|verifier| asked(verifier, arrival.bytes));
            } else if let Some(early) = early {
                return if early.keep(arrival) { Ok(()) } else { Err(DropCode::ReceiveBuffer) };
            } else {
                //= rfc4340#11.7.2
                //# A Data Dropped option containing Drop Code 1 SHOULD be sent whenever received data is ignored due to a
                //# non-listening application.
                return Err(DropCode::ApplicationNotListening);
            }
            Ok(())
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
}

fn asked(verifier: &Verifier, message: &[u8]) -> Option<token::Message> {
    match verifier.on_message(message) {
        Verdict::Proven(answer) => Some(answer),
        Verdict::Wrong | Verdict::Other => None,
    }
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
        let write = self.link.send_queue.is_blocked();
        let read = !self.reads_when_sending();
        if read || write {
            fds.push(PollFd { fd: self.link.carrier.socket().as_raw_fd(), read, write });
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        if self.link.send_queue.is_blocked() {
            // Nothing can leave before the socket is writable, and that is announced.
            return None;
        }
        let connection_ns = self.connection.as_ref().and_then(|connection| connection.next_wakeup_ns());
        let entry_ns = match &self.entry {
            Entry::Receiving(accept_queue) => accept_queue.next_wakeup_ns(),
            Entry::Proving(prover) if self.can_ask() => Some(prover.due_ns()),
            _ => None,
        };
        connection_ns.into_iter().chain(entry_ns).min()
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        match &mut self.entry {
            Entry::Receiving(accept_queue) => {
                if let Some(proven) = accept_queue.step(&mut self.link, now_ns)? {
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

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<Stop> {
        let spacing = Spacing { headroom_bytes: 0, payload_bytes: message.len() };
        self.send_spaced(&mut message.to_vec(), spacing, now_ns).map(|outcome| outcome.stop)
    }

    fn headroom_bytes(&self) -> usize {
        self.headroom_bytes
    }

    fn send_batch(&mut self, batch: &mut [u8], payload_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        let spacing = Spacing { headroom_bytes: self.headroom_bytes, payload_bytes };
        self.send_spaced(batch, spacing, now_ns)
    }

    fn receive(&mut self, now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        let mut total = self.early.take().map_or(0, |early| early.give(sink));
        let Some(connection) = &mut self.connection else { return Ok(total) };
        let (verifier, any_message) = (&self.verifier, &mut self.any_message);
        let mut answer = None;
        total += self.link.read(connection, CALLS_PER_RECEIVE, true, &mut |arrival| {
            if token::is_proof(arrival.bytes) {
                answer = verifier
                    .as_ref()
                    .filter(|_| !*any_message)
                    .and_then(|verifier| asked(verifier, arrival.bytes));
            } else {
                *any_message = true;
                sink(arrival);
            }
            Ok(())
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
        nothing_queued && !self.link.send_queue.is_blocked() && socket::unsent_bytes(fd).unwrap_or(0) == 0
    }

    fn path_statistics(&mut self) -> Values {
        let mut values = Values::new();
        if let Some(connection) = &self.connection {
            // A threshold that was never set is no figure.
            let told =
                connection.figures().into_iter().filter(|(_, value)| value.abs() <= congestion::MOST_FIGURE);
            values.extend(told.map(|(name, value)| (name.to_owned(), value.into())));
        }
        let fd = self.link.carrier.socket().as_raw_fd();
        if let Some(drops) = socket::dropped_datagrams(fd) {
            values.insert("kernel_drops".into(), drops.into());
        }
        let option = |name| socket::get_option(fd, libc::SOL_SOCKET, name).unwrap_or(0);
        values.insert("receive_buffer_bytes".into(), option(libc::SO_RCVBUF).into());
        values.insert("send_buffer_bytes".into(), option(libc::SO_SNDBUF).into());
        values.insert("refused_packets".into(), self.link.send_queue.refused_packets.into());
        match self.role {
            Role::Sender => {
                values.insert("send_call".into(), self.link.send_queue.send_call().into());
            }
            Role::Receiver => timestamp_counts::report(self.link.timestamp_counts(), &mut values),
        }
        values
    }

    fn congestion(&mut self) -> Option<Congestion> {
        let figures = self.connection.as_ref()?.figures();
        let send_queue = &self.link.send_queue;
        let packet_bytes = (send_queue.data_packets > 0)
            .then(|| send_queue.data_bytes as f64 / send_queue.data_packets as f64);
        let figure = |wanted: &str| figures.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        Some(congestion::of(figure, packet_bytes))
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let send_queue = &self.link.send_queue;
        let headers = self.peer.map(|peer| IpVersion::of(peer.ip()).header_bytes() + C::HEADER_BYTES);
        let headers = headers.filter(|_| send_queue.data_packets > 0 && messages_sent > 0);
        Packetisation::measured(headers.map(|headers| {
            let mean_bytes = send_queue.data_bytes as f64 / send_queue.data_packets as f64;
            (send_queue.data_packets as f64 / messages_sent as f64, mean_bytes + headers as f64)
        }))
    }

    fn close(&mut self, now_ns: i64) {
        if self.connection.is_none() {
            return;
        }
        // The peer may have closed already: then its Close is answered instead. Nobody is left to be told of errors.
        let _ = self.read(now_ns);
        if let Some(connection) = &mut self.connection {
            // The last chance to say what nobody listened to.
            let _ = self.link.transmit(connection, now_ns);
            connection.close(now_ns);
            let _ = self.link.transmit(connection, now_ns);
        }
    }

    fn parted(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.end().is_some())
    }
}
