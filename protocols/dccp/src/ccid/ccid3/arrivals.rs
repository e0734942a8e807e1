// SPDX-License-Identifier: Apache-2.0
//! Which packets are lost: arrivals put in order, holes declared lost after three later packets (RFC 5348 section 5.1).

use crate::seqno::Seq48;

/// Later packets that make a missing one lost.
pub(super) const NDUPACK: usize = 3;

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// Its sequence number.
    pub(super) seq: Seq48,
    /// When.
    pub(super) arrived_ns: i64,
    /// Not one of the non-data types.
    pub(super) data: bool,
    /// Data with congestion experienced.
    pub(super) marked: bool,
    /// ECN nonce of a data packet.
    pub(super) nonce: bool,
    /// Window counter.
    pub(super) ccval: u8,
    /// Non-data packets sent right before it.
    pub(super) ndp_count: u64,
}

/// The next packet in sequence order, and what is lost before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The packet.
    pub(super) arrival: Arrival,
    /// Sequence number and time of arrival of the greatest packet received before; `None` for the very first.
    pub(super) before: Option<(Seq48, i64)>,
    /// Packets lost between the two.
    pub(super) lost: u64,
}

/// Packets above the first hole, at most three.
#[derive(Debug)]
pub(super) struct Arrivals {
    settled: Option<(Seq48, i64)>,
    waiting: [Option<Arrival>; NDUPACK],
}

impl Arrivals {
    pub(super) const fn new() -> Self {
        Self { settled: None, waiting: [None; NDUPACK] }
    }

    /// Greatest sequence number up to which every packet has arrived or is lost.
    pub(super) fn settled(&self) -> Option<Seq48> {
        self.settled.map(|(seq, _)| seq)
    }

    /// Take a packet; then call [`Self::next`] until it gives nothing. False for a packet that is here already or comes
    /// after it was declared lost: the loss stands (section 5.1 lets the receiver recalculate, it need not).
    pub(super) fn insert(&mut self, arrival: Arrival) -> bool {
        if self.settled.is_some_and(|(seq, _)| !seq.is_before(arrival.seq)) {
            return false;
        }
        let mut carried = arrival;
        for slot in &mut self.waiting {
            match slot {
                None => {
                    *slot = Some(carried);
                    return true;
                }
                Some(held) if held.seq == carried.seq => return false,
                Some(held) if carried.seq.is_before(held.seq) => std::mem::swap(held, &mut carried),
                Some(_) => {}
            }
        }
        // Not reached while callers drain: fewer than three packets wait between calls.
        false
    }

    /// Packets behind `first` up to `last` arrived with it, in order. False, and nothing is taken, when `first` is not the
    /// greatest packet that is settled, or others wait.
    pub(super) fn insert_followers(&mut self, first: Seq48, last: Seq48, arrived_ns: i64) -> bool {
        let is_in_order = self.settled() == Some(first) && self.waiting[0].is_none();
        if is_in_order {
            self.settled = Some((last, arrived_ns));
        }
        is_in_order
    }

    /// The next packet whose predecessors are all settled.
    pub(super) fn next(&mut self) -> Option<Step> {
        let arrival = self.waiting[0]?;
        let before = self.settled;
        let lost = before.map_or(0, |(seq, _)| seq.distance_to(arrival.seq).max(1) as u64 - 1);
        // A mark is a congestion event at once, and the holes before it belong to the first event (section 5.1).
        let marked = self.waiting.iter().flatten().any(|held| held.marked);
        if lost > 0 && !marked && self.waiting[NDUPACK - 1].is_none() {
            return None;
        }
        self.waiting[0] = None;
        self.waiting.rotate_left(1);
        self.settled = Some((arrival.seq, arrival.arrived_ns));
        Some(Step { arrival, before, lost })
    }
}
