// SPDX-License-Identifier: Apache-2.0
//! A link whose rate is another's to change: uniform in a range, new after exponential times.
//!
//! The bottleneck of Panarello et al. (AJEEE 13:1, 2016), Table I.

use super::RateRule;
use crate::rng::Rng;

/// Parameters of the range and of its changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VaryingParams {
    /// Lowest rate, Mb/s.
    pub min_rate_mbps: f64,
    /// Highest rate, Mb/s.
    pub max_rate_mbps: f64,
    /// Mean time between two changes, ns.
    pub mean_interval_ns: u64,
}

/// The rate and when it changes next.
#[derive(Debug)]
pub struct Varying {
    params: VaryingParams,
    rng: Rng,
    first_rate_mbps: f64,
    next_ns: u64,
}

impl Varying {
    /// A link whose rate is drawn at `start_ns` for the first time.
    pub fn new(params: VaryingParams, rng: Rng, start_ns: u64) -> Self {
        let mut rule = Self { params, rng, first_rate_mbps: 0.0, next_ns: start_ns };
        rule.first_rate_mbps = rule.draw();
        rule
    }

    fn draw(&mut self) -> f64 {
        let interval_ns = self.rng.exponential(self.params.mean_interval_ns as f64);
        self.next_ns += (interval_ns.round() as u64).max(1);
        self.rng.uniform(self.params.min_rate_mbps, self.params.max_rate_mbps)
    }
}

impl RateRule for Varying {
    fn first_rate_mbps(&self) -> f64 {
        self.first_rate_mbps
    }

    fn max_rate_mbps(&self) -> f64 {
        self.params.max_rate_mbps
    }

    fn stall_ns(&self) -> u64 {
        0
    }

    fn next_tick_ns(&self) -> Option<u64> {
        Some(self.next_ns)
    }

    fn tick(&mut self, _now_ns: u64, _arrived_bits: u64, _queued_bits: u64) -> Option<f64> {
        Some(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fill_the_range_and_intervals_have_their_mean() {
        let params = VaryingParams { min_rate_mbps: 1.0, max_rate_mbps: 10.0, mean_interval_ns: 50_000_000 };
        let mut rule = Varying::new(params, Rng::new(1, 1), 0);
        let changes = 10_000;
        let mut sum = 0.0;
        for _ in 0..changes {
            let at_ns = rule.next_tick_ns().unwrap();
            let rate_mbps = rule.tick(at_ns, 0, 0).unwrap();
            assert!((1.0..=10.0).contains(&rate_mbps));
            sum += rate_mbps;
        }
        let mean_ns = rule.next_ns as f64 / f64::from(changes);
        assert!((sum / f64::from(changes) - 5.5).abs() < 0.1, "{sum}");
        assert!((mean_ns / 50e6 - 1.0).abs() < 0.04, "{mean_ns}");
    }
}
