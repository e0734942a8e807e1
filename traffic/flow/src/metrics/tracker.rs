// SPDX-License-Identifier: Apache-2.0
//! Which messages arrived: first copies, duplicates, reordered, lost. Pure, in bounded memory.
//!
//! The last [`WINDOW`] sequence numbers are remembered one bit each. A message that falls out of the window unseen is
//! lost for good; if it comes even later it counts as a duplicate, so that sent = unique + lost always holds.

use crate::metrics::loss::LossBursts;

/// Sequence numbers remembered; 128 KiB, a second and a half at 600,000 messages a second.
const WINDOW: u64 = 1 << 20;
const WORDS: usize = (WINDOW / 64) as usize;

/// What one arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// A first copy, ahead of everything before. `skipped` messages between were not seen (yet).
    InOrder {
        /// Newly opened gap in messages.
        skipped: u64,
    },
    /// A first copy that a later message had overtaken; it fills a gap.
    Reordered,
    /// A further copy, or one too late to tell.
    Duplicate,
}

/// Counts of a flow so far, or in the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// First copies.
    pub unique: u64,
    /// Further copies.
    pub duplicate: u64,
    /// First copies that arrived after a later message.
    pub reordered: u64,
    /// Sent and never seen.
    pub lost: u64,
}

/// Remembers which messages arrived.
#[derive(Debug)]
pub struct Tracker {
    seen: Vec<u64>,
    /// One past the highest sequence number seen.
    next: u64,
    counts: Counts,
    /// Of what fell out of the window.
    bursts: LossBursts,
}

impl Default for Tracker {
    fn default() -> Self {
        Self { seen: vec![0; WORDS], next: 0, counts: Counts::default(), bursts: LossBursts::default() }
    }
}

impl Tracker {
    /// Take an arrival. `sequence` must be below 2^56.
    pub fn record(&mut self, sequence: u64) -> Arrived {
        if sequence == self.next {
            self.append();
            return Arrived::InOrder { skipped: 0 };
        }
        if sequence > self.next {
            let skipped = sequence - self.next;
            self.slide_to(sequence + 1);
            self.mark(sequence);
            self.counts.unique += 1;
            return Arrived::InOrder { skipped };
        }
        if self.next - sequence > WINDOW || self.is_marked(sequence) {
            self.counts.duplicate += 1;
            return Arrived::Duplicate;
        }
        self.mark(sequence);
        self.counts.unique += 1;
        self.counts.reordered += 1;
        Arrived::Reordered
    }

    /// Take the message that is next in order: by far the most are. Its place is that of the one that falls out.
    fn append(&mut self) {
        let (word, bit) = Self::place(self.next);
        if self.next >= WINDOW {
            if self.seen[word] & bit == 0 {
                self.counts.lost += 1;
                self.bursts.lost(1);
            } else {
                self.bursts.arrived();
            }
        }
        self.seen[word] |= bit;
        self.counts.unique += 1;
        self.next += 1;
    }

    /// First copies so far.
    pub fn unique(&self) -> u64 {
        self.counts.unique
    }

    /// One past the highest sequence number seen.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Counts when nothing more comes. `sent` is what the sender says it sent; `None` when it cannot be asked, then
    /// messages after the last arrival are unknown and not counted as lost.
    ///
    /// Lost messages are counted one by one from the gaps, not as a difference, so that sent = unique + lost is a check.
    pub fn finish(&self, sent: Option<u64>) -> Counts {
        let oldest = self.next.saturating_sub(WINDOW);
        let gaps = (oldest..self.next).filter(|sequence| !self.is_marked(*sequence)).count() as u64;
        let tail = sent.unwrap_or(self.next).saturating_sub(self.next);
        Counts { lost: self.counts.lost + gaps + tail, ..self.counts }
    }

    /// Loss bursts when nothing more comes; `sent` as for [`Self::finish`].
    pub fn loss_bursts(&self, sent: Option<u64>) -> LossBursts {
        let mut bursts = self.bursts.clone();
        for sequence in self.next.saturating_sub(WINDOW)..self.next {
            if self.is_marked(sequence) {
                bursts.arrived();
            } else {
                bursts.lost(1);
            }
        }
        bursts.lost(sent.unwrap_or(self.next).saturating_sub(self.next));
        bursts
    }

    /// Move the window so that it ends before `next`, counting what falls out unseen.
    fn slide_to(&mut self, next: u64) {
        let oldest = self.next.saturating_sub(WINDOW);
        let new_oldest = next.saturating_sub(WINDOW);
        let remembered = self.next - oldest;
        let leaving = (new_oldest - oldest).min(remembered);
        for sequence in oldest..oldest + leaving {
            if self.is_marked(sequence) {
                self.bursts.arrived();
            } else {
                self.counts.lost += 1;
                self.bursts.lost(1);
            }
        }
        // A jump of more than a window loses messages that were never inside.
        let never_inside = (new_oldest - oldest) - leaving;
        self.counts.lost += never_inside;
        self.bursts.lost(never_inside);
        for sequence in self.next.max(new_oldest)..next {
            self.clear(sequence);
        }
        self.next = next;
    }

    fn place(sequence: u64) -> (usize, u64) {
        let slot = sequence % WINDOW;
        ((slot / 64) as usize, 1 << (slot % 64))
    }

    fn is_marked(&self, sequence: u64) -> bool {
        let (word, bit) = Self::place(sequence);
        self.seen[word] & bit != 0
    }

    fn mark(&mut self, sequence: u64) {
        let (word, bit) = Self::place(sequence);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, sequence: u64) {
        let (word, bit) = Self::place(sequence);
        self.seen[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_late_message_fills_its_gap_and_a_second_copy_is_a_duplicate() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.record(0), Arrived::InOrder { skipped: 0 });
        assert_eq!(tracker.record(3), Arrived::InOrder { skipped: 2 });
        assert_eq!(tracker.record(1), Arrived::Reordered);
        assert_eq!(tracker.record(1), Arrived::Duplicate);
        assert_eq!(tracker.finish(Some(6)), Counts { unique: 3, duplicate: 1, reordered: 1, lost: 3 });
        assert_eq!(tracker.finish(None).lost, 1);
    }

    #[test]
    fn gaps_that_leave_the_window_stay_lost() {
        let mut tracker = Tracker::default();
        tracker.record(0);
        tracker.record(2);
        tracker.record(2 + 3 * WINDOW);
        assert_eq!(tracker.record(1), Arrived::Duplicate);
        let counts = tracker.finish(None);
        assert_eq!((counts.unique, counts.unique + counts.lost), (3, 3 + 3 * WINDOW));
        let bursts = tracker.loss_bursts(None).summary();
        assert_eq!((bursts.count, bursts.max_messages), (2, 3 * WINDOW - 1));
    }

    #[test]
    fn a_long_flow_without_loss_has_none() {
        let mut tracker = Tracker::default();
        for sequence in 0..2 * WINDOW + 77 {
            tracker.record(sequence);
        }
        assert_eq!(tracker.finish(Some(2 * WINDOW + 77)).lost, 0);
        assert_eq!(tracker.loss_bursts(Some(2 * WINDOW + 77)).summary().count, 0);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_set(sequences in proptest::collection::vec(0_u64..300, 0..400), extra in 0_u64..50) {
            let mut tracker = Tracker::default();
            let (mut set, mut reordered, mut highest) = (HashSet::new(), 0, None);
            for sequence in &sequences {
                tracker.record(*sequence);
                if set.insert(*sequence) && highest.is_some_and(|highest| *sequence < highest) {
                    reordered += 1;
                }
                highest = highest.max(Some(*sequence));
            }
            let sent = highest.map_or(0, |highest| highest + 1) + extra;
            let counts = tracker.finish(Some(sent));
            prop_assert_eq!(counts.unique, set.len() as u64);
            prop_assert_eq!(counts.duplicate, (sequences.len() - set.len()) as u64);
            prop_assert_eq!(counts.reordered, reordered);
            prop_assert_eq!(counts.unique + counts.lost, sent);
            let mut bursts = LossBursts::default();
            for sequence in 0..sent {
                if set.contains(&sequence) {
                    bursts.arrived();
                } else {
                    bursts.lost(1);
                }
            }
            prop_assert_eq!(tracker.loss_bursts(Some(sent)).summary(), bursts.summary());
        }

        #[test]
        fn unique_and_lost_add_up_across_jumps(jumps in proptest::collection::vec(0_u64..3 * WINDOW, 1..6)) {
            let mut tracker = Tracker::default();
            let mut sequence = 0;
            for jump in jumps {
                sequence += jump;
                tracker.record(sequence);
            }
            let counts = tracker.finish(None);
            prop_assert_eq!(counts.unique + counts.lost, sequence + 1);
            // Every jump is a burst of its own.
            let bursts = tracker.loss_bursts(None).summary();
            prop_assert!(bursts.count <= counts.unique);
            let mean_lost = bursts.mean_messages * bursts.count as f64;
            prop_assert!((mean_lost - counts.lost as f64).abs() < 0.5);
        }
    }
}
