// SPDX-License-Identifier: Apache-2.0
//! How does CUBIC grow its window? By a cubic function of the time since the last loss, and at least as Reno would (RFC 9438).
//!
//! Slow start ends without HyStart++, which the RFC recommends beside it.

use super::control::CongestionControl;

/// RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// Section 5, segments / s^3.
const C: f64 = 0.4;
/// Section 4.3: with it the average window is Reno's.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The state of section 4.1.2.
#[derive(Debug, Default)]
pub struct Cubic {
    /// Before the last loss, less what other flows may have of it (section 4.7).
    w_max: f64,
    /// At the last loss.
    before_loss: f64,
    /// Of the congestion avoidance that is under way.
    epoch: Option<Epoch>,
}

#[derive(Debug)]
struct Epoch {
    start_ns: u64,
    /// Until the window is `w_max` again, s.
    k_s: f64,
    /// The window that Reno would have.
    w_est: f64,
}

impl Cubic {
    /// Congestion avoidance begins. Without a loss before, or after a timeout, it goes on from the window that there is
    /// (section 4.8).
    fn begin(&mut self, now_ns: u64, window: f64) -> Epoch {
        self.w_max = self.w_max.max(window);
        Epoch { start_ns: now_ns, k_s: ((self.w_max - window) / C).cbrt(), w_est: window }
    }
}

impl CongestionControl for Cubic {
    fn grown(&mut self, now_ns: u64, rtt_ns: f64, window: f64, acked: u64) -> f64 {
        let mut epoch = self.epoch.take().unwrap_or_else(|| self.begin(now_ns, window));
        let since_ns = (now_ns - epoch.start_ns) as f64;
        let cubic = |t_ns: f64| C * (t_ns / 1e9 - epoch.k_s).powi(3) + self.w_max;
        let (now, ahead) = (cubic(since_ns), cubic(since_ns + rtt_ns));
        let alpha = if epoch.w_est < self.before_loss { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked as f64 / window;
        let w_est = epoch.w_est;
        self.epoch = Some(epoch);
        if now < w_est {
            return w_est.max(window);
        }
        window + acked as f64 * (ahead.clamp(window, 1.5 * window) - window) / window
    }

    fn reduced(&mut self, window: f64) -> f64 {
        let is_less = window < self.w_max;
        self.w_max = if is_less { window * (1.0 + BETA) / 2.0 } else { window };
        self.before_loss = window;
        self.epoch = None;
        window * BETA
    }

    fn timed_out(&mut self) {
        self.w_max = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RTT_NS: f64 = 100e6;

    /// Windows after so many round trips, one acknowledgement a segment.
    fn grow(control: &mut Cubic, mut window: f64, rounds: u64) -> Vec<f64> {
        let mut windows = Vec::new();
        for round in 0..rounds {
            for _ in 0..window as u64 {
                window = control.grown(round * 100 * MS, RTT_NS, window, 1);
            }
            windows.push(window);
        }
        windows
    }

    #[test]
    fn the_window_is_back_after_k_and_flat_there() {
        let mut control = Cubic::default();
        let window = control.reduced(1000.0);
        assert_eq!(window, 700.0);
        // K = cbrt(300 / 0.4) = 9.086 s.
        let windows = grow(&mut control, window, 120);
        assert!((windows[89] - 1000.0).abs() < 1.0, "{}", windows[89]);
        assert!(windows[45] > 900.0 && windows[119] > 1005.0, "{} {}", windows[45], windows[119]);
    }

    #[test]
    fn a_small_window_grows_as_renos_average_does() {
        let mut control = Cubic::default();
        let window = control.reduced(20.0);
        // 9/17 of a segment in a round trip until the window of the loss, one from there on.
        let windows = grow(&mut control, window, 30);
        let steps: Vec<_> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((steps[0] - 9.0 / 17.0).abs() < 0.05, "{steps:?}");
    }

    #[test]
    fn a_loss_below_the_last_one_leaves_room_and_a_timeout_forgets() {
        let mut control = Cubic::default();
        control.reduced(100.0);
        assert_eq!(control.reduced(80.0), 56.0);
        assert_eq!((control.w_max, control.before_loss), (68.0, 80.0));
        control.timed_out();
        control.grown(0, RTT_NS, 28.0, 1);
        assert_eq!(control.w_max, 28.0);
    }
}
