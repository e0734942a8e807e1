// SPDX-License-Identifier: Apache-2.0
//! The straight lines that a number of exchanges leave possible, and the middle of them. Pure.

use super::exchange::Exchange;

/// Two clocks that drift apart faster than this are not clocks: 1000 ppm covers two that are being slewed
/// (`adjtimex` allows 500 ppm each). As ns per ns.
const MOST_DRIFT: f64 = 1e-3;
/// Clocks are read in whole nanoseconds.
const GRAIN_NS: f64 = 1.0;
/// Steps of a search: 1e-3 is narrowed down to less than 1e-14, which is 0.04 ns over an hour.
const STEPS: usize = 40;

/// The straight line in the middle of what the exchanges allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Middle {
    pub(super) reference_ns: i64,
    pub(super) ahead_ns: i64,
    pub(super) drift: f64,
    pub(super) drift_residual: f64,
    pub(super) residual_ns: f64,
    pub(super) is_straight: bool,
}

/// All lines `ahead = a + drift * time` that pass below the points `most` and above the points `least`. Times and values
/// are counted from a middle one, so that they are small enough for f64.
pub(super) struct Lines {
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
    pub(super) fn through(exchanges: &[Exchange]) -> Self {
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

    pub(super) fn middle(&self) -> Middle {
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
