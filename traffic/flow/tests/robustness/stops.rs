// SPDX-License-Identifier: Apache-2.0
//! SIGINT at either end: the first ends the flow with a partial report, the second ends the process at once.

use std::process::Command;

use crate::harness::{assert_honest, send, signal, transports, Client, Server, BINARY};

fn long_flow<'a>(server: &'a Server, transport: &'a str) -> [&'a str; 8] {
    ["--transport", transport, "--to", &server.control, "-b", "1M", "-t", "600"]
}

#[test]
fn sigint_at_the_client_gives_a_partial_report_and_exit_code_1() {
    let mut server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let mut client = Client::start(&[&long_flow(&server, transport)[..], reverse].concat());
            client.expect("started");
            signal(client.child.id(), libc::SIGINT);
            let finished = client.finish();
            assert_eq!(finished.code, 1, "{transport} {reverse:?}: {}", finished.stderr);
            assert!(finished.stderr.contains("partial"), "{}", finished.stderr);
            assert_honest(finished.report());
            assert_eq!(finished.report()["end_reason"], "interrupted");
            assert_eq!(server.expect("flow_finished")["end_reason"], "peer_interrupted");
        }
    }
}

#[test]
fn sighup_ends_a_flow_but_not_under_nohup() {
    let server = Server::start("127.0.0.1", &[]);
    let with_hangup = |how, flow: &[&str]| {
        let mut command = Command::new("env");
        command.args([how, BINARY]);
        Client::start_by(command, flow)
    };
    let mut client = with_hangup("--default-signal=HUP", &long_flow(&server, "udp"));
    client.expect("started");
    signal(client.child.id(), libc::SIGHUP);
    let finished = client.finish();
    assert_eq!((finished.code, &finished.report()["end_reason"]), (1, &"interrupted".into()));
    let flow = ["--to", &server.control, "-b", "1M", "-t", "1"];
    let mut client = with_hangup("--ignore-signal=HUP", &flow);
    client.expect("started");
    signal(client.child.id(), libc::SIGHUP);
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn sigint_at_the_server_gives_its_half_to_every_client_and_exit_code_1() {
    for reverse in [&[][..], &["-R"]] {
        let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
        let mut clients: Vec<_> = ["udp", "tcp"]
            .map(|transport| Client::start(&[&long_flow(&server, transport)[..], reverse].concat()))
            .into();
        for client in &mut clients {
            client.expect("started");
        }
        signal(server.child.id(), libc::SIGINT);
        for client in clients {
            let finished = client.finish();
            assert_eq!(finished.code, 1, "{reverse:?}: {}", finished.stderr);
            assert_honest(finished.report());
            assert_eq!(finished.report()["end_reason"], "peer_interrupted");
        }
        assert_eq!(server.child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn a_server_that_is_told_to_stop_lets_nobody_else_in() {
    let mut server = Server::start("127.0.0.1", &[]);
    let mut client = Client::start(&["--to", &server.control, "-t", "600", "--hold"]);
    client.expect("ready");
    signal(server.child.id(), libc::SIGINT);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    let later = send(&["--to", &server.control, "-t", "0.1"]);
    assert!(later.stderr.contains("cannot reach"), "{}", later.stderr);
}

#[test]
fn a_second_sigint_ends_a_client_that_waits_for_a_server_which_does_not_answer() {
    let mut server = Server::start("127.0.0.1", &[]);
    let mut client = Client::start(&long_flow(&server, "udp"));
    let process = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    client.expect("started");
    signal(process, libc::SIGSTOP);
    signal(client.child.id(), libc::SIGINT);
    wait_until_a_second_one_counts(client.child.id());
    signal(client.child.id(), libc::SIGINT);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("told to stop twice"), "{}", finished.stderr);
    assert!(finished.events.iter().all(|event| event["event"] != "report"));
    signal(process, libc::SIGCONT);
    let next = send(&["--to", &server.control, "-b", "1M", "-t", "0.1"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
}

#[test]
fn a_sigint_that_comes_twice_at_once_is_one() {
    let server = Server::start("127.0.0.1", &[]);
    let mut client = Client::start(&long_flow(&server, "udp"));
    client.expect("started");
    // As timeout(1) and a terminal with a parent that passes signals on do it.
    signal(client.child.id(), libc::SIGINT);
    while !has_heard_the_first(client.child.id()) {
        std::thread::yield_now();
    }
    signal(client.child.id(), libc::SIGINT);
    let finished = client.finish();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_honest(finished.report());
}

/// Half a second after the first one was heard.
fn wait_until_a_second_one_counts(process: u32) {
    while !has_heard_the_first(process) {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(600));
}

/// Once a process has taken a SIGINT the next one is caught (SigCgt in proc(5)) and no longer blocked.
fn has_heard_the_first(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
    };
    let interrupt = 1 << (libc::SIGINT - 1);
    mask("SigCgt:") & interrupt != 0 && mask("SigBlk:") & interrupt == 0
}

#[test]
fn a_second_sigint_ends_a_server_and_its_flows() {
    let mut server = Server::start("127.0.0.1", &[]);
    let mut client = Client::start(&long_flow(&server, "tcp"));
    let process = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    client.expect("started");
    signal(process, libc::SIGSTOP);
    signal(server.child.id(), libc::SIGINT);
    wait_until_a_second_one_counts(server.child.id());
    signal(server.child.id(), libc::SIGINT);
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    let finished = client.finish();
    assert_eq!(finished.code, 1);
    assert_eq!(finished.events.last().unwrap()["event"], "error");
}
