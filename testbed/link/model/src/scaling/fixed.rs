// SPDX-License-Identifier: Apache-2.0
//! One rate for ever: what scaling is compared with.

use super::RateRule;

/// A rate, and the highest that the link could have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedParams {
    /// Mb/s.
    pub rate_mbps: f64,
    /// Mb/s.
    pub max_rate_mbps: f64,
}

impl RateRule for FixedParams {
    fn first_rate_mbps(&self) -> f64 {
        self.rate_mbps
    }

    fn max_rate_mbps(&self) -> f64 {
        self.max_rate_mbps
    }

    fn stall_ns(&self) -> u64 {
        0
    }

    fn next_tick_ns(&self) -> Option<u64> {
        None
    }

    fn tick(&mut self, _now_ns: u64, _arrived_bits: u64, _queued_bits: u64) -> Option<f64> {
        None
    }
}
