// SPDX-License-Identifier: Apache-2.0
//! When is what has come acknowledged? At once, or, in order, every second segment (RFC 5681, section 4.2).

use std::collections::BTreeSet;

use crate::segment::{Ack, SYN};

/// A delayed acknowledgement is sent after so long at the latest, ns: what ns-2 takes; RFC 1122 allows 500 ms.
const DELAY_NS: u64 = 100_000_000;

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    delays: bool,
    expected: u64,
    beyond: BTreeSet<u64>,
    ack_due_ns: Option<u64>,
}

impl Receiver {
    /// Nothing has come; with `delays` every second segment is acknowledged.
    pub fn new(delays: bool) -> Self {
        Self { delays, expected: 0, beyond: BTreeSet::new(), ack_due_ns: None }
    }

    /// Segments that have come in order, the SYN among them.
    pub fn in_order(&self) -> u64 {
        self.expected
    }

    /// Takes a segment in; gives the acknowledgement that goes out at once.
    pub fn take(&mut self, now_ns: u64, number: u64) -> Option<Ack> {
        let was_waiting = self.ack_due_ns.take().is_some();
        if number != self.expected {
            if number > self.expected {
                self.beyond.insert(number);
            }
            return Some(self.ack(number));
        }
        self.expected += 1;
        let fills_a_gap = !self.beyond.is_empty();
        while self.beyond.remove(&self.expected) {
            self.expected += 1;
        }
        if !self.delays || number == SYN || was_waiting || fills_a_gap {
            return Some(self.expected.into());
        }
        self.ack_due_ns = Some(now_ns + DELAY_NS);
        None
    }

    /// With the block that a segment out of order belongs to.
    fn ack(&self, number: u64) -> Ack {
        if !self.beyond.contains(&number) {
            return self.expected.into();
        }
        let in_a_row = |numbers: &mut dyn Iterator<Item = u64>| {
            numbers.take_while(|at| self.beyond.contains(at)).count()
        };
        let (before, after) = (in_a_row(&mut (0..number).rev()), in_a_row(&mut (number + 1..)));
        let first = number - before as u64;
        Ack { next: self.expected, block: ((first - self.expected) as u32, (before + 1 + after) as u32) }
    }

    /// When a delayed acknowledgement is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.ack_due_ns
    }

    /// The acknowledgement that is due by `now_ns`.
    pub fn poll(&mut self, now_ns: u64) -> Option<Ack> {
        self.ack_due_ns.filter(|at_ns| *at_ns <= now_ns)?;
        self.ack_due_ns = None;
        Some(self.expected.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(next: u64) -> Option<Ack> {
        Some(next.into())
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_one_after_a_while() {
        let mut end = Receiver::new(true);
        assert_eq!(end.take(0, SYN), acks(1));
        assert_eq!((end.take(0, 1), end.take(1, 2), end.take(2, 3)), (None, acks(3), None));
        assert_eq!((end.poll(DELAY_NS), end.next_ns()), (None, Some(DELAY_NS + 2)));
        assert_eq!((end.poll(DELAY_NS + 2), end.next_ns()), (acks(4), None));
    }

    #[test]
    fn a_gap_and_what_fills_it_are_acknowledged_at_once_with_the_newest_block() {
        let mut end = Receiver::new(true);
        let told = [1, 2, 5, 4].map(|number| end.take(0, number).map(Ack::sacked));
        assert_eq!(told, [Some(1..2), Some(1..3), Some(5..6), Some(4..6)]);
        assert_eq!((end.take(0, 0), end.take(0, 0), end.take(0, 3)), (acks(3), acks(3), acks(6)));
    }
}
