// SPDX-License-Identifier: Apache-2.0
//! One end of one DCCP connection (RFC 4340 sections 7 and 8).
//!
//! | question | module |
//! | --- | --- |
//! | what do users say and hear? | `types` |
//! | is this packet's number right? | `sequence` |
//! | what does a packet that arrived do? | `receive`, its options: `options` |
//! | what leaves next, and how does it look? | `transmit`, `packets` |
//! | what is done once for packets that look alike? | `train` |
//! | what happens when nothing arrives? | `timers` |
//! | how does it end? | `close` |
//! | which features are wanted? | `feature_requests` |
//! | which data was refused or not taken, and how is that reported? | `dropped_data` |
//! | what happened so far? | `counters` |

mod close;
mod counters;
mod dropped_data;
mod feature_requests;
mod options;
mod packets;
mod receive;
mod send_queue;
mod sequence;
#[cfg(test)]
mod tests;
mod timers;
mod train;
mod transmit;
mod types;

use crate::ccid::{Ccid, Departure, Figure, ReceivingCcid, SendingCcid};
use crate::feature::{Feature, Location, Negotiation, Role};
use crate::options::DccpOption;
use crate::seqno::Seq48;
use counters::Counters;
use dropped_data::DroppedData;
use options::Echo;
use packets::Pending;
use send_queue::SendQueue;
use sequence::Sequence;
use timers::Timers;
pub use train::{Spacing, Train};
pub use types::{Carriage, Config, End, SendError, State, Transmit};

pub(crate) use close::stray_reset;
pub(crate) use packets::Addressing;

/// Bytes of a Data packet's MTU kept for options: NDP Count (3 to 8) and RTT Estimate (5).
const OPTION_RESERVE_BYTES: usize = 16;
/// Fixed header of a Data packet.
const DATA_HEADER_BYTES: usize = 16;
/// Round-trip time before one is known (RFC 4340 section 3.4).
const DEFAULT_RTT_NS: i64 = 200_000_000;
/// A wait in the receive buffer from which on this end is slow. A scheduler's pauses are shorter.
const SLOW_LAG_NS: i64 = 100_000_000;
/// This end says that it is slow for at least so long: acknowledgements come each millisecond at most.
const LEAST_SLOW_NS: i64 = 2_000_000;
/// Maximum segment lifetime, 2 minutes (RFC 4340 section 3.4).
pub(crate) const MSL_NS: i64 = 120_000_000_000;
/// A second.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Where congestion control comes from: the real ones, or a test's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ccids {
    pub(crate) sender: fn(Ccid, i64, Seq48, usize) -> Box<dyn SendingCcid>,
    pub(crate) receiver: fn(Ccid, i64) -> Box<dyn ReceivingCcid>,
}

impl Default for Ccids {
    fn default() -> Self {
        Self { sender: Ccid::sender, receiver: Ccid::receiver }
    }
}

/// The two half-connections' ends here.
#[derive(Debug)]
struct Halves {
    /// Of the data sent from here.
    sender: Box<dyn SendingCcid>,
    /// Of the data received here.
    receiver: Box<dyn ReceivingCcid>,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    role: Role,
    state: State,
    end: Option<End>,
    sequence: Sequence,
    features: Negotiation,
    halves: Option<Halves>,
    ccids: Ccids,
    queue: SendQueue,
    pending: Pending,
    timers: Timers,
    counters: Counters,
    /// Init Cookie options to echo, as they came.
    cookies: Vec<u8>,
    /// Scratch for the options of the packet being made.
    option_bytes: Vec<u8>,
    /// Data that was not delivered, to be reported.
    drops: DroppedData,
    /// What congestion control said about the oldest queued message; `None`: ask.
    departure: Option<Departure>,
    /// Limit while the peer's address is not proven.
    packet_limit_bytes: Option<usize>,
    /// Latest time that was told.
    now_ns: i64,
    /// When the timers were looked at last.
    timers_ran_ns: i64,
    /// Timestamp to answer.
    echo: Option<Echo>,
    /// Round trip of the handshake.
    handshake_rtt_ns: Option<i64>,
    /// Non-data packets sent since the last data packet.
    ndp_run: u64,
    /// Last valid packet of the peer.
    heard_ns: i64,
    /// How long what is handled next waited in the carrier's receive buffer.
    waited_ns: i64,
    /// This end says Slow Receiver until this time.
    slow_until_ns: Option<i64>,
    /// [`Self::close`] was called; what is queued goes first.
    close_wanted: bool,
    /// Data of a Request or Response was delivered; no second piece (section 8.5 step 16).
    handshake_data_taken: bool,
}

impl Connection {
    /// Client: the first [`Self::poll_transmit`] gives the Request. `random` supplies the initial sequence number
    /// (RFC 4340 section 7.2: unpredictable).
    pub fn connect(config: Config, now_ns: i64, random: &mut dyn FnMut() -> u64) -> Self {
        Self::connect_with(config, now_ns, random, Ccids::default())
    }

    pub(crate) fn connect_with(
        config: Config,
        now_ns: i64,
        random: &mut dyn FnMut() -> u64,
        ccids: Ccids,
    ) -> Self {
        //= rfc4340#7.2
        //# To address the second problem, an implementation MUST provide each 4-tuple with an independent initial sequence
        //# number space.
        //= rfc4340#7.2
        //# To address the first problem, an implementation MUST ensure that the initial sequence number for a given <source
        //# address, source port, destination address, destination port> 4-tuple doesn't overlap with recent sequence numbers on
        //# previous connections with the same 4-tuple.
        //= rfc4340#7.2
        //# The implementation MUST additionally ensure that the lower 24 bits of the initial sequence number don't overlap with
        //# the lower 24 bits of recent sequence numbers (unless the implementation plans to avoid short sequence numbers; see
        //# Section 7.6).
        // 48 random bits per connection: no relation between connections, and an overlap with the numbers of an earlier one is as
        // unlikely as guessing them. Short sequence numbers are never sent.
        //= rfc4340#7.2
        //# Initial sequence numbers MUST be chosen to avoid two problems:
        //= rfc4340#7.3
        //# In particular, they MUST NOT send packets whose sequence numbers are close to the sequence
        //# numbers of packets lingering in the network from before the boot.
        let iss = Seq48::new(random());
        let mut connection = Self::new(config, Role::Client, State::Request, iss, now_ns, ccids);
        connection.request_as_client();
        connection.timers.start_requests(now_ns);
        connection
    }

    /// Server: an end in RESPOND for a Request with number `isr`, which the caller hands to [`Self::handle`] next.
    pub(crate) fn respond(config: Config, now_ns: i64, iss: Seq48, isr: Seq48, ccids: Ccids) -> Self {
        let mut connection = Self::new(config, Role::Server, State::Respond, iss, now_ns, ccids);
        connection.sequence.set_first_received(isr);
        connection.features.set_first_received(isr);
        connection.accept_as_server();
        connection
    }

    fn new(config: Config, role: Role, state: State, iss: Seq48, now_ns: i64, ccids: Ccids) -> Self {
        let slot_bytes = payload_room(config.carriage, config.mtu_bytes);
        Self {
            role,
            state,
            end: None,
            sequence: Sequence::new(iss),
            features: Negotiation::new(role, iss),
            halves: None,
            ccids,
            queue: SendQueue::new(config.queue_messages, slot_bytes),
            pending: Pending::default(),
            timers: Timers::new(now_ns),
            counters: Counters::default(),
            cookies: Vec::new(),
            option_bytes: Vec::new(),
            drops: DroppedData::default(),
            departure: None,
            packet_limit_bytes: None,
            now_ns,
            timers_ran_ns: i64::MIN,
            echo: None,
            handshake_rtt_ns: None,
            ndp_run: 0,
            heard_ns: now_ns,
            waited_ns: 0,
            slow_until_ns: None,
            close_wanted: false,
            handshake_data_taken: false,
            config,
        }
    }

    /// Messages in the queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Throw away every message in the queue; how many there were. For who has no more time to wait for congestion control.
    pub fn discard_queued(&mut self) -> usize {
        let discarded = self.queue.len();
        while !self.queue.is_empty() {
            self.queue.pop();
        }
        self.departure = None;
        discarded
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// How it ended, when it did.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Service code of the connection.
    pub fn service_code(&self) -> u32 {
        self.config.service_code
    }

    //= rfc4340#14
    //# A DCCP implementation MUST maintain the maximum packet size (MPS) allowed for each active DCCP session.
    /// Largest message: MTU less headers less a reserve of 16 bytes for options, so that 1440 bytes fit IPv4 and
    /// RFC 6773 at MTU 1500.
    pub fn max_payload_bytes(&self) -> usize {
        payload_room(self.config.carriage, self.config.mtu_bytes)
    }

    //= rfc4340#14.1
    //# Each DCCP endpoint MUST keep track of the current PMTU for each connection, except that this is not required for IPv4
    //# connections whose applications have requested fragmentation.
    /// The path's MTU changed (ICMP, or the carrier's socket).
    pub fn set_mtu_bytes(&mut self, mtu_bytes: u32) {
        self.config.mtu_bytes = mtu_bytes;
        self.drop_oversized();
    }

    /// Smoothed round-trip time of the data sent from here, or the handshake's before there is one.
    pub fn rtt_ns(&self) -> Option<i64> {
        let smoothed = self.halves.as_ref().and_then(|halves| halves.sender.rtt_ns());
        smoothed.or(self.handshake_rtt_ns)
    }

    /// Times may come a little out of order (kernel time stamps of arrivals); timers go by the latest.
    fn pass_time(&mut self, now_ns: i64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Round-trip time for timers: a guess before one is known.
    fn timer_rtt_ns(&self) -> i64 {
        self.rtt_ns().unwrap_or(DEFAULT_RTT_NS)
    }

    /// CCID of the data sent from here and of the data received here, once agreed.
    pub fn ccids(&self) -> Option<(Ccid, Ccid)> {
        let halves = self.halves.as_ref()?;
        Some((halves.sender.ccid(), halves.receiver.ccid()))
    }

    /// Value in force of a feature (RFC 4340 section 6.4), e.g. whether this end sends Ack Vectors.
    pub fn feature(&self, feature: Feature, location: Location) -> u64 {
        self.features.value(feature, location)
    }

    /// What the carrier sees of its receive buffer when it reads at `now_ns`: how long the packets that are handled next had
    /// waited there, and how many found no room so far. When there are more than before, or the wait is long, the
    /// acknowledgements of the next round trip say Slow Receiver (RFC 4340 section 11.6).
    ///
    /// To the receiving CCID data arrives when it is taken from there: the buffer is the last queue of the path, which the
    /// sender has to see grow in its round trips before it overflows.
    pub fn on_receive_buffer(&mut self, now_ns: i64, lag_ns: i64, overflows: u64) {
        self.waited_ns = lag_ns.max(0);
        let has_overflowed = overflows > self.counters.receive_overflows;
        self.counters.receive_overflows = overflows.max(self.counters.receive_overflows);
        self.counters.greatest_receive_lag_ns = self.counters.greatest_receive_lag_ns.max(lag_ns);
        if has_overflowed || lag_ns > SLOW_LAG_NS {
            self.slow_until_ns = Some(now_ns.saturating_add(self.timer_rtt_ns().max(LEAST_SLOW_NS)));
        }
    }

    /// Counters and congestion control's figures, names with units.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.counters.figures();
        if let Some(rtt_ns) = self.rtt_ns() {
            figures.push(("rtt_us", rtt_ns as f64 / 1e3));
        }
        figures.push((
            "sequence_window_packets",
            self.features.value(Feature::SequenceWindow, Location::Local) as f64,
        ));
        if let Some(halves) = &self.halves {
            figures.push(("ccid", f64::from(halves.sender.ccid().number())));
            for figure in halves.sender.figures().into_iter().chain(halves.receiver.figures()) {
                if !figures.iter().any(|(name, _)| *name == figure.0) {
                    figures.push(figure);
                }
            }
        }
        figures
    }

    /// Largest packet in bytes, without IP and UDP headers.
    fn max_packet_bytes(&self) -> usize {
        let by_path = (self.config.mtu_bytes as usize).saturating_sub(self.config.carriage.overhead_bytes());
        by_path.min(self.packet_limit_bytes.unwrap_or(usize::MAX))
    }

    /// Before the peer's address is proven: no longer packets than this.
    pub(crate) fn limit_packets(&mut self, bytes: Option<usize>) {
        self.packet_limit_bytes = bytes;
    }

    /// Server: the Init Cookie for the next Response.
    pub(crate) fn set_cookie(&mut self, cookie: &[u8]) {
        self.cookies.clear();
        DccpOption::InitCookie(cookie).emit(&mut self.cookies);
    }

    /// Server with an Init Cookie that came back: as if the Response had just been made here, at `sent_ns`.
    pub(crate) fn assume_response_sent(&mut self, sent_ns: i64) {
        self.request_as_server();
        self.pending.response = true;
        self.poll_transmit(sent_ns, &mut Vec::new());
    }

    /// First number sent.
    pub(crate) fn first_sent(&self) -> Seq48 {
        self.sequence.iss
    }

    pub(crate) fn features(&self) -> &Negotiation {
        &self.features
    }

    pub(crate) fn features_mut(&mut self) -> &mut Negotiation {
        &mut self.features
    }
}

fn payload_room(carriage: Carriage, mtu_bytes: u32) -> usize {
    (mtu_bytes as usize).saturating_sub(carriage.overhead_bytes() + DATA_HEADER_BYTES + OPTION_RESERVE_BYTES)
}
