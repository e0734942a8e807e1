// SPDX-License-Identifier: Apache-2.0
//! Dynamic energy by a model of the device, where nobody reads a meter; its form is that of simulated transfers. Pure.

use std::str::FromStr;

use crate::report::Interval;

/// Power above idle: `base_w (1 + share_per_rate r + share_per_connection n)`, with r in Mb/s of file bytes and n
/// connections that have a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PowerModel {
    base_w: f64,
    share_per_rate: f64,
    share_per_connection: f64,
}

impl PowerModel {
    /// Joules of an interval in which so many connections had a request.
    pub(crate) fn energy_j(&self, interval: &Interval, connections: usize) -> f64 {
        let time_s = (interval.end_ns - interval.start_ns) as f64 * 1e-9;
        let megabits = interval.bytes as f64 * 8e-6;
        let constant = 1.0 + self.share_per_connection * connections as f64;
        self.base_w * (constant * time_s + self.share_per_rate * megabits)
    }
}

impl FromStr for PowerModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[base_w, share_per_rate, share_per_connection])
                if numbers.iter().flatten().all(|one| *one >= 0.0) =>
            {
                Ok(Self { base_w, share_per_rate, share_per_connection })
            }
            _ => Err("a power model is three numbers of at least 0, for example 1,0.075,0.015".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_of_time_bytes_and_connections() {
        let model: PowerModel = "2,0.05,0.25".parse().unwrap();
        // 20 Mb/s for half a second, 4 connections: 2 W (1 + 1 + 1).
        let interval = Interval { start_ns: 0, end_ns: 500_000_000, bytes: 1_250_000 };
        assert!((model.energy_j(&interval, 4) - 3.0).abs() < 1e-9);
        assert!((model.energy_j(&Interval { bytes: 0, ..interval }, 0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_model_is_refused() {
        for text in ["", "1", "1,2,3,4", "1,x,0", "1,-0.1,0", "1,NaN,0"] {
            assert!(text.parse::<PowerModel>().is_err(), "{text}");
        }
    }
}
