// SPDX-License-Identifier: Apache-2.0
//! The pacing menu over loopback: every mode names itself and certifies itself; what a host lacks is said. No test asks how
//! sharp this host is.

mod harness;

use std::process::{Command, Output};

use harness::{assert_honest, send, transports, Server};
use serde_json::Value;

/// 100 messages, a millisecond apart.
const FLOW: [&str; 6] = ["-b", "4M", "-l", "500", "-t", "0.1"];
const MESSAGES: u64 = 100;

fn certificate<'a>(report: &'a Value, mode: &str) -> &'a Value {
    assert_honest(report);
    assert_eq!(report["pacing"]["mode"], mode);
    assert_eq!(report["sender"]["messages_scheduled"], MESSAGES);
    let certificate = &report["pacing_certificate"];
    assert_eq!(certificate["messages_early"], 0, "{certificate}");
    assert_eq!(certificate["error_basis"], "hand_over");
    certificate
}

/// Percentiles rise, shares lie inside each other, and every departure is in them.
fn assert_ordered(certificate: &Value) {
    let number = |name: &str| certificate.pointer(name).unwrap().as_f64().unwrap();
    assert!(number("/error_us/p50") <= number("/error_us/p99"), "{certificate}");
    assert!(number("/error_us/p99") <= number("/error_us/p99_9"), "{certificate}");
    assert!(number("/error_us/p99_9") <= number("/error_us/max"), "{certificate}");
    assert!(number("/within_5us_ratio") <= number("/within_50us_ratio"), "{certificate}");
    assert!(number("/within_50us_ratio") <= number("/within_500us_ratio"), "{certificate}");
    assert!(number("/train_messages/mean") <= number("/train_messages/max"), "{certificate}");
    assert!(number("/cpu_s") > 0.0 && number("/cpu_ratio") > 0.0);
}

#[test]
fn every_mode_names_and_certifies_itself_in_both_directions() {
    let server = Server::start("127.0.0.1", &[]);
    for (mode, spin_us, burst) in [
        ("absolute", Value::Null, Value::Null),
        ("hybrid", 50.into(), Value::Null),
        ("spin", Value::Null, Value::Null),
        ("burst:8", Value::Null, 8.into()),
    ] {
        for reverse in [&[][..], &["-R"]] {
            let args = [&["--to", &server.control, "--pacing", mode], &FLOW[..], reverse].concat();
            let finished = send(&args);
            assert_eq!(finished.code, 0, "{mode}: {}", finished.stderr);
            let report = finished.report();
            assert_eq!((&report["pacing"]["spin_us"], &report["pacing"]["burst"]), (&spin_us, &burst));
            let [wake_ups, naps] = ["wake_ups", "naps"].map(|name| report["pacing"][name].as_u64().unwrap());
            assert_eq!(wake_ups > 0, mode != "spin", "{}", report["pacing"]);
            assert!(naps <= wake_ups && (naps == 0 || mode == "absolute"), "{}", report["pacing"]);
            let certificate = certificate(report, mode);
            assert_ordered(certificate);
            assert_eq!(certificate["departures"], report["sender"]["messages_sent"]);
            assert_eq!(certificate["achieved_ratio"], 1.0);
            assert!(certificate["passed"].is_null() && certificate["limits"].as_object().unwrap().is_empty());
        }
    }
}

#[test]
fn every_transport_and_null_is_certified() {
    let server = Server::start("127.0.0.1", &[]);
    for transport in [&transports()[..], &["null"]].concat() {
        for mode in ["hybrid", "spin", "burst:5"] {
            let to = ["--to", &server.control];
            let to = if transport == "null" { &[][..] } else { &to };
            let finished = send(&[&["--transport", transport, "--pacing", mode], &FLOW[..], to].concat());
            assert_eq!(finished.code, 0, "{transport} {mode}: {}", finished.stderr);
            let certificate = certificate(finished.report(), mode);
            let held_back = certificate["held_back_ratio"].as_f64().unwrap() * MESSAGES as f64;
            let departures = certificate["departures"].as_f64().unwrap();
            assert!((departures + held_back - MESSAGES as f64).abs() < 1e-6, "{transport}: {certificate}");
        }
    }
}

#[test]
fn a_burst_is_a_train_of_its_size() {
    let finished = send(&[&["--transport", "null", "--pacing", "burst:10"], &FLOW[..]].concat());
    let certificate = certificate(finished.report(), "burst:10");
    let train = &certificate["train_messages"];
    assert!(train["mean"].as_f64().unwrap() >= 10.0, "{certificate}");
    assert_eq!(train["max"].as_u64().unwrap() % 10, 0, "{certificate}");
    assert!(certificate["back_to_back_ratio"].as_f64().unwrap() >= 0.9, "{certificate}");
    // The first of ten waits for nine others, a millisecond apart.
    assert!(certificate["error_us"]["max"].as_f64().unwrap() >= 9_000.0, "{certificate}");
}

#[test]
fn neighbours_in_a_window_share_a_wake_up() {
    let args = ["--transport", "null", "--window-us", "10000"];
    let finished = send(&[&args[..], &FLOW].concat());
    let pacing = &finished.report()["pacing"];
    // Ten windows, and a wait for the flow's end.
    assert!((1..=20).contains(&pacing["wake_ups"].as_u64().unwrap()), "{pacing}");
    assert!(pacing["window_lead_us"].as_u64().unwrap() <= 10_000, "{pacing}");
    let certificate = certificate(finished.report(), "absolute");
    assert!(certificate["train_messages"]["mean"].as_f64().unwrap() >= 9.0, "{certificate}");
    assert!(certificate["error_us"]["max"].as_f64().unwrap() >= 10_000.0, "{certificate}");
}

#[test]
fn launch_times_are_kept_by_the_kernel_or_the_host_says_what_it_lacks() {
    let server = Server::start("127.0.0.1", &[]);
    let args = ["--to", &server.control, "--pacing", "so_txtime"];
    for reverse in [&[][..], &["-R"]] {
        let finished = send(&[&args[..], &FLOW, reverse].concat());
        if finished.code == 0 {
            let report = finished.report();
            assert_honest(report);
            let certificate = &report["pacing_certificate"];
            assert_eq!(certificate["error_basis"], "launch_time_measured");
            assert_eq!(
                (&certificate["departures"], &certificate["messages_early"]),
                (&MESSAGES.into(), &0.into())
            );
            assert_eq!(certificate["departures_not_stamped"], 0);
            // Held back by the kernel: nothing arrives before the time in its header, its deadline.
            assert!(report["receiver"]["one_way_delay_ms"]["min"].as_f64().unwrap() >= 0.0);
        } else {
            assert_eq!(finished.code, 3, "{}", finished.stderr);
            assert!(finished.stderr.contains("so_txtime needs fq "), "{}", finished.stderr);
        }
    }
    let null = send(&[&["--transport", "null", "--pacing", "so_txtime"], &FLOW[..]].concat());
    assert_eq!(null.report()["pacing_certificate"]["error_basis"], "launch_time");
}

#[test]
fn what_goes_not_together_is_refused_in_one_sentence() {
    let server = Server::start("127.0.0.1", &[]);
    for (more, word) in [
        (&["--pacing", "so_txtime", "--window-us", "50"][..], "window"),
        (&["--pacing", "so_txtime", "--gso"], "GSO"),
        (&["--pacing", "so_txtime", "--transport", "tcp"], "so_txtime is for udp and null"),
        (&["--pacing", "burst:0"], "burst:N"),
        (&["--pacing-limit", "max_speed=1"], "max_error_p99_us"),
    ] {
        let finished = send(&[&["--to", &server.control], &FLOW[..], more].concat());
        assert_eq!(finished.code, 2, "{more:?}: {}", finished.stderr);
        assert!(
            finished.stderr.contains(word) && finished.stderr.lines().count() == 1,
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_certificate_is_held_to_its_limits_whichever_end_sends() {
    let server = Server::start("127.0.0.1", &[]);
    for (limit, passed) in [("min_achieved_ratio=0.5", true), ("max_error_us=0", false)] {
        for reverse in [&[][..], &["-R"]] {
            let args = ["--to", &server.control, "--pacing-limit", limit];
            let finished = send(&[&args[..], &FLOW, reverse].concat());
            assert_eq!(finished.code, if passed { 0 } else { 4 }, "{}", finished.stderr);
            assert_eq!(
                finished.stderr.contains("not certified: max_error_us"),
                !passed,
                "{}",
                finished.stderr
            );
            let certificate = certificate(finished.report(), "absolute");
            assert_eq!(certificate["passed"], passed, "{certificate}");
            assert_eq!(certificate["failed"].as_array().unwrap().is_empty(), passed);
        }
    }
}

fn selftest(more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .arg("selftest")
        .args(FLOW)
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_selftest_certifies_null_and_loopback_and_its_exit_code_says_so() {
    for (limit, passed, code) in [("min_achieved_ratio=0.5", true, 0), ("max_error_us=0", false, 4)] {
        let output = selftest(&["--json", "--pacing", "hybrid", "--pacing-limit", limit]);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        harness::assert_fits("selftest", &document);
        assert_eq!((&document["passed"], &document["pacing"]["mode"]), (&passed.into(), &"hybrid".into()));
        let transports: Vec<_> =
            document["flows"].as_array().unwrap().iter().map(|flow| &flow["transport"]).collect();
        assert_eq!(transports, ["null", "udp"]);
        for flow in document["flows"].as_array().unwrap() {
            assert_ordered(&flow["pacing_certificate"]);
            assert_eq!(flow["pacing_certificate"]["passed"], passed);
        }
        let people = selftest(&["--pacing-limit", limit]);
        assert_eq!(people.status.code(), Some(code));
        let text = String::from_utf8(people.stdout).unwrap();
        let verdict = text.lines().last().unwrap();
        assert!(verdict.starts_with(if passed { "passed" } else { "failed" }), "{text}");
    }
}

#[test]
fn a_selftest_of_what_this_host_lacks_says_so() {
    let output = selftest(&["--pacing", "so_txtime", "--pacing-limit", "min_achieved_ratio=0.5"]);
    let said = String::from_utf8(output.stderr).unwrap();
    match output.status.code() {
        Some(0) => {}
        Some(3) => assert!(said.contains("so_txtime needs fq "), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
}

#[test]
fn a_sender_that_nothing_keeps_from_its_deadlines_says_so_or_what_the_host_lacks() {
    let args = ["--transport", "null", "-b", "1M", "-t", "0.2", "--realtime"];
    let finished = send(&args);
    if finished.code == 3 {
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        assert!(finished.stderr.contains("--realtime: "), "{}", finished.stderr);
    } else {
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert_honest(finished.report());
        assert_eq!(finished.report()["sender"]["realtime"]["memory_locked"], true);
    }
    assert!(send(&args[..6]).report()["sender"]["realtime"].is_null());
    // Nobody may have it who has neither the privilege nor the limit.
    // SAFETY: no arguments.
    let drop =
        if unsafe { libc::geteuid() } == 0 { "setpriv --bounding-set -sys_nice,-ipc_lock" } else { "" };
    let line = format!("ulimit -r 0; exec {drop} \"$0\" \"$@\"");
    let mut anybody = Command::new("sh");
    anybody.args(["-c", &line, harness::BINARY]);
    let refused = harness::Client::start_by(anybody, &args).finish();
    assert_eq!((refused.code, refused.stderr.lines().count()), (3, 1), "{}", refused.stderr);
    assert!(refused.stderr.contains("SCHED_FIFO is not allowed"), "{}", refused.stderr);
}
