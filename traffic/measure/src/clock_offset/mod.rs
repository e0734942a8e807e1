// SPDX-License-Identifier: Apache-2.0
//! Difference of two hosts' monotonic clocks, and how it drifts, from time stamps that went back and forth. Pure.
//!
//! The client asks at `t1`, the server hears it at `t2` and answers at `t3`, the client hears that at `t4` (as in NTP,
//! RFC 5905 section 8; t1 and t4 by the client's clock). Both ways take some time, so the server's clock is ahead of the
//! client's by `t2 - t1` at most (at t1) and by `t3 - t4` at least (at t4). Two even clocks differ by a straight line in
//! time, which must pass below all of the former points and above all of the latter; where such lines can be at the
//! first and at the last exchange bounds the difference at every time between, without any assumption on how long
//! the ways take. [`ClockOffset::fit`] takes the middle of both spans and tells half of the wider one as its residual.
//!
//! Clocks that were slewed in between allow no straight line. Then the one that misses the points least is taken, the
//! residual holds by how much, and `is_linear` says so.

mod exchange;
mod lines;

use serde::{Deserialize, Serialize};

pub use exchange::{keep, Exchange, EXCHANGES};
use lines::Lines;

/// A drift that is not known better than this is not told, ppm: a quartz is good to 100 ppm.
pub const TOLD_DRIFT_PPM: f64 = 200.0;

/// How far the server's clock is ahead of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Server's monotonic clock minus the client's, in ns; at `reference_ns` when it drifts.
    pub offset_ns: i64,
    /// Bound of the error, drift taken into account: half the widest span that the exchanges leave. In ns.
    pub residual_ns: i64,
    /// How it is known.
    pub method: Method,
    /// When the offset holds, client's clock; missing while no drift is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_ns: Option<i64>,
    /// What the server's clock gains on the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    /// Bound of the drift's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_residual_ppm: Option<f64>,
    /// Exchanges that this is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<u32>,
    /// One straight line fits all exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_linear: Option<bool>,
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
    pub const SAME_CLOCK: Self = Self::constant(0, 0, Method::SameBoot, None);

    const fn constant(offset_ns: i64, residual_ns: i64, method: Method, exchanges: Option<u32>) -> Self {
        Self {
            offset_ns,
            residual_ns,
            method,
            reference_ns: None,
            drift_ppm: None,
            drift_residual_ppm: None,
            exchanges,
            is_linear: None,
        }
    }

    /// Estimate from the exchange with the shortest round trip; `None` without any. For clocks that are compared within
    /// a moment.
    pub fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip_ns())?;
        let (least, most) = (i128::from(best.least_ns()), i128::from(best.most_ns()));
        let residual_ns = best.round_trip_ns().max(0) / 2 + 1;
        let count = u32::try_from(exchanges.len()).ok();
        Some(Self::constant(((least + most) / 2) as i64, residual_ns, Method::ControlExchange, count))
    }

    /// Offset and drift from exchanges over a span of time; like [`Self::estimate`] as long as they tell no drift.
    pub fn fit(exchanges: &[Exchange]) -> Option<Self> {
        let at_once = Self::estimate(exchanges)?;
        let line = Lines::through(exchanges).middle();
        if line.drift_residual * 1e6 > TOLD_DRIFT_PPM {
            return Some(at_once);
        }
        Some(Self {
            offset_ns: line.ahead_ns,
            // Who reads the server's clock looks it up at a time that is off by the error itself: over a drift that makes
            // the error greater. And what is rounded away, and what the search leaves.
            residual_ns: (line.residual_ns / (1.0 - line.drift.abs())).ceil() as i64 + 2,
            reference_ns: Some(line.reference_ns),
            drift_ppm: Some(line.drift * 1e6),
            drift_residual_ppm: Some(line.drift_residual * 1e6),
            is_linear: Some(line.is_straight),
            ..at_once
        })
    }
}

/// Which of the two clocks an end reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The asking end's.
    Client,
    /// The asked end's.
    Server,
}

impl Side {
    /// When this end had its part in an exchange, by its clock.
    pub fn seen_ns(self, exchange: &Exchange) -> i64 {
        match self {
            Self::Client => exchange.asked_ns,
            Self::Server => exchange.arrived_ns,
        }
    }

    /// This end's clock against the other's.
    pub fn ahead(self, offset: &ClockOffset) -> Ahead {
        match self {
            Self::Client => Ahead::of_client(offset),
            Self::Server => Ahead::of_server(offset),
        }
    }
}

/// What one clock is ahead of another: a straight line over the time of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ahead {
    reference_ns: i64,
    ahead_ns: i64,
    /// ns per ns.
    drift: f64,
}

impl Ahead {
    /// `ahead_ns` at `reference_ns`, and `drift_ppm` more with every second.
    pub fn new(reference_ns: i64, ahead_ns: i64, drift_ppm: f64) -> Self {
        Self { reference_ns, ahead_ns, drift: drift_ppm * 1e-6 }
    }

    /// The server's clock against the client's, over the server's time.
    pub fn of_server(offset: &ClockOffset) -> Self {
        let reference_ns = offset.reference_ns.unwrap_or(0).saturating_add(offset.offset_ns);
        let drift = offset.drift_ppm.unwrap_or(0.0) * 1e-6;
        Self { reference_ns, ahead_ns: offset.offset_ns, drift: drift / (1.0 + drift) }
    }

    /// The client's clock against the server's, over the client's time.
    pub fn of_client(offset: &ClockOffset) -> Self {
        Self {
            reference_ns: offset.reference_ns.unwrap_or(0),
            ahead_ns: offset.offset_ns.saturating_neg(),
            drift: -offset.drift_ppm.unwrap_or(0.0) * 1e-6,
        }
    }

    /// How far this clock is ahead when it shows `now_ns`, ns.
    pub fn at(&self, now_ns: i64) -> i64 {
        if self.drift == 0.0 {
            return self.ahead_ns;
        }
        let gained_ns = now_ns.saturating_sub(self.reference_ns) as f64 * self.drift;
        self.ahead_ns.saturating_add(gained_ns.round() as i64)
    }

    /// ns per ns.
    pub fn drift(&self) -> f64 {
        self.drift
    }
}

#[cfg(test)]
mod tests {
    use super::exchange::tests::exchange;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_quickest_exchange_decides() {
        let far = |_| 77;
        let exchanges = [exchange(1_000_000, 900_000, 100, far), exchange(1_000_000, 1_000, 1_000, far)];
        let offset = ClockOffset::estimate(&exchanges).unwrap();
        assert_eq!((offset.offset_ns, offset.residual_ns, offset.exchanges), (77, 1_001, Some(2)));
        assert_eq!(ClockOffset::estimate(&[]), None);
        assert_eq!(ClockOffset::fit(&[]), None);
    }

    #[test]
    fn exchanges_of_one_moment_tell_no_drift() {
        let exchanges: Vec<_> =
            (0..8).map(|index| exchange(index * 100_000, 50_000, 60_000, |_| 5_000_000)).collect();
        let offset = ClockOffset::fit(&exchanges).unwrap();
        assert_eq!((offset.drift_ppm, offset.reference_ns), (None, None));
        assert_eq!(Some(offset), ClockOffset::estimate(&exchanges));
    }

    #[test]
    fn a_drift_shows_over_a_minute() {
        let ahead = |now_ns: i64| 1_000_000_000_000 + now_ns / 20_000;
        let exchanges: Vec<_> = (0..16)
            .map(|index| {
                exchange(index % 8 * 1_000_000 + index / 8 * 60_000_000_000, 100_000, 100_000, ahead)
            })
            .collect();
        let offset = ClockOffset::fit(&exchanges).unwrap();
        assert!((offset.drift_ppm.unwrap() - 50.0).abs() < 0.1, "{offset:?}");
        assert!(offset.drift_residual_ppm.unwrap() < 4.0 && offset.residual_ns < 120_000, "{offset:?}");
        assert_eq!(offset.is_linear, Some(true));
        // Left out of account, the drift would be 3 ms by the end.
        let line = Ahead::of_client(&offset);
        let end_ns = 60_000_000_000;
        assert!((line.at(end_ns) + ahead(end_ns)).abs() <= offset.residual_ns);
    }

    #[test]
    fn clocks_that_were_slewed_meanwhile_are_told_so_and_the_residual_holds_it() {
        // 30 s at the same rate, then 400 ppm faster.
        let ahead = |now_ns: i64| (now_ns - 30_000_000_000).max(0) / 2_500;
        let exchanges: Vec<_> =
            (0..31).map(|index| exchange(index * 2_000_000_000, 50_000, 50_000, ahead)).collect();
        let offset = ClockOffset::fit(&exchanges).unwrap();
        assert_eq!(offset.is_linear, Some(false));
        let line = Ahead::of_client(&offset);
        for exchange in &exchanges {
            let error_ns = line.at(exchange.asked_ns) + ahead(exchange.asked_ns);
            assert!(error_ns.abs() <= offset.residual_ns, "{error_ns} {offset:?}");
        }
        assert!(offset.residual_ns < 10_000_000, "{offset:?}");
    }

    #[test]
    fn the_residual_holds_by_the_servers_clock_too() {
        let ahead = |now_ns: i64| (now_ns as f64 * -110.084e-6).round() as i64;
        // Slower there than back, and less so from one to the next: they leave a wide span of drifts.
        let exchanges = [(1, 10_773_496, 0), (9_047_313_679, 8_301_731, 0), (17_827_218_011, 5_903_022, 0)]
            .into_iter()
            .chain([(24_134_260_155, 4_179_910, 0), (32_788_682_039, 1_815_483, 0)])
            .chain([(40_340_796_357, 0, 0), (40_340_796_363, 0, 454)])
            .map(|(asked_ns, there, back)| exchange(asked_ns, there, back, ahead))
            .collect::<Vec<_>>();
        let offset = ClockOffset::fit(&exchanges).unwrap();
        let server = Ahead::of_server(&offset);
        let error_ns = server.at(exchanges[0].asked_ns + ahead(1)) - ahead(1);
        assert!(error_ns.abs() <= offset.residual_ns + 3, "{error_ns} {offset:?}");
        // The bound is reached: without the drift's share it would not hold.
        assert!(error_ns.abs() > offset.residual_ns - 100, "{error_ns} {offset:?}");
    }

    #[test]
    fn both_ends_read_one_line() {
        let offset = ClockOffset {
            reference_ns: Some(1_000_000_000),
            drift_ppm: Some(100.0),
            ..ClockOffset::constant(7_000_000_000_000, 0, Method::ControlExchange, None)
        };
        let (server, client) = (Ahead::of_server(&offset), Ahead::of_client(&offset));
        for client_ns in [0, 1_000_000_000, 100_000_000_000] {
            let server_ns = client_ns - client.at(client_ns);
            assert!((server.at(server_ns) + client.at(client_ns)).abs() <= 1);
        }
    }

    proptest! {
        #[test]
        fn the_error_is_within_the_residual(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            delays in proptest::collection::vec((0_i64..50_000_000, 0_i64..50_000_000), 1..10),
        ) {
            let exchanges: Vec<_> =
                delays.iter().map(|(there, back)| exchange(1_000_000, *there, *back, |_| offset)).collect();
            let estimate = ClockOffset::estimate(&exchanges).unwrap();
            prop_assert!((estimate.offset_ns - offset).abs() <= estimate.residual_ns);
        }

        /// Whatever the ways take in either direction, the true line is within the residual of the told one from the first
        /// exchange to the last, at both ends, and so is the drift.
        #[test]
        fn a_straight_line_is_found_to_within_its_residual(
            offset_ns in -100_000_000_000_000_i64..100_000_000_000_000,
            drift_ppm in -400.0..400.0_f64,
            exchanges in proptest::collection::vec(
                (1_i64..10_000_000_000, 0_i64..20_000_000, 0_i64..20_000_000),
                1..40,
            ),
        ) {
            let ahead = |now_ns: i64| offset_ns + (now_ns as f64 * drift_ppm * 1e-6).round() as i64;
            let mut now_ns = 0;
            let exchanges: Vec<_> = exchanges
                .into_iter()
                .map(|(gap, there, back)| {
                    now_ns += gap;
                    exchange(now_ns, there, back, ahead)
                })
                .collect();
            let offset = ClockOffset::fit(&exchanges).unwrap();
            if let (Some(told_ppm), Some(residual_ppm)) = (offset.drift_ppm, offset.drift_residual_ppm) {
                prop_assert_eq!(offset.is_linear, Some(true));
                // Whole nanoseconds bend the line a little.
                prop_assert!((told_ppm - drift_ppm).abs() <= residual_ppm + 0.01, "{told_ppm} {residual_ppm}");
                let (client, server) = (Ahead::of_client(&offset), Ahead::of_server(&offset));
                let (first_ns, last_ns) = (exchanges[0].asked_ns, exchanges[exchanges.len() - 1].heard_ns);
                for share in 0..=4 {
                    let at_ns = first_ns + (last_ns - first_ns) / 4 * share;
                    let error_ns = client.at(at_ns) + ahead(at_ns);
                    prop_assert!(error_ns.abs() <= offset.residual_ns + 2, "{error_ns} {offset:?}");
                    let error_ns = server.at(at_ns + ahead(at_ns)) - ahead(at_ns);
                    prop_assert!(error_ns.abs() <= offset.residual_ns + 3, "{error_ns} {offset:?}");
                }
            }
        }

        /// More exchanges never make it worse than the best one of each end alone.
        #[test]
        fn the_residual_is_no_wider_than_the_quickest_exchanges_of_both_ends(
            delays in proptest::collection::vec((0_i64..1_000_000, 0_i64..1_000_000), 2..20),
        ) {
            let last = delays.len() as i64 - 1;
            let exchanges: Vec<_> = delays
                .iter()
                .zip(0..)
                .map(|((there, back), index)| exchange(index * 60_000_000_000 / last, *there, *back, |_| 0))
                .collect();
            let offset = ClockOffset::fit(&exchanges).unwrap();
            let half = |at: usize| exchanges[at].round_trip_ns() / 2;
            if offset.drift_ppm.is_some() {
                let widest = half(0).max(half(exchanges.len() - 1)) + 2_100;
                prop_assert!(offset.residual_ns <= widest, "{} {widest}", offset.residual_ns);
            }
        }
    }
}
