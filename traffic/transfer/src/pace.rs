// SPDX-License-Identifier: Apache-2.0
//! How fast bytes come, interval by interval. Pure: the caller brings the time.

use crate::report::Interval;

/// A rate is told of so long, ns.
const RATE_NS: i64 = 1_000_000_000;

/// The path's rate is not told before so long after the first byte, ns, nor before so many round trips.
const FIRST_NS: i64 = 2_000_000_000;
const FIRST_ROUND_TRIPS: i64 = 10;

/// Less than this is no interval to tell a rate of, ns.
const SHORTEST_NS: i64 = 50_000_000;

/// Bytes and joules over time.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The beginning, `CLOCK_MONOTONIC`.
    pub(crate) start_ns: i64,
    intervals: Vec<Interval>,
    bytes: u64,
    first_byte_ns: Option<i64>,
    /// Largest rates of an interval, byte/s, in order. A few connections fill a path for less than a round trip at a
    /// time, so that its rate shows in single intervals; the third of them is no accident of one late look.
    best: [f64; 3],
    /// The last two readings of a meter: when, joules.
    readings: [Option<(i64, f64)>; 2],
}

impl Pace {
    /// Nothing has come yet.
    pub(crate) fn new(start_ns: i64) -> Self {
        Self {
            start_ns,
            intervals: Vec::new(),
            bytes: 0,
            first_byte_ns: None,
            best: [0.0; 3],
            readings: [None; 2],
        }
    }

    /// An interval ends; `bytes` have come in all.
    pub(crate) fn tick(&mut self, now_ns: i64, bytes: u64) {
        let start_ns = self.end_ns();
        if now_ns <= start_ns {
            return;
        }
        self.intervals.push(Interval { start_ns, end_ns: now_ns, bytes: bytes - self.bytes });
        if bytes > 0 {
            self.first_byte_ns.get_or_insert(start_ns);
        }
        if now_ns - start_ns >= SHORTEST_NS {
            let rate = (bytes - self.bytes) as f64 * 1e9 / (now_ns - start_ns) as f64;
            let [first, second, third] = self.best;
            let mut best = [first, second, third.max(rate)];
            best.sort_by(|a, b| b.total_cmp(a));
            self.best = best;
        }
        self.bytes = bytes;
    }

    /// Bytes a second, of the last second.
    pub(crate) fn rate(&self) -> f64 {
        let since_ns = self.end_ns() - RATE_NS;
        let last = self.intervals.iter().rev().take_while(|interval| interval.start_ns >= since_ns);
        let (bytes, start_ns) =
            last.fold((0, self.end_ns()), |(bytes, _), interval| (bytes + interval.bytes, interval.start_ns));
        // Of less than half a second a rate says little.
        let time_ns = (self.end_ns() - start_ns).max(RATE_NS / 2);
        bytes as f64 * 1e9 / time_ns as f64
    }

    /// The path's rate in byte/s, once enough has come to tell.
    pub(crate) fn best_rate(&self, rtt_ns: u64) -> Option<f64> {
        let since_ns = self.end_ns() - self.first_byte_ns?;
        let enough_ns = FIRST_NS.max((rtt_ns as i64).saturating_mul(FIRST_ROUND_TRIPS));
        (since_ns >= enough_ns && self.best[2] > 0.0).then_some(self.best[2])
    }

    /// A meter says how many joules went since the beginning.
    pub(crate) fn used(&mut self, now_ns: i64, energy_j: f64) {
        self.readings = [self.readings[1], Some((now_ns, energy_j))];
    }

    /// Power between the last two readings.
    pub(crate) fn power_w(&self) -> Option<f64> {
        let [Some((from_ns, from_j)), Some((to_ns, to_j))] = self.readings else { return None };
        (to_ns > from_ns).then(|| (to_j - from_j) / ((to_ns - from_ns) as f64 * 1e-9))
    }

    /// The last interval.
    pub(crate) fn last(&self) -> Option<&Interval> {
        self.intervals.last()
    }

    /// When the last interval ended.
    pub(crate) fn end_ns(&self) -> i64 {
        self.last().map_or(self.start_ns, |interval| interval.end_ns)
    }

    /// All of them.
    pub(crate) fn into_intervals(self) -> Vec<Interval> {
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_join_and_the_best_rate_that_came_three_times_is_remembered() {
        let mut pace = Pace::new(0);
        let mut bytes = 0;
        for step in 1..=60 {
            bytes += if step == 10 {
                900_000
            } else if (20..23).contains(&step) {
                200_000
            } else {
                100_000
            };
            pace.tick(step * 100_000_000, bytes);
        }
        assert!((pace.rate() - 1e6).abs() < 1.0);
        assert_eq!(pace.best_rate(1_000_000), Some(2e6));
        assert_eq!(pace.best_rate(800_000_000), None, "10 round trips are 8 s");
        let intervals = pace.into_intervals();
        assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        assert_eq!(intervals.iter().map(|interval| interval.bytes).sum::<u64>(), bytes);
    }

    #[test]
    fn power_is_of_the_last_two_readings() {
        let mut pace = Pace::new(0);
        pace.used(0, 1.0);
        assert_eq!(pace.power_w(), None);
        pace.used(500_000_000, 2.0);
        assert_eq!(pace.power_w(), Some(2.0));
    }
}
