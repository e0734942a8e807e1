// SPDX-License-Identifier: Apache-2.0
//! Interarrival jitter of RFC 3550, section 6.4.1. Pure.

/// Running estimate: J += (|D| - J) / 16, D the change of transit time between consecutive arrivals.
///
/// A constant difference between the two clocks cancels out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    estimate_ns: Option<f64>,
}

impl Jitter {
    /// Take a first copy, in order of arrival.
    pub fn record(&mut self, sent_ns: i64, arrived_ns: i64) {
        let transit_ns = arrived_ns.saturating_sub(sent_ns);
        if let Some(last) = self.last_transit_ns {
            let change = transit_ns.saturating_sub(last).unsigned_abs() as f64;
            let estimate = self.estimate_ns.unwrap_or(0.0);
            self.estimate_ns = Some(estimate + (change - estimate) / 16.0);
        }
        self.last_transit_ns = Some(transit_ns);
    }

    /// The estimate in ms; `None` before the second message.
    pub fn ms(&self) -> Option<f64> {
        self.estimate_ns.map(|ns| ns * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_estimate_follows_the_standard() {
        let mut jitter = Jitter::default();
        jitter.record(0, 5_000_000);
        assert_eq!(jitter.ms(), None);
        jitter.record(10_000_000, 16_600_000);
        assert!((jitter.ms().unwrap() - 1.6 / 16.0).abs() < 1e-12);
        jitter.record(20_000_000, 26_600_000);
        assert!((jitter.ms().unwrap() - 0.1 * 15.0 / 16.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_clock_offset_changes_nothing(
            transits in proptest::collection::vec(0_i64..1_000_000_000, 2..50),
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
        ) {
            let (mut plain, mut shifted) = (Jitter::default(), Jitter::default());
            for (index, transit) in (0_i64..).zip(&transits) {
                let sent = index * 1_000_000;
                plain.record(sent, sent + transit);
                shifted.record(sent, sent + transit + offset);
            }
            prop_assert_eq!(plain.ms(), shifted.ms());
        }
    }
}
