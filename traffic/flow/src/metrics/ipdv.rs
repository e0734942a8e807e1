// SPDX-License-Identifier: Apache-2.0
//! Inter-packet delay variation (RFC 3393, section 2): the change of delay from each message to the next one sent. Pure.
//!
//! Pairs are messages of neighbouring sequence numbers, both of which arrived (the selection function of RFC 5481,
//! section 4.1), in whichever order they came; a pair with a lost message is undefined and not counted. A constant
//! offset of the clocks cancels out, and their drift over one gap is taken out as far as it is known.

use serde::{Deserialize, Serialize};

use netjoule_measure::distribution::Distribution;

/// Messages whose neighbours may still come: reordering by more than this leaves a pair uncounted.
const REMEMBERED: usize = 256;

/// Summary for the report, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IpdvSummary {
    /// Pairs.
    pub pairs: u64,
    /// Least: the next message was faster by this much.
    pub min: f64,
    /// 1st percentile.
    pub p1: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest: the next message was slower by this much.
    pub max: f64,
    /// Mean of the changes without their signs.
    pub mean_magnitude: f64,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy)]
struct Transit {
    sequence: u64,
    arrived_ns: i64,
    transit_ns: i64,
}

/// Collects changes of delay.
#[derive(Debug)]
pub struct Ipdv {
    recent: Vec<Transit>,
    changes: Distribution,
}

impl Default for Ipdv {
    fn default() -> Self {
        let nothing = Transit { sequence: u64::MAX, arrived_ns: 0, transit_ns: 0 };
        Self { recent: vec![nothing; REMEMBERED], changes: Distribution::default() }
    }
}

impl Ipdv {
    /// Take a first copy; `drift`: what this clock gains on the sender's, ns per ns.
    pub fn record(&mut self, sequence: u64, arrived_ns: i64, transit_ns: i64, drift: f64) {
        let this = Transit { sequence, arrived_ns, transit_ns };
        if let Some(before) = self.remembered(sequence.wrapping_sub(1)) {
            self.changes.record(change_ns(before, this, drift));
        }
        if let Some(after) = self.remembered(sequence + 1) {
            self.changes.record(change_ns(this, after, drift));
        }
        self.recent[place(sequence)] = this;
    }

    fn remembered(&self, sequence: u64) -> Option<Transit> {
        Some(self.recent[place(sequence)])
            .filter(|transit| transit.sequence == sequence && sequence != u64::MAX)
    }

    /// Summary; `None` without any pair.
    pub fn summary(&mut self) -> Option<IpdvSummary> {
        let pairs = self.changes.count();
        let told = self.changes.told()?;
        let ms = |share| told.quantile_ns(share) * 1e-6;
        Some(IpdvSummary {
            pairs,
            min: told.min_ns() * 1e-6,
            p1: ms(0.01),
            p5: ms(0.05),
            p50: ms(0.50),
            p95: ms(0.95),
            p99: ms(0.99),
            max: told.max_ns() * 1e-6,
            mean_magnitude: told.mean_magnitude_ns() * 1e-6,
        })
    }
}

fn place(sequence: u64) -> usize {
    (sequence % REMEMBERED as u64) as usize
}

/// Delay of `after` less that of `before`.
fn change_ns(before: Transit, after: Transit, drift: f64) -> i64 {
    let change_ns = after.transit_ns.saturating_sub(before.transit_ns);
    if drift == 0.0 {
        return change_ns;
    }
    let gap_ns = after.arrived_ns.saturating_sub(before.arrived_ns);
    change_ns.saturating_sub((gap_ns as f64 * drift).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_are_signed_and_a_lost_message_breaks_two_pairs() {
        let mut ipdv = Ipdv::default();
        for (sequence, transit_ms) in [(0, 5), (1, 8), (3, 20), (4, 19)] {
            ipdv.record(sequence, 0, transit_ms * 1_000_000, 0.0);
        }
        let summary = ipdv.summary().unwrap();
        assert_eq!((summary.pairs, summary.min, summary.max), (2, -1.0, 3.0));
        assert!((summary.mean_magnitude - 2.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_pair_there_is_nothing_to_tell() {
        let mut ipdv = Ipdv::default();
        ipdv.record(0, 0, 5, 0.0);
        ipdv.record(2, 0, 5, 0.0);
        assert_eq!(ipdv.summary(), None);
    }

    proptest! {
        /// Closed form: the changes are the differences of the true delays, whatever the clocks' offset and drift, and
        /// whatever the order of arrival inside the memory.
        #[test]
        fn offset_drift_and_reordering_change_nothing(
            delays in proptest::collection::vec(proptest::option::weighted(0.9, 0_i64..5_000_000), 2..200),
            offset_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            drift_ppm in -200.0..200.0_f64,
            swaps in proptest::collection::vec(0_usize..200, 0..20),
        ) {
            let mut right: Vec<i64> =
                delays.windows(2).filter_map(|pair| Some(pair[1]? - pair[0]?)).collect();
            let mut order: Vec<usize> = (0..delays.len()).filter(|index| delays[*index].is_some()).collect();
            for at in swaps {
                if at + 1 < order.len() {
                    order.swap(at, at + 1);
                }
            }
            let drift = drift_ppm * 1e-6;
            let mut ipdv = Ipdv::default();
            for index in order {
                let delay_ns = delays[index].unwrap();
                let arrived_ns = 1_000_000 * index as i64 + delay_ns;
                let ahead_ns = offset_ns + (arrived_ns as f64 * drift) as i64;
                ipdv.record(index as u64, arrived_ns, delay_ns + ahead_ns, drift);
            }
            prop_assert_eq!(ipdv.changes.count(), right.len() as u64);
            let Some(summary) = ipdv.summary() else { return Ok(()) };
            right.sort_unstable();
            // The drift is taken out in whole nanoseconds.
            prop_assert!((summary.min * 1e6 - right[0] as f64).abs() <= 2.0);
            prop_assert!((summary.max * 1e6 - *right.last().unwrap() as f64).abs() <= 2.0);
            let median = right[(right.len() - 1) / 2] as f64;
            prop_assert!((summary.p50 * 1e6 - median).abs() <= 2.0 + 1e-3 * median.abs());
        }
    }
}
