// SPDX-License-Identifier: Apache-2.0
//! When packets were sent, by sequence number (RFC 4342 section 10.1: instead of Timestamp options).

use crate::seqno::Seq48;

/// Packets remembered at first.
const MIN_PACKETS: usize = 256;
/// Packets remembered at most, 2.6 MB: over a 200 ms round trip 3.7 Gb/s of 1440-byte packets.
const MAX_PACKETS: usize = 1 << 16;

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) seq: Seq48,
    pub(super) sent_ns: i64,
    /// Window counter.
    pub(super) counter: u64,
    /// Last time up to its sending at which more waited than was allowed to leave.
    pub(super) limited_ns: i64,
}

/// The last packets, in a ring that grows with what is in flight.
#[derive(Debug)]
pub(super) struct SentLog {
    ring: Vec<Option<Sent>>,
    acknowledged: Option<Seq48>,
}

impl SentLog {
    pub(super) fn new() -> Self {
        Self { ring: vec![None; MIN_PACKETS], acknowledged: None }
    }

    pub(super) fn push(&mut self, sent: Sent) {
        let slot = self.slot(sent.seq);
        let overwrites_flying =
            self.ring[slot].is_some_and(|old| self.acknowledged.is_none_or(|ack| ack.is_before(old.seq)));
        if overwrites_flying && self.ring.len() < MAX_PACKETS {
            self.grow();
        }
        let slot = self.slot(sent.seq);
        self.ring[slot] = Some(sent);
    }

    /// The packet with this number, unless it is forgotten.
    pub(super) fn get(&self, seq: Seq48) -> Option<Sent> {
        self.ring[self.slot(seq)].filter(|sent| sent.seq == seq)
    }

    /// Packets up to `seq` need not be remembered longer.
    pub(super) fn acknowledge(&mut self, seq: Seq48) {
        self.acknowledged = Some(self.acknowledged.map_or(seq, |old| old.latest(seq)));
    }

    fn slot(&self, seq: Seq48) -> usize {
        (seq.value() % self.ring.len() as u64) as usize
    }

    fn grow(&mut self) {
        let doubled = vec![None; self.ring.len() * 2];
        let old = std::mem::replace(&mut self.ring, doubled);
        for sent in old.into_iter().flatten() {
            let slot = self.slot(sent.seq);
            self.ring[slot] = Some(sent);
        }
    }
}
