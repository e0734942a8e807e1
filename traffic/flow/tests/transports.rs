// SPDX-License-Identifier: Apache-2.0
//! What can be chosen about a transport reaches it, and the report says so; what a host lacks is told before any flow.

mod harness;

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{assert_honest, send, Finished, Server};
use serde_json::{json, Value};

/// What `transports` says with this flag.
fn told(flag: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic")).args(["transports", flag]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn flow(server: &Server, transport: &str, more: &[&str]) -> Finished {
    let args = ["--transport", transport, "--to", &server.control, "-b", "4M", "-l", "1000", "-t", "0.2"];
    send(&[&args[..], more].concat())
}

/// The report of a flow that was made with `more`.
fn report(server: &Server, transport: &str, more: &[&str]) -> Value {
    let finished = flow(server, transport, more);
    assert_eq!(finished.code, 0, "{transport} {more:?}: {}", finished.stderr);
    let report = finished.report().clone();
    assert_honest(&report);
    assert!(report["receiver"]["messages_received_unique"].as_u64().unwrap() > 0, "{transport} {more:?}");
    report
}

#[test]
fn what_the_kernel_has_carries_flows_and_what_it_lacks_is_refused_with_the_reason_that_transports_tells() {
    let server = Server::start("127.0.0.1", &[]);
    let found: Value = serde_json::from_str(&told("--json")).unwrap();
    let dependent: Vec<&Value> =
        found.as_array().unwrap().iter().filter(|entry| entry["host_dependent"] == true).collect();
    assert!(dependent.iter().any(|entry| entry["name"] == "mptcp"), "{found}");
    for entry in dependent {
        let name = entry["name"].as_str().unwrap();
        for direction in [&[][..], &["-R"]] {
            if entry["available"] == true {
                assert_eq!(report(&server, name, direction)["transport"], name);
                continue;
            }
            let finished = flow(&server, name, direction);
            assert_eq!(finished.code, 3, "{name}: {}", finished.stderr);
            assert!(finished.stderr.contains(entry["reason"].as_str().unwrap()), "{}", finished.stderr);
        }
    }
}

#[test]
fn tcp_runs_as_chosen() {
    let server = Server::start("127.0.0.1", &[]);
    let plain = report(&server, "tcp", &[]);
    let defaults = json!({ "nodelay": true, "notsent_lowat_bytes": 131_072, "zerocopy": false });
    assert_eq!(plain["transport_options"], defaults);
    let chosen =
        ["--congestion-control", "reno", "--no-nodelay", "--notsent-lowat-bytes", "16384", "--zerocopy"];
    for direction in [&[][..], &["-R"]] {
        let report = report(&server, "tcp", &[&chosen[..], direction].concat());
        let wanted = json!({
            "congestion_control": "reno", "nodelay": false, "notsent_lowat_bytes": 16384, "zerocopy": true,
        });
        assert_eq!(report["transport_options"], wanted);
        let seen = &report["sender"]["transport_stats"];
        assert_eq!(seen["congestion_control"], "reno", "{seen}");
        assert_eq!((&seen["nodelay"], &report["nodelay"]), (&json!(false), &json!(false)));
        assert_eq!(seen["not_sent_low_water_bytes"], 16384);
        assert!(seen["zerocopy_calls"].as_u64().unwrap() > 0, "{seen}");
        assert_eq!(seen["zerocopy_calls"], seen["zerocopy_calls_completed"], "{seen}");
    }
}

#[test]
fn a_congestion_control_that_a_host_has_not_loaded_is_refused_by_name() {
    let server = Server::start("127.0.0.1", &[]);
    let up = flow(&server, "tcp", &["--congestion-control", "no-such-one"]);
    assert_eq!(up.code, 3, "{}", up.stderr);
    assert!(up.stderr.contains("no-such-one; available are"), "{}", up.stderr);
    let down = flow(&server, "tcp", &["--congestion-control", "no-such-one", "-R"]);
    assert_ne!(down.code, 0);
    assert!(down.stderr.contains("no-such-one; available are"), "{}", down.stderr);
    report(&server, "tcp", &[]);
}

#[test]
fn an_option_of_another_transport_is_a_usage_error() {
    for (transport, flags, words) in [
        ("udp", &["--zerocopy"][..], "udp has no option zerocopy"),
        ("quic", &["--ccid", "2"], "quic has no option ccid"),
        ("quic", &["--congestion-control", "vegas"], "cubic or reno or bbr2"),
        ("quic", &["--cc-pacing"], "cc_pacing needs congestion_control bbr2"),
        ("udp", &["--qlog", "/tmp"], "udp keeps no record"),
    ] {
        let finished = send(&[&["--transport", transport, "--to", "127.0.0.1:1"], flags].concat());
        assert_eq!(finished.code, 2, "{transport} {flags:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn quic_runs_as_chosen() {
    let server = Server::start("127.0.0.1", &[]);
    for transport in ["quic", "quic-datagram"] {
        for (name, paced) in [("cubic", false), ("reno", false), ("bbr2", true)] {
            let report = report(&server, transport, &["--congestion-control", name, "--early-data"]);
            assert_eq!(report["transport_options"]["cc_pacing"], paced);
            for end in ["sender", "receiver"] {
                let seen = &report[end]["transport_stats"];
                assert_eq!(seen["congestion_control"], name, "{seen}");
                assert_eq!(seen["quiche_pacing"], paced, "{seen}");
                assert_eq!(seen["early_data_accepted"], true, "{seen}");
            }
        }
    }
}

/// A folder of this test's own, that goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("netjoule-{name}-{}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn vantage_point(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap();
    let first = bytes.split(|byte| *byte == 0x1e).find(|text| !text.is_empty()).expect("a record");
    let header: Value = serde_json::from_slice(first).unwrap();
    header["trace"]["vantage_point"]["type"].as_str().unwrap().to_owned()
}

#[test]
fn both_ends_of_a_quic_flow_write_a_qlog_into_the_folder_that_each_was_given() {
    let (here, there) = (Folder::new("qlog-client"), Folder::new("qlog-server"));
    let server = Server::start("127.0.0.1", &["--qlog", there.path()]);
    let flow_id = report(&server, "quic", &["--qlog", here.path()])["flow_id"].as_str().unwrap().to_owned();
    for (folder, end) in [(&here, "client"), (&there, "server")] {
        let file = folder.0.join(format!("{flow_id}-{end}.sqlog"));
        assert_eq!(vantage_point(&file), end);
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    }
    report(&server, "udp", &[]);
    assert_eq!(std::fs::read_dir(&there.0).unwrap().count(), 1, "udp keeps no record");
}

#[test]
fn people_are_told_one_line_for_each_transport() {
    let output = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic")).arg("transports").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let contract: Value = serde_json::from_str(&told("--contract")).unwrap();
    assert_eq!(lines.len(), contract["transports"].as_array().unwrap().len());
    assert!(lines[0].starts_with("udp ") && lines[0].contains(": yes"), "{text}");
    assert!(text.contains("(options: congestion_control, nodelay, notsent_lowat_bytes, zerocopy)"), "{text}");
}
