// SPDX-License-Identifier: Apache-2.0
//! Which `CLOCK_MONOTONIC` nanosecond is an `Instant`?
//!
//! quiche names its timers as `Instant`, the engine waits for nanoseconds of `CLOCK_MONOTONIC`. On Linux both
//! are the same clock, but the standard library does not show an `Instant`'s value: one pair of readings
//! taken together ties them.

use std::time::Instant;

use nix::time::{clock_gettime, ClockId};

/// An `Instant` and the nanosecond that goes with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    instant: Instant,
    monotonic_ns: i64,
}

impl Anchor {
    /// Reads both clocks.
    pub(crate) fn take() -> nix::Result<Self> {
        // In this order a converted deadline can be late by the time between the two readings (well below
        // a microsecond) but never early: an early wake-up would find no timer due and spin.
        let instant = Instant::now();
        let reading = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        Ok(Self { instant, monotonic_ns: reading.tv_sec() * 1_000_000_000 + reading.tv_nsec() })
    }

    /// The nanosecond of `instant`; a time before the anchor counts as the anchor.
    pub(crate) fn monotonic_ns(&self, instant: Instant) -> i64 {
        let since_ns = instant.saturating_duration_since(self.instant).as_nanos();
        self.monotonic_ns.saturating_add(i64::try_from(since_ns).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_later_instant_is_later_by_as_many_nanoseconds() {
        let anchor = Anchor::take().unwrap();
        let later = anchor.instant + Duration::from_millis(1500);
        assert_eq!(anchor.monotonic_ns(later) - anchor.monotonic_ns, 1_500_000_000);
    }

    #[test]
    fn two_anchors_agree_and_the_later_one_is_not_earlier() {
        let one = Anchor::take().unwrap();
        let two = Anchor::take().unwrap();
        let deadline = two.instant + Duration::from_secs(1);
        // Generous, because the thread may be set aside between two readings.
        assert!((one.monotonic_ns(deadline) - two.monotonic_ns(deadline)).abs() < 100_000_000);
    }
}
