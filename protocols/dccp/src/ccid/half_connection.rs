// SPDX-License-Identifier: Apache-2.0
//! What congestion control and a connection say to each other: the two traits, and the words of their calls.

use std::fmt;

use crate::options::DccpOption;
use crate::packet::Packet;
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// Congestion control of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ccid {
    /// CCID 2: TCP-like (RFC 4341).
    TcpLike = 2,
    /// CCID 3: TFRC (RFC 4342).
    Tfrc = 3,
}

/// ECN field of the IP header that carried a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable, or not known.
    #[default]
    NotEct,
    /// ECT(0): nonce 0.
    Ect0,
    /// ECT(1): nonce 1.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// A sequence-valid packet that arrived, with its numbers extended to 48 bits.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// When it arrived.
    pub arrived_ns: i64,
    /// Its sequence number.
    pub seq: Seq48,
    /// Its acknowledgement number.
    pub ack: Option<Seq48>,
    /// ECN field.
    pub ecn: Ecn,
    /// The packet: type, CCVal, options, payload.
    pub packet: &'a Packet<'a>,
}

impl Incoming<'_> {
    /// Packets like it but for the number, `packets` of them with the numbers behind its own.
    pub(crate) fn followers(&self, packets: u64) -> impl Iterator<Item = Self> + '_ {
        (1..=packets).map(|step| Self { seq: self.seq.add(step), ..*self })
    }
}

/// When the next data packet may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// At once.
    Now,
    /// Not before this time.
    At(i64),
    /// Not before an acknowledgement or a timeout.
    OnFeedback,
}

/// Reset the connection for this reason (RFC 4340 section 5.6), data 1 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Code.
    pub code: ResetCode,
    /// Data bytes.
    pub data: [u8; 3],
}

/// A figure of a half-connection for reports, with its unit in the name, e.g. ("rtt_us", 10240.0).
pub type Figure = (&'static str, f64);

/// The half-connection's sender.
///
/// Call order for a data packet: [`Self::departure`] says [`Departure::Now`], then [`Self::ccval`] and
/// [`Self::data_options`] for its header, then [`Self::on_sent`].
pub trait SendingCcid: fmt::Debug + Send {
    /// Which one.
    fn ccid(&self) -> Ccid;

    /// When a data packet with `payload_bytes` may leave, asked at `now_ns`.
    fn departure(&mut self, now_ns: i64, payload_bytes: usize) -> Departure;

    /// CCVal of a packet leaving now (CCID 3: window counter; others: 0).
    fn ccval(&mut self, now_ns: i64) -> u8;

    /// Options that this CCID wants on a data packet leaving now (RFC 6323); must be allowed on Data packets.
    fn data_options(&mut self, now_ns: i64, put: &mut dyn FnMut(DccpOption<'_>));

    /// A packet left with this number; `payload_bytes` of data, `None` for a packet without (every packet uses a number).
    /// `ecn` is what was put into its IP header.
    fn on_sent(&mut self, now_ns: i64, seq: Seq48, payload_bytes: Option<usize>, ecn: Ecn);

    /// A data packet with `payload_bytes` has just left at `now_ns`: how many more of that size may leave at once behind it
    /// with the same CCVal and [`Self::data_options`], `most` at most, while [`Self::wants_ack_of_acks`] stays `false`.
    fn may_follow(&mut self, _now_ns: i64, _payload_bytes: usize, _most: usize) -> usize {
        0
    }

    /// As many packets as [`Self::may_follow`] allowed, or fewer, left at `now_ns` with the numbers from `first` on.
    fn on_followers_sent(&mut self, now_ns: i64, first: Seq48, packets: u64, payload_bytes: usize, ecn: Ecn) {
        for step in 0..packets {
            self.on_sent(now_ns, first.add(step), Some(payload_bytes), ecn);
        }
    }

    /// The queue of data to send has become empty although sending was allowed (data-limited; RFC 5348 section 8.2.1).
    fn on_queue_empty(&mut self, now_ns: i64);

    /// Any sequence-valid packet of the peer in order of arrival, also without acknowledgement number: gaps in the peer's
    /// numbers tell lost acknowledgements, and Slow Receiver may stand on any packet.
    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation>;

    /// Data packets like `incoming` but for the number and the contents, `packets` of them with the numbers behind its own,
    /// arrived together with it. The same as [`Self::on_incoming`] for each.
    fn on_followers(&mut self, incoming: &Incoming<'_>, packets: u64) {
        // What was right with the options of the first packet is right with theirs: they are the same.
        incoming.followers(packets).for_each(|follower| _ = self.on_incoming(&follower));
    }

    /// When [`Self::on_timeout`] is due.
    fn next_timeout_ns(&self) -> Option<i64>;

    /// A timer is due at or before `now_ns`.
    fn on_timeout(&mut self, now_ns: i64);

    /// Round-trip time measured by the handshake, before the first data packet.
    fn set_initial_rtt(&mut self, rtt_ns: i64);

    /// Smoothed round-trip time.
    fn rtt_ns(&self) -> Option<i64>;

    /// Packets that may be in flight, or unacknowledged, over one round trip; the connection keeps the Sequence Window at about five times
    /// this (RFC 4340 section 7.5.2).
    fn packets_per_rtt(&self) -> u64;

    /// Ack Ratio that the peer should use, when this CCID has one (RFC 4341 section 6.1.2); it is negotiated when it changes.
    fn wanted_ack_ratio(&self) -> Option<u16> {
        None
    }

    /// The Sequence Window W that is in force for packets sent here; CCID 2's window must not exceed it.
    fn set_sequence_window(&mut self, _packets: u64) {}

    /// The peer's acknowledgements should now be acknowledged, by a DataAck or Ack (RFC 4341 section 6.2: about once per
    /// window). Asked before each packet; the packet that leaves after `true` is taken to carry it.
    fn wants_ack_of_acks(&self) -> bool {
        false
    }

    /// The Send RTT Estimate feature (RFC 6323) of data sent from here came into force or ended. Unless off,
    /// [`Self::data_options`] gives the option for Data, DataAck, Sync and SyncAck packets.
    fn set_rtt_estimate_feature(&mut self, _on: bool) {}

    /// Figures for reports.
    fn figures(&self) -> Vec<Figure>;
}

/// The half-connection's receiver.
pub trait ReceivingCcid: fmt::Debug + Send {
    /// Which one.
    fn ccid(&self) -> Ccid;

    /// Any sequence-valid packet of the peer, in order of arrival, whether or not its data is delivered. Its
    /// acknowledgement number tells which of this end's acknowledgements have arrived.
    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation>;

    /// Data packets like `incoming` but for the number and the contents, `packets` of them with the numbers behind its own,
    /// arrived together with it. The same as [`Self::on_incoming`] for each.
    fn on_followers(&mut self, incoming: &Incoming<'_>, packets: u64) {
        // What was right with the options of the first packet is right with theirs: they are the same.
        incoming.followers(packets).for_each(|follower| _ = self.on_incoming(&follower));
    }

    /// When an acknowledgement must leave at the latest; at or before the present: now. `None`: nothing to say.
    fn ack_due_ns(&self) -> Option<i64>;

    /// Options for a packet with acknowledgement number `ack` that leaves now with sequence number `seq`, in at most
    /// `room_bytes`. Called for Ack and DataAck (and Sync/SyncAck that carry an acknowledgement's options). Afterwards
    /// [`Self::ack_due_ns`] must not be due any more.
    fn ack_options(
        &mut self,
        now_ns: i64,
        seq: Seq48,
        ack: Seq48,
        room_bytes: usize,
        put: &mut dyn FnMut(DccpOption<'_>),
    );

    /// The peer's Ack Ratio feature changed.
    fn set_ack_ratio(&mut self, _ratio: u16) {}

    /// This end's own idea of the round trip (handshake), for before the sender says its own.
    fn set_initial_rtt(&mut self, _rtt_ns: i64) {}

    /// The peer's Send RTT Estimate feature (RFC 6323) came into force or ended; until said, seeing the option tells.
    fn set_rtt_estimate_feature(&mut self, _on: bool) {}

    /// This end's Send Loss Event Rate feature (RFC 4342 section 8.4); until said, the option is sent as RFC 4342 allows.
    fn set_loss_event_rate_feature(&mut self, _on: bool) {}

    /// Figures for reports.
    fn figures(&self) -> Vec<Figure>;
}

/// What a CCID needs from feature negotiation (RFC 4341 section 4, RFC 4342 section 4 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirements {
    /// Send Ack Vector at the receiver of the data.
    pub send_ack_vector: bool,
    /// Send NDP Count at the sender of the data.
    pub send_ndp_count: bool,
    /// Send Loss Event Rate (192) at the receiver of the data.
    pub send_loss_event_rate: bool,
    /// Ack Ratio is used.
    pub ack_ratio: bool,
}

impl Ccid {
    /// From its number, if this stack has it.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::TcpLike),
            3 => Some(Self::Tfrc),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// What it needs from negotiation.
    pub const fn requirements(self) -> Requirements {
        match self {
            //= rfc4341#4
            //# Use of the Ack Vector is MANDATORY on CCID 2 half-connections, so the sender MUST send a "Change R(Send Ack Vector, 1)"
            //# option to the receiver as part of connection establishment.
            Self::TcpLike => Requirements {
                send_ack_vector: true,
                send_ndp_count: false,
                send_loss_event_rate: false,
                ack_ratio: true,
            },
            Self::Tfrc => Requirements {
                send_ack_vector: false,
                send_ndp_count: true,
                send_loss_event_rate: true,
                ack_ratio: false,
            },
        }
    }
}
