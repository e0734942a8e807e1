// SPDX-License-Identifier: Apache-2.0
//! How long messages took from being handed over to leaving the host, by the kernel's stamps. Pure.

use netjoule_transport::Departure;
use serde::{Deserialize, Serialize};

use netjoule_measure::distribution::Distribution;

/// Summary for the report, in us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DepartureSummary {
    /// Calls that were stamped: messages, or trains of them.
    pub stamped: u64,
    /// Least.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// Collects departures.
#[derive(Debug, Default)]
pub struct Departed {
    delays: Distribution,
}

impl Departed {
    /// Take one.
    pub fn record(&mut self, departure: Departure) {
        // One that left before its launch time had no delay; the certificate counts it.
        self.delays.record(departure.left_ns.saturating_sub(departure.sent_ns).max(0));
    }

    /// Summary; `None` when nothing was stamped.
    pub fn summary(&mut self) -> Option<DepartureSummary> {
        let stamped = self.delays.count();
        let told = self.delays.told()?;
        let us = |ns: f64| ns * 1e-3;
        Some(DepartureSummary {
            stamped,
            min: us(told.min_ns()),
            mean: us(told.mean_ns()),
            p50: us(told.quantile_ns(0.50)),
            p95: us(told.quantile_ns(0.95)),
            p99: us(told.quantile_ns(0.99)),
            max: us(told.max_ns()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_told_in_microseconds() {
        let mut departed = Departed::default();
        assert_eq!(departed.summary(), None);
        for delay_us in 1..=100 {
            let left_ns = 7_000 + delay_us * 1_000;
            departed.record(Departure { sent_ns: 7_000, left_ns, launch_ns: None });
        }
        let summary = departed.summary().unwrap();
        assert_eq!((summary.stamped, summary.min, summary.max), (100, 1.0, 100.0));
        assert!((summary.p50 - 50.0).abs() < 0.06 && (summary.p99 - 99.0).abs() < 0.1, "{summary:?}");
    }
}
