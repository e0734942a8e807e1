// SPDX-License-Identifier: Apache-2.0
//! From loss intervals to the loss event rate (RFC 5348 sections 5.4 and 5.5).

/// Loss intervals that count, beside the current one (n).
///
/// The weights below belong to this number.
//= rfc5348#5.4
//# It is RECOMMENDED to set the value n to 8.
pub const INTERVALS: usize = 8;

/// w_0 to w_7.
pub const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Least discount (section 5.5).
const DISCOUNT_THRESHOLD: f64 = 0.25;

/// The loss intervals I_1 to I_n that are over, with their discount factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct History {
    lengths: [f64; INTERVALS],
    discounts: [f64; INTERVALS],
    count: usize,
}

impl History {
    /// Nothing lost yet.
    pub const fn new() -> Self {
        Self { lengths: [0.0; INTERVALS], discounts: [1.0; INTERVALS], count: 0 }
    }

    /// From interval lengths in packets, newest first, without discounts; beyond eight they do not count.
    pub fn from_lengths(newest_first: impl Iterator<Item = f64>) -> Self {
        let mut history = Self::new();
        for (slot, length) in history.lengths.iter_mut().zip(newest_first) {
            *slot = length.max(1.0);
            history.count += 1;
        }
        history
    }

    /// A loss event ends the current interval, `length` packets long: it becomes I_1 and the oldest is forgotten.
    pub fn close(&mut self, length: f64) {
        let length = length.max(1.0);
        let discount = self.discount(length);
        for factor in &mut self.discounts[..self.count] {
            *factor *= discount;
        }
        self.lengths.rotate_right(1);
        self.discounts.rotate_right(1);
        self.lengths[0] = length;
        self.discounts[0] = 1.0;
        self.count = (self.count + 1).min(INTERVALS);
    }

    /// p, 0 to 1, when the current interval I_0 is `current` packets long; 0 before the first loss event.
    pub fn loss_event_rate(&self, current: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let current = current.max(1.0);
        let general = self.discount(current);
        let (mut total0, mut weight0) = (current * WEIGHTS[0], WEIGHTS[0]);
        for ((length, discount), weight) in self.finished().take(self.count - 1).zip(&WEIGHTS[1..]) {
            total0 += length * weight * discount * general;
            weight0 += weight * discount * general;
        }
        let (total1, weight1) = self.weighted();
        (weight0 / total0).min(weight1 / total1).clamp(0.0, 1.0)
    }

    /// p without discounting (section 5.4): with it, p is never above this.
    pub fn undiscounted_loss_event_rate(&self, current: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let lengths = &self.lengths[..self.count];
        let sum = |lengths: &mut dyn Iterator<Item = f64>| -> f64 {
            lengths.zip(WEIGHTS).map(|(length, weight)| length * weight).sum()
        };
        let total0 =
            sum(&mut std::iter::once(current.max(1.0)).chain(lengths[..self.count - 1].iter().copied()));
        let total1 = sum(&mut lengths.iter().copied());
        let weight: f64 = WEIGHTS[..self.count].iter().sum();
        (weight / total0.max(total1)).clamp(0.0, 1.0)
    }

    /// The general discount factor DF for a current interval of `current` packets.
    fn discount(&self, current: f64) -> f64 {
        let (total, weight) = self.weighted();
        if total > 0.0 && current * weight > 2.0 * total {
            (2.0 * total / (weight * current)).max(DISCOUNT_THRESHOLD)
        } else {
            1.0
        }
    }

    /// Weighted sum of I_1 to I_n and the sum of the weights.
    fn weighted(&self) -> (f64, f64) {
        self.finished().zip(WEIGHTS).fold((0.0, 0.0), |(total, weights), ((length, discount), weight)| {
            (total + length * weight * discount, weights + weight * discount)
        })
    }

    fn finished(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.lengths.iter().copied().zip(self.discounts.iter().copied()).take(self.count)
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{History, WEIGHTS};

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-9
    }

    #[test]
    fn weights_are_those_of_the_formula_in_section_5_4() {
        for (index, weight) in WEIGHTS.iter().enumerate() {
            let formula = if index < 4 { 1.0 } else { 2.0 * (8 - index) as f64 / 10.0 };
            assert!(close(*weight, formula));
        }
    }

    #[test]
    fn before_any_loss_the_rate_is_zero() {
        assert!(History::new().loss_event_rate(1e6) == 0.0);
    }

    #[test]
    fn eight_equal_intervals_give_their_inverse() {
        let history = History::from_lengths([100.0; 8].into_iter());
        assert!(close(history.loss_event_rate(1.0), 0.01));
        assert!(close(history.loss_event_rate(100.0), 0.01));
    }

    #[test]
    fn the_current_interval_counts_only_when_it_raises_the_mean() {
        // I_tot0 = 150 + 100 * (1 + 1 + 1 + 0.8 + 0.6 + 0.4 + 0.2) = 650 over 6: by hand.
        let history = History::from_lengths([100.0; 8].into_iter());
        assert!(close(history.loss_event_rate(150.0), 6.0 / 650.0));
        assert!(close(history.loss_event_rate(50.0), 0.01));
    }

    #[test]
    fn a_mixed_table_worked_by_hand() {
        // Newest first 10, 20, ..., 80: I_tot1 = 10+20+30+40+40+36+28+16 = 220; W = 6.
        let history = History::from_lengths((1..=8).map(|i| f64::from(i) * 10.0));
        assert!(close(history.undiscounted_loss_event_rate(1.0), 6.0 / 220.0));
        // Current 30: I_tot0 = 30+10+20+30+32+30+24+14 = 190 < 220: it does not count.
        assert!(close(history.undiscounted_loss_event_rate(30.0), 6.0 / 220.0));
        // Current 100: I_tot0 = 260.
        assert!(close(history.undiscounted_loss_event_rate(100.0), 6.0 / 260.0));
    }

    #[test]
    fn fewer_than_eight_intervals_use_the_first_weights() {
        let history = History::from_lengths([40.0, 60.0].into_iter());
        assert!(close(history.loss_event_rate(1.0), 2.0 / 100.0));
        // k = 2: I_tot0 = I_0 + I_1 = 60 + 40.
        assert!(close(history.loss_event_rate(70.0), 2.0 / 110.0));
    }

    #[test]
    fn a_long_current_interval_discounts_the_older_ones() {
        // I_mean 100, I_0 400: DF = 2 * 100 / 400 = 0.5.
        // I_tot0 = 400 + 0.5 * 100 * 5 = 650, W_tot0 = 1 + 0.5 * 5 = 3.5.
        let history = History::from_lengths([100.0; 8].into_iter());
        assert!(close(history.loss_event_rate(400.0), 3.5 / 650.0));
        // Far beyond, the threshold 0.25 holds: (1 + 1.25) / (10000 + 125).
        assert!(close(history.loss_event_rate(10_000.0), 2.25 / 10_125.0));
    }

    #[test]
    fn a_loss_event_carries_the_discount_along() {
        let mut history = History::from_lengths([100.0; 8].into_iter());
        history.close(400.0);
        // I_1 = 400 (DF 1), I_2 to I_8 = 100 (DF 0.5): I_tot1 = 400 + 50 * 5 = 650, W_tot1 = 3.5.
        assert!(close(history.loss_event_rate(1.0), 3.5 / 650.0));
    }
}
