// SPDX-License-Identifier: Apache-2.0
//! What happened in each interval of a flow. Pure.
//!
//! The sender's intervals begin with its flow, the receiver's with the first arrival, so that the k-th of both are of the same
//! messages. All are of one length but the last, which ends with the flow: a rate is over the time that was covered.

use serde::{Deserialize, Serialize};

use netjoule_measure::cpu::usage::Usage;

/// Which end a figure belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end that sends messages.
    #[default]
    Sender,
    /// The end that receives them.
    Receiver,
}

/// One interval at one end. What an end cannot know is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Which end.
    pub end: End,
    /// Begin, `CLOCK_MONOTONIC` ns of that end.
    pub start_ns: i64,
    /// End, one interval length later; of the last when the flow ended, at least a hundredth of the length later.
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
    /// Payload rate over the interval, Mb/s.
    pub goodput_mbps: f64,
    /// CPU time of that end's process in s.
    pub cpu_s: f64,
    /// Its part in user space, s; missing when too little was used for a sample.
    pub cpu_user_s: Option<f64>,
    /// Its part in the kernel, s; missing likewise.
    pub cpu_system_s: Option<f64>,
    /// Context switches of that process because it waited.
    pub context_switches_voluntary: u64,
    /// Context switches because another process was due.
    pub context_switches_involuntary: u64,
    /// Time of all CPUs of that host in interrupt handlers, s; missing when it was not read.
    pub host_irq_s: Option<f64>,
    /// Time of all CPUs of that host in soft interrupts, s; missing when it was not read.
    pub host_softirq_s: Option<f64>,
    /// It begins in the first seconds, which no sum holds (`-O`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

impl Interval {
    fn set_goodput(&mut self) {
        let bits_per_s = self.bytes as f64 * 8e9 / (self.end_ns - self.start_ns).max(1) as f64;
        self.goodput_mbps = bits_per_s.round() / 1e6;
    }
}

/// Intervals that a flow may have beyond its duration, for its beginning and its drain.
const SPARE_INTERVALS: i64 = 16;
/// Most intervals that room is made for at once.
const MOST_ROOM: i64 = 120_000;

/// Memory for the intervals of a flow, taken before it begins: so that it neither grows nor moves while the flow is on.
pub fn room(duration_ns: i64, interval_ns: i64) -> Vec<Interval> {
    let intervals = (duration_ns / interval_ns + SPARE_INTERVALS).min(MOST_ROOM) as usize;
    // Memory is the process's only when it has been written.
    let mut room = vec![blank(End::Receiver, 0, interval_ns); intervals];
    room.clear();
    room
}

/// Contiguous intervals.
#[derive(Debug)]
pub struct Series {
    interval_ns: i64,
    /// Intervals that begin sooner after the first are omitted.
    omit_ns: i64,
    begin_ns: i64,
    closed: Vec<Interval>,
    current: Interval,
    usage: Usage,
    /// Closed intervals that [`Self::charge`] has still to tell what was used, from the first.
    uncharged: Option<usize>,
    handed_out: usize,
}

impl Series {
    /// The sender's start with its flow.
    pub fn sender(interval_ns: i64, start_ns: i64, usage: Usage) -> Self {
        Self::new(blank(End::Sender, start_ns, interval_ns), interval_ns, usage)
    }

    /// The receiver's start with the first arrival ([`Self::begin_with`]) or, where that is more than an interval away, at
    /// `start_ns`.
    pub fn receiver(interval_ns: i64, start_ns: i64, usage: Usage) -> Self {
        Self::new(blank(End::Receiver, start_ns, interval_ns), interval_ns, usage)
    }

    fn new(current: Interval, interval_ns: i64, usage: Usage) -> Self {
        let begin_ns = current.start_ns;
        Self {
            interval_ns,
            omit_ns: 0,
            begin_ns,
            closed: Vec::new(),
            current,
            usage,
            uncharged: None,
            handed_out: 0,
        }
    }

    /// Mark those that begin in the first `omit_ns`. Before the first is closed.
    #[must_use]
    pub fn omitting(mut self, omit_ns: i64) -> Self {
        self.omit_ns = omit_ns;
        self.current.omitted = omit_ns > 0;
        self
    }

    /// Nothing yet, from `start_ns` on.
    fn blank_from(&self, start_ns: i64) -> Interval {
        Interval {
            omitted: start_ns - self.begin_ns < self.omit_ns,
            ..blank(self.current.end, start_ns, self.interval_ns)
        }
    }

    /// Put closed intervals into `room` (see [`room`]). Before the first is closed.
    pub fn move_into(&mut self, room: Vec<Interval>) {
        debug_assert!(self.closed.is_empty() && room.is_empty());
        self.closed = room;
    }

    /// Begin at `first_ns`, the first arrival, which may be earlier, too: a message may come while its flow is being set up.
    /// What begins with a longer silence keeps its beginning.
    pub fn begin_with(&mut self, first_ns: i64) {
        if self.closed.is_empty() && first_ns < self.current.end_ns {
            self.begin_ns = first_ns;
            self.current = self.blank_from(first_ns);
        }
    }

    /// Close every interval that ended by `now_ns`. `usage` reads what the process used and is asked only then; after
    /// several empty intervals theirs counts in the first.
    pub fn roll(&mut self, now_ns: i64, jitter_ms: Option<f64>, usage: impl FnOnce() -> Usage) {
        if self.turn(now_ns, jitter_ms) {
            self.charge(usage());
        }
    }

    /// Close every interval that ended by `now_ns`; whether there was one. [`Self::charge`] has to follow, as soon as
    /// there is time for a reading: messages that are due do not wait for it.
    pub fn turn(&mut self, now_ns: i64, jitter_ms: Option<f64>) -> bool {
        let ended = now_ns >= self.current.end_ns;
        if ended {
            self.close(now_ns, jitter_ms);
        }
        ended
    }

    /// When the first interval began, ns.
    pub fn begin_ns(&self) -> i64 {
        self.begin_ns
    }

    /// When the current interval ends, ns.
    pub fn next_end_ns(&self) -> i64 {
        self.current.end_ns
    }

    /// Tell the intervals closed since the last call what was used.
    pub fn charge(&mut self, usage: Usage) {
        let Some(interval) = self.uncharged.take().and_then(|first| self.closed.get_mut(first)) else {
            return;
        };
        let used = usage.since(&self.usage);
        self.usage = usage.carried_from(&self.usage);
        (interval.cpu_s, interval.cpu_user_s, interval.cpu_system_s) =
            (used.cpu_s, used.cpu_user_s, used.cpu_system_s);
        interval.context_switches_voluntary = used.context_switches_voluntary;
        interval.context_switches_involuntary = used.context_switches_involuntary;
        (interval.host_irq_s, interval.host_softirq_s) = (used.host_irq_s, used.host_softirq_s);
    }

    #[cold]
    fn close(&mut self, now_ns: i64, jitter_ms: Option<f64>) {
        self.uncharged.get_or_insert(self.closed.len());
        while now_ns >= self.current.end_ns {
            if self.current.end == End::Receiver {
                self.current.jitter_ms = jitter_ms;
            }
            self.current.set_goodput();
            let next = self.blank_from(self.current.end_ns);
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
            interval.set_goodput();
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
        let to = self.uncharged.unwrap_or(self.closed.len());
        let from = std::mem::replace(&mut self.handed_out, to);
        &self.closed[from..to]
    }

    /// End at `now_ns`, and the last interval with it.
    pub fn finish(&mut self, now_ns: i64, jitter_ms: Option<f64>, usage: Usage) {
        self.close(now_ns, jitter_ms);
        let current = &self.current;
        let found = [current.messages_lost, current.messages_duplicate, current.messages_reordered];
        let is_empty = current.messages == 0 && found.into_iter().flatten().sum::<u64>() == 0;
        if is_empty && now_ns <= current.start_ns && !self.closed.is_empty() {
            self.charge(usage);
            return;
        }
        let least_ns = (self.interval_ns / 100).max(1);
        self.current.end_ns = now_ns.max(self.current.start_ns + least_ns);
        self.close(self.current.end_ns, jitter_ms);
        self.charge(usage);
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
        messages_lost: known,
        messages_duplicate: known,
        messages_reordered: known,
        ..Interval::default()
    }
}

fn add(counter: &mut Option<u64>, messages: u64) {
    *counter = Some(counter.unwrap_or(0) + messages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_measure::host::CpuTime;
    use proptest::prelude::*;

    fn ran(total_ns: i64) -> Usage {
        Usage { cpu: CpuTime { total_ns, ..CpuTime::default() }, irq: None }
    }

    #[test]
    fn room_for_a_flow_is_made_once() {
        let mut series = Series::sender(100, 0, Usage::default());
        let room = room(100_000, 100);
        let place = room.as_ptr();
        series.move_into(room);
        series.roll(100_000, None, Usage::default);
        assert_eq!((series.closed.len(), series.closed.as_ptr()), (1_000, place));
    }

    #[test]
    fn the_receivers_intervals_begin_with_the_first_arrival_and_end_with_the_flow() {
        let mut series = Series::receiver(100, 1_234, ran(0));
        series.begin_with(1_240);
        series.roll(1_500, Some(0.5), || ran(40));
        series.finish(1_510, Some(0.6), ran(70));
        let intervals = series.into_closed();
        assert_eq!((intervals[0].start_ns, intervals[0].end_ns), (1_240, 1_340));
        assert_eq!((intervals[2].start_ns, intervals[2].end_ns), (1_440, 1_510));
        assert_eq!(intervals.len(), 3);
        assert!((intervals.iter().map(|interval| interval.cpu_s).sum::<f64>() - 70e-9).abs() < 1e-15);
    }

    #[test]
    fn a_message_from_before_the_beginning_moves_it_and_one_after_a_silence_does_not() {
        let starts = |first_ns, rolled_ns| {
            let mut series = Series::receiver(100, 1_234, ran(0));
            series.roll(rolled_ns, None, || ran(0));
            series.begin_with(first_ns);
            series.finish(1_340, None, ran(0));
            series.into_closed().iter().map(|interval| interval.start_ns).collect::<Vec<_>>()
        };
        assert_eq!(starts(1_049, 1_234), [1_049, 1_149, 1_249]);
        assert_eq!(starts(1_300, 1_299), [1_300]);
        assert_eq!(starts(1_334, 1_334), [1_234, 1_334], "the silence is part of the flow");
    }

    #[test]
    fn a_steady_rate_is_the_same_in_every_interval_also_the_first_and_the_last() {
        let mut series = Series::receiver(1_000_000_000, 1_234_567_890, ran(0));
        series.begin_with(1_300_000_000);
        for message in 0..25 {
            series.roll(1_300_000_000 + message * 100_000_000, None, || ran(0));
            series.count(1, 1_250_000);
        }
        series.finish(3_800_000_000, None, ran(0));
        let goodput: Vec<_> = series.into_closed().iter().map(|interval| interval.goodput_mbps).collect();
        assert_eq!(goodput, [100.0; 3]);
    }

    #[test]
    fn the_first_seconds_are_marked_by_where_an_interval_begins() {
        let mut series = Series::receiver(100, 1_234, ran(0)).omitting(150);
        series.begin_with(1_240);
        series.finish(1_640, None, ran(0));
        let marks: Vec<_> = series.into_closed().iter().map(|interval| interval.omitted).collect();
        assert_eq!(marks, [true, true, false, false]);
    }

    #[test]
    fn a_late_message_takes_back_the_loss_that_it_was_taken_for() {
        let mut series = Series::receiver(100, 0, ran(0));
        series.count_lost(2);
        series.roll(100, None, || ran(0));
        series.count_reordered();
        series.finish(150, None, ran(0));
        let intervals = series.into_closed();
        assert_eq!(intervals[0].messages_lost, Some(1));
        assert_eq!((intervals[1].messages_lost, intervals[1].messages_reordered), (Some(0), Some(1)));
    }

    #[test]
    fn what_did_not_leave_is_taken_back_from_the_last_intervals() {
        let mut series = Series::sender(100, 0, ran(0));
        series.count(3, 30);
        series.roll(100, None, || ran(0));
        series.count(2, 20);
        series.take_back(4, 10);
        series.finish(150, None, ran(0));
        let counts: Vec<_> =
            series.into_closed().iter().map(|interval| (interval.messages, interval.bytes)).collect();
        assert_eq!(counts, [(1, 10), (0, 0)]);
    }

    #[test]
    fn goodput_is_that_of_the_interval_also_after_something_was_taken_back() {
        let mut series = Series::sender(100_000_000, 0, ran(0));
        series.count(2, 2_500);
        series.roll(100_000_000, None, || ran(0));
        series.count(1, 1_250);
        series.take_back(2, 1_250);
        series.finish(200_000_000, None, ran(0));
        let goodput: Vec<_> = series.into_closed().iter().map(|interval| interval.goodput_mbps).collect();
        assert_eq!(goodput, [0.1, 0.0]);
    }

    #[test]
    fn an_interval_has_what_was_used_in_it() {
        let mut series = Series::sender(100, 0, ran(5));
        let used = Usage {
            cpu: CpuTime {
                total_ns: 20_000_005,
                user_ns: 30,
                system_ns: 10,
                switches_voluntary: 4,
                switches_involuntary: 1,
            },
            irq: None,
        };
        series.roll(99, None, || unreachable!("the interval is not over"));
        assert!(series.turn(100, None));
        series.count(1, 64);
        assert!(series.fresh().is_empty(), "nobody knows yet what was used in it");
        series.charge(used);
        assert_eq!(series.fresh().len(), 1);
        series.charge(ran(7_777));
        series.finish(150, None, used);
        let intervals = series.into_closed();
        let first = &intervals[0];
        assert_eq!((first.cpu_s, first.cpu_user_s, first.cpu_system_s), (0.02, Some(0.015), Some(0.005)));
        assert_eq!((first.context_switches_voluntary, first.context_switches_involuntary), (4, 1));
        assert_eq!((first.host_irq_s, intervals[1].cpu_s), (None, 0.0));
    }

    #[test]
    fn the_sender_knows_nothing_of_losses() {
        let mut series = Series::sender(100, 7, ran(0));
        series.finish(7, None, ran(0));
        let intervals = series.into_closed();
        assert_eq!((intervals[0].start_ns, intervals[0].end_ns), (7, 8));
        assert_eq!(intervals[0].messages_lost, None);
    }

    proptest! {
        #[test]
        fn intervals_are_contiguous_and_keep_every_message(
            steps in proptest::collection::vec((0_i64..250, 0_u64..5), 0..60),
            start_ns in 0_i64..10_000,
        ) {
            let mut series = Series::receiver(100, start_ns, ran(0));
            let (mut now_ns, mut messages) = (start_ns, 0);
            let mut live = 0;
            for (step, count) in steps {
                now_ns += step;
                series.roll(now_ns, None, || ran(now_ns));
                series.count(count, 64 * count);
                live += series.fresh().len();
                messages += count;
            }
            series.finish(now_ns, None, ran(now_ns));
            let intervals = series.into_closed();
            prop_assert!(live <= intervals.len());
            prop_assert_eq!(intervals.iter().map(|interval| interval.messages).sum::<u64>(), messages);
            prop_assert_eq!(intervals[0].start_ns, start_ns);
            prop_assert!(intervals.last().unwrap().end_ns >= now_ns);
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].end_ns, pair[1].start_ns);
            }
            let (last, whole) = intervals.split_last().unwrap();
            prop_assert!(whole.iter().all(|interval| interval.end_ns - interval.start_ns == 100));
            prop_assert!((1..=100).contains(&(last.end_ns - last.start_ns)));
        }
    }
}
