// SPDX-License-Identifier: Apache-2.0
//! p from what the receiver reports: Loss Intervals checked against Loss Event Rate (RFC 4342 sections 6.1.1 and 9.2).

use crate::ccid::tfrc::loss_rate::{History, INTERVALS};
use crate::options::loss_intervals::{LossIntervals, MAX_LENGTH};
use crate::seqno::Seq48;

/// Congestion marks that this end adds (Data Dropped for corruption), remembered at most.
const MAX_MARKS: usize = INTERVALS;

/// What is known of the receiver's losses.
#[derive(Debug, Default)]
pub(super) struct LossReport {
    loss_event_rate: f64,
    /// First packet of the newest loss interval.
    newest_start: Option<Seq48>,
    events: u64,
    /// Packets to be taken as marked, newest first.
    marks: [Option<Seq48>; MAX_MARKS],
}

impl LossReport {
    /// Loss events reported so far.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// The packet `seq` counts as marked.
    pub(super) fn mark(&mut self, seq: Seq48) {
        self.marks.rotate_right(1);
        self.marks[0] = Some(seq);
    }

    /// p, and whether a loss event is new since the last report. One of the two options is there.
    pub(super) fn read(
        &mut self,
        ack: Seq48,
        intervals: Option<LossIntervals<'_>>,
        inverse: Option<u32>,
    ) -> (f64, bool) {
        let said =
            inverse.map(|inverse| if inverse == u32::MAX { 0.0 } else { 1.0 / f64::from(inverse.max(1)) });
        let lengths = intervals.and_then(|intervals| self.lengths(ack, &intervals));
        let loss_event_rate = match (lengths, said) {
            (Some(lengths), said) => lengths.loss_event_rate(said),
            // Incomplete intervals (the receiver leaves out what it believes known): its own figure.
            (None, Some(said)) => said,
            (None, None) => self.loss_event_rate,
        };
        let start = intervals.and_then(|intervals| newest_start(ack, &intervals));
        let is_new = match (self.newest_start, start) {
            (Some(old), Some(new)) => old.is_before(new),
            (None, Some(_)) => true,
            (_, None) => intervals.is_none() && loss_event_rate > self.loss_event_rate,
        };
        self.newest_start = start.or(self.newest_start);
        self.events += u64::from(is_new);
        self.loss_event_rate = loss_event_rate;
        (loss_event_rate, is_new)
    }

    /// Data lengths, unless there are too few to compute with.
    fn lengths(&self, ack: Seq48, intervals: &LossIntervals<'_>) -> Option<Lengths> {
        let mut lengths = Lengths { newest_first: [0.0; INTERVALS + 1], count: 0 };
        let mut end = ack.sub(u64::from(intervals.skip));
        let mut has_first = false;
        for interval in intervals.iter() {
            let start = end.sub(u64::from(interval.sequence_length())).add(1);
            let mut data = f64::from(interval.data_length);
            for mark in self.marks.iter().flatten() {
                // A mark in the lossless part ends one interval and begins another.
                let after = start.distance_to(*mark);
                if after > i64::from(interval.loss_length) && mark.distance_to(end) >= 0 {
                    let newer = (mark.distance_to(end) + 1) as f64;
                    lengths.push(newer.min(data));
                    data = (data - newer).max(1.0);
                    end = mark.sub(1);
                }
            }
            lengths.push(data);
            has_first |= interval.loss_length == 0;
            end = start.sub(1);
        }
        (has_first || lengths.count == INTERVALS + 1).then_some(lengths)
    }
}

/// Interval lengths in data packets, the current one first.
#[derive(Debug)]
struct Lengths {
    newest_first: [f64; INTERVALS + 1],
    count: usize,
}

impl Lengths {
    fn push(&mut self, length: f64) {
        if let Some(slot) = self.newest_first.get_mut(self.count) {
            *slot = length;
            self.count += 1;
        }
    }

    /// `said` is the receiver's own figure. It is 1/p rounded up, so the exact one is taken where both agree. A smaller
    /// one is believed when history discounting can explain it, a greater one always.
    fn loss_event_rate(&self, said: Option<f64>) -> f64 {
        let current = self.newest_first[0];
        let history = History::from_lengths(self.newest_first[1..self.count].iter().copied());
        let plain = history.undiscounted_loss_event_rate(current);
        let Some(said) = said else { return plain };
        let agrees = |p: f64| p > 0.0 && said > 0.0 && (1.0 / p).ceil() - (1.0 / said).round() == 0.0;
        if agrees(plain) || plain <= 0.0 {
            return plain.max(if plain > 0.0 { 0.0 } else { said });
        }
        //= rfc4342#9.2
        //# These kinds of differences SHOULD NOT be
        //# misinterpreted as attempted receiver misbehavior.
        if said >= plain {
            return said;
        }
        let discounted = history.loss_event_rate(current);
        if agrees(discounted) {
            return discounted;
        }
        // A weighted mean of intervals is at most the longest.
        let longest = self.newest_first[..self.count].iter().copied().fold(1.0, f64::max);
        if said * (longest + 1.0) >= 1.0 {
            said
        } else {
            plain
        }
    }
}

/// First packet of the newest interval; `None` before the first loss event, or when its length did not fit.
fn newest_start(ack: Seq48, intervals: &LossIntervals<'_>) -> Option<Seq48> {
    let newest = intervals.iter().next()?;
    let is_known = newest.loss_length > 0 && newest.lossless_length < MAX_LENGTH;
    is_known.then(|| ack.sub(u64::from(intervals.skip)).sub(u64::from(newest.sequence_length())).add(1))
}
