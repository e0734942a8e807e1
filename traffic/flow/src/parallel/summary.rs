// SPDX-License-Identifier: Apache-2.0
//! What several flows came to together (protocols/contracts/schemas/flows_summary.schema.json). Pure.

use serde::Serialize;

use crate::parallel::common_window::{self, Finished};
use crate::parallel::fairness::jain_index;
use crate::report::{offered, Direction, EndReason};

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
    not_compared: Option<NotCompared>,
    together_s: Option<f64>,
    start_spread_s: Option<f64>,
    /// Length of the receivers' intervals, s.
    #[serde(skip)]
    interval_s: f64,
}

/// Why what the flows got is neither added up nor compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum NotCompared {
    /// One has no report: who got nothing would not be counted.
    FlowMissing,
    /// One has no receiving end.
    NoReceiver,
    /// There was no time when all were on.
    NeverTogether,
    /// That time holds no whole interval of one's receiving end.
    IntervalTooLong,
}

/// One flow that has a report.
#[derive(Debug, Serialize)]
struct FlowLine {
    flow: usize,
    flow_id: String,
    transport: String,
    direction: Direction,
    offered_rate_mbps: Option<f64>,
    goodput_mbps: Option<f64>,
    goodput_together_mbps: Option<f64>,
    demand_met_ratio: Option<f64>,
    loss_ratio: Option<f64>,
    sender_cpu_s: f64,
    receiver_cpu_s: Option<f64>,
    end_reason: EndReason,
}

/// All flows of one direction, or of both, by what they got while all of them were on.
#[derive(Debug, Serialize)]
struct Total {
    direction: &'static str,
    flows: usize,
    offered_rate_mbps: Option<f64>,
    goodput_mbps: Option<f64>,
    jain_goodput: Option<f64>,
    jain_demand_met: Option<f64>,
}

impl FlowsSummary {
    /// Of the flows that have a report, each with its number; `asked` is how many there were to be.
    pub(crate) fn of(asked: usize, reports: &[(usize, &Finished)]) -> Self {
        let window_ns = common_window::window_ns(reports.iter().map(|(_, flow)| *flow));
        let flows: Vec<FlowLine> =
            reports.iter().map(|(number, flow)| line(*number, flow, window_ns)).collect();
        let not_compared = not_compared(asked, &flows, window_ns.is_some());
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "flows_summary",
            flows_asked: asked,
            totals: totals(&flows, not_compared.is_none()),
            not_compared,
            flows,
            together_s: window_ns.map(|(from_ns, to_ns)| (to_ns - from_ns) as f64 * 1e-9),
            start_spread_s: start_spread_s(reports),
            interval_s: reports.iter().map(|(_, flow)| flow.report.interval_s).fold(0.0, f64::max),
        }
    }

    /// The same for a person: a line per flow, then the sums, and why there are none where that is so.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.flows.iter().map(FlowLine::words).collect();
        lines.extend(self.totals.iter().map(Total::words));
        lines.extend(
            self.not_compared
                .map(|why| format!("no fairness index and no goodput together: {}", self.words(why))),
        );
        lines
    }

    fn words(&self, why: NotCompared) -> String {
        match why {
            NotCompared::FlowMissing => {
                format!("{} of {} flows have a report", self.flows.len(), self.flows_asked)
            }
            NotCompared::NoReceiver => "a flow has no receiving end".into(),
            NotCompared::NeverTogether => "there was no time when all flows were on".into(),
            NotCompared::IntervalTooLong => format!(
                "no whole interval of {} s lies in the {:.3} s when all flows were on; use a shorter -i",
                self.interval_s,
                self.together_s.unwrap_or(0.0)
            ),
        }
    }
}

impl FlowLine {
    fn demand_met_together(&self) -> Option<f64> {
        let offered_mbps = self.offered_rate_mbps.filter(|mbps| *mbps > 0.0)?;
        Some(self.goodput_together_mbps? / offered_mbps)
    }

    fn words(&self) -> String {
        let direction = if self.direction == Direction::Up { "up" } else { "down" };
        let received = self.goodput_mbps.map_or_else(String::new, |goodput_mbps| {
            let met =
                self.demand_met_ratio.map_or_else(String::new, |met| format!(" ({:.1} %)", met * 100.0));
            format!(", {goodput_mbps:.4} Mb/s received{met}")
        });
        let lost = self.loss_ratio.map_or_else(String::new, |ratio| format!(", {:.2} % lost", 100.0 * ratio));
        format!(
            "[{:>3}] {} {direction}: {}{received}{lost}",
            self.flow,
            self.transport,
            offered(self.offered_rate_mbps)
        )
    }
}

impl Total {
    fn words(&self) -> String {
        let received = self
            .goodput_mbps
            .map_or_else(String::new, |goodput_mbps| format!(", {goodput_mbps:.4} Mb/s received together"));
        let fairness = match (self.jain_goodput, self.jain_demand_met) {
            (Some(goodput), Some(met)) => {
                format!("; Jain's index {goodput:.4} of goodput, {met:.4} of demand met")
            }
            _ => String::new(),
        };
        let offered = offered(self.offered_rate_mbps);
        format!("together {}: {} flows, {offered}{received}{fairness}", self.direction, self.flows)
    }
}

fn line(flow: usize, finished: &Finished, window_ns: Option<(i64, i64)>) -> FlowLine {
    let report = &finished.report;
    let receiver = report.receiver.as_ref();
    let goodput_mbps = receiver.map(|receiver| receiver.goodput_mbps);
    FlowLine {
        flow,
        flow_id: report.flow_id.clone(),
        transport: report.transport.clone(),
        direction: report.direction,
        offered_rate_mbps: report.offered_rate_mbps,
        goodput_mbps,
        goodput_together_mbps: window_ns.and_then(|window_ns| finished.goodput_mbps(window_ns)),
        demand_met_ratio: goodput_mbps
            .zip(report.offered_rate_mbps.filter(|mbps| *mbps > 0.0))
            .map(|(goodput_mbps, offered_mbps)| goodput_mbps / offered_mbps),
        loss_ratio: receiver.and_then(|receiver| receiver.loss_ratio),
        sender_cpu_s: report.sender.cpu.used.cpu_s,
        receiver_cpu_s: receiver.map(|receiver| receiver.cpu.used.cpu_s),
        end_reason: report.end_reason,
    }
}

/// Why flows are not compared of which `asked` were to be; `together`: there was a time when all were on.
fn not_compared(asked: usize, flows: &[FlowLine], together: bool) -> Option<NotCompared> {
    if flows.len() < asked {
        Some(NotCompared::FlowMissing)
    } else if flows.iter().any(|flow| flow.goodput_mbps.is_none()) {
        Some(NotCompared::NoReceiver)
    } else if !together {
        Some(NotCompared::NeverTogether)
    } else {
        let is_missing = flows.iter().any(|flow| flow.goodput_together_mbps.is_none());
        is_missing.then_some(NotCompared::IntervalTooLong)
    }
}

/// Of all flows, and of each direction where there are both.
fn totals(flows: &[FlowLine], compared: bool) -> Vec<Total> {
    let of = |name, wanted: &[Direction]| {
        let part: Vec<&FlowLine> = flows.iter().filter(|flow| wanted.contains(&flow.direction)).collect();
        (!part.is_empty()).then(|| total(name, &part, compared))
    };
    let (up, down) = (of("up", &[Direction::Up]), of("down", &[Direction::Down]));
    let both = of("both", &[Direction::Up, Direction::Down]).filter(|_| up.is_some() && down.is_some());
    [up, down, both].into_iter().flatten().collect()
}

fn total(direction: &'static str, flows: &[&FlowLine], compared: bool) -> Total {
    let each = |value: fn(&FlowLine) -> Option<f64>| {
        let values = flows.iter().map(|flow| value(flow)).collect::<Option<Vec<f64>>>();
        values.filter(|_| compared)
    };
    let goodput = each(|flow| flow.goodput_together_mbps);
    Total {
        direction,
        flows: flows.len(),
        offered_rate_mbps: offered_mbps(flows),
        jain_goodput: goodput.as_deref().and_then(jain_index),
        jain_demand_met: each(FlowLine::demand_met_together).as_deref().and_then(jain_index),
        goodput_mbps: goodput.map(|shares| shares.iter().sum()),
    }
}

/// Offered loads are whole bit/s, and so is their sum: not 0.30000000000000004 Mb/s. None where one is as fast as possible.
fn offered_mbps(flows: &[&FlowLine]) -> Option<f64> {
    let bps: Option<f64> = flows.iter().map(|flow| Some((flow.offered_rate_mbps? * 1e6).round())).sum();
    Some(bps? / 1e6)
}

/// Time between the first message of the first flow to send and that of the last, s.
fn start_spread_s(reports: &[(usize, &Finished)]) -> Option<f64> {
    let starts = reports
        .iter()
        .filter_map(|(_, flow)| flow.report.sender.first_packet_ns.map(|ns| flow.sent_at_ns(ns)));
    let starts: Vec<i64> = starts.collect();
    let (first_ns, last_ns) = (starts.iter().min()?, starts.iter().max()?);
    Some((last_ns - first_ns) as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    /// A flow of a second with what a summary reads, and something of its kind for the rest. Its goodput is that of its one
    /// interval of half a second while all were on, and a quarter of that came later.
    fn report(transport: &str, direction: &str, offered_mbps: f64, goodput_mbps: Option<f64>) -> Finished {
        from_interval(transport, direction, offered_mbps, goodput_mbps, 500_000_000)
    }

    /// The same with that interval beginning at `start_ns` of the receiver's clock.
    fn from_interval(
        transport: &str,
        direction: &str,
        offered_mbps: f64,
        goodput_mbps: Option<f64>,
        start_ns: i64,
    ) -> Finished {
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
            "last_packet_ns": 9_500, "end_ns": 1_020_000_000, "messages_scheduled": 10, "messages_sent": 10,
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
            "payload_bytes": 100, "offered_rate_mbps": offered_mbps, "duration_s": 1.01, "interval_s": 0.5,
            "seed": 1, "pacing": { "mode": "absolute", "window_us": 0, "gso": false }, "mtu_bytes": 1500,
            "nodelay": null, "frames_per_message": null, "mean_ip_packet_bytes": null,
            "packetisation_source": "unknown",
            "clock_offset": { "offset_ns": 5_000, "residual_ns": 0, "method": "control_exchange" },
            "sender": sender, "receiver": receiver, "reconciles": true, "end_reason": "duration",
            "intervals": goodput_mbps.map_or_else(Vec::new, |goodput_mbps| {
                let bytes = (goodput_mbps * 1e6 / 16.0) as u64;
                vec![interval(start_ns, bytes), interval(start_ns + 500_000_000, bytes / 4)]
            }),
        }))
        .map(Finished::of)
        .unwrap()
    }

    fn interval(start_ns: i64, bytes: u64) -> Value {
        json!({
            "end": "receiver", "start_ns": start_ns, "end_ns": start_ns + 500_000_000, "messages": 1,
            "bytes": bytes, "messages_lost": 0, "messages_duplicate": 0, "messages_reordered": 0,
            "jitter_ms": null, "goodput_mbps": 0.0, "cpu_s": 0.0, "cpu_user_s": 0.0, "cpu_system_s": 0.0,
            "context_switches_voluntary": 0, "context_switches_involuntary": 0, "host_irq_s": null,
            "host_softirq_s": null,
        })
    }

    fn summary(reports: &[Finished]) -> (FlowsSummary, Value) {
        let numbered: Vec<_> = (1..).zip(reports).collect();
        summary_of(reports.len(), &numbered)
    }

    fn summary_of(asked: usize, reports: &[(usize, &Finished)]) -> (FlowsSummary, Value) {
        let summary = FlowsSummary::of(asked, reports);
        let value = serde_json::to_value(&summary).unwrap();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/schemas");
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
    fn what_came_after_the_others_had_ended_is_not_compared() {
        // 2 Mb/s while both were on, but all of it was told over a longer time.
        let mut late = report("tcp", "up", 4.0, Some(2.0));
        late.report.receiver.as_mut().unwrap().goodput_mbps = 3.0;
        let (_, value) = summary(&[report("udp", "up", 2.0, Some(2.0)), late]);
        assert_eq!(value["flows"][1]["goodput_mbps"], 3.0, "its own");
        assert_eq!(value["totals"][0]["goodput_mbps"], 4.0);
        assert_eq!(
            (&value["totals"][0]["jain_goodput"], &value["not_compared"]),
            (&json!(1.0), &Value::Null)
        );
        assert!((value["together_s"].as_f64().unwrap() - 1.01).abs() < 1e-9, "{value}");
    }

    #[test]
    fn flows_that_were_never_on_together_have_no_index() {
        let mut later = report("udp", "up", 1.0, Some(1.0));
        later.report.sender.start_ns = 1_010_000_000;
        later.report.sender.end_ns = 2_020_000_000;
        let (summary, value) = summary(&[report("udp", "up", 1.0, Some(1.0)), later]);
        assert_eq!((&value["together_s"], &value["totals"][0]["jain_goodput"]), (&Value::Null, &Value::Null));
        assert_eq!(value["not_compared"], "never_together");
        assert_eq!(summary.lines()[2], "together up: 2 flows, 2 Mb/s offered");
    }

    #[test]
    fn clocks_that_differ_have_intervals_that_differ() {
        // The server is 250 ms ahead: the second half of the flow's second there begins 250 ms earlier here.
        let mut up = from_interval("udp", "up", 1.0, Some(1.0), 500_000_000);
        up.report.clock_offset.offset_ns = 250_000_000;
        assert_eq!(up.goodput_mbps((100_000_000, 1_000_000_000)), Some(1.0));
        assert_eq!(up.goodput_mbps((300_000_000, 700_000_000)), None, "no whole interval");
        let down = from_interval("udp", "down", 1.0, Some(1.0), 500_000_000);
        assert_eq!(down.goodput_mbps((500_000_000, 1_000_000_000)), Some(1.0));
    }

    #[test]
    fn offered_loads_add_up_to_what_a_person_expects() {
        let (summary, value) = summary(&[report("udp", "up", 0.1, None), report("tcp", "up", 0.2, None)]);
        assert_eq!(value["totals"][0]["offered_rate_mbps"], 0.3);
        assert!(summary.lines()[2].contains(" 0.3 Mb/s offered"), "{:?}", summary.lines());
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
        assert!(summary.lines()[4].starts_with("together both: 2 flows"), "{:?}", summary.lines());
    }

    #[test]
    fn flows_without_a_receiver_have_no_index() {
        let (summary, value) = summary(&[report("null", "up", 1.0, None), report("null", "up", 1.0, None)]);
        assert_eq!(value["totals"][0]["goodput_mbps"], Value::Null);
        assert_eq!(value["totals"][0]["jain_goodput"], Value::Null);
        assert_eq!(value["not_compared"], "no_receiver");
        assert_eq!(summary.lines()[2], "together up: 2 flows, 2 Mb/s offered");
    }

    #[test]
    fn those_that_are_left_when_one_has_failed_are_not_called_fair() {
        let (one, other) = (report("udp", "up", 1.0, Some(1.0)), report("udp", "up", 1.0, Some(1.0)));
        let (summary, value) = summary_of(3, &[(1, &one), (3, &other)]);
        let total = &value["totals"][0];
        assert_eq!(
            [&total["goodput_mbps"], &total["jain_goodput"], &total["jain_demand_met"]],
            [&Value::Null; 3]
        );
        assert_eq!(value["not_compared"], "flow_missing");
        assert_eq!(
            summary.lines().last().unwrap(),
            "no fairness index and no goodput together: 2 of 3 flows have a report"
        );
    }

    #[test]
    fn where_no_whole_interval_is_shared_the_reason_is_told() {
        let mut flows = [900_000_000, 950_000_000].map(|ns| from_interval("udp", "up", 1.0, Some(1.0), ns));
        flows.iter_mut().for_each(|flow| flow.report.interval_s = 10.0);
        let (summary, value) = summary(&flows);
        assert_eq!(value["not_compared"], "interval_too_long");
        let last = "no fairness index and no goodput together: no whole interval of 10 s lies in the 1.010 s when all flows were on; use a shorter -i";
        assert_eq!(summary.lines().last().unwrap(), last);
    }
}
