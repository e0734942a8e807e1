// SPDX-License-Identifier: Apache-2.0
//! What a person at the server is told: who came, for what, and what became of it. Pure.

use std::net::SocketAddr;

use serde_json::Value;

use crate::control::FlowRequest;
use crate::report::{offered, Direction};

/// Where clients are awaited.
pub(super) fn awaited(control: SocketAddr) -> String {
    let who = if control.ip().is_loopback() { " (this host only; --bind ADDR for others)" } else { "" };
    format!("listening on {control}{who}")
}

/// A flow from `peer` has been let in.
pub(super) fn begun(peer: &str, flow: &FlowRequest) -> String {
    let verb = if flow.direction == Direction::Up { "sends here" } else { "receives from here" };
    let rate = offered(flow.offered_rate_mbps());
    let count = flow.messages.map_or(String::new(), |messages| format!("{messages} "));
    format!(
        "{peer} {verb}: {}, {count}messages of {} bytes, {rate} for {}{} s",
        flow.transport,
        flow.payload_bytes,
        if count.is_empty() { "" } else { "at most " },
        flow.duration_ns as f64 / 1e9
    )
}

/// Its flow has ended, with this end's `half` of the report.
pub(super) fn ended(peer: &str, half: Option<&(&str, Value)>) -> String {
    let Some((end, part)) = half else { return format!("{peer} has gone") };
    let goodput_mbps = part["goodput_mbps"].as_f64().unwrap_or(0.0);
    let figures = match *end {
        "receiver" => format!(
            "{} messages received, {} lost, {goodput_mbps:.4} Mb/s",
            part["messages_received_unique"], part["messages_lost"]
        ),
        _ => format!(
            "{} of {} messages sent, {goodput_mbps:.4} Mb/s",
            part["messages_sent"], part["messages_scheduled"]
        ),
    };
    format!("{peer} has gone: {figures}")
}
