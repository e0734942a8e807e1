// SPDX-License-Identifier: Apache-2.0
//! How does the window grow outside slow start, and what is left of it after a loss? NewReno's answer; CUBIC's is
//! [`super::cubic`].

/// Growth in congestion avoidance, and reduction; windows are in segments.
pub trait CongestionControl: std::fmt::Debug {
    /// The window after an acknowledgement of `acked` segments, where a round trip takes `rtt_ns`.
    fn grown(&mut self, now_ns: u64, rtt_ns: f64, window: f64, acked: u64) -> f64;

    /// What is left of the window after a loss.
    fn reduced(&mut self, window: f64) -> f64;

    /// A loss was told by the timer: the window begins at one segment.
    fn timed_out(&mut self) {}
}

/// A segment more for a window of acknowledgements, half of it after a loss.
#[derive(Debug)]
pub struct NewReno;

impl CongestionControl for NewReno {
    fn grown(&mut self, _now_ns: u64, _rtt_ns: f64, window: f64, _acked: u64) -> f64 {
        window + 1.0 / window
    }

    fn reduced(&mut self, window: f64) -> f64 {
        window / 2.0
    }
}
