// SPDX-License-Identifier: Apache-2.0
//! One-way delay of first copies, on one clock. Pure.
//!
//! Both ends stamp by clocks of their own; what the receiver's is ahead of the sender's is a line in time ([`Ahead`]).
//! Where that line is still being learnt, delays wait until the clocks have been compared after them: then the line is
//! read between comparisons, never beyond them.

use serde::{Deserialize, Serialize};

use netjoule_measure::clock_offset::{Ahead, ClockOffset, Side, TOLD_DRIFT_PPM};
use netjoule_measure::distribution::Distribution;

/// Most delays that wait for the next comparison of clocks (16 MiB, ten seconds at 100,000 messages a second); beyond that
/// the line is read ahead of its last point.
const MOST_HELD: usize = 1 << 20;

/// Summary for the report, in ms. Can be slightly negative when the clocks' offset is known only to some
/// residual.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// Least.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Greatest.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Bound of the error by the clocks: the widest of all lines that delays were read by; missing on one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_residual: Option<f64>,
}

/// What is said where delays are none of one clock.
pub const CLOCKS_NOT_COMPARABLE: &str = "clocks_not_comparable";
/// What one clock may be off by between two readings, ms: kernel stamps are turned from another of its clocks.
const ONE_CLOCK_MS: f64 = 1.0;

impl DelaySummary {
    /// Whether these can be delays by one clock of messages that were all sent and received within `within_ns`: nothing arrives
    /// before it was sent, or was sent before its flow. In time namespaces (time_namespaces(7)) hosts of one boot have clocks
    /// of their own.
    pub fn can_be_of_one_clock(&self, within_ns: i64) -> bool {
        self.min >= -ONE_CLOCK_MS && self.max <= within_ns as f64 * 1e-6 + ONE_CLOCK_MS
    }
}

/// Packet delay variation (RFC 5481, section 4.2): delay above the least delay of the flow, in ms. A constant offset of
/// the clocks cancels out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelayVariation {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Greatest.
    pub max: f64,
}

/// Collects delays.
#[derive(Debug)]
pub struct Delays {
    ahead: Ahead,
    /// The line will be corrected: delays wait for that.
    follows: bool,
    /// How sure the line is up to its last point.
    residual_ns: i64,
    /// How fast it becomes less sure behind that, ns per ns.
    drift_residual: f64,
    /// Its last point, by this end's clock.
    known_until_ns: i64,
    widest_residual_ns: i64,
    /// Arrival and transit time of those that wait.
    held: Vec<(i64, i64)>,
    delays: Distribution,
}

impl Delays {
    /// `ahead`: this end's clock against the sender's as known so far. `follows`: [`Self::correct`] will be called.
    pub fn new(ahead: Ahead, follows: bool) -> Self {
        Self {
            ahead,
            follows,
            residual_ns: 0,
            drift_residual: 0.0,
            known_until_ns: i64::MAX,
            widest_residual_ns: 0,
            held: Vec::new(),
            delays: Distribution::default(),
        }
    }

    /// Take a first copy that arrived at `arrived_ns` (this clock), `transit_ns` after it was sent (the sender's clock).
    pub fn record(&mut self, arrived_ns: i64, transit_ns: i64) {
        if !self.follows {
            self.delays.record(transit_ns.saturating_sub(self.ahead.at(arrived_ns)));
            return;
        }
        if self.held.len() >= MOST_HELD {
            self.settle();
        }
        self.held.push((arrived_ns, transit_ns));
    }

    /// The clocks have been compared again, the last time at `compared_ns` by this end's clock, which is `side`'s.
    pub fn correct(&mut self, side: Side, offset: &ClockOffset, compared_ns: i64) {
        self.ahead = side.ahead(offset);
        self.residual_ns = offset.residual_ns;
        self.drift_residual = offset.drift_residual_ppm.unwrap_or(TOLD_DRIFT_PPM) * 1e-6;
        self.known_until_ns = compared_ns;
        self.settle();
    }

    /// What the receiver's clock gains on the sender's by now, ns per ns.
    pub fn drift(&self) -> f64 {
        self.ahead.drift()
    }

    fn settle(&mut self) {
        if let Some((arrived_ns, _)) = self.held.last() {
            let beyond_ns = arrived_ns.saturating_sub(self.known_until_ns).max(0) as f64;
            let residual_ns =
                self.residual_ns.saturating_add((beyond_ns * self.drift_residual).ceil() as i64);
            self.widest_residual_ns = self.widest_residual_ns.max(residual_ns);
        }
        for (arrived_ns, transit_ns) in self.held.drain(..) {
            self.delays.record(transit_ns.saturating_sub(self.ahead.at(arrived_ns)));
        }
    }

    /// Delay and its variation; `None` when nothing was recorded.
    pub fn summary(&mut self) -> Option<(DelaySummary, DelayVariation)> {
        self.settle();
        let told = self.delays.told()?;
        let ms = |share| told.quantile_ns(share) * 1e-6;
        let (min, max) = (told.min_ns() * 1e-6, told.max_ns() * 1e-6);
        let delay = DelaySummary {
            min,
            mean: told.mean_ns() * 1e-6,
            max,
            p50: ms(0.50),
            p95: ms(0.95),
            p99: ms(0.99),
            clock_residual: self.follows.then_some(self.widest_residual_ns as f64 * 1e-6),
        };
        let variation = DelayVariation {
            p50: delay.p50 - min,
            p95: delay.p95 - min,
            p99: delay.p99 - min,
            p99_9: ms(0.999) - min,
            max: max - min,
        };
        Some((delay, variation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(ahead_ns: i64) -> Ahead {
        Ahead::new(0, ahead_ns, 0.0)
    }

    #[test]
    fn percentiles_are_good_to_a_part_in_a_thousand() {
        let mut delays = Delays::new(fixed(0), false);
        assert_eq!(delays.summary(), None);
        for ms in 1..=1000 {
            delays.record(0, ms * 1_000_000);
        }
        let (delay, variation) = delays.summary().unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1000.0));
        assert!((delay.mean - 500.5).abs() < 1e-9);
        for (got, want) in [
            (delay.p50, 500.0),
            (delay.p95, 950.0),
            (delay.p99, 990.0),
            (variation.p50, 499.0),
            (variation.p95, 949.0),
            (variation.p99, 989.0),
            (variation.p99_9, 998.0),
            (variation.max, 999.0),
        ] {
            assert!((got / want - 1.0).abs() < 2e-3, "{got} {want}");
        }
    }

    #[test]
    fn extremes_do_not_break_it() {
        let mut delays = Delays::new(fixed(0), false);
        delays.record(0, -5_000_000);
        delays.record(0, i64::MAX);
        assert_eq!(delays.summary().unwrap().0.min, -5.0);
    }

    #[test]
    fn delays_that_one_clock_cannot_give_are_known() {
        let of = |first_ns: i64, last_ns: i64| {
            let mut delays = Delays::new(fixed(0), false);
            delays.record(0, first_ns);
            delays.record(0, last_ns);
            delays.summary().unwrap().0.can_be_of_one_clock(10_000_000_000)
        };
        assert!(of(0, 5_000_000) && of(-900_000, 10_000_000_000));
        assert!(!of(-999_999_999_963_000, -999_999_999_000_000) && !of(-1_100_000, 5));
        assert!(!of(5, 1_000_000_000_000_000), "sent long before the flow");
    }

    #[test]
    fn memory_stays_bounded_when_no_comparison_comes() {
        let mut delays = Delays::new(fixed(7), true);
        for arrived_ns in 0..3 * MOST_HELD as i64 {
            delays.record(arrived_ns, 1_007);
        }
        assert!(delays.held.capacity() <= MOST_HELD);
        let (delay, _) = delays.summary().unwrap();
        assert_eq!((delay.min, delay.max), (1e-3, 1e-3));
    }

    #[test]
    fn the_bound_is_that_of_the_widest_line_in_use_and_grows_behind_its_last_point() {
        let mut delays = Delays::new(fixed(0), true);
        let offset = |residual_ns, drift_residual_ppm| ClockOffset {
            residual_ns,
            drift_residual_ppm,
            ..ClockOffset::SAME_CLOCK
        };
        delays.correct(Side::Server, &offset(900_000, None), 0);
        delays.record(1_000_000_000, 5);
        delays.correct(Side::Server, &offset(300_000, None), 1_000_000_000);
        assert_eq!(delays.widest_residual_ns, 300_000, "nothing was read by the first line");
        delays.record(3_000_000_000, 5);
        delays.settle();
        assert_eq!(delays.widest_residual_ns, 300_000 + 400_000);
        delays.record(4_000_000_000, 5);
        delays.correct(Side::Server, &offset(10_000, Some(1.0)), 4_000_000_000);
        assert_eq!(delays.summary().unwrap().0.clock_residual, Some(0.7));
    }

    proptest! {
        /// Closed form: with a constant true delay and clocks that drift, every delay is that delay once the line is
        /// known, although none of them was when it arrived.
        #[test]
        fn a_drift_that_is_learnt_later_is_taken_out(
            true_ahead_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            drift_ppm in -100.0..100.0_f64,
            delay_ns in 0_i64..100_000_000,
            gaps in proptest::collection::vec(0_i64..50_000_000, 1..200),
            corrections in proptest::collection::vec(0_usize..200, 0..5),
        ) {
            let offset = ClockOffset {
                offset_ns: true_ahead_ns,
                reference_ns: Some(1_000_000_000 - true_ahead_ns),
                drift_ppm: Some(drift_ppm),
                ..ClockOffset::SAME_CLOCK
            };
            let line = Ahead::of_server(&offset);
            let mut delays = Delays::new(fixed(true_ahead_ns + 12_345_678), true);
            let mut arrived_ns = 1_000_000_000;
            for (index, gap) in gaps.iter().enumerate() {
                arrived_ns += gap;
                delays.record(arrived_ns, delay_ns + line.at(arrived_ns));
                if corrections.contains(&index) {
                    delays.correct(Side::Server, &offset, arrived_ns);
                }
            }
            delays.correct(Side::Server, &offset, arrived_ns);
            let (delay, variation) = delays.summary().unwrap();
            prop_assert_eq!((delay.min, delay.max), (delay_ns as f64 * 1e-6, delay_ns as f64 * 1e-6));
            prop_assert_eq!((variation.p99_9, variation.max), (0.0, 0.0));
        }
    }
}
