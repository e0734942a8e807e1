// SPDX-License-Identifier: Apache-2.0
//! Difference of two hosts' monotonic clocks from time stamps that went back and forth. Pure.

use serde::{Deserialize, Serialize};

/// Exchanges per measurement.
pub const EXCHANGES: usize = 8;

/// One exchange: sent and received again here, received and answered there.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// Here, when the question left.
    pub asked_ns: i64,
    /// There, when it arrived.
    pub arrived_ns: i64,
    /// There, when the answer left.
    pub answered_ns: i64,
    /// Here, when the answer arrived.
    pub heard_ns: i64,
}

/// How far the server's clock is ahead of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Server's monotonic clock minus the client's, in ns.
    pub offset_ns: i64,
    /// Bound of the error: half the shortest round trip, plus the drift over the flow. In ns.
    pub residual_ns: i64,
    /// How it is known.
    pub method: Method,
}

/// How a clock offset is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Both ends have the same boot id, so they read the same clock.
    SameBoot,
    /// Time stamps over the control channel.
    ControlExchange,
}

impl ClockOffset {
    /// Both ends read the same clock.
    pub const SAME_CLOCK: Self = Self { offset_ns: 0, residual_ns: 0, method: Method::SameBoot };

    /// Estimate from the exchange with the shortest round trip; `None` without any.
    pub fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let round_trip = |exchange: &Exchange| {
            (exchange.heard_ns.saturating_sub(exchange.asked_ns))
                .saturating_sub(exchange.answered_ns.saturating_sub(exchange.arrived_ns))
        };
        let best = exchanges.iter().min_by_key(|exchange| round_trip(exchange))?;
        let there = best.arrived_ns.saturating_sub(best.asked_ns);
        let back = best.answered_ns.saturating_sub(best.heard_ns);
        Some(Self {
            offset_ns: ((i128::from(there) + i128::from(back)) / 2) as i64,
            residual_ns: round_trip(best).max(0) / 2 + 1,
            method: Method::ControlExchange,
        })
    }

    /// The offset used during the flow, with the residual widened by what it moved until `after`.
    pub fn with_drift(self, after: Self) -> Self {
        let moved = self.offset_ns.abs_diff(after.offset_ns).min(i64::MAX as u64) as i64;
        Self { residual_ns: self.residual_ns.max(moved), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchange(offset: i64, there: i64, back: i64) -> Exchange {
        let asked_ns = 1_000_000;
        let arrived_ns = asked_ns + there + offset;
        let answered_ns = arrived_ns + 5_000;
        Exchange { asked_ns, arrived_ns, answered_ns, heard_ns: answered_ns - offset + back }
    }

    #[test]
    fn the_quickest_exchange_decides() {
        let offset =
            ClockOffset::estimate(&[exchange(77, 900_000, 100), exchange(77, 1_000, 1_000)]).unwrap();
        assert_eq!((offset.offset_ns, offset.residual_ns), (77, 1_001));
        assert_eq!(ClockOffset::estimate(&[]), None);
    }

    #[test]
    fn drift_widens_the_residual() {
        let before = ClockOffset { offset_ns: 10, residual_ns: 3, method: Method::ControlExchange };
        let after = ClockOffset { offset_ns: -90, ..before };
        assert_eq!(before.with_drift(after).residual_ns, 100);
        assert_eq!(before.with_drift(before), before);
    }

    proptest! {
        #[test]
        fn the_error_is_within_the_residual(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            delays in proptest::collection::vec((0_i64..50_000_000, 0_i64..50_000_000), 1..10),
        ) {
            let exchanges: Vec<_> = delays.iter().map(|(there, back)| exchange(offset, *there, *back)).collect();
            let estimate = ClockOffset::estimate(&exchanges).unwrap();
            prop_assert!((estimate.offset_ns - offset).abs() <= estimate.residual_ns);
        }
    }
}
