// SPDX-License-Identifier: Apache-2.0
//! The flow report as it is written.

use netjoule_transport::Values;
use serde::{Deserialize, Serialize};

use super::ends::{ReceiverPart, SenderPart};
use super::sums::Sums;
use crate::certificate::PacingCertificate;
use crate::intervals::Interval;
use crate::pacing::{Mode, PacerWork};
use crate::schedule::ProfileFacts;
use crate::traces::CongestionSample;
use netjoule_measure::capture::CaptureSummary;
use netjoule_measure::clock_offset::ClockOffset;
use netjoule_measure::failure::{Failure, Outcome};

/// Version of the document.
pub const SCHEMA_VERSION: u32 = 1;

/// Who made the traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// "netjoule-traffic".
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Generator {
    /// This program.
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Direction as seen from the `send` side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// `send` sends, `serve` receives.
    Up,
    /// `serve` sends, `send` receives.
    Down,
}

/// How messages were timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// Which [`crate::pacing::Mode`].
    pub mode: Mode,
    /// Messages due within this window may leave together, late; in us.
    pub window_us: u64,
    /// Messages that leave together go to the kernel as one GSO train.
    pub gso: bool,
    /// How long before a deadline `hybrid` watches the clock, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_us: Option<u64>,
    /// Messages of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// What the pacer of the sending end did.
    #[serde(flatten)]
    pub work: Option<PacerWork>,
}

impl Pacing {
    /// What was asked for, with what the mode adds.
    pub fn new(mode: Mode, window_us: u64, gso: bool) -> Self {
        Self { mode, window_us, gso, spin_us: mode.spin_us(), burst: mode.burst(), work: None }
    }
}

/// How the flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The whole duration was served.
    Duration,
    /// This end was told to stop (signal or end of stdin).
    Interrupted,
    /// The other end was told to stop.
    PeerInterrupted,
    /// Something broke; the report is what this end knows.
    Failed,
}

impl EndReason {
    /// How a flow ended that may have failed, and with what.
    pub fn or_failed(ended: Outcome<Self>) -> (Self, Option<Failure>) {
        match ended {
            Ok(reason) => (reason, None),
            Err(failure) => (Self::Failed, Some(failure)),
        }
    }
}

/// What the sending end knows about the path and its packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFacts {
    /// MTU of the path as far as the sending host knows, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Nagle's algorithm off (streams only).
    pub nodelay: Option<bool>,
    /// Data packets per message.
    pub frames_per_message: Option<f64>,
    /// Mean data packet with IP header, in bytes.
    pub mean_ip_packet_bytes: Option<f64>,
    /// "measured", "computed" or "unknown".
    pub packetisation_source: String,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// "flow_report".
    pub kind: String,
    /// Who made the traffic.
    pub generator: Generator,
    /// Random name of the flow.
    pub flow_id: String,
    /// Transport by its command-line name.
    pub transport: String,
    /// Its options; left out when it has none.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub transport_options: Values,
    /// Direction.
    pub direction: Direction,
    /// 4 or 6; missing for null.
    pub ip_version: Option<u8>,
    /// Size of a message; with a profile the greatest that it can give.
    pub payload_bytes: u64,
    /// Payload rate asked for; with a profile the mean of its schedule; none: as fast as possible.
    pub offered_rate_mbps: Option<f64>,
    /// Duration asked for; where a number of messages ended the flow, what it took.
    pub duration_s: f64,
    /// Length of an interval.
    pub interval_s: f64,
    /// Seed of the payload bytes.
    pub seed: u64,
    /// Name of the schedule: flows with the same one had the same messages to send at the same times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_digest: Option<String>,
    /// What the schedule amounts to when it came of a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFacts>,
    /// Pacing.
    pub pacing: Pacing,
    /// How well the sending end kept its schedule.
    #[serde(default)]
    pub pacing_certificate: Option<Box<PacingCertificate>>,
    /// MTU, Nagle, packets.
    #[serde(flatten)]
    pub path: PathFacts,
    /// Server's clock against the client's.
    pub clock_offset: ClockOffset,
    /// The sending end.
    pub sender: SenderPart,
    /// The receiving end; missing for null.
    pub receiver: Option<ReceiverPart>,
    /// Intervals of both ends, the sender's first.
    pub intervals: Vec<Interval>,
    /// Both ends without the first seconds, when those were to be omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<Sums>,
    /// Congestion control of the sending end, when traces were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Vec<CongestionSample>>,
    /// The flow's packets in a file, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSummary>,
    /// Whether the counts of both ends agree, see [`reconciles`].
    pub reconciles: bool,
    /// How the flow ended.
    pub end_reason: EndReason,
}
