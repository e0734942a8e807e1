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

use serde::{Deserialize, Serialize};

/// Exchanges before a flow, and again after it.
pub const EXCHANGES: usize = 8;
/// Exchanges kept: a long flow keeps the narrowest of neighbours.
const MOST_KEPT: usize = 128;
/// Two clocks that drift apart faster than this are not clocks: 1000 ppm covers two that are being slewed
/// (`adjtimex` allows 500 ppm each). As ns per ns.
const MOST_DRIFT: f64 = 1e-3;
/// A drift that is not known better than this is not told, ppm: a quartz is good to 100 ppm.
pub const TOLD_DRIFT_PPM: f64 = 200.0;
/// Clocks are read in whole nanoseconds.
const GRAIN_NS: f64 = 1.0;
/// Steps of a search: 1e-3 is narrowed down to less than 1e-14, which is 0.04 ns over an hour.
const STEPS: usize = 40;

/// One exchange: sent and received again here, received and answered there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl Exchange {
    /// The other clock is ahead by no more, when the question left.
    fn most_ns(&self) -> i64 {
        self.arrived_ns.saturating_sub(self.asked_ns)
    }

    /// The other clock is ahead by no less, when the answer arrived.
    fn least_ns(&self) -> i64 {
        self.answered_ns.saturating_sub(self.heard_ns)
    }

    /// Time on the way, there and back.
    fn round_trip_ns(&self) -> i64 {
        self.most_ns().saturating_sub(self.least_ns())
    }
}

/// Keep `exchange` among the others. Of a long flow's the first and the last [`EXCHANGES`] stay, and of those between
/// the quicker of each two, so that memory is bounded and the span is whole.
pub fn keep(exchanges: &mut Vec<Exchange>, exchange: Exchange) {
    exchanges.push(exchange);
    if exchanges.len() <= MOST_KEPT {
        return;
    }
    let last = exchanges.split_off(exchanges.len() - EXCHANGES);
    let between = exchanges.split_off(EXCHANGES);
    let quicker = between.chunks(2).filter_map(|pair| pair.iter().min_by_key(|one| one.round_trip_ns()));
    exchanges.extend(quicker.copied().chain(last));
}

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
            // What is rounded away, and what the search leaves.
            residual_ns: line.residual_ns.ceil() as i64 + 2,
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

/// The straight line in the middle of what the exchanges allow.
#[derive(Debug, Clone, Copy)]
struct Middle {
    reference_ns: i64,
    ahead_ns: i64,
    drift: f64,
    drift_residual: f64,
    residual_ns: f64,
    is_straight: bool,
}

/// All lines `ahead = a + drift * time` that pass below the points `most` and above the points `least`. Times and values
/// are counted from a middle one, so that they are small enough for f64.
struct Lines {
    middle_ns: i64,
    base_ns: i64,
    /// Time and value.
    most: Vec<(f64, f64)>,
    least: Vec<(f64, f64)>,
    /// First and last time.
    span: (f64, f64),
    /// Round trip of the slower half's quickest exchange.
    usual_round_trip_ns: f64,
}

impl Lines {
    /// `exchanges` must not be empty.
    fn through(exchanges: &[Exchange]) -> Self {
        let first_ns = exchanges.iter().map(|exchange| exchange.asked_ns).min().unwrap_or(0);
        let last_ns = exchanges.iter().map(|exchange| exchange.heard_ns).max().unwrap_or(first_ns);
        let middle_ns = first_ns + last_ns.saturating_sub(first_ns) / 2;
        let base_ns = exchanges[0].least_ns();
        let point = |at_ns: i64, value_ns: i64| {
            (at_ns.saturating_sub(middle_ns) as f64, value_ns.saturating_sub(base_ns) as f64)
        };
        let raised = |(time, value): (f64, f64), by_ns| (time, value + by_ns);
        let mut round_trips: Vec<i64> = exchanges.iter().map(Exchange::round_trip_ns).collect();
        round_trips.sort_unstable();
        Self {
            middle_ns,
            base_ns,
            most: exchanges.iter().map(|one| raised(point(one.asked_ns, one.most_ns()), GRAIN_NS)).collect(),
            least: exchanges
                .iter()
                .map(|one| raised(point(one.heard_ns, one.least_ns()), -GRAIN_NS))
                .collect(),
            span: (point(first_ns, 0).0, point(last_ns, 0).0),
            usual_round_trip_ns: round_trips[round_trips.len() / 2].max(0) as f64,
        }
    }

    fn middle(&self) -> Middle {
        // How much room a drift leaves falls away on both sides of the best one.
        let best = greatest(-MOST_DRIFT, MOST_DRIFT, |drift| self.room_ns(drift));
        let missing_ns = (-self.room_ns(best)).max(0.0);
        let widened_ns = missing_ns / 2.0;
        let fits = |drift: f64| self.room_ns(drift) + missing_ns >= 0.0;
        let (slowest, fastest) = (border(best, -MOST_DRIFT, fits), border(best, MOST_DRIFT, fits));
        let at = |time: f64| {
            let highest = greatest(slowest, fastest, |drift| self.highest_ns(drift) + drift * time);
            let lowest = greatest(slowest, fastest, |drift| -(self.lowest_ns(drift) + drift * time));
            let high_ns = self.highest_ns(highest) + highest * time + widened_ns;
            let low_ns = self.lowest_ns(lowest) + lowest * time - widened_ns;
            (f64::midpoint(high_ns, low_ns), (high_ns - low_ns).max(0.0) / 2.0)
        };
        let ((first_ns, first_half_ns), (last_ns, last_half_ns)) = (at(self.span.0), at(self.span.1));
        let span_ns = (self.span.1 - self.span.0).max(1.0);
        // A line that had to be widened misses points by that much, and each point says where the clocks were to within
        // its round trip: half of the points bound the error so.
        let bent_ns = if missing_ns > 0.0 { widened_ns + self.usual_round_trip_ns } else { 0.0 };
        Middle {
            reference_ns: self.middle_ns,
            ahead_ns: self.base_ns.saturating_add(f64::midpoint(first_ns, last_ns).round() as i64),
            drift: (last_ns - first_ns) / span_ns,
            drift_residual: (first_half_ns + last_half_ns) / span_ns,
            residual_ns: first_half_ns.max(last_half_ns) + bent_ns,
            is_straight: missing_ns == 0.0,
        }
    }

    /// Greatest `a` that a line of this drift may have, ns.
    fn highest_ns(&self, drift: f64) -> f64 {
        self.most.iter().map(|(time, most)| most - drift * time).fold(f64::INFINITY, f64::min)
    }

    /// Least `a` that a line of this drift may have, ns.
    fn lowest_ns(&self, drift: f64) -> f64 {
        self.least.iter().map(|(time, least)| least - drift * time).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Room for lines of this drift, ns; negative when there is none.
    fn room_ns(&self, drift: f64) -> f64 {
        self.highest_ns(drift) - self.lowest_ns(drift)
    }
}

/// Where the concave function `value` is greatest between two places, by ternary search.
fn greatest(from: f64, to: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (mut from, mut to) = (from, to);
    for _ in 0..2 * STEPS {
        let third = (to - from) / 3.0;
        if value(from + third) < value(to - third) {
            from += third;
        } else {
            to -= third;
        }
    }
    f64::midpoint(from, to)
}

/// The place furthest from `inside` towards `outside` where `holds`, by bisection.
fn border(inside: f64, outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(outside) {
        return outside;
    }
    let (mut inside, mut outside) = (inside, outside);
    for _ in 0..STEPS {
        let between = f64::midpoint(inside, outside);
        if holds(between) {
            inside = between;
        } else {
            outside = between;
        }
    }
    // A step beyond, so that nothing possible is left out.
    outside
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An exchange at `asked_ns` with a server clock that is `ahead(client time)`.
    fn exchange(asked_ns: i64, there: i64, back: i64, ahead: impl Fn(i64) -> i64) -> Exchange {
        let (heard_there, answered_there) = (asked_ns + there, asked_ns + there + 5_000);
        Exchange {
            asked_ns,
            arrived_ns: heard_there + ahead(heard_there),
            answered_ns: answered_there + ahead(answered_there),
            heard_ns: answered_there + back,
        }
    }

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

    #[test]
    fn a_long_flow_keeps_its_first_its_last_and_the_quickest_between() {
        let mut kept = Vec::new();
        for index in 0..10_000 {
            let delay = if index % 4 == 0 { 1_000 } else { 9_000 };
            keep(&mut kept, exchange(index * 1_000_000_000, delay, delay, |_| 0));
            assert!(kept.len() <= MOST_KEPT);
        }
        assert_eq!(kept[0].asked_ns, 0);
        assert_eq!(kept[EXCHANGES - 1].asked_ns, (EXCHANGES as i64 - 1) * 1_000_000_000);
        assert_eq!(kept.last().unwrap().asked_ns, 9_999_000_000_000);
        assert!(kept.windows(2).all(|pair| pair[0].asked_ns < pair[1].asked_ns));
        let quick = kept.iter().filter(|one| one.round_trip_ns() == 2_000).count();
        assert!(quick > kept.len() / 3, "{quick} of {}", kept.len());
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
