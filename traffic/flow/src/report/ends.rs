// SPDX-License-Identifier: Apache-2.0
//! The two ends of a flow, as each tells of itself. Pure.

use netjoule_transport::timestamp_counts::{KERNEL_STAMPS, READ_STAMPS};
use netjoule_transport::Values;
use serde::{Deserialize, Serialize};

use crate::certificate::PacingCertificate;
use crate::metrics::delay::{DelaySummary, DelayVariation};
use crate::metrics::departure::DepartureSummary;
use crate::metrics::ipdv::IpdvSummary;
use crate::metrics::loss::BurstSummary;
use crate::pacing::PacerWork;
use netjoule_measure::cpu::costs::Cpu;
use netjoule_measure::realtime::Realtime;

/// The sending end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SenderPart {
    /// Host name.
    pub host: String,
    /// Boot of that host: names its monotonic clock.
    pub boot_id: String,
    /// Begin of the schedule (time of message 0's deadline), ns.
    pub start_ns: i64,
    /// First message handed over, ns.
    pub first_packet_ns: Option<i64>,
    /// Last message handed over, ns.
    pub last_packet_ns: Option<i64>,
    /// When everything had left, or waiting for that ended; ns.
    pub end_ns: i64,
    /// Messages in the schedule.
    pub messages_scheduled: u64,
    /// Messages the transport accepted.
    pub messages_sent: u64,
    /// Messages refused, held back by congestion control, or not accepted by the end.
    pub messages_not_sent: u64,
    /// Payload bytes accepted.
    pub bytes_sent: u64,
    /// Payload rate over the duration.
    pub goodput_mbps: f64,
    /// From handing a message over to leaving the host, by the kernel's stamps; missing when they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure_delay_us: Option<DepartureSummary>,
    /// What kept other work from its process; missing when nothing out of the ordinary did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<Realtime>,
    /// CPU time of the process from start to end, s.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The transport's own counters.
    pub transport_stats: Values,
    /// What its pacer did. Stands with the pacing in the report, and only travels here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacer_work: Option<PacerWork>,
    /// How well the schedule was kept. Stands beside the two ends in the report, and only travels here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_certificate: Option<Box<PacingCertificate>>,
}

/// The receiving end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverPart {
    /// Host name.
    pub host: String,
    /// Boot of that host.
    pub boot_id: String,
    /// First arrival, ns.
    pub first_packet_ns: Option<i64>,
    /// Last arrival of a first copy, ns.
    pub last_packet_ns: Option<i64>,
    /// First copies.
    pub messages_received_unique: u64,
    /// Sent and never arrived.
    pub messages_lost: u64,
    /// Further copies.
    pub messages_duplicate: u64,
    /// First copies that a later message had overtaken.
    pub messages_reordered: u64,
    /// Payload bytes of first copies.
    pub bytes_received_unique: u64,
    /// Payload rate of first copies over the duration, or over first to last arrival when that is longer.
    pub goodput_mbps: f64,
    /// Lost over sent.
    pub loss_ratio: Option<f64>,
    /// RFC 3550 jitter at the end, ms.
    pub jitter_ms: Option<f64>,
    /// One-way delay of first copies, ms.
    pub one_way_delay_ms: Option<DelaySummary>,
    /// Why there is none though messages arrived: [`crate::metrics::delay::CLOCKS_NOT_COMPARABLE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_delay_reason: Option<String>,
    /// Packet delay variation: delay above the least one, ms.
    pub pdv_ms: Option<DelayVariation>,
    /// Inter-packet delay variation, ms.
    pub ipdv_ms: Option<IpdvSummary>,
    /// Runs of lost messages.
    pub loss_bursts: Option<BurstSummary>,
    /// Who stamped arrivals: "kernel", "read" (when they were read) or "mixed"; missing without any.
    pub arrival_stamp_source: Option<String>,
    /// CPU time of the process from start to end, s.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The transport's own counters.
    pub transport_stats: Values,
}

/// Who stamped the arrivals that a transport's statistics count: "kernel", "read" or "mixed"; `None` when they count none.
pub fn arrival_stamp_source(transport_stats: &Values) -> Option<String> {
    let count = |name: &str| transport_stats.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let source = match (count(KERNEL_STAMPS), count(READ_STAMPS)) {
        (0, 0) => return None,
        (_, 0) => "kernel",
        (0, _) => "read",
        _ => "mixed",
    };
    Some(source.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stamped_arrivals_is_told_from_the_counts() {
        let stats = |kernel: u64, read: u64| {
            Values::from_iter([
                (KERNEL_STAMPS.to_owned(), kernel.into()),
                (READ_STAMPS.to_owned(), read.into()),
            ])
        };
        for (kernel, read, source) in
            [(0, 0, None), (5, 0, Some("kernel")), (0, 5, Some("read")), (5, 1, Some("mixed"))]
        {
            assert_eq!(arrival_stamp_source(&stats(kernel, read)).as_deref(), source);
        }
        assert_eq!(arrival_stamp_source(&Values::new()), None);
    }
}
