// SPDX-License-Identifier: Apache-2.0
//! What does a transport say about its congestion control and its packets?

use serde::{Deserialize, Serialize};

/// Congestion control of the sending end at one moment. What a transport does not know, or has no such thing as, is
/// `None`. Counts are those of the whole connection so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Congestion {
    /// Congestion window, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Slow-start threshold, bytes; `None` also while it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start_threshold_bytes: Option<u64>,
    /// Rate at which congestion control lets data leave, Mb/s: a pacing rate, or TFRC's allowed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_rate_mbps: Option<f64>,
    /// Sent and neither acknowledged nor taken for lost, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt_ms: Option<f64>,
    /// Mean deviation of the round-trip time, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_variation_ms: Option<f64>,
    /// Packets taken for lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_lost: Option<u64>,
    /// Packets that carried data once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_retransmitted: Option<u64>,
    /// Losses as congestion control counts them: all within a round trip are one event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_events: Option<u64>,
}

/// How messages became IP packets, as seen by the sending end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packetisation {
    /// Data packets per message (1 for datagrams; below 1 when a stream merges messages).
    pub frames_per_message: Option<f64>,
    /// Mean size of a data packet with its IP header, in bytes.
    pub mean_ip_packet_bytes: Option<f64>,
    /// Where the two numbers come from.
    pub source: PacketisationSource,
}

impl Packetisation {
    /// Frames per message and mean size of a packet, by the transport's own counters; `None`: not known.
    pub fn measured(figures: Option<(f64, f64)>) -> Self {
        Self {
            frames_per_message: figures.map(|(frames, _)| frames),
            mean_ip_packet_bytes: figures.map(|(_, bytes)| bytes),
            source: figures.map_or(PacketisationSource::Unknown, |_| PacketisationSource::Measured),
        }
    }
}

/// Where packetisation figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketisationSource {
    /// From the transport's own counters of packets and bytes.
    Measured,
    /// From header sizes: one message is one packet.
    Computed,
    /// Not known.
    Unknown,
}

impl PacketisationSource {
    /// Name in the flow report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Computed => "computed",
            Self::Unknown => "unknown",
        }
    }
}
