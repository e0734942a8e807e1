// SPDX-License-Identifier: Apache-2.0
//! Which segments are there, and which are lost? What selective acknowledgements told a sender (RFC 6675).

use std::collections::BTreeSet;
use std::ops::Range;

/// A segment counts as lost when so many behind it have come (DupThresh).
const BEHIND: usize = 3;

/// What has come out of order, and what was sent again for it.
#[derive(Debug, Default)]
pub struct Scoreboard {
    sacked: BTreeSet<u64>,
    resent: BTreeSet<u64>,
}

impl Scoreboard {
    /// Takes in the segments that an acknowledgement tells.
    pub fn take(&mut self, block: Range<u64>) {
        for number in block {
            self.sacked.insert(number);
            self.resent.remove(&number);
        }
    }

    /// All before `ack` have come.
    pub fn advance(&mut self, ack: u64) {
        self.sacked = self.sacked.split_off(&ack);
        self.resent = self.resent.split_off(&ack);
    }

    /// A segment was sent again.
    pub fn resend(&mut self, number: u64) {
        self.resent.insert(number);
    }

    /// A recovery begins or the timer has ended: nothing has been sent again.
    pub fn forget_resent(&mut self) {
        self.resent.clear();
    }

    /// The timer has ended: the receiver may have dropped what it told (RFC 2018, section 8).
    pub fn clear(&mut self) {
        self.sacked.clear();
        self.resent.clear();
    }

    /// What is not there before this is lost.
    fn lost_to(&self, unacked: u64) -> u64 {
        self.sacked.iter().nth_back(BEHIND - 1).copied().unwrap_or(unacked)
    }

    /// True when the first segment that was not acknowledged is lost.
    pub fn is_lost(&self, unacked: u64) -> bool {
        self.lost_to(unacked) > unacked
    }

    /// The first lost segment behind all that were sent again (NextSeg, rule 1).
    pub fn next_lost(&self, unacked: u64) -> Option<u64> {
        let first = self.resent.last().map_or(unacked, |last| last + 1);
        (first..self.lost_to(unacked)).find(|number| !self.sacked.contains(number))
    }

    /// Segments on their way, of those from `unacked` on that were sent (SetPipe).
    pub fn pipe(&self, unacked: u64, highest: u64) -> u64 {
        let lost_to = self.lost_to(unacked);
        let there = self.sacked.range(lost_to..).count();
        highest - lost_to - there as u64 + self.resent.range(..lost_to).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_lost_when_three_behind_it_have_come_and_is_sent_again_once() {
        let mut board = Scoreboard::default();
        board.take(12..14);
        assert_eq!((board.is_lost(10), board.next_lost(10), board.pipe(10, 20)), (false, None, 8));
        board.take(15..16);
        // 10 and 11 are lost, 14 is not: one behind it has come. 14 and 16 to 19 are on their way.
        assert_eq!((board.is_lost(10), board.next_lost(10), board.pipe(10, 20)), (true, Some(10), 5));
        board.resend(10);
        assert_eq!((board.next_lost(10), board.pipe(10, 20)), (Some(11), 6));
        board.resend(11);
        board.advance(12);
        assert_eq!((board.next_lost(14), board.pipe(14, 20)), (None, 5));
    }
}
