// SPDX-License-Identifier: Apache-2.0
//! The half-connection's receiver: when to acknowledge, and with what.

use crate::ccid::ack_vector;
use crate::ccid::ack_vector::record::{Arrival, Record};
use crate::ccid::{Ccid, Ecn, Figure, Incoming, ReceivingCcid, Violation};
use crate::options::DccpOption;
use crate::packet::Packet;
use crate::seqno::Seq48;

/// An acknowledgement waits at most this long for more packets (RFC 4340 section 11.3).
const DELAY_NS: i64 = 200_000_000;
/// Ack Ratio of a new connection.
const INITIAL_ACK_RATIO: u64 = 2;
/// Round-trip time while nothing is known (RFC 4340 section 3.4).
const DEFAULT_RTT_NS: i64 = 200_000_000;
/// Unit of Elapsed Time.
const ELAPSED_UNIT_NS: i64 = 10_000;
/// Delays below this are not worth six bytes.
const LEAST_ELAPSED_NS: i64 = 100_000;
/// Longest Elapsed Time option, type and length included.
const ELAPSED_BYTES: usize = 6;

/// The receiver.
#[derive(Debug)]
pub struct Receiver {
    record: Record,
    ack_ratio: u64,
    /// Data packets that no acknowledgement of ours has followed.
    unacknowledged: u64,
    due_ns: Option<i64>,
    /// The newest data packet of which the peer may not know that it arrived.
    unconfirmed: Option<Seq48>,
    /// Arrival of the newest packet.
    newest_arrived_ns: i64,
    /// No immediate acknowledgement for a mark before this time.
    marks_quiet_until_ns: i64,
    rtt_ns: i64,
    acks_sent: u64,
}

impl Receiver {
    /// See [`Ccid::receiver`].
    pub fn new(now_ns: i64) -> Self {
        Self {
            record: Record::default(),
            ack_ratio: INITIAL_ACK_RATIO,
            unacknowledged: 0,
            due_ns: None,
            unconfirmed: None,
            newest_arrived_ns: now_ns,
            marks_quiet_until_ns: i64::MIN,
            rtt_ns: DEFAULT_RTT_NS,
            acks_sent: 0,
        }
    }

    /// `packets` data packets arrived together, of which `arrival` and `ecn` are true.
    fn note_data(&mut self, arrived_ns: i64, ecn: Ecn, arrival: Arrival, packets: u64) {
        self.unacknowledged += packets;
        //= rfc4340#11.3
        //# Receivers SHOULD send acknowledgements immediately on receiving packets marked ECN Congestion Experienced or packets
        //# whose out-of-order sequence numbers potentially indicate loss. However, there is no need to send such immediate
        //# acknowledgements for marked packets more than once per round-trip time.
        let marked = ecn == Ecn::Ce && arrived_ns >= self.marks_quiet_until_ns;
        if marked {
            self.marks_quiet_until_ns = arrived_ns.saturating_add(self.rtt_ns);
        }
        if marked || arrival != Arrival::InOrder || self.unacknowledged >= self.ack_ratio {
            self.due_ns = Some(arrived_ns);
        } else {
            //= rfc4340#11.3
            //# Receivers SHOULD implement delayed acknowledgement timers like TCP's, whereby any packet's acknowledgement is delayed
            //# by at most T seconds.
            self.due_ns.get_or_insert(arrived_ns.saturating_add(DELAY_NS));
        }
    }
}

/// Carries application data for the purpose of Ack Ratio.
fn has_data(packet: &Packet<'_>) -> bool {
    packet.kind.is_data() || (packet.kind.carries_data() && !packet.payload.is_empty())
}

impl ReceivingCcid for Receiver {
    fn ccid(&self) -> Ccid {
        Ccid::TcpLike
    }

    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation> {
        if let Some(ack) = incoming.ack {
            self.record.on_acknowledged(ack, ack_vector::of_packet(incoming.packet, ack));
        }
        //= rfc4340#11
        //# DCCP receivers MUST report all congestion they see, as defined by the relevant CCID profile.
        let arrival = self.record.insert(incoming.seq, incoming.ecn);
        if matches!(arrival, Arrival::InOrder | Arrival::Gap) {
            self.newest_arrived_ns = incoming.arrived_ns;
        }
        if has_data(incoming.packet) && arrival != Arrival::Known {
            self.unconfirmed = Some(self.unconfirmed.map_or(incoming.seq, |seq| seq.latest(incoming.seq)));
            self.note_data(incoming.arrived_ns, incoming.ecn, arrival, 1);
        } else if self.unconfirmed.is_none_or(|seq| !self.record.covers(seq)) {
            // Only packets without data are left: nobody waits to hear of them, and nobody would acknowledge it.
            self.unconfirmed = None;
            self.record.keep_newest();
        }
        Ok(())
    }

    fn on_followers(&mut self, incoming: &Incoming<'_>, packets: u64) {
        let in_order = self.record.newest() == Some(incoming.seq);
        if packets == 0 || incoming.ecn == Ecn::Ce || !in_order {
            return incoming.followers(packets).for_each(|follower| _ = self.on_incoming(&follower));
        }
        self.record.insert_followers(packets, incoming.ecn);
        self.newest_arrived_ns = incoming.arrived_ns;
        self.unconfirmed = self.record.newest();
        self.note_data(incoming.arrived_ns, incoming.ecn, Arrival::InOrder, packets);
    }

    fn ack_due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    fn ack_options(
        &mut self,
        now_ns: i64,
        seq: Seq48,
        ack: Seq48,
        room_bytes: usize,
        put: &mut dyn FnMut(DccpOption<'_>),
    ) {
        self.due_ns = None;
        self.unacknowledged = 0;
        if self.record.newest() != Some(ack) {
            // A Sync that names another packet: an Ack Vector would be placed wrongly.
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.newest_arrived_ns);
        let mut room = room_bytes;
        if elapsed_ns >= LEAST_ELAPSED_NS && room > 2 * ELAPSED_BYTES {
            put(DccpOption::ElapsedTime(u32::try_from(elapsed_ns / ELAPSED_UNIT_NS).unwrap_or(u32::MAX)));
            room -= ELAPSED_BYTES;
        }
        //= rfc4341#6
        //# Each required acknowledgement MUST contain Ack Vector options that declare exactly which packets arrived and whether
        //# those packets were ECN-marked.
        //= rfc4340#11.5
        //# DCCP A MUST send Ack Vector options on its acknowledgements when Send Ack Vector/A has value
        //# one
        if self.record.emit(room, put) {
            self.record.on_sent(seq);
            self.acks_sent += 1;
        }
    }

    fn set_ack_ratio(&mut self, ratio: u16) {
        // 0: no Ack Ratio; CCID 2 still needs one.
        self.ack_ratio = if ratio == 0 { INITIAL_ACK_RATIO } else { u64::from(ratio) };
        if self.unacknowledged >= self.ack_ratio {
            self.due_ns = Some(self.newest_arrived_ns);
        }
    }

    fn set_initial_rtt(&mut self, rtt_ns: i64) {
        self.rtt_ns = rtt_ns.max(0);
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            ("ack_vector_cells", self.record.cells() as f64),
            ("ack_vectors_sent", self.acks_sent as f64),
            ("peer_ack_ratio", self.ack_ratio as f64),
        ]
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
