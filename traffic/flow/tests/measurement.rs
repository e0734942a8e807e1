// SPDX-License-Identifier: Apache-2.0
//! What is measured beside the counts: times, their variation, what a flow takes of its host, congestion control.

mod harness;

use harness::network::in_own_network;
use harness::{assert_honest, not_run, send, transports, Server};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn delays_are_on_one_clock_and_stamped_by_the_kernel_in_both_directions() {
    let server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let args =
                ["--transport", transport, "--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.5"];
            let finished = send(&[&args[..], &["--clock", "exchange"], reverse].concat());
            assert_eq!(finished.code, 0, "{transport} {reverse:?}: {}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            let receiver = &report["receiver"];
            let residual_ms = number(&receiver["one_way_delay_ms"]["clock_residual"]);
            // Both ends read one clock here, so nothing arrives before it was sent by more than the offset's error.
            assert!(number(&receiver["one_way_delay_ms"]["min"]) >= -residual_ms, "{transport}: {receiver}");
            assert_eq!(report["clock_offset"]["exchanges"], 16, "{transport}");
            let source = receiver["arrival_stamp_source"].as_str();
            assert!(matches!(source, Some("kernel" | "mixed")), "{transport}: {source:?}");
            assert_variation(receiver);
        }
    }
}

fn assert_variation(receiver: &Value) {
    let unique = receiver["messages_received_unique"].as_u64().unwrap();
    let (lost, bursts) = (receiver["messages_lost"].as_u64().unwrap(), &receiver["loss_bursts"]);
    let mean = number(&bursts["mean_messages"]);
    assert!((mean * number(&bursts["count"]) - lost as f64).abs() < 0.5, "{bursts}");
    let ipdv = &receiver["ipdv_ms"];
    let pairs = ipdv["pairs"].as_u64().unwrap();
    assert!(pairs < unique && pairs + lost + 1 >= unique, "{receiver}");
    if lost == 0 {
        assert_eq!(pairs, unique - 1, "{receiver}");
    }
    assert!(number(&ipdv["min"]) <= number(&ipdv["p50"]) && number(&ipdv["p50"]) <= number(&ipdv["max"]));
    let (delay, pdv) = (&receiver["one_way_delay_ms"], &receiver["pdv_ms"]);
    let spread = number(&delay["max"]) - number(&delay["min"]);
    assert!((number(&pdv["max"]) - spread).abs() < 1e-9, "{receiver}");
}

#[test]
fn intervals_and_ends_say_what_was_taken_of_the_host() {
    let server = Server::start("127.0.0.1", &[]);
    let finished = send(&["--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.5"]);
    let report = finished.report();
    assert_honest(report);
    for end in ["sender", "receiver"] {
        let half = &report[end];
        // A flow that used less than the kernel samples has no split.
        if let (Some(user_s), Some(system_s)) = (half["cpu_user_s"].as_f64(), half["cpu_system_s"].as_f64()) {
            assert!((user_s + system_s - number(&half["cpu_s"])).abs() < 1e-6, "{half}");
        }
        assert!(half["context_switches_voluntary"].as_u64().unwrap() > 0, "{half}");
        assert!(number(&half["host_softirq_s"]) >= 0.0);
        // Whether there is a counter is the machine's affair; then there are cycles, or a reason.
        assert_eq!(half["cycles"].is_null(), half["cycles_reason"].is_string(), "{half}");
        let all = report["intervals"].as_array().unwrap();
        let intervals: Vec<_> = all.iter().filter(|interval| interval["end"] == end).collect();
        let sum = |field: &str| intervals.iter().map(|interval| number(&interval[field])).sum::<f64>();
        assert!(sum("context_switches_voluntary") <= number(&half["context_switches_voluntary"]));
        assert!(sum("cpu_s") <= number(&half["cpu_s"]) + 1e-9);
        for interval in intervals {
            let covered_ns = number(&interval["end_ns"]) - number(&interval["start_ns"]);
            let mbps = number(&interval["bytes"]) * 8e3 / covered_ns;
            assert!((number(&interval["goodput_mbps"]) - mbps).abs() < 1e-5, "{interval}");
        }
    }
}

#[test]
fn congestion_control_is_traced_when_asked_for_and_where_there_is_one() {
    let server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let args =
                ["--transport", transport, "--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.5"];
            let finished = send(&[&args[..], &["--traces"], reverse].concat());
            let report = finished.report();
            assert_honest(report);
            let samples = report["congestion"].as_array().unwrap();
            if transport == "udp" {
                assert!(samples.is_empty());
                continue;
            }
            assert!(samples.len() > 3, "{transport}: {samples:?}");
            let at = |sample: &Value| sample["at_ns"].as_i64().unwrap();
            assert!(samples.windows(2).all(|pair| at(&pair[0]) < at(&pair[1])), "{samples:?}");
            let last = &samples[samples.len() - 1];
            // SCTP's is in whole milliseconds.
            let least_ms = if transport == "sctp" { 0.0 } else { f64::MIN_POSITIVE };
            assert!(number(&last["smoothed_rtt_ms"]) >= least_ms, "{transport}: {last}");
            let has_limit = last["window_bytes"].is_u64() || last["pacing_rate_mbps"].is_number();
            assert!(has_limit, "{transport}: {last}");
            let printed = finished.events.iter().filter(|event| event["event"] == "congestion").count();
            assert_eq!(printed, if reverse.is_empty() { samples.len() } else { 0 });
        }
    }
    let finished = send(&["--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.1"]);
    assert!(finished.report()["congestion"].is_null());
}

#[test]
fn messages_are_stamped_on_their_way_out_when_asked() {
    let server = Server::start("127.0.0.1", &[]);
    let args = ["--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.5"];
    for reverse in [&[][..], &["-R"]] {
        let finished = send(&[&args[..], &["--tx-timestamps"], reverse].concat());
        let report = finished.report();
        assert_honest(report);
        let (sender, delay) = (&report["sender"], &report["sender"]["departure_delay_us"]);
        assert_eq!(delay["stamped"], sender["messages_sent"], "{sender}");
        assert!(number(&delay["min"]) >= 0.0 && number(&delay["min"]) <= number(&delay["max"]));
        assert_eq!(report["transport_options"]["tx_timestamps"], true);
    }
    assert!(send(&args).report()["sender"]["departure_delay_us"].is_null());
    assert_eq!(send(&[&args[..], &["--transport", "tcp", "--tx-timestamps"]].concat()).code, 2);
}

#[test]
fn a_flow_is_captured_on_request_and_nothing_else() {
    let test = "a_flow_is_captured_on_request_and_nothing_else";
    // There its user may capture, whoever that is outside.
    in_own_network(test, || {
        if may_capture(test) {
            capture_flows();
        }
    });
}

/// Whether this host can capture at all. If not, a flow is refused with the way out, before anything is sent.
fn may_capture(test: &str) -> bool {
    let server = Server::start("127.0.0.1", &[]);
    let finished = send(&["--to", &server.control, "-b", "1M", "-t", "0.1", "--capture", "/dev/null"]);
    if finished.code != 0 {
        assert_eq!(finished.code, 3, "{}", finished.stderr);
        assert!(finished.stderr.contains("cannot capture"), "{}", finished.stderr);
        not_run(test, &finished.stderr, true);
    }
    finished.code == 0
}

#[test]
fn a_capture_that_finds_no_room_costs_the_report_nothing() {
    let test = "a_capture_that_finds_no_room_costs_the_report_nothing";
    in_own_network(test, || {
        if !may_capture(test) {
            return;
        }
        let server = Server::start("127.0.0.1", &[]);
        for reverse in [&[][..], &["-R"]] {
            let args =
                ["--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.2", "--capture", "/dev/full"];
            let finished = send(&[&args[..], reverse].concat());
            // What was asked for is not there; all the rest is.
            assert_eq!(finished.code, 1, "{}", finished.stderr);
            assert!(finished.stderr.contains("the capture /dev/full is not whole"), "{}", finished.stderr);
            assert_honest(finished.report());
            let failure = finished.report()["capture"]["failure"].as_str().unwrap();
            assert!(finished.stderr.contains(failure), "{failure}");
        }
    });
}

fn capture_flows() {
    let server = Server::start("127.0.0.1", &[]);
    let file = std::env::temp_dir().join(format!("netjoule-measurement-{}.pcapng", std::process::id()));
    let path = file.to_str().unwrap();
    for transport in transports() {
        let args = ["--transport", transport, "--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.2"];
        let finished = send(&[&args[..], &["--capture", path, "--capture-headers"]].concat());
        assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
        assert_honest(finished.report());
        let capture = &finished.report()["capture"];
        assert_eq!((&capture["interface"], &capture["headers_only"]), (&"lo".into(), &true.into()));
        let sent = finished.report()["sender"]["messages_sent"].as_u64().unwrap();
        let packets = capture["packets"].as_u64().unwrap();
        // A stream may put many messages into one packet.
        let is_stream = matches!(transport, "tcp" | "quic" | "sctp");
        assert!(packets >= if is_stream { 10 } else { sent }, "{transport}: {capture}");
        let frames = captured_frames(&file);
        assert_eq!(frames.len() as u64, packets, "{transport}");
        assert!(frames.iter().all(|bytes| *bytes <= 14 + 20 + 60), "{transport}: payload was kept");
    }
    let _ = std::fs::remove_file(&file);
}

fn captured_frames(path: &std::path::Path) -> Vec<usize> {
    let mut frames = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    netjoule_measure::capture::frames::for_each_frame(file, |frame| {
        frames.push(frame.bytes.len());
        true
    })
    .unwrap();
    frames
}
