// SPDX-License-Identifier: Apache-2.0
//! Several flows of one command over loopback: side by side, both ways, one report each and one summary.

mod harness;

use std::collections::BTreeSet;
use std::io::Write;

use harness::network::{in_own_network, run, Cable, FAR};
use harness::{
    assert_fits, assert_honest, closed_port, not_run, send, terminate, Client, Finished, Server, TRANSPORTS,
};
use netjoule_traffic::parallel::fairness::jain_index;
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
    // As it comes: a server has room for the flows of one command.
    let mut server = Server::start("127.0.0.1", &[]);
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
    // Fairness is of the time when all were on, as each flow's own report has it.
    let of_flows = |field: &str| -> Vec<f64> {
        summary["flows"].as_array().unwrap().iter().map(|flow| flow[field].as_f64().unwrap()).collect()
    };
    let goodput = of_flows("goodput_together_mbps");
    let own: Vec<f64> =
        reports.iter().map(|report| report["receiver"]["goodput_mbps"].as_f64().unwrap()).collect();
    assert!(of_flows("goodput_mbps").iter().zip(own).all(|(told, own)| (told - own).abs() < 1e-9));
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

/// A cable that carries 5 Mb/s, of which UDP datagrams of 1000 bytes leave 4.8 for payload.
#[test]
fn who_pushes_harder_gets_more_of_a_narrow_cable_and_the_index_says_so() {
    in_own_network("who_pushes_harder_gets_more_of_a_narrow_cable_and_the_index_says_so", || {
        let cable = Cable::new();
        run("tc qdisc add dev near root tbf rate 5mbit burst 8k latency 20ms");
        let server = Server::start_by(cable.far(), FAR, &["--max-flows", "2"]);
        let total = |rate: &str, transports: &str| -> Value {
            let to = ["--to", &server.control, "-b", rate, "-l", "1000", "-t", "2"];
            let finished = send(&[&to[..], &["--transport", transports]].concat());
            assert_eq!(finished.code, 0, "{}", finished.stderr);
            reports(&finished);
            summary(&finished)["totals"][0].clone()
        };
        let of = |total: &Value, field: &str| total[field].as_f64().unwrap();
        // Both have what they ask for.
        let easy = total("1M", "udp,udp");
        assert!(of(&easy, "jain_goodput") > 0.95 && of(&easy, "goodput_mbps") > 1.7, "{easy}");
        // UDP does not yield, and together they cannot have more than there is.
        let hard = total("8M", "udp,tcp");
        assert!(of(&hard, "jain_goodput") < 0.9 && of(&hard, "goodput_mbps") < 5.0, "{hard}");
    });
}

#[test]
fn ends_with_clocks_of_their_own_are_compared_flow_by_flow() {
    let server = Server::start("127.0.0.1", &["--max-flows", "4"]);
    let to = ["--to", &server.control, "-b", "2M", "-l", "1000", "-t", "1", "--clock", "exchange"];
    let finished = send(&[&to[..], &["-P", "2", "--bidir"]].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(reports(&finished).iter().all(|report| report["clock_offset"]["method"] == "control_exchange"));
    let summary = summary(&finished);
    // The clocks are one in truth: flows that began together were on together.
    assert!((0.0..1.0).contains(&summary["together_s"].as_f64().unwrap()), "{summary}");
    assert!(summary["totals"][2]["jain_goodput"].is_number(), "{summary}");
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
fn while_a_command_has_its_flows_nobody_elses_is_let_in() {
    let mut server = Server::start("127.0.0.1", &[]);
    let control = server.control.clone();
    let to = ["--to", &control, "-b", "1M"];
    let mut first = Client::start(&[&to[..], &["-P", "2", "-t", "3"]].concat());
    (0..2).for_each(|_| drop(server.expect("flow_started")));
    first.expect("interval");
    for more in [&["-t", "0.1"][..], &["-P", "2", "-t", "0.1"]] {
        let other = send(&[&to[..], more].concat());
        assert_eq!(other.code, 1, "{}", other.stderr);
        assert!(other.stderr.contains("busy with another flow"), "{}", other.stderr);
    }
    let finished = first.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(reports(&finished).len(), 2);
}

#[test]
fn flows_that_the_server_has_no_room_for_end_all_in_one_sentence_that_says_what_to_do() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "1"]);
    let finished = send(&["--to", &server.control, "-P", "4", "-t", "60"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("serve --max-flows 4"), "{}", finished.stderr);
    assert!(reports(&finished).is_empty());
    assert_eq!(summary(&finished)["flows_asked"], 4);
    // The one that had been let in has left its place.
    server.expect("flow_failed");
    let next = send(&["--to", &server.control, "-b", "1M", "-t", "0.1"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
}

#[test]
fn every_transport_takes_several_flows_both_ways() {
    let server = Server::start("127.0.0.1", &["--max-flows", "4"]);
    // Where the kernel has them; elsewhere `send` says that it has not.
    for transport in TRANSPORTS.iter().chain(&["mptcp", "sctp", "dccp-kernel"]) {
        let to = ["--transport", transport, "--to", &server.control, "-b", "1M", "-l", "1000", "-t", "0.3"];
        let finished = send(&[&to[..], &["-P", "2", "--bidir"]].concat());
        if finished.code == 3 && !TRANSPORTS.contains(transport) {
            continue;
        }
        assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
        let reports = reports(&finished);
        assert_eq!(reports.len(), 4, "{transport}");
        assert!(reports.iter().all(|report| report["transport"] == **transport));
        let summary = summary(&finished);
        let directions: Vec<_> =
            summary["totals"].as_array().unwrap().iter().map(|total| &total["direction"]).collect();
        assert_eq!(directions, ["up", "down", "both"], "{transport}");
        assert_eq!(summary["totals"][2]["flows"], 4);
    }
}

#[test]
fn held_flows_begin_and_end_together() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut client = Client::start(&["--to", &server.control, "-P", "2", "-t", "0.2", "--hold"]);
    assert_eq!(client.expect("flows_ready")["flows"], 2);
    client.say("go");
    client.expect("report");
    client.expect("report");
    // In one piece, "end" behind a line that means nothing.
    client.stdin.as_mut().unwrap().write_all(b"well\nend\n").unwrap();
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(summary(&finished)["flows"].as_array().unwrap().len(), 2);
}

#[test]
fn held_flows_that_nobody_starts_all_end() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    for (line, code, name) in [(Some("run"), 2, "usage"), (None, 1, "interrupted")] {
        let mut client = Client::start(&["--to", &server.control, "-P", "2", "-t", "0.2", "--hold"]);
        client.expect("flows_ready");
        line.iter().for_each(|line| client.say(line));
        if line.is_none() {
            drop(client.stdin.take());
        }
        let finished = client.finish();
        assert_eq!(finished.code, code, "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        let own = finished.events.iter().find(|event| event["event"] == "error" && event["flow"].is_null());
        assert_eq!(own.unwrap()["code"], name);
    }
}

#[test]
fn flows_cannot_share_one_data_port_and_are_told_so() {
    // Other flows' ports are of 127.0.0.1: nobody takes this one meanwhile.
    let free = std::net::UdpSocket::bind("127.0.0.3:0").unwrap().local_addr().unwrap().port().to_string();
    let server = Server::start("127.0.0.3", &["--max-flows", "2", "--data-port", &free]);
    let finished = send(&["--to", &server.control, "-P", "2", "-t", "60"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("or flow has it: serve --data-port"), "{}", finished.stderr);
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
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("partial"), "{}", finished.stderr);
    let reports = reports(&finished);
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|report| report["end_reason"] == "interrupted"), "{reports:?}");
}

#[test]
fn a_server_that_is_stopped_gives_its_half_to_every_flow() {
    let server = Server::start("127.0.0.1", &["--max-flows", "4"]);
    let to = ["--to", &server.control, "-b", "1M", "-t", "60"];
    let mut client = Client::start(&[&to[..], &["--transport", "udp,tcp", "--bidir"]].concat());
    let mut begun = BTreeSet::new();
    while begun.len() < 4 {
        begun.insert(client.expect("started")["flow"].as_u64());
    }
    terminate(&server.child);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("server was stopped"), "{}", finished.stderr);
    let reports = reports(&finished);
    assert_eq!(reports.len(), 4);
    assert!(reports.iter().all(|report| report["end_reason"] == "peer_interrupted"), "{reports:?}");
}

#[test]
fn a_flow_that_breaks_while_it_is_held_ends_the_others() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut client = Client::start(&["--to", &server.control, "-P", "2", "-t", "0.2", "--hold"]);
    client.expect("flows_ready");
    let process = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    harness::signal(process, libc::SIGKILL);
    // Nobody says "go" or "end".
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(reports(&finished).is_empty());
}

#[test]
fn a_flow_that_breaks_on_its_way_takes_no_other_along() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let to = ["--to", &server.control, "-b", "1M", "-t", "1", "--transport", "udp,tcp"];
    let mut client = Client::start(&to);
    let mut begun = BTreeSet::new();
    while begun.len() < 2 {
        begun.insert(client.expect("started")["flow"].as_u64());
    }
    let udp = (0..2).map(|_| server.expect("flow_started")).find(|flow| flow["transport"] == "udp").unwrap();
    harness::signal(udp["process"].as_u64().unwrap() as u32, libc::SIGKILL);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("flow 1 (udp up)"), "{}", finished.stderr);
    let partial = finished.events.iter().find(|event| event["event"] == "partial_report").unwrap();
    assert_eq!(partial["flow"], 1);
    let summary = summary(&finished);
    let left: Vec<_> = summary["flows"].as_array().unwrap().iter().map(|flow| &flow["flow"]).collect();
    assert_eq!((left, &summary["flows_asked"]), (vec![&Value::from(2)], &Value::from(2)));
    assert_eq!(summary["not_compared"], "flow_missing");
}

#[test]
fn a_long_interval_is_named_as_what_keeps_flows_from_being_compared() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let finished = send(&["--to", &server.control, "-P", "2", "-b", "1M", "-t", "0.3", "-i", "10"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let summary = summary(&finished);
    assert_eq!(summary["not_compared"], "interval_too_long");
    assert_eq!(summary["totals"][0]["goodput_mbps"], Value::Null);
}

#[test]
fn a_limit_that_was_not_kept_is_told_with_the_exit_code() {
    let flows = ["--transport", "null", "-P", "2", "-b", "1M", "-t", "0.1"];
    let finished = send(&[&flows[..], &["--pacing-limit", "max_error_us=0"]].concat());
    assert_eq!(finished.code, 4, "{}", finished.stderr);
    assert!(finished.stderr.contains(" (null up): the pacing was not certified: "), "{}", finished.stderr);
}

#[test]
fn a_capture_that_finds_no_room_is_told_with_the_exit_code() {
    let test = "a_capture_that_finds_no_room_is_told_with_the_exit_code";
    in_own_network(test, || fill_up(test));
}

fn fill_up(test: &str) {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let folder = std::env::temp_dir().join(format!("netjoule-full-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["x-1.pcapng", "x-2.pcapng"] {
        std::os::unix::fs::symlink("/dev/full", folder.join(file)).unwrap();
    }
    let to = ["--to", &server.control, "-P", "2", "-b", "4M", "-t", "0.2"];
    let finished = send(&[&to[..], &["--capture", folder.join("x.pcapng").to_str().unwrap()]].concat());
    std::fs::remove_dir_all(&folder).unwrap();
    if finished.code == 3 {
        return not_run(test, &finished.stderr, false);
    }
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(reports(&finished).len(), 2);
    assert!(finished.stderr.contains("x-1.pcapng"), "{}", finished.stderr);
}

#[test]
fn no_flow_outlives_the_command() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut client = Client::start(&["--to", &server.control, "-P", "2", "-b", "1M", "-t", "600"]);
    client.expect("interval");
    harness::signal(client.child.id(), libc::SIGKILL);
    client.finish();
    for _ in 0..2 {
        // A flow may see its pipe end before it is killed, and say so.
        let code = server.expect("flow_failed")["code"].clone();
        assert!(code == "control_lost" || code == "interrupted", "{code}");
    }
    let next = send(&["--to", &server.control, "-P", "2", "-b", "1M", "-t", "0.1"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
}

#[test]
fn who_stops_reading_ends_the_flows() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut command = std::process::Command::new("sh");
    // Once there is an interval both flows are on: they begin together.
    command.args(["-c", "\"$0\" \"$@\" | grep -m 1 interval", harness::BINARY]);
    let client = Client::start_by(command, &["--to", &server.control, "-P", "2", "-b", "1M", "-t", "600"]);
    let finished = client.finish();
    assert!(finished.stderr.contains("stdout was closed"), "{}", finished.stderr);
    for _ in 0..2 {
        // In order: each flow says why. Who was about to write says it of stdout, the other was told to stop.
        let ended = server.expect_any(&["flow_failed", "flow_finished"]);
        let why = if ended["event"] == "flow_failed" { &ended["code"] } else { &ended["end_reason"] };
        assert!(["interrupted", "peer_interrupted"].contains(&why.as_str().unwrap()), "{ended}");
    }
}

#[test]
fn as_many_flows_as_a_command_may_have_fit_one_server() {
    let server = Server::start("127.0.0.1", &["--max-flows", "64"]);
    let files = |process| std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let before = files(server.child.id());
    let finished = send(&["--to", &server.control, "-P", "64", "-b", "64k", "-l", "200", "-t", "0.3"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(reports(&finished).len(), 64);
    assert_eq!(summary(&finished)["totals"][0]["flows"], 64);
    // Flows say goodbye before their processes end. The server opens a timer and a spare file after it has said where it
    // listens. The limit is only for a test that fails.
    let cleared = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        files(server.child.id()) <= before + 2
    });
    assert!(cleared, "descriptors stayed open");
}

#[test]
fn flags_that_make_no_sense_are_refused_once_before_any_flow() {
    for (args, words) in [
        (&["--transport", "udp,tcp"][..], "--to"),
        (&["--transport", "udp,pigeon", "--to", "h"], "pigeon"),
        (&["--transport", "udp,null", "--to", "h", "--bidir"], "--bidir"),
        (&["--transport", "tcp,dccp", "--to", "h", "--ccid", "9"], "ccid is 2 or 3, not 9"),
        (&["-P", "65", "--to", "h"], "64"),
    ] {
        let finished = send(args);
        assert_eq!(finished.code, 2, "{args:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{args:?}: {}", finished.stderr);
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_named_once() {
    let (_silent, closed) = closed_port();
    let finished = send(&["--to", &closed, "-P", "3"]);
    assert_eq!(finished.code, 1);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(&closed), "{}", finished.stderr);
}

#[test]
fn one_flow_is_told_as_ever() {
    let server = Server::start("127.0.0.1", &[]);
    let finished = send(&["--to", &server.control, "-P", "1", "-b", "1M", "-t", "0.1"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_honest(finished.report());
    assert!(finished.events.iter().all(|event| event["flow"].is_null() && event["event"] != "summary"));
}

/// Over loopback where this user may capture; elsewhere the flows are refused with the way out.
#[test]
fn each_flow_is_captured_in_a_file_of_its_own() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let file = |ending: &str| {
        std::env::temp_dir().join(format!("netjoule-several-{}{ending}.pcapng", std::process::id()))
    };
    let path = file("");
    let to = ["--to", &server.control, "-P", "2", "-b", "1M", "-l", "1000", "-t", "0.2"];
    let finished = send(&[&to[..], &["--capture", path.to_str().unwrap()]].concat());
    if finished.code != 0 {
        assert_eq!(finished.code, 3, "{}", finished.stderr);
        assert!(finished.stderr.contains("cannot capture"), "{}", finished.stderr);
        return;
    }
    let reports = reports(&finished);
    let filters: BTreeSet<_> = reports.iter().map(|report| report["capture"]["filter"].as_str()).collect();
    assert_eq!(filters.len(), 2, "each names its own ports");
    for (report, ending) in reports.iter().zip(["-1", "-2"]) {
        assert_eq!(report["capture"]["file"].as_str(), file(ending).to_str());
        assert!(report["capture"]["packets"].as_u64() >= report["sender"]["messages_sent"].as_u64());
        std::fs::remove_file(file(ending)).unwrap();
    }
    assert!(!path.exists());
}

#[test]
fn a_person_sees_each_flow_by_its_number_and_the_sum() {
    let server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let output = std::process::Command::new(harness::BINARY)
        .args(["send", "--to", &server.control, "-P", "2", "-b", "1M", "-t", "0.5", "-i", "0.1"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("together up: 2 flows, 2 Mb/s offered") && last.contains("Jain's index"),
        "{text}"
    );
    for number in ["[  1] ", "[  2] ", "[SUM] "] {
        let of_the_table = format!("{number}    0.00-0.50 ");
        assert!(text.lines().any(|line| line.starts_with(&of_the_table)), "{text}");
    }
}
