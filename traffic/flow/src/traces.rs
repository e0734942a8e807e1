// SPDX-License-Identifier: Apache-2.0
//! How the sending end's congestion control went on during a flow, once per interval, when asked for.

use netjoule_transport::{Congestion, Transport};
use serde::{Deserialize, Serialize};

/// Congestion control at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CongestionSample {
    /// `CLOCK_MONOTONIC` of the sending end, ns.
    pub at_ns: i64,
    /// What the transport says.
    #[serde(flatten)]
    pub congestion: Congestion,
}

/// Samples of a flow.
#[derive(Debug, Default)]
pub struct Traces {
    /// `None`: not asked for.
    samples: Option<Vec<CongestionSample>>,
    handed_out: usize,
}

impl Traces {
    /// `asked_for`: otherwise nothing is ever sampled.
    pub fn new(asked_for: bool) -> Self {
        Self { samples: asked_for.then(Vec::new), handed_out: 0 }
    }

    /// Sample `transport` at `now_ns`. One without congestion control leaves no sample.
    pub fn sample(&mut self, transport: &mut dyn Transport, now_ns: i64) {
        let Some(samples) = &mut self.samples else { return };
        if let Some(congestion) = transport.congestion() {
            samples.push(CongestionSample { at_ns: now_ns, congestion });
        }
    }

    /// Samples since the last call, for live output.
    pub fn fresh(&mut self) -> &[CongestionSample] {
        let samples = self.samples.as_deref().unwrap_or_default();
        let from = std::mem::replace(&mut self.handed_out, samples.len());
        &samples[from..]
    }

    /// All of them; `None` when they were not asked for.
    pub fn into_samples(self) -> Option<Vec<CongestionSample>> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_transport_does_not_know_is_left_out_of_the_text() {
        let congestion = Congestion { window_bytes: Some(14_480), ..Congestion::default() };
        let sample = CongestionSample { at_ns: 5, congestion };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(text, r#"{"at_ns":5,"window_bytes":14480}"#);
        assert_eq!(serde_json::from_str::<CongestionSample>(&text).unwrap(), sample);
    }
}
