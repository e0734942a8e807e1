// SPDX-License-Identifier: Apache-2.0
//! What happened in each interval of a fixed grid. Pure.

use serde::{Deserialize, Serialize};

/// Which end a figure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end that sends messages.
    Sender,
    /// The end that receives them.
    Receiver,
}

/// One interval at one end. What an end cannot know is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Which end.
    pub end: End,
    /// Begin, `CLOCK_MONOTONIC` ns of that end.
    pub start_ns: i64,
    /// End, one interval length later.
    pub end_ns: i64,
    /// Messages sent, or first copies received.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Messages found missing and never filled in later (receiver).
    pub messages_lost: Option<u64>,
    /// Further copies (receiver).
    pub messages_duplicate: Option<u64>,
    /// First copies that came after a later message (receiver).
    pub messages_reordered: Option<u64>,
    /// RFC 3550 jitter at the end of the interval in ms (receiver).
    pub jitter_ms: Option<f64>,
    /// CPU time of that end's process in s.
    pub cpu_s: f64,
}

/// Contiguous intervals, all of one length.
#[derive(Debug)]
pub struct Series {
    interval_ns: i64,
    closed: Vec<Interval>,
    current: Interval,
    cpu_ns: i64,
    handed_out: usize,
}

impl Series {
    /// The sender's grid starts with its flow.
    pub fn sender(interval_ns: i64, start_ns: i64, cpu_ns: i64) -> Self {
        Self::new(blank(End::Sender, start_ns, interval_ns), interval_ns, cpu_ns)
    }

    /// The receiver's grid is the multiples of the interval on its own clock.
    pub fn receiver(interval_ns: i64, start_ns: i64, cpu_ns: i64) -> Self {
        let start_ns = start_ns.div_euclid(interval_ns) * interval_ns;
        Self::new(blank(End::Receiver, start_ns, interval_ns), interval_ns, cpu_ns)
    }

    fn new(current: Interval, interval_ns: i64, cpu_ns: i64) -> Self {
        Self { interval_ns, closed: Vec::new(), current, cpu_ns, handed_out: 0 }
    }

    /// Begin at `first_ns`, the first arrival, where that is earlier: a message may come while its flow is being set up.
    pub fn reach_back(&mut self, first_ns: i64) {
        if self.closed.is_empty() && first_ns < self.current.start_ns {
            let start_ns = first_ns.div_euclid(self.interval_ns) * self.interval_ns;
            self.current = blank(self.current.end, start_ns, self.interval_ns);
        }
    }

    /// Close every interval that ended by `now_ns`. `cpu_ns` reads the process's CPU time and is asked only then; after
    /// several empty intervals their CPU time counts in the first.
    pub fn roll(&mut self, now_ns: i64, jitter_ms: Option<f64>, cpu_ns: impl FnOnce() -> i64) {
        if now_ns >= self.current.end_ns {
            self.close(now_ns, jitter_ms, cpu_ns());
        }
    }

    #[cold]
    fn close(&mut self, now_ns: i64, jitter_ms: Option<f64>, cpu_ns: i64) {
        self.current.cpu_s = (cpu_ns - self.cpu_ns).max(0) as f64 * 1e-9;
        self.cpu_ns = cpu_ns;
        while now_ns >= self.current.end_ns {
            if self.current.end == End::Receiver {
                self.current.jitter_ms = jitter_ms;
            }
            let next = blank(self.current.end, self.current.end_ns, self.interval_ns);
            self.closed.push(std::mem::replace(&mut self.current, next));
        }
    }

    /// Count messages of `bytes` in all in the current interval. Roll first.
    pub fn count(&mut self, messages: u64, bytes: u64) {
        self.current.messages += messages;
        self.current.bytes += bytes;
    }

    /// Take back messages counted last, `bytes` each: they did not leave after all.
    pub fn take_back(&mut self, messages: u64, bytes: u64) {
        let mut left = messages;
        for interval in std::iter::once(&mut self.current).chain(self.closed.iter_mut().rev()) {
            let here = left.min(interval.messages);
            interval.messages -= here;
            interval.bytes -= here * bytes;
            left -= here;
        }
    }

    /// Count a newly found gap.
    pub fn count_lost(&mut self, messages: u64) {
        add(&mut self.current.messages_lost, messages);
    }

    /// Count a duplicate.
    pub fn count_duplicate(&mut self) {
        add(&mut self.current.messages_duplicate, 1);
    }

    /// Count a reordered first copy: it was taken for lost in this interval or an earlier one.
    pub fn count_reordered(&mut self) {
        add(&mut self.current.messages_reordered, 1);
        let intervals = std::iter::once(&mut self.current).chain(self.closed.iter_mut().rev());
        for lost in intervals.filter_map(|interval| interval.messages_lost.as_mut()) {
            if *lost > 0 {
                *lost -= 1;
                return;
            }
        }
    }

    /// Intervals closed since the last call, for live output.
    pub fn fresh(&mut self) -> &[Interval] {
        let from = std::mem::replace(&mut self.handed_out, self.closed.len());
        &self.closed[from..]
    }

    /// End at `now_ns`: the interval that holds it is closed whole.
    pub fn finish(&mut self, now_ns: i64, jitter_ms: Option<f64>, cpu_ns: i64) {
        let end_ns = self.current.end_ns.max(now_ns + 1);
        self.close(end_ns, jitter_ms, cpu_ns);
    }

    /// Every closed interval.
    pub fn into_closed(self) -> Vec<Interval> {
        self.closed
    }
}

fn blank(end: End, start_ns: i64, interval_ns: i64) -> Interval {
    let known = (end == End::Receiver).then_some(0);
    Interval {
        end,
        start_ns,
        end_ns: start_ns + interval_ns,
        messages: 0,
        bytes: 0,
        messages_lost: known,
        messages_duplicate: known,
        messages_reordered: known,
        jitter_ms: None,
        cpu_s: 0.0,
    }
}

fn add(counter: &mut Option<u64>, messages: u64) {
    *counter = Some(counter.unwrap_or(0) + messages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_receivers_grid_is_multiples_of_the_interval() {
        let mut series = Series::receiver(100, 1_234, 0);
        series.roll(1_500, Some(0.5), || 40);
        series.finish(1_510, Some(0.6), 70);
        let intervals = series.into_closed();
        assert_eq!((intervals[0].start_ns, intervals[0].end_ns), (1_200, 1_300));
        assert_eq!(intervals.last().unwrap().end_ns, 1_600);
        assert!((intervals.iter().map(|interval| interval.cpu_s).sum::<f64>() - 70e-9).abs() < 1e-15);
    }

    #[test]
    fn the_grid_reaches_back_to_a_message_that_came_before_it_and_no_further() {
        let mut series = Series::receiver(100, 1_234, 0);
        series.reach_back(1_250);
        series.reach_back(1_049);
        series.roll(1_210, None, || 0);
        series.reach_back(900);
        series.finish(1_210, None, 0);
        let starts: Vec<_> = series.into_closed().iter().map(|interval| interval.start_ns).collect();
        assert_eq!(starts, [1_000, 1_100, 1_200]);
    }

    #[test]
    fn a_late_message_takes_back_the_loss_that_it_was_taken_for() {
        let mut series = Series::receiver(100, 0, 0);
        series.count_lost(2);
        series.roll(100, None, || 0);
        series.count_reordered();
        series.finish(150, None, 0);
        let intervals = series.into_closed();
        assert_eq!(intervals[0].messages_lost, Some(1));
        assert_eq!((intervals[1].messages_lost, intervals[1].messages_reordered), (Some(0), Some(1)));
    }

    #[test]
    fn what_did_not_leave_is_taken_back_from_the_last_intervals() {
        let mut series = Series::sender(100, 0, 0);
        series.count(3, 30);
        series.roll(100, None, || 0);
        series.count(2, 20);
        series.take_back(4, 10);
        series.finish(150, None, 0);
        let counts: Vec<_> =
            series.into_closed().iter().map(|interval| (interval.messages, interval.bytes)).collect();
        assert_eq!(counts, [(1, 10), (0, 0)]);
    }

    #[test]
    fn the_sender_knows_nothing_of_losses() {
        let mut series = Series::sender(100, 7, 0);
        series.finish(7, None, 0);
        let intervals = series.into_closed();
        assert_eq!((intervals[0].start_ns, intervals[0].end_ns), (7, 107));
        assert_eq!(intervals[0].messages_lost, None);
    }

    proptest! {
        #[test]
        fn intervals_are_contiguous_and_keep_every_message(
            steps in proptest::collection::vec((0_i64..250, 0_u64..5), 0..60),
            start_ns in 0_i64..10_000,
        ) {
            let mut series = Series::receiver(100, start_ns, 0);
            let (mut now_ns, mut messages) = (start_ns, 0);
            let mut live = 0;
            for (step, count) in steps {
                now_ns += step;
                series.roll(now_ns, None, || now_ns);
                series.count(count, 64 * count);
                live += series.fresh().len();
                messages += count;
            }
            series.finish(now_ns, None, now_ns);
        let intervals = series.into_closed();
            prop_assert!(live <= intervals.len());
            prop_assert_eq!(intervals.iter().map(|interval| interval.messages).sum::<u64>(), messages);
            prop_assert!(intervals[0].start_ns <= start_ns && start_ns - intervals[0].start_ns < 100);
            prop_assert!(intervals.last().unwrap().end_ns > now_ns);
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].end_ns, pair[1].start_ns);
            }
            prop_assert!(intervals.iter().all(|interval| interval.end_ns - interval.start_ns == 100));
        }
    }
}
