// SPDX-License-Identifier: Apache-2.0
//! Real flows over loopback: every transport, both directions, both IP versions.

mod harness;

use harness::{assert_honest, has_ipv6, send, transports, Server};
use netjoule_traffic::schedule::Schedule;
use serde_json::Value;

fn run_everything(bind: &str, ip_version: u64) {
    let server = Server::start(bind, &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let args =
                ["--transport", transport, "--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.3"];
            let finished = send(&[&args[..], reverse].concat());
            assert_eq!(finished.code, 0, "{transport} {reverse:?}: {}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            assert_eq!(report["ip_version"], ip_version);
            assert_eq!(report["direction"], if reverse.is_empty() { "up" } else { "down" });
            assert_eq!(report["sender"]["messages_scheduled"], 150);
            assert_streams_lose_nothing(report);
            assert_never_early(report);
            assert_every_interval_was_an_event(&finished.events);
        }
    }
}

fn assert_streams_lose_nothing(report: &Value) {
    let is_stream = report["transport"] == "tcp" || report["transport"] == "quic";
    if is_stream {
        assert_eq!(report["receiver"]["messages_lost"], 0);
        assert_eq!(report["nodelay"], true);
    } else {
        assert!(report["nodelay"].is_null());
    }
    assert!(report["receiver"]["messages_received_unique"].as_u64().unwrap() > 0);
    assert!(report["receiver"]["one_way_delay_ms"]["min"].as_f64().unwrap() >= 0.0);
}

fn assert_never_early(report: &Value) {
    let sender = &report["sender"];
    let schedule = Schedule::new(4_000_000, 1000, 300_000_000);
    let last = sender["messages_sent"].as_u64().unwrap() - 1;
    let elapsed_ns = sender["last_packet_ns"].as_i64().unwrap() - sender["start_ns"].as_i64().unwrap();
    assert!(elapsed_ns >= schedule.due_ns(last), "{sender}");
}

fn assert_every_interval_was_an_event(events: &[Value]) {
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names.last()), ("ready", Some(&"report")));
    assert_eq!(names.iter().filter(|name| **name == "started").count(), 1);
    let printed = names.iter().filter(|name| **name == "interval").count();
    assert_eq!(printed, events.last().unwrap()["intervals"].as_array().unwrap().len());
}

#[test]
fn every_transport_both_ways_over_ipv4() {
    run_everything("127.0.0.1", 4);
}

#[test]
fn every_transport_both_ways_over_ipv6() {
    if has_ipv6() {
        run_everything("::1", 6);
    }
}

#[test]
fn a_server_on_every_address_serves_the_one_that_was_called() {
    let server = Server::start("0.0.0.0", &[]);
    let (_, port) = server.control.rsplit_once(':').unwrap();
    for transport in ["udp", "tcp"] {
        let to = format!("127.0.0.1:{port}");
        let finished = send(&["--transport", transport, "--to", &to, "-b", "1M", "-l", "500", "-t", "0.1"]);
        assert_honest(finished.report());
    }
}

#[test]
fn control_may_run_over_another_address_than_the_data() {
    let server = Server::start("127.0.0.2", &["--control-bind", "127.0.0.1"]);
    let args = ["--to", "127.0.0.2", "--control", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"];
    for transport in transports() {
        let finished = send(&[&args[..], &["--transport", transport]].concat());
        assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
        assert_honest(finished.report());
    }
}

#[test]
fn a_window_and_trains_keep_the_books() {
    let server = Server::start("127.0.0.1", &[]);
    let args = ["--to", &server.control, "-b", "20M", "-l", "64", "-t", "0.3", "--window-us", "500"];
    for more in [&[][..], &["--gso"]] {
        let finished = send(&[&args[..], more].concat());
        assert_honest(finished.report());
        assert_eq!(finished.report()["pacing"]["window_us"], 500);
    }
}

#[test]
fn a_stream_that_is_too_slow_leaves_messages_unsent_and_says_so() {
    let server = Server::start("127.0.0.1", &["--max-rate", "100G"]);
    let args =
        ["--transport", "tcp", "--to", &server.control, "-b", "90G", "-l", "1440", "-t", "0.2", "-i", "0.05"];
    let finished = send(&args);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_honest(finished.report());
    let sender = &finished.report()["sender"];
    assert!(sender["messages_not_sent"].as_u64().unwrap() > 0);
    assert_eq!(finished.report()["receiver"]["messages_lost"], 0);
    // It kept sending whenever there was room, to the very end.
    let ns = |field: &str| sender[field].as_i64().unwrap();
    assert!(ns("last_packet_ns") - ns("start_ns") > 200_000_000, "{sender}");
}

#[test]
fn null_needs_no_server_and_has_no_receiver() {
    let finished = send(&["--transport", "null", "-b", "1M", "-l", "125", "-t", "0.2"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let report = finished.report();
    assert_honest(report);
    assert!(report["receiver"].is_null() && report["ip_version"].is_null());
    assert_eq!(report["sender"]["messages_scheduled"], 200);
    assert_eq!(report["sender"]["transport_stats"]["messages_dropped"], report["sender"]["messages_sent"]);
}

#[test]
fn a_measured_clock_offset_is_right_within_its_residual() {
    let server = Server::start("127.0.0.1", &[]);
    for reverse in [&[][..], &["-R"]] {
        let args = ["--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1", "--clock", "exchange"];
        let finished = send(&[&args[..], reverse].concat());
        assert_honest(finished.report());
        let offset = &finished.report()["clock_offset"];
        assert_eq!(offset["method"], "control_exchange");
        // Both ends read one clock here, so the offset itself is the error.
        let (error_ns, residual_ns) =
            (offset["offset_ns"].as_i64().unwrap(), offset["residual_ns"].as_i64().unwrap());
        assert!(error_ns.abs() <= residual_ns, "{offset}");
    }
}

fn plain(args: &[&str]) -> String {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_netjoule-traffic")).args(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn people_get_plain_lines() {
    let server = Server::start("127.0.0.1", &[]);
    let text = plain(&["send", "--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"]);
    assert!(text.contains("of 25 messages sent") && text.contains("one-way delay"), "{text}");
    assert!(!text.contains("held back"), "{text}");
}

#[test]
fn people_get_one_table_with_both_ends_in_a_line_and_a_sum() {
    let server = Server::start("127.0.0.1", &[]);
    let port = server.control.rsplit_once(':').unwrap().1;
    for way in [&["-u"][..], &["-u", "-R"], &["-b", "8M"], &["-b", "8M", "-R"]] {
        let args = ["-c", "127.0.0.1", "-p", port, "-t", "0.5", "-i", "0.2", "-l", "1000", "-b", "8M"];
        let args = if way.contains(&"-b") { &args[..10] } else { &args[..] };
        let text = plain(&[args, way].concat());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with('['))
            .map(|line| line.split_whitespace().skip_while(|word| !word.ends_with(']')).skip(1).collect())
            .collect();
        assert!(rows[0].contains(&"to"), "{text}");
        let times: Vec<&str> = rows[2..].iter().map(|row| row[0]).collect();
        assert_eq!(times, ["0.00-0.20", "0.20-0.40", "0.40-0.50", "0.00-0.50"], "{way:?}: {text}");
        for row in &rows[2..] {
            // Bytes and rate of both ends, lost and all.
            let [sent, received]: [f64; 2] = [row[3], row[7]].map(|mbps| mbps.parse().unwrap());
            assert!((6.0..10.0).contains(&sent) && (6.0..10.0).contains(&received), "{way:?}: {text}");
            assert_eq!((row[4], row[8], row.last()), ("Mb/s", "Mb/s", Some(&"%)")), "{way:?}: {text}");
        }
        assert!(text.lines().any(|line| line.starts_with("[SUM] ")), "{text}");
    }
}

#[test]
fn as_fast_as_possible_is_what_streams_do_and_what_zero_means() {
    let server = Server::start("127.0.0.1", &[]);
    for (transport, more) in
        [("tcp", &[][..]), ("tcp", &["-R"]), ("quic", &[]), ("udp", &["-b", "0"]), ("dccp", &["-b", "0"])]
    {
        let args = ["--transport", transport, "--to", &server.control, "-t", "0.3"];
        let finished = send(&[&args[..], more].concat());
        assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
        let report = finished.report();
        assert_honest(report);
        assert_eq!(
            (&report["offered_rate_mbps"], &report["pacing_certificate"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(report["payload_bytes"], if report["nodelay"].is_null() { 1_440 } else { 131_072 });
        assert!(report["receiver"]["goodput_mbps"].as_f64().unwrap() > 20.0, "{transport}: {report}");
        assert_eq!(report["sender"]["messages_not_sent"], 0);
    }
    let capped = Server::start("127.0.0.1", &["--max-rate", "1G"]);
    let finished = send(&["--to", &capped.control, "-b", "0", "-t", "0.1"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("as fast as possible") && finished.stderr.contains("--max-rate"));
}

#[test]
fn bytes_and_messages_end_a_flow() {
    let server = Server::start("127.0.0.1", &[]);
    for (more, messages) in [
        (&["--transport", "tcp", "-n", "1M"][..], 8),
        (&["--transport", "tcp", "-k", "20", "-R"], 20),
        (&["-k", "30", "-b", "8M", "-l", "1000"], 30),
        (&["-n", "10K", "-b", "8M", "-l", "1000"], 11),
    ] {
        let finished = send(&[&["--to", &server.control], more].concat());
        assert_eq!(finished.code, 0, "{more:?}: {}", finished.stderr);
        let report = finished.report();
        assert_honest(report);
        assert_eq!(
            (&report["sender"]["messages_sent"], &report["end_reason"]),
            (&messages.into(), &"duration".into())
        );
        assert!(report["duration_s"].as_f64().unwrap() < 5.0, "{more:?}: {report}");
    }
}

#[test]
fn the_first_seconds_may_be_left_out_of_the_sums() {
    let server = Server::start("127.0.0.1", &[]);
    for way in [&[][..], &["-R"]] {
        let args = ["--to", &server.control, "-b", "8M", "-l", "1000", "-t", "0.4", "-O", "0.2"];
        let finished = send(&[&args[..], way].concat());
        let report = finished.report();
        assert_honest(report);
        assert_eq!(report["sender"]["messages_scheduled"], 600);
        for end in ["sender", "receiver"] {
            let all = report["intervals"].as_array().unwrap();
            let intervals = all.iter().filter(|interval| interval["end"] == end);
            let (omitted, rest): (Vec<_>, Vec<_>) =
                intervals.partition(|interval| interval["omitted"] == true);
            assert_eq!(omitted.len(), 2, "{report}");
            let bytes: u64 = rest.iter().map(|interval| interval["bytes"].as_u64().unwrap()).sum();
            let sum = &report["sums"][end];
            assert_eq!(sum["bytes"], bytes);
            let mbps = sum["goodput_mbps"].as_f64().unwrap();
            assert!((6.5..9.5).contains(&mbps), "{end}: {sum}");
        }
    }
}

#[test]
fn people_are_told_what_the_transport_held_back() {
    let server = Server::start("127.0.0.1", &["--max-rate", "100G"]);
    let args = ["--transport", "tcp", "--to", &server.control, "-b", "90G", "-l", "1440", "-t", "0.2"];
    let text = plain(&[&["send"], &args[..]].concat());
    assert!(
        text.contains("% held back by the transport, ") && text.contains("% never sent for it"),
        "{text}"
    );
}
