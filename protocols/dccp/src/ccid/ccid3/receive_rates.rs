// SPDX-License-Identifier: Apache-2.0
//! X_recv_set: the receive rates of the last two round trips (RFC 5348 sections 4.3 and 8.2.2).

/// Values kept at most (N).
const MAX_VALUES: usize = 3;

/// A receive rate and when it was reported.
#[derive(Debug, Clone, Copy)]
struct Value {
    bytes_per_s: f64,
    at_ns: i64,
}

/// The set, newest first.
#[derive(Debug)]
pub(super) struct ReceiveRates {
    values: [Value; MAX_VALUES],
    count: usize,
    /// The initial infinity has got its time.
    is_dated: bool,
}

impl ReceiveRates {
    pub(super) const fn new() -> Self {
        let infinity = Value { bytes_per_s: f64::INFINITY, at_ns: 0 };
        Self { values: [infinity; MAX_VALUES], count: 1, is_dated: false }
    }

    /// The greatest value.
    pub(super) fn max(&self) -> f64 {
        self.values[..self.count].iter().map(|value| value.bytes_per_s).fold(0.0, f64::max)
    }

    /// "Update X_recv_set()".
    pub(super) fn update(&mut self, now_ns: i64, bytes_per_s: f64, rtt_ns: f64) {
        if !self.is_dated {
            self.is_dated = true;
            self.values[0].at_ns = now_ns;
        }
        self.values.rotate_right(1);
        self.values[0] = Value { bytes_per_s, at_ns: now_ns };
        let young = |value: &Value| now_ns.saturating_sub(value.at_ns) as f64 <= 2.0 * rtt_ns;
        let kept = (self.count + 1).min(MAX_VALUES);
        // Newest first: the old ones are at the end. The new value itself stays.
        self.count = 1 + self.values[1..kept].iter().take_while(|value| young(value)).count();
    }

    /// "Maximize X_recv_set()".
    pub(super) fn maximize(&mut self, now_ns: i64, bytes_per_s: f64) {
        let held = self.values[..self.count].iter().map(|value| value.bytes_per_s);
        let greatest = held.filter(|rate| rate.is_finite()).fold(bytes_per_s, f64::max);
        self.replace(now_ns, greatest);
    }

    /// "Halve entries in X_recv_set".
    pub(super) fn halve(&mut self) {
        for value in &mut self.values[..self.count] {
            value.bytes_per_s /= 2.0;
        }
    }

    /// One value only.
    pub(super) fn replace(&mut self, now_ns: i64, bytes_per_s: f64) {
        self.is_dated = true;
        self.values[0] = Value { bytes_per_s, at_ns: now_ns };
        self.count = 1;
    }
}
