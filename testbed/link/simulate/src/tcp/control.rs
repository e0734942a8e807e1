// SPDX-License-Identifier: Apache-2.0
//! How does the window grow outside slow start, and what is left of it after a loss? NewReno, or CUBIC ([`super::cubic`]).

use serde::Deserialize;

use super::cubic::Cubic;

/// Growth in congestion avoidance, and reduction; windows are in segments.
pub trait CongestionControl: std::fmt::Debug {
    /// The window after an acknowledgement of `acked` segments, where a round trip takes `rtt_ns`.
    fn grown(&mut self, now_ns: u64, rtt_ns: f64, window: f64, acked: u64) -> f64;

    /// What is left of the window after a loss.
    fn reduced(&mut self, window: f64) -> f64;

    /// A loss was told by the timer: the window begins at one segment.
    fn timed_out(&mut self) {}
}

/// Which congestion control a flow has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlName {
    /// RFC 5681 and RFC 6582.
    #[default]
    Newreno,
    /// RFC 9438.
    Cubic,
}

impl ControlName {
    /// It, before its first loss.
    pub fn control(self) -> Box<dyn CongestionControl> {
        match self {
            Self::Newreno => Box::new(NewReno),
            Self::Cubic => Box::new(Cubic::default()),
        }
    }
}

/// A segment more for a window of acknowledgements, half of it after a loss.
#[derive(Debug)]
struct NewReno;

impl CongestionControl for NewReno {
    fn grown(&mut self, _now_ns: u64, _rtt_ns: f64, window: f64, _acked: u64) -> f64 {
        window + 1.0 / window
    }

    fn reduced(&mut self, window: f64) -> f64 {
        window / 2.0
    }
}
