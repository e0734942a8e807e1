// SPDX-License-Identifier: Apache-2.0
//! Several flows of one command over loopback: side by side, both ways, one report each and one summary.

mod common;

use std::collections::BTreeSet;

use common::{assert_fits, assert_honest, send, terminate, Client, Finished, Server};
use netjoule_traffic::fairness::jain_index;
use serde_json::Value;

/// The reports by their flows' numbers, each held to its contract.
fn reports(finished: &Finished) -> Vec<Value> {
    let mut reports: Vec<Value> =
        finished.events.iter().filter(|event| event["event"] == "report").cloned().collect();
    reports.sort_by_key(|report| report["flow"].as_u64());
    for (place, report) in reports.iter_mut().enumerate() {
        assert_eq!(report["flow"], place + 1);
        report.as_object_mut().unwrap().remove("flow");
        assert_honest(report);
    }
    reports
}

/// The summary, which is the last word.
fn summary(finished: &Finished) -> Value {
    let mut summary = finished.events.last().cloned().unwrap_or_default();
    assert_eq!(summary["event"], "summary", "{}", finished.stderr);
    summary.as_object_mut().unwrap().remove("event");
    assert_fits("flows_summary", &summary);
    summary
}

#[test]
fn transports_run_side_by_side_and_both_ways() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "4"]);
    let to = ["--to", &server.control, "-b", "2M", "-l", "1000", "-t", "1"];
    let finished = send(&[&to[..], &["--transport", "udp,tcp", "--bidir"]].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let reports = reports(&finished);
    let kinds: Vec<_> =
        reports.iter().map(|report| [report["transport"].as_str(), report["direction"].as_str()]).collect();
    let wanted = [("udp", "up"), ("udp", "down"), ("tcp", "up"), ("tcp", "down")];
    assert_eq!(kinds, wanted.map(|(transport, direction)| [Some(transport), Some(direction)]));
    assert_were_on_together(&reports);
    let summary = summary(&finished);
    let goodput: Vec<f64> =
        reports.iter().map(|report| report["receiver"]["goodput_mbps"].as_f64().unwrap()).collect();
    let both = &summary["totals"][2];
    assert_eq!(both["direction"], "both");
    let index = both["jain_goodput"].as_f64().unwrap();
    assert!((index - jain_index(&goodput).unwrap()).abs() < 1e-9, "{summary}");
    let sum: f64 = goodput.iter().sum();
    assert!((both["goodput_mbps"].as_f64().unwrap() - sum).abs() < 1e-9, "{summary}");
    // A flow has a process of its own at the server.
    let processes: BTreeSet<_> = (0..4).map(|_| server.expect("flow_started")["process"].as_u64()).collect();
    assert_eq!(processes.len(), 4);
}

/// On one kernel the times of all reports are of one clock: the last flow began before the first one ended.
fn assert_were_on_together(reports: &[Value]) {
    let ns = |field: &str| -> Vec<i64> {
        reports.iter().map(|report| report["sender"][field].as_i64().unwrap()).collect()
    };
    assert!(ns("start_ns").iter().max() < ns("end_ns").iter().min(), "{reports:?}");
}

#[test]
fn several_of_one_transport_have_seeds_of_their_own() {
    let server = Server::start("127.0.0.1", &["--max-flows", "3"]);
    let finished = send(&["--to", &server.control, "-P", "3", "--seed", "5", "-b", "1M", "-t", "0.3"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let seeds: Vec<_> = reports(&finished).iter().map(|report| report["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [5, 6, 7]);
    assert_eq!(summary(&finished)["totals"].as_array().unwrap().len(), 1);
}

#[test]
fn the_floor_of_several_flows_needs_no_server() {
    let finished = send(&["--transport", "null", "-P", "3", "-b", "1M", "-t", "0.2"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let summary = summary(&finished);
    assert_eq!(summary["flows"].as_array().unwrap().len(), 3);
    assert_eq!(summary["totals"][0]["jain_goodput"], Value::Null);
}

#[test]
fn flows_that_the_server_has_no_room_for_end_all_and_say_what_to_do() {
    let server = Server::start("127.0.0.1", &["--max-flows", "1"]);
    let finished = send(&["--to", &server.control, "-P", "2", "-t", "5"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("serve --max-flows"), "{}", finished.stderr);
    assert!(reports(&finished).is_empty());
    assert_eq!(summary(&finished)["flows_asked"], 2);
}

#[test]
fn held_flows_begin_and_end_together() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut client = Client::start(&["--to", &server.control, "-P", "2", "-t", "0.2", "--hold"]);
    assert_eq!(client.expect("flows_ready")["flows"], 2);
    client.say("go");
    client.expect("report");
    client.expect("report");
    client.say("end");
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(summary(&finished)["flows"].as_array().unwrap().len(), 2);
}

#[test]
fn a_signal_ends_all_flows_with_partial_reports() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut client = Client::start(&["--to", &server.control, "-P", "2", "-b", "1M", "-t", "60"]);
    let mut begun = BTreeSet::new();
    while begun.len() < 2 {
        begun.insert(client.expect("interval")["flow"].as_u64());
    }
    terminate(&client.child);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let reports = reports(&finished);
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|report| report["end_reason"] == "interrupted"), "{reports:?}");
}

#[test]
fn flags_that_make_no_sense_are_refused_once_before_any_flow() {
    let finished = send(&["--transport", "udp,tcp"]);
    assert_eq!(finished.code, 2);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("--to"), "{}", finished.stderr);
}

#[test]
fn a_person_sees_each_flow_by_its_number_and_the_sum() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let output = std::process::Command::new(common::BINARY)
        .args(["send", "--to", &server.control, "-P", "2", "-b", "1M", "-t", "0.2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("[SUM] up: 2 flows, 2 Mb/s offered") && last.contains("Jain's index"), "{text}");
    for number in ["[  1]", "[  2]"] {
        assert!(text.lines().any(|line| line.starts_with(number)), "{text}");
    }
}
