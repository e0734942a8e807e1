// SPDX-License-Identifier: Apache-2.0
//! Held flows, interrupted flows, killed ends: each end finds its way back.

mod harness;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{assert_honest, send, terminate, transports, Client, Server};

/// Arguments of a flow that would take far longer than a test.
fn long_flow<'a>(server: &'a Server, transport: &'a str) -> [&'a str; 8] {
    ["--transport", transport, "--to", &server.control, "-b", "1M", "-t", "600"]
}

#[test]
fn a_held_flow_sends_nothing_before_go_and_stays_open_until_end() {
    let mut server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        let mut client = Client::start(&[
            "--transport",
            transport,
            "--to",
            &server.control,
            "-b",
            "1M",
            "-l",
            "1000",
            "-t",
            "0.2",
            "--hold",
        ]);
        client.expect("ready");
        let before_ns = netjoule_measure::host::now_ns();
        client.say("go");
        let report = client.expect("report");
        assert_honest(&report);
        assert!(report["sender"]["first_packet_ns"].as_i64().unwrap() >= before_ns);
        assert!(client.child.try_wait().unwrap().is_none(), "{transport} did not hold its sockets");
        client.say("end");
        assert_eq!(client.finish().code, 0);
        assert_eq!(server.expect("flow_finished")["end_reason"], "duration");
    }
}

#[test]
fn holding_ends_with_stdin_and_nothing_but_go_starts_a_flow() {
    let server = Server::start("127.0.0.1", &[]);
    let mut silent = Client::start(&["--to", &server.control, "--hold"]);
    silent.expect("ready");
    drop(silent.stdin.take());
    let finished = silent.finish();
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("before \"go\""), "{}", finished.stderr);
    let mut babbling = Client::start(&["--to", &server.control, "--hold"]);
    babbling.expect("ready");
    babbling.say("start");
    assert_eq!(babbling.finish().code, 2);
    let mut held = Client::start(&["--transport", "null", "-t", "0.1", "--hold"]);
    held.expect("ready");
    held.say("go");
    held.expect("report");
    drop(held.stdin.take());
    assert_eq!(held.finish().code, 0);
}

#[test]
fn lingering_keeps_the_sockets_for_the_time_asked() {
    let server = Server::start("127.0.0.1", &[]);
    let mut client = Client::start(&["--to", &server.control, "-t", "0.1", "--linger-s", "0.3"]);
    client.expect("report");
    let start_ns = netjoule_measure::host::now_ns();
    assert_eq!(client.finish().code, 0);
    assert!(netjoule_measure::host::now_ns() - start_ns >= 250_000_000);
}

#[test]
fn an_interrupted_client_reports_in_part_and_exits_1() {
    let server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let mut client = Client::start(&[&long_flow(&server, transport)[..], reverse].concat());
            client.expect("started");
            terminate(&client.child);
            let finished = client.finish();
            assert_eq!(finished.code, 1, "{transport} {reverse:?}: {}", finished.stderr);
            assert_honest(finished.report());
            assert_eq!(finished.report()["end_reason"], "interrupted");
        }
    }
}

#[test]
fn the_sum_of_a_stopped_flow_ends_when_it_stopped() {
    let server = Server::start("127.0.0.1", &[]);
    let flow = ["send", "--to", &server.control, "-b", "1M", "-t", "30"];
    let mut client = Command::new(harness::BINARY).args(flow).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("[  1] ") && line.contains("0.00-1.00")), "no interval");
    terminate(&client);
    let sum = lines.find(|line| line.starts_with("[SUM] ")).unwrap();
    let (_, end_s) = sum.split_whitespace().nth(1).unwrap().split_once('-').unwrap();
    assert!((1.0..30.0).contains(&end_s.parse::<f64>().unwrap()), "{sum}");
    assert_eq!(client.wait().unwrap().code(), Some(1));
}

#[test]
fn an_interrupted_server_gives_its_half_and_exits_1() {
    for reverse in [&[][..], &["-R"]] {
        let mut server = Server::start("127.0.0.1", &[]);
        let mut client = Client::start(&[&long_flow(&server, "udp")[..], reverse].concat());
        client.expect("started");
        terminate(&server.child);
        let finished = client.finish();
        assert_eq!(finished.code, 1, "{reverse:?}: {}", finished.stderr);
        assert_honest(finished.report());
        assert_eq!(finished.report()["end_reason"], "peer_interrupted");
        assert_eq!(server.child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn an_idle_server_ends_cleanly() {
    let mut told = Server::start("127.0.0.1", &[]);
    terminate(&told.child);
    assert_eq!(told.child.wait().unwrap().code(), Some(0));
    let mut left = Server::start("127.0.0.1", &[]);
    assert_eq!(left.end().code(), Some(0));
}

#[test]
fn after_a_killed_client_the_next_flow_runs() {
    let mut server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let mut client = Client::start(&[&long_flow(&server, transport)[..], reverse].concat());
            client.expect("started");
            client.child.kill().unwrap();
            client.child.wait().unwrap();
            server.expect("flow_failed");
            let next = send(&["--transport", transport, "--to", &server.control, "-t", "0.1"]);
            assert_eq!(next.code, 0, "{transport} {reverse:?}: {}", next.stderr);
            assert_honest(next.report());
        }
    }
}

#[test]
fn a_client_that_is_killed_while_it_holds_leaves_no_process_behind() {
    let server = Server::start("127.0.0.1", &[]);
    let children = || {
        let process = server.child.id();
        std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap()
    };
    for transport in transports() {
        let args = ["--transport", transport, "--to", &server.control, "-t", "0.1", "--linger-s", "600"];
        let mut client = Client::start(&args);
        client.expect("report");
        assert!(!children().is_empty());
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        let killed = Instant::now();
        while !children().is_empty() {
            // A peer that lives is given 10 s to part.
            assert!(killed.elapsed() < Duration::from_secs(5), "{transport}: {}", children());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_killed_server_ends_the_client_with_one_clear_line() {
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let mut server = Server::start("127.0.0.1", &[]);
            let mut client = Client::start(&[&long_flow(&server, transport)[..], reverse].concat());
            client.expect("started");
            server.child.kill().unwrap();
            let finished = client.finish();
            assert_eq!(finished.code, 1, "{transport}: {}", finished.stderr);
            assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
            assert_eq!(finished.events.last().unwrap()["event"], "error");
        }
    }
}
