// SPDX-License-Identifier: Apache-2.0
//! What do the configured radio parameters come to in the model?

use serde::{Deserialize, Serialize};

use crate::airtime::{Framing, BLOCK_ACK_WINDOW};
use crate::mcs::{Phy, Standard};
use crate::queue::QueueLimits;
use crate::range::{within, ParameterError};
use crate::station::StationParams;

/// Minimum MPDU start spacings that 802.11 can announce, us.
const SPACINGS_US: [f64; 8] = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// Radio parameters after all overrides; names, units and ranges as in link_config.schema.json.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioConfig {
    /// HT or VHT.
    pub standard: Standard,
    /// MCS index.
    pub mcs: u8,
    /// Spatial streams; `None` = from the HT index, or 1.
    pub streams: Option<u8>,
    /// Channel width, MHz.
    pub width_mhz: u16,
    /// Guard interval, ns.
    pub guard_interval_ns: u16,
    /// Most MPDUs in one PPDU; 1 = no aggregation.
    pub subframe_limit: usize,
    /// Minimum MPDU start spacing, us.
    pub min_mpdu_spacing_us: f64,
    /// Probability that an MPDU is lost.
    pub mpdu_error_ratio: f64,
    /// Retransmissions of an MPDU.
    pub retry_limit: u32,
    /// Packets per second a station's host can move, in each direction; `None` = no cap.
    pub packet_rate_cap_pps: Option<f64>,
    /// Drop-tail limit of each queue.
    pub queue_packets: usize,
}

impl RadioConfig {
    /// The model's parameters.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that does not exist.
    pub fn params(&self, name: &str) -> Result<StationParams, ParameterError> {
        let phy = Phy::new(self.standard, self.mcs, self.streams, self.width_mhz, self.guard_interval_ns)
            .map_err(|error| ParameterError(error.to_string()))?;
        if !SPACINGS_US.contains(&self.min_mpdu_spacing_us) {
            let sentence = "min_mpdu_spacing_us must be one of 0, 0.25, 0.5, 1, 2, 4, 8, 16";
            return Err(ParameterError(sentence.to_owned()));
        }
        if let Some(cap_pps) = self.packet_rate_cap_pps {
            within("packet_rate_cap_pps", cap_pps, 1.0..=1e9)?;
        }
        let subframes = within("subframe_limit", self.subframe_limit, 1..=BLOCK_ACK_WINDOW)?;
        let limits = QueueLimits {
            packets: within("queue_packets", self.queue_packets, 1..=100_000)?,
            packet_gap_ns: self.packet_rate_cap_pps.map_or(0, |cap_pps| (1e9 / cap_pps).round() as u64),
            retry_limit: within("retry_limit", self.retry_limit, 0..=255)?,
        };
        Ok(StationParams {
            name: name.to_owned(),
            framing: Framing::new(phy, subframes, (self.min_mpdu_spacing_us * 1000.0) as u64),
            limits,
            mpdu_error_ratio: within("mpdu_error_ratio", self.mpdu_error_ratio, 0.0..=1.0)?,
        })
    }
}
