// SPDX-License-Identifier: Apache-2.0
//! What is printed of a flow that failed: the request, why, and as much of both halves as this end knows
//! (protocols/contracts/schemas/partial_flow_report.schema.json). Pure but for the printing.

use serde_json::{json, Value};

use crate::control::FlowRequest;
use crate::intervals::Interval;
use crate::report::{EndReason, Generator, ReceiverPart, SenderPart, SCHEMA_VERSION};
use netjoule_measure::failure::{Failure, Outcome};
use netjoule_measure::output::Output;

/// What is left of a flow.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// The sending end's counts.
    pub(crate) sender: Option<SenderPart>,
    /// The receiving end's counts. Without the sender's it does not know of messages after the last that arrived.
    pub(crate) receiver: Option<ReceiverPart>,
    /// Intervals of both ends as far as they are here.
    pub(crate) intervals: Vec<Interval>,
}

/// Print it as the event `partial_report`. The failure itself is told by whoever ends the command.
pub(crate) fn print(
    request: &FlowRequest,
    remains: Remains,
    failure: &Failure,
    output: Output,
) -> Outcome<()> {
    output.document("partial_report", &report(request, remains, failure))
}

fn report(request: &FlowRequest, mut remains: Remains, failure: &Failure) -> Value {
    // A certificate is of a whole flow, and so is what its pacer did.
    if let Some(sender) = &mut remains.sender {
        sender.pacer_work = None;
        sender.pacing_certificate = None;
    }
    json!({
        "schema_version": SCHEMA_VERSION,
        "kind": "partial_flow_report",
        "generator": Generator::this(),
        "flow_id": request.flow_id,
        "transport": request.transport,
        "direction": request.direction,
        "payload_bytes": request.payload_bytes,
        "offered_rate_mbps": request.offered_rate_mbps(),
        "duration_s": request.duration_ns as f64 / 1e9,
        "interval_s": request.interval_ns as f64 / 1e9,
        "end_reason": EndReason::Failed,
        "failure": { "code": failure.code.name(), "message": failure.message },
        "sender": remains.sender,
        "receiver": remains.receiver,
        "intervals": remains.intervals,
    })
}
