// SPDX-License-Identifier: Apache-2.0
//! One-way delay: exact least, mean and greatest, percentiles to three digits. Pure.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Largest delay the histogram tells apart, in ns (longer ones count as this).
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Summary for the report, in ms. Can be slightly negative when the clocks' offset is known only to some
/// residual; the percentiles are not (negative delays count as 0 there).
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
}

/// Collects delays.
#[derive(Debug)]
pub struct Delays {
    histogram: Histogram<u64>,
    count: u64,
    sum_ns: f64,
    min_ns: i64,
    max_ns: i64,
}

impl Default for Delays {
    fn default() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds and digits are valid");
        Self { histogram, count: 0, sum_ns: 0.0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

impl Delays {
    /// Take one delay.
    pub fn record(&mut self, delay_ns: i64) {
        self.histogram.saturating_record(delay_ns.max(0) as u64);
        self.count += 1;
        self.sum_ns += delay_ns as f64;
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
    }

    /// Summary; `None` when nothing was recorded.
    pub fn summary(&self) -> Option<DelaySummary> {
        let quantile = |share| self.histogram.value_at_quantile(share) as f64 * 1e-6;
        (self.count > 0).then(|| DelaySummary {
            min: self.min_ns as f64 * 1e-6,
            mean: self.sum_ns / self.count as f64 * 1e-6,
            max: self.max_ns as f64 * 1e-6,
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_good_to_a_part_in_a_thousand() {
        let mut delays = Delays::default();
        assert_eq!(delays.summary(), None);
        for ms in 1..=1000 {
            delays.record(ms * 1_000_000);
        }
        let summary = delays.summary().unwrap();
        assert_eq!((summary.min, summary.max), (1.0, 1000.0));
        assert!((summary.mean - 500.5).abs() < 1e-9);
        for (got, want) in [(summary.p50, 500.0), (summary.p95, 950.0), (summary.p99, 990.0)] {
            assert!((got / want - 1.0).abs() < 2e-3, "{got} {want}");
        }
    }

    #[test]
    fn extremes_do_not_break_it() {
        let mut delays = Delays::default();
        delays.record(-5_000_000);
        delays.record(i64::MAX);
        assert_eq!(delays.summary().unwrap().min, -5.0);
    }
}
