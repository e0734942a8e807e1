// SPDX-License-Identifier: Apache-2.0
//! What several flows came to together (protocols/contracts/schemas/flows_summary.schema.json). Pure.

use serde::Serialize;

use crate::fairness::jain_index;
use crate::report::{Direction, EndReason, FlowReport};

/// Version of the document.
const SCHEMA_VERSION: u32 = 1;

/// All flows of a command.
#[derive(Debug, Serialize)]
pub(crate) struct FlowsSummary {
    schema_version: u32,
    kind: &'static str,
    flows_asked: usize,
    flows: Vec<FlowLine>,
    totals: Vec<Total>,
    start_spread_s: Option<f64>,
}

/// One flow that has a report.
#[derive(Debug, Serialize)]
struct FlowLine {
    flow: usize,
    flow_id: String,
    transport: String,
    direction: Direction,
    offered_rate_mbps: f64,
    goodput_mbps: Option<f64>,
    demand_met_ratio: Option<f64>,
    loss_ratio: Option<f64>,
    sender_cpu_s: f64,
    receiver_cpu_s: Option<f64>,
    end_reason: EndReason,
}

/// All flows of one direction, or of both.
#[derive(Debug, Serialize)]
struct Total {
    direction: &'static str,
    flows: usize,
    offered_rate_mbps: f64,
    goodput_mbps: Option<f64>,
    jain_goodput: Option<f64>,
    jain_demand_met: Option<f64>,
}

impl FlowsSummary {
    /// Of the flows that have a report, each with its number; `asked` is how many there were to be.
    pub(crate) fn of(asked: usize, reports: &[(usize, &FlowReport)]) -> Self {
        let flows: Vec<FlowLine> = reports.iter().map(|(number, report)| line(*number, report)).collect();
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "flows_summary",
            flows_asked: asked,
            totals: totals(&flows),
            flows,
            start_spread_s: start_spread_s(reports),
        }
    }

    /// The same for a person: a line per flow, then the sums.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.flows.iter().map(FlowLine::words).collect();
        lines.extend(self.totals.iter().map(Total::words));
        if self.flows.len() < self.flows_asked {
            lines.push(format!("{} of {} flows have a report", self.flows.len(), self.flows_asked));
        }
        lines
    }
}

impl FlowLine {
    fn words(&self) -> String {
        let direction = if self.direction == Direction::Up { "up" } else { "down" };
        let received = self.goodput_mbps.map_or_else(String::new, |goodput_mbps| {
            let met = self.demand_met_ratio.map_or_else(String::new, |met| format!(" ({:.1} %)", met * 100.0));
            format!(", {goodput_mbps:.4} Mb/s received{met}")
        });
        let lost =
            self.loss_ratio.map_or_else(String::new, |ratio| format!(", {:.2} % lost", 100.0 * ratio));
        format!(
            "[{:>3}] {} {direction}: {} Mb/s offered{received}{lost}",
            self.flow, self.transport, self.offered_rate_mbps
        )
    }
}

impl Total {
    fn words(&self) -> String {
        let received = self
            .goodput_mbps
            .map_or_else(String::new, |goodput_mbps| format!(", {goodput_mbps:.4} Mb/s received"));
        let fairness = match (self.jain_goodput, self.jain_demand_met) {
            (Some(goodput), Some(met)) => {
                format!("; Jain's index {goodput:.4} of goodput, {met:.4} of demand met")
            }
            _ => String::new(),
        };
        let (flows, offered_mbps) = (self.flows, self.offered_rate_mbps);
        format!("[SUM] {}: {flows} flows, {offered_mbps} Mb/s offered{received}{fairness}", self.direction)
    }
}

fn line(flow: usize, report: &FlowReport) -> FlowLine {
    let receiver = report.receiver.as_ref();
    let goodput_mbps = receiver.map(|receiver| receiver.goodput_mbps);
    FlowLine {
        flow,
        flow_id: report.flow_id.clone(),
        transport: report.transport.clone(),
        direction: report.direction,
        offered_rate_mbps: report.offered_rate_mbps,
        goodput_mbps,
        demand_met_ratio: goodput_mbps
            .filter(|_| report.offered_rate_mbps > 0.0)
            .map(|goodput_mbps| goodput_mbps / report.offered_rate_mbps),
        loss_ratio: receiver.and_then(|receiver| receiver.loss_ratio),
        sender_cpu_s: report.sender.cpu.cpu_s,
        receiver_cpu_s: receiver.map(|receiver| receiver.cpu.cpu_s),
        end_reason: report.end_reason,
    }
}

/// Of all flows, and of each direction where there are both.
fn totals(flows: &[FlowLine]) -> Vec<Total> {
    let of = |name, wanted: &[Direction]| {
        let part: Vec<&FlowLine> = flows.iter().filter(|flow| wanted.contains(&flow.direction)).collect();
        (!part.is_empty()).then(|| total(name, &part))
    };
    let (up, down) = (of("up", &[Direction::Up]), of("down", &[Direction::Down]));
    let both = of("both", &[Direction::Up, Direction::Down]).filter(|_| up.is_some() && down.is_some());
    [up, down, both].into_iter().flatten().collect()
}

fn total(direction: &'static str, flows: &[&FlowLine]) -> Total {
    // One flow without a receiver leaves nothing to compare.
    let each = |value: fn(&FlowLine) -> Option<f64>| {
        flows.iter().map(|flow| value(flow)).collect::<Option<Vec<f64>>>()
    };
    let goodput = each(|flow| flow.goodput_mbps);
    Total {
        direction,
        flows: flows.len(),
        offered_rate_mbps: flows.iter().map(|flow| flow.offered_rate_mbps).sum(),
        jain_goodput: goodput.as_deref().and_then(jain_index),
        jain_demand_met: each(|flow| flow.demand_met_ratio).as_deref().and_then(jain_index),
        goodput_mbps: goodput.map(|shares| shares.iter().sum()),
    }
}

/// Time between the first message of the first flow to send and that of the last, s.
fn start_spread_s(reports: &[(usize, &FlowReport)]) -> Option<f64> {
    let starts = reports.iter().filter_map(|(_, report)| {
        let first_ns = report.sender.first_packet_ns?;
        // By the client's clock: with direction down the server's tells it.
        Some(match report.direction {
            Direction::Up => first_ns,
            Direction::Down => first_ns.saturating_sub(report.clock_offset.offset_ns),
        })
    });
    let starts: Vec<i64> = starts.collect();
    let (first_ns, last_ns) = (starts.iter().min()?, starts.iter().max()?);
    Some((last_ns - first_ns) as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    /// A report with what a summary reads, and something of its kind for the rest.
    fn report(transport: &str, direction: &str, offered_mbps: f64, goodput_mbps: Option<f64>) -> FlowReport {
        let cpu = json!({
            "cpu_s": 0.5, "cpu_user_s": 0.25, "cpu_system_s": 0.25, "context_switches_voluntary": 0,
            "context_switches_involuntary": 0, "host_irq_s": null, "host_softirq_s": null, "cycles": null,
            "cycles_per_byte": null, "cycles_scope": null, "cycles_reason": null, "transport_stats": {},
        });
        let with = |more: Value| {
            let mut part = cpu.clone();
            part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            part
        };
        let first_ns = if direction == "up" { 1_000 } else { 9_000 };
        let sender = with(json!({
            "host": "a", "boot_id": "b", "start_ns": 0, "first_packet_ns": first_ns,
            "last_packet_ns": 9_500, "end_ns": 10_000, "messages_scheduled": 10, "messages_sent": 10,
            "messages_not_sent": 0, "bytes_sent": 1000, "goodput_mbps": offered_mbps,
        }));
        let receiver = goodput_mbps.map(|goodput_mbps| {
            with(json!({
                "host": "a", "boot_id": "b", "first_packet_ns": 1_000, "last_packet_ns": 2_000,
                "messages_received_unique": 10, "messages_lost": 0, "messages_duplicate": 0,
                "messages_reordered": 0, "bytes_received_unique": 1000, "goodput_mbps": goodput_mbps,
                "loss_ratio": 0.25, "jitter_ms": null, "one_way_delay_ms": null, "pdv_ms": null,
                "ipdv_ms": null, "loss_bursts": null, "arrival_stamp_source": null,
            }))
        });
        serde_json::from_value(json!({
            "schema_version": 1, "kind": "flow_report", "generator": { "name": "g", "version": "1" },
            "flow_id": "id", "transport": transport, "direction": direction, "ip_version": 4,
            "payload_bytes": 100, "offered_rate_mbps": offered_mbps, "duration_s": 1.0, "interval_s": 0.1,
            "seed": 1, "pacing": { "mode": "absolute", "window_us": 0, "gso": false }, "mtu_bytes": 1500,
            "nodelay": null, "frames_per_message": null, "mean_ip_packet_bytes": null,
            "packetisation_source": "unknown",
            "clock_offset": { "offset_ns": 5_000, "residual_ns": 0, "method": "control_exchange" },
            "sender": sender, "receiver": receiver, "intervals": [], "reconciles": true,
            "end_reason": "duration",
        }))
        .unwrap()
    }

    fn summary(reports: &[FlowReport]) -> (FlowsSummary, Value) {
        let numbered: Vec<_> = (1..).zip(reports).collect();
        let summary = FlowsSummary::of(reports.len(), &numbered);
        let value = serde_json::to_value(&summary).unwrap();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocols/contracts/schemas");
        let text = std::fs::read_to_string(format!("{folder}/flows_summary.schema.json")).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let defects: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(defects.is_empty(), "{defects:?}");
        (summary, value)
    }

    #[test]
    fn unequal_demands_that_are_met_are_unequal_goodputs_and_fair() {
        let (_, value) = summary(&[report("udp", "up", 1.0, Some(1.0)), report("tcp", "up", 3.0, Some(3.0))]);
        let totals = value["totals"].as_array().unwrap();
        assert_eq!(totals.len(), 1, "one direction has one sum");
        assert!((totals[0]["jain_goodput"].as_f64().unwrap() - 0.8).abs() < 1e-12, "{value}");
        assert_eq!(totals[0]["jain_demand_met"], 1.0);
        assert_eq!((&totals[0]["goodput_mbps"], &totals[0]["offered_rate_mbps"]), (&json!(4.0), &json!(4.0)));
    }

    #[test]
    fn both_directions_have_sums_of_their_own_and_one_of_both() {
        let flows = [report("udp", "up", 2.0, Some(2.0)), report("udp", "down", 2.0, Some(0.0))];
        let (summary, value) = summary(&flows);
        let directions: Vec<_> =
            value["totals"].as_array().unwrap().iter().map(|total| total["direction"].clone()).collect();
        assert_eq!(directions, ["up", "down", "both"]);
        assert_eq!(value["totals"][2]["jain_goodput"], 0.5);
        assert_eq!(value["totals"][0]["jain_goodput"], Value::Null, "one flow is not compared");
        // The server's 9 us are the client's 4 us.
        assert!((value["start_spread_s"].as_f64().unwrap() - 3e-6).abs() < 1e-12);
        let first = &summary.lines()[0];
        assert!(first.starts_with("[  1] udp up: 2 Mb/s offered, 2.0000 Mb/s received (100.0 %)"), "{first}");
        assert!(summary.lines()[4].starts_with("[SUM] both: 2 flows"), "{:?}", summary.lines());
    }

    #[test]
    fn flows_without_a_receiver_have_no_index() {
        let (summary, value) = summary(&[report("null", "up", 1.0, None), report("null", "up", 1.0, None)]);
        assert_eq!(value["totals"][0]["goodput_mbps"], Value::Null);
        assert_eq!(value["totals"][0]["jain_goodput"], Value::Null);
        assert_eq!(summary.lines()[2], "[SUM] up: 2 flows, 2 Mb/s offered");
    }

    #[test]
    fn a_flow_that_failed_is_missed() {
        let one = report("udp", "up", 1.0, Some(1.0));
        let summary = FlowsSummary::of(2, &[(2, &one)]);
        assert_eq!(summary.lines().last().unwrap(), "1 of 2 flows have a report");
    }
}
