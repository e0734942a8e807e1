// SPDX-License-Identifier: Apache-2.0
//! When each message of a constant-bit-rate flow is due. Pure, exact integer arithmetic: no drift.

use super::digest::Digest;

/// Nanoseconds per second.
const SECOND_NS: u128 = 1_000_000_000;

/// Message k is due k * size / rate after the start, for every k whose time lies before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConstantRate {
    rate_bps: u64,
    message_bits: u64,
    duration_ns: u64,
}

impl ConstantRate {
    /// A flow of `rate_bps` payload bit/s in messages of `message_bytes` for `duration_ns`; all above 0.
    pub(super) fn new(rate_bps: u64, message_bytes: u64, duration_ns: u64) -> Self {
        debug_assert!(rate_bps > 0 && message_bytes > 0 && duration_ns > 0);
        Self { rate_bps, message_bits: 8 * message_bytes, duration_ns }
    }

    /// Bits times nanoseconds between two messages, so that the period is this over the rate.
    fn period_numerator(&self) -> u128 {
        u128::from(self.message_bits) * SECOND_NS
    }

    /// Size of every message.
    pub(super) fn message_bytes(&self) -> usize {
        (self.message_bits / 8) as usize
    }

    /// Payload bit/s.
    pub(super) fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Of rate, message bits and duration (8 bytes each, little-endian), which decide everything.
    pub(super) fn digest(&self) -> Digest {
        let numbers = [self.rate_bps, self.message_bits, self.duration_ns];
        let form = Digest::new("netjoule schedule, constant rate\n");
        numbers.iter().fold(form, |digest, number| digest.with(&number.to_le_bytes()))
    }

    /// Messages in the whole flow: duration * rate / size, rounded up (the first is due at 0).
    pub(super) fn count(&self) -> u64 {
        let product = u128::from(self.duration_ns) * u128::from(self.rate_bps);
        product.div_ceil(self.period_numerator()) as u64
    }

    /// When message `index` is due, in ns after the start; rounded up, so never early.
    pub(super) fn due_ns(&self, index: u64) -> i64 {
        (u128::from(index) * self.period_numerator()).div_ceil(u128::from(self.rate_bps)) as i64
    }

    /// How many messages are due `elapsed_ns` after the start.
    pub(super) fn due_by(&self, elapsed_ns: i64) -> u64 {
        let Ok(elapsed_ns) = u128::try_from(elapsed_ns) else { return 0 };
        let passed = elapsed_ns * u128::from(self.rate_bps) / self.period_numerator();
        (passed as u64 + 1).min(self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn known_flows_have_their_counts() {
        assert_eq!(ConstantRate::new(30_000_000, 64, 10 * SECOND).count(), 585_938);
        assert_eq!(ConstantRate::new(30_000_000, 1440, 10 * SECOND).count(), 26_042);
        assert_eq!(ConstantRate::new(31_000, 1440, 10 * SECOND).count(), 27);
        assert_eq!(ConstantRate::new(8_000, 1000, SECOND).count(), 1);
    }

    #[test]
    fn the_last_message_of_a_long_flow_has_not_drifted() {
        let schedule = ConstantRate::new(30_000_000, 64, 7_200 * SECOND);
        let last = schedule.count() - 1;
        let exact = last as f64 * 512.0 / 30e6;
        assert!((schedule.due_ns(last) as f64 * 1e-9 - exact).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn due_times_and_due_counts_agree(
            rate_bps in 1_u64..20_000_000_000,
            message_bytes in 16_u64..65_536,
            duration_ns in 1_u64..7_200_000_000_000,
            share in 0.0_f64..1.0,
        ) {
            let schedule = ConstantRate::new(rate_bps, message_bytes, duration_ns);
            let count = schedule.count();
            prop_assert!(count >= 1);
            let index = ((count - 1) as f64 * share) as u64;
            let due_ns = schedule.due_ns(index);
            prop_assert!(schedule.due_by(due_ns) > index);
            if due_ns > 0 {
                prop_assert!(schedule.due_by(due_ns - 1) <= index);
            }
            prop_assert!(schedule.due_ns(index + 1) >= due_ns);
        }

        #[test]
        fn every_message_is_due_before_the_end_and_no_more_would_fit(
            rate_bps in 1_u64..20_000_000_000,
            message_bytes in 16_u64..65_536,
            duration_ns in 1_u64..7_200_000_000_000,
        ) {
            let schedule = ConstantRate::new(rate_bps, message_bytes, duration_ns);
            prop_assert!(schedule.due_ns(schedule.count() - 1) <= duration_ns as i64);
            prop_assert!(schedule.due_ns(schedule.count()) >= duration_ns as i64);
            prop_assert_eq!(schedule.due_by(i64::MAX), schedule.count());
            prop_assert_eq!(schedule.due_by(-1), 0);
        }
    }
}
