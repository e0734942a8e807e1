// SPDX-License-Identifier: Apache-2.0
//! DCCP flows on the user-space stack: both congestion controls, both ways, over UDP and over raw IP.

mod harness;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use harness::{assert_honest, has_ipv6, send, Client, Finished, Server};
use serde_json::Value;

/// Arguments of a DCCP flow to `server`, with `more`.
fn flow(server: &Server, more: &[&str]) -> Finished {
    let args = ["--transport", "dccp", "--to", &server.control, "-t", "0.3"];
    send(&[&args[..], more].concat())
}

#[track_caller]
fn assert_sound<'a>(finished: &'a Finished, ccid: &str, carrier: &str) -> &'a Value {
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let report = finished.report();
    assert_honest(report);
    let options = &report["transport_options"];
    assert_eq!(options["ccid"].to_string(), ccid);
    assert_eq!((&options["carrier"], &options["peer_carrier"]), (&carrier.into(), &carrier.into()));
    assert!(report["receiver"]["messages_received_unique"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["receiver"]["transport_stats"]["messages_foreign"], 0);
    assert!(report["sender"]["transport_stats"]["rtt_us"].as_f64().unwrap() > 0.0, "{report}");
    report
}

/// IP, UDP and Data headers around a message, and at most the options that the size limit leaves room for.
#[track_caller]
fn assert_packet_size(report: &Value, headers_bytes: f64) {
    let packet_bytes = report["mean_ip_packet_bytes"].as_f64().unwrap();
    let overhead_bytes = packet_bytes - report["payload_bytes"].as_f64().unwrap();
    assert!(overhead_bytes >= headers_bytes && overhead_bytes < headers_bytes + 20.0, "{overhead_bytes}");
    assert_eq!(report["packetisation_source"], "measured");
}

fn run_everything(bind: &str, headers_bytes: f64) {
    let server = Server::start(bind, &[]);
    for ccid in ["2", "3"] {
        for length in ["64", "1440"] {
            for gso in [&[][..], &["--gso", "--window-us", "500"]] {
                for reverse in [&[][..], &["-R"]] {
                    let length = if bind.contains(':') && length == "1440" { "1420" } else { length };
                    let asked = ["--ccid", ccid, "-l", length, "-b", "4M"];
                    let finished = flow(&server, &[&asked[..], gso, reverse].concat());
                    let report = assert_sound(&finished, ccid, "udp");
                    assert_packet_size(report, headers_bytes);
                }
            }
        }
    }
}

#[test]
fn every_kind_of_flow_over_udp_and_ipv4() {
    run_everything("127.0.0.1", 20.0 + 8.0 + 16.0);
}

#[test]
fn every_kind_of_flow_over_udp_and_ipv6() {
    if has_ipv6() {
        run_everything("::1", 40.0 + 8.0 + 16.0);
    }
}

#[test]
fn ecn_is_on_until_it_is_refused() {
    let server = Server::start("127.0.0.1", &[]);
    for (more, told) in [(&[][..], true), (&["--no-ecn"], false)] {
        let finished = flow(&server, &[&["--ccid", "2"][..], more].concat());
        assert_eq!(assert_sound(&finished, "2", "udp")["transport_options"]["ecn"], told);
    }
}

/// Raw sockets are root's, inside a user namespace too; a test that has neither has nothing to say.
fn has_raw() -> bool {
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .args(["carriers", "--json"])
        .output()
        .unwrap();
    let carriers: Value = serde_json::from_slice(&said.stdout).unwrap();
    carriers
        .as_array()
        .unwrap()
        .iter()
        .any(|carrier| carrier["name"] == "raw" && carrier["available"] == true)
}

#[test]
fn raw_ip_carries_flows_both_ways() {
    if !has_raw() {
        return;
    }
    for (bind, headers_bytes) in [("127.0.0.1", 36.0), ("::1", 56.0)] {
        if bind == "::1" && !has_ipv6() {
            continue;
        }
        let server = Server::start(bind, &[]);
        for ccid in ["2", "3"] {
            for reverse in [&[][..], &["-R"]] {
                let asked = ["--ccid", ccid, "--carrier", "raw", "-l", "1000", "-b", "4M"];
                let finished = flow(&server, &[&asked[..], reverse].concat());
                let report = assert_sound(&finished, ccid, "raw");
                assert_packet_size(report, headers_bytes);
            }
        }
    }
}

#[test]
fn the_command_says_what_carries_dccp_here() {
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .args(["carriers", "--json"])
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(0));
    let carriers: Value = serde_json::from_slice(&said.stdout).unwrap();
    let names: Vec<_> = carriers.as_array().unwrap().iter().map(|carrier| &carrier["name"]).collect();
    assert_eq!(names, ["udp", "raw", "kernel"]);
    for carrier in carriers.as_array().unwrap() {
        assert_eq!(carrier["available"] == true, carrier.get("reason").is_none(), "{carrier}");
    }
}

#[test]
fn senseless_options_are_usage_errors() {
    for (args, word) in [
        (&["--transport", "dccp", "--ccid", "4"][..], "ccid is 2 or 3, not 4"),
        (&["--transport", "dccp", "--carrier", "kernel"], "no carrier kernel"),
        (&["--transport", "dccp", "--peer-carrier", "kernel"], "understand"),
        (&["--transport", "udp", "--ccid", "3"], "udp has no option ccid"),
        (&["--transport", "udp", "--no-ecn"], "udp has no option ecn"),
    ] {
        let finished = send(&[args, &["--to", "127.0.0.1"]].concat());
        assert_eq!(finished.code, 2, "{}", finished.stderr);
        assert!(finished.stderr.contains(word), "{}", finished.stderr);
    }
}

#[test]
fn a_message_too_large_for_the_path_names_the_limit() {
    let server = Server::start("127.0.0.1", &[]);
    let finished = flow(&server, &["-l", "65535"]);
    assert_eq!(finished.code, 2, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("the limit is 65475 bytes (MTU 65535 - 60 bytes"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_kernel_without_dccp_is_said_to_have_none() {
    let server = Server::start("127.0.0.1", &[]);
    let finished = send(&["--transport", "dccp-kernel", "--to", &server.control, "-t", "0.1"]);
    if finished.code == 0 {
        return assert_honest(finished.report());
    }
    assert_eq!(finished.code, 3, "{}", finished.stderr);
    assert_eq!(finished.events.last().unwrap()["code"], "host_lacks");
    assert!(finished.stderr.contains("--transport dccp"), "{}", finished.stderr);
}

/// What congestion control does not let go is not sent, and the sender sleeps meanwhile: its process is switched to not
/// much more often than packets leave and acknowledgements come.
#[test]
fn an_overload_is_not_sent_and_not_spun_upon() {
    let server = Server::start("127.0.0.1", &[]);
    for ccid in ["2", "3"] {
        let finished = flow(&server, &["--ccid", ccid, "-b", "9G", "-l", "1000"]);
        let report = assert_sound(&finished, ccid, "udp");
        assert!(report["sender"]["messages_not_sent"].as_u64().unwrap() > 0, "{report}");
        assert_eq!(report["end_reason"], "duration");
    }
}

#[test]
fn a_held_flow_costs_nothing_while_it_waits() {
    let server = Server::start("127.0.0.1", &[]);
    for reverse in [&[][..], &["-R"]] {
        let args = ["--transport", "dccp", "--to", &server.control, "-t", "0.1", "--hold"];
        let mut client = Client::start(&[&args[..], reverse].concat());
        client.expect("ready");
        let before_ns = cpu_ns(client.child.id()) + cpu_ns(server.child.id());
        std::thread::sleep(std::time::Duration::from_millis(500));
        let used_ns = cpu_ns(client.child.id()) + cpu_ns(server.child.id()) - before_ns;
        assert!(used_ns < 100_000_000, "{reverse:?}: {used_ns} ns of CPU in half a second of waiting");
        client.say("go");
        assert_honest(&client.expect("report"));
        client.say("end");
        assert_eq!(client.finish().code, 0);
    }
}

/// Run time of a process so far, from its schedstat.
fn cpu_ns(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Type of a packet of RFC 6773: the DCCP generic header follows the UDP header unchanged (RFC 4340 section 5.1).
fn packet_type(datagram: &[u8]) -> u8 {
    datagram[8] >> 1 & 0xf
}

/// Carries datagrams between a client and the server behind `inner` until the server's Reset has passed, and swallows
/// what the client says in the first `mute` after its Close. The Reset's code, and how many Closes it took.
fn carry(outer: &UdpSocket, inner: &UdpSocket, mute: Duration) -> (u8, usize) {
    let (close, reset) = (6, 7);
    let (mut client, mut first_close, mut closes) = (None, None, 0);
    let mut datagram = [0; 2048];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(30) {
        if let Ok((length, from)) = outer.recv_from(&mut datagram) {
            client = Some(from);
            if packet_type(&datagram) == close {
                closes += 1;
                first_close.get_or_insert_with(Instant::now);
            }
            if first_close.is_none_or(|at| at.elapsed() >= mute) {
                inner.send(&datagram[..length]).unwrap();
            }
        }
        if let (Ok(length), Some(client)) = (inner.recv(&mut datagram), client) {
            outer.send_to(&datagram[..length], client).unwrap();
            if packet_type(&datagram) == reset {
                return (datagram[24], closes); // after the generic header and the acknowledgement number
            }
        }
    }
    panic!("no Reset in 30 s; {closes} Closes");
}

/// As a kernel whose first DCCP-Close is lost and that says it again 3.2 s later.
#[test]
fn a_close_that_comes_seconds_late_is_answered() {
    let outer = UdpSocket::bind("127.0.0.2:0").unwrap();
    let port = outer.local_addr().unwrap().port().to_string();
    let own = ["--control-bind", "127.0.0.1", "--data-port", &port];
    let mut server = Server::start("127.0.0.1", &own);
    let inner = UdpSocket::bind("127.0.0.1:0").unwrap();
    inner.connect(format!("127.0.0.1:{port}")).unwrap();
    for socket in [&outer, &inner] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    }
    let carrying = std::thread::spawn(move || carry(&outer, &inner, Duration::from_millis(3_200)));
    let control = server.control.clone();
    let finished = send(&["--transport", "dccp", "--to", "127.0.0.2", "--control", &control, "-t", "0.2"]);
    assert_sound(&finished, "3", "udp");
    let (code, closes) = carrying.join().unwrap();
    assert_eq!(code, 1, "Reset Code 1, Closed (RFC 4340 section 5.6)");
    assert!(closes >= 2, "{closes}");
    assert_eq!(server.expect("flow_finished")["end_reason"], "duration");
}
