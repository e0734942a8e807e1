// SPDX-License-Identifier: Apache-2.0
//! A report for a person. Pure.

use netjoule_transport::Values;

use super::document::FlowReport;
use crate::certificate::PacingCertificate;

/// A report for a person.
pub(crate) fn plain_report(report: &FlowReport) -> String {
    let sender = &report.sender;
    let mut text = format!(
        "{} {} B, {} for {} s: {} of {} messages sent, {:.4} Mb/s, {:.3} s CPU",
        report.transport,
        report.payload_bytes,
        offered(report.offered_rate_mbps),
        report.duration_s,
        sender.messages_sent,
        sender.messages_scheduled,
        sender.goodput_mbps,
        sender.cpu.used.cpu_s
    );
    if let Some(certificate) = &report.pacing_certificate {
        text.push_str(&plain_certificate(report, certificate));
    }
    if let Some(receiver) = &report.receiver {
        text.push_str(&format!(
            "\nreceived {} messages, {:.4} Mb/s, {} lost, {} duplicate, {} reordered, {:.3} s CPU",
            receiver.messages_received_unique,
            receiver.goodput_mbps,
            receiver.messages_lost,
            receiver.messages_duplicate,
            receiver.messages_reordered,
            receiver.cpu.used.cpu_s
        ));
        if let (Some(delay), Some(jitter_ms)) = (receiver.one_way_delay_ms, receiver.jitter_ms) {
            text.push_str(&format!(
                "\none-way delay {:.3} ms median, {:.3} ms p99, jitter {jitter_ms:.3} ms",
                delay.p50, delay.p99
            ));
        }
        if receiver.one_way_delay_reason.is_some() {
            text.push_str(
                "\none-way delay not known: clocks not comparable (time namespaces: --clock exchange)",
            );
        }
        if let Some(bursts) = receiver.loss_bursts.as_ref().filter(|bursts| bursts.count > 0) {
            text.push_str(&format!(
                "\n{} loss bursts, {:.2} messages on average, {} at most",
                bursts.count, bursts.mean_messages, bursts.max_messages
            ));
        }
    }
    text
}

/// What was offered, for a person.
pub(crate) fn offered(rate_mbps: Option<f64>) -> String {
    rate_mbps.map_or("as fast as possible".into(), |rate_mbps| format!("{rate_mbps} Mb/s offered"))
}

/// What a person who wants to know more is told of a flow's transport.
pub(crate) fn plain_details(report: &FlowReport) -> String {
    let listed = |name: &str, values: &Values| {
        let words: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!words.is_empty()).then(|| format!("{name}: {}", words.join(", ")))
    };
    let receiver =
        report.receiver.as_ref().and_then(|end| listed("receiver's counters", &end.transport_stats));
    let parts = [
        Some(format!("{} {}, flow {}", report.generator.name, report.generator.version, report.flow_id)),
        report.path.mtu_bytes.map(|bytes| format!("path MTU {bytes} bytes")),
        listed("options", &report.transport_options),
        listed("sender's counters", &report.sender.transport_stats),
        receiver,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// How the schedule was kept, as far as anything left, and what the transport had no room for.
fn plain_certificate(report: &FlowReport, certificate: &PacingCertificate) -> String {
    let mut text = String::new();
    if let (Some(error), Some(within), Some(together)) =
        (certificate.error_us, certificate.within_50us_ratio, certificate.back_to_back_ratio)
    {
        text = format!(
            "\npacing {}: {:.1} us late median, {:.1} us p99, {:.1} us at most; {:.1} % within 50 us, {:.1} % back to back{}",
            report.pacing.mode,
            error.p50,
            error.p99,
            error.max,
            100.0 * within,
            100.0 * together,
            plain_verdict(certificate)
        );
    }
    if certificate.held_back_ratio > 0.0 {
        text.push_str(&format!(
            "\n{:.1} % held back by the transport, {:.1} % never sent for it",
            100.0 * certificate.held_back_ratio,
            100.0 * certificate.held_back_not_sent_ratio
        ));
    }
    text
}

fn plain_verdict(certificate: &PacingCertificate) -> String {
    match certificate.passed {
        None => String::new(),
        Some(true) => "; limits kept".into(),
        Some(false) => format!("; failed: {}", certificate.failed.join("; ")),
    }
}
