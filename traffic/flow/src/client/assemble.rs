// SPDX-License-Identifier: Apache-2.0
//! Puts both ends' halves together into the report, prints it, and says how the flow ended.

use std::ops::Range;

use netjoule_transport::IpVersion;

use crate::certificate::{Limits, NOT_CERTIFIED};
use crate::control::FlowRequest;
use crate::intervals::Interval;
use crate::report::{
    self, EndReason, FlowReport, Generator, Pacing, PathFacts, ReceiverPart, SenderPart, Sizes, Sums,
};
use crate::traces::CongestionSample;
use netjoule_measure::capture::CaptureSummary;
use netjoule_measure::clock_offset::ClockOffset;
use netjoule_measure::failure::Outcome;
use netjoule_measure::output::Output;

/// Both halves of a report, before they become one.
pub(crate) struct Halves {
    /// The sending end's counts.
    pub(crate) sender: SenderPart,
    /// Its path and packets.
    pub(crate) path: PathFacts,
    /// The receiving end's counts; none for null.
    pub(crate) receiver: Option<ReceiverPart>,
    /// Intervals of both ends, the sender's first.
    pub(crate) intervals: Vec<Interval>,
    /// Which of the intervals came from the peer and were not printed yet.
    pub(crate) from_peer: Range<usize>,
    /// The sending end's congestion control; `None` when it was not asked for.
    pub(crate) congestion: Option<Vec<CongestionSample>>,
    /// The packets in a file; `None` when they were not asked for.
    pub(crate) capture: Option<CaptureSummary>,
    /// How it ended.
    pub(crate) end_reason: EndReason,
}

/// Print the report, its pacing held to `limits`; the exit code: 0 for a whole flow, 1 for an interrupted one, 4 for one that
/// did not keep the limits.
pub(crate) fn finish(
    request: &FlowRequest,
    ip_version: Option<IpVersion>,
    clock_offset: ClockOffset,
    halves: Halves,
    limits: &Limits,
    output: Output,
) -> Outcome<u8> {
    output.events("interval", &halves.intervals[halves.from_peer.clone()])?;
    let end_reason = halves.end_reason;
    let report = report(request, ip_version, clock_offset, halves, limits);
    output.document("report", &report)?;
    let broken = not_certified(&report);
    broken.iter().for_each(|sentence| output.complain(sentence));
    match end_reason {
        EndReason::Duration => return Ok(broken.map_or(0, |_| NOT_CERTIFIED)),
        EndReason::Interrupted => output.complain("interrupted: the report is partial"),
        EndReason::PeerInterrupted => output.complain("the server was stopped: the report is partial"),
        // A flow that failed has no report but what `partial` prints.
        EndReason::Failed => {}
    }
    Ok(1)
}

/// Which limits of its pacing the flow did not keep, in a sentence; `None`: it kept them, or there were none.
pub(crate) fn not_certified(report: &FlowReport) -> Option<String> {
    let found = report.pacing_certificate.as_ref().filter(|found| found.passed == Some(false))?;
    Some(format!("the pacing was not certified: {}", found.failed.join("; ")))
}

fn report(
    request: &FlowRequest,
    ip_version: Option<IpVersion>,
    clock_offset: ClockOffset,
    halves: Halves,
    limits: &Limits,
) -> FlowReport {
    let Halves { mut sender, path, receiver, intervals, congestion, capture, end_reason, .. } = halves;
    let certificate = sender.pacing_certificate.take();
    let work = sender.pacer_work.take();
    let profile = request.profile.as_ref().map(|profile| profile.facts.clone());
    let one_size = Sizes::one(request.payload_bytes, sender.messages_scheduled);
    let sizes = profile.as_ref().map_or(one_size, |facts| Sizes {
        least: facts.least_message_bytes,
        greatest: facts.greatest_message_bytes,
        scheduled_bytes: facts.bytes,
    });
    let reconciles = report::reconciles(&sender, receiver.as_ref(), &intervals, sizes);
    FlowReport {
        schema_version: report::SCHEMA_VERSION,
        kind: "flow_report".into(),
        generator: Generator::this(),
        flow_id: request.flow_id.clone(),
        transport: request.transport.clone(),
        transport_options: request.options.clone(),
        direction: request.direction,
        ip_version: ip_version.map(IpVersion::number),
        payload_bytes: request.payload_bytes,
        offered_rate_mbps: request.offered_rate_mbps(),
        duration_s: match request.messages {
            Some(_) => (sender.end_ns - sender.start_ns) as f64 / 1e9,
            None => request.duration_ns as f64 / 1e9,
        },
        interval_s: request.interval_ns as f64 / 1e9,
        seed: request.seed,
        schedule_digest: Some(request.schedule_digest()),
        profile,
        pacing: Pacing { work, ..Pacing::new(request.pacing, request.window_us, request.gso) },
        pacing_certificate: certificate.map(|found| Box::new(found.judged(limits))),
        path,
        clock_offset,
        sender,
        receiver,
        sums: (request.omit_ns > 0).then(|| Sums::of(&intervals, request.duration_ns as i64)),
        intervals,
        congestion,
        capture,
        reconciles,
        end_reason,
    }
}
