// SPDX-License-Identifier: Apache-2.0
//! What goes wrong ends with one clear line and the right exit code.

mod harness;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use harness::{assert_honest, closed_port, send, Client, Finished, Server};
use serde_json::Value;

#[track_caller]
fn assert_clear(finished: &Finished, code: i32, name: &str, part: &str) {
    assert_eq!(finished.code, code, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(part), "{}", finished.stderr);
    let error = finished.events.last().expect("an error event");
    assert_eq!((error["event"].as_str(), error["code"].as_str()), (Some("error"), Some(name)));
    assert!(finished.stderr.contains(error["message"].as_str().unwrap()));
}

#[test]
fn bad_flags_and_quantities_are_usage_errors() {
    for args in
        [&["--no-such-flag"][..], &["--to", "h", "-b", "30P"], &["--to", "h", "-b", "1 M"], &["-t", "0"]]
    {
        let finished = send(args);
        assert_eq!(finished.code, 2, "{args:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{args:?}: {}", finished.stderr);
    }
    assert_clear(&send(&["-b", "1M"]), 2, "usage", "--to");
    assert_clear(&send(&["--transport", "carrier-pigeon", "--to", "h"]), 2, "usage", "unknown transport");
    assert_clear(&send(&["--transport", "null", "-R"]), 2, "usage", "-R");
    assert_clear(&send(&["--to", "h:x"]), 2, "usage", "port");
}

#[test]
fn a_server_that_is_not_there_is_refused_by_name() {
    let (_silent, closed) = closed_port();
    assert_clear(&send(&["--to", &closed]), 1, "refused", &closed);
    assert_clear(&send(&["--to", "no-such-host.invalid"]), 1, "refused", "no-such-host.invalid");
}

#[test]
fn a_client_cannot_lift_the_servers_rule_about_addresses() {
    let server = Server::start("0.0.0.0", &[]);
    let (_, port) = server.control.rsplit_once(':').unwrap();
    let control = format!("127.0.0.1:{port}");
    let finished = send(&["--to", "127.0.0.2", "--control", &control, "-b", "1M", "-l", "500", "-t", "0.1"]);
    assert_clear(&finished, 1, "refused", "--control-bind");
}

#[test]
fn messages_that_do_not_fit_are_refused_naming_the_limit() {
    let server = Server::start("127.0.0.1", &[]);
    let to = &server.control;
    assert_clear(&send(&["--to", to, "-l", "70000"]), 2, "too_large", "the limit is 65507 bytes");
    assert_clear(&send(&["--to", to, "-l", "70000"]), 2, "too_large", "use -l 65507");
    assert_clear(&send(&["--to", to, "-l", "15"]), 2, "usage", "at least 16 bytes");
    let quic = send(&["--transport", "quic-datagram", "--to", to, "-l", "60000"]);
    assert_clear(&quic, 2, "too_large", "the limit is");
    let six = send(&["--transport", "quic-datagram", "--to", "[::1]:1", "-l", "60000"]);
    assert_clear(&six, 2, "too_large", "IPv6");
}

#[test]
fn the_servers_caps_hold() {
    let server = Server::start("127.0.0.1", &["--max-rate", "2M", "--max-duration-s", "1"]);
    let to = &server.control;
    assert_clear(&send(&["--to", to, "-b", "2.1M", "-t", "1"]), 1, "refused", "--max-rate");
    assert_clear(&send(&["--to", to, "-b", "2M", "-t", "1.5"]), 1, "refused", "--max-duration-s");
    assert_honest(send(&["--to", to, "-b", "2M", "-t", "0.1"]).report());
}

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    let server = Server::start("127.0.0.1", &[]);
    let mut first = Client::start(&["--to", &server.control, "-t", "0.1", "--hold"]);
    first.expect("ready");
    assert_clear(&send(&["--to", &server.control]), 1, "busy", "busy with another flow");
    first.say("go");
    first.expect("report");
    first.say("end");
    assert_eq!(first.finish().code, 0);
}

/// What a server answers to a first line.
fn answer_to(server: &Server, line: &[u8]) -> Value {
    let mut stream = TcpStream::connect(&server.control).unwrap();
    stream.write_all(line).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn strangers_at_the_control_port_get_a_sentence_and_do_no_harm() {
    let server = Server::start("127.0.0.1", &[]);
    let stranger = answer_to(&server, b"GET / HTTP/1.1\r\n\r\n");
    assert!(stranger["message"].as_str().unwrap().contains("control port"), "{stranger}");
    let hello = b"{\"type\":\"hello\",\"protocol\":\"netjoule\",\"version\":99}\n";
    let newer = answer_to(&server, hello);
    assert!(newer["message"].as_str().unwrap().contains("version 99"), "{newer}");
    let endless = answer_to(&server, &[b'x'; 70_000]);
    assert_eq!(endless["code"], "protocol");
    let _silent = TcpStream::connect(&server.control).unwrap();
    assert_honest(send(&["--to", &server.control, "-t", "0.1"]).report());
}

/// What the program says when it is called with these words: exit code, stdout, stderr.
fn called(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(harness::BINARY).args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_bare_command_gives_help_and_a_wish_for_the_version_the_version() {
    for words in [&[][..], &["send"], &["dissect"], &["profile"]] {
        let (code, help, error) = called(words);
        assert!(code == 0 && error.is_empty(), "{words:?}: {code} {error}");
        assert!(help.contains("Usage: netjoule-traffic"), "{words:?}: {help}");
    }
    for flag in ["--version", "-V"] {
        let version = format!("netjoule-traffic {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(called(&[flag]), (0, version, String::new()));
    }
}

#[test]
fn what_iperf3_does_otherwise_is_answered_in_one_line() {
    for words in [&["-c", "h", "-S", "5"][..], &["-s", "-w", "1M"], &["-c", "h", "-M", "1400"], &["-s", "-V"]]
    {
        let (code, _, line) = called(words);
        assert_eq!((code, line.lines().count()), (2, 1), "{line}");
        assert!(line.starts_with("netjoule-traffic: -") && line.contains(" is iperf3's: "), "{line}");
    }
}

#[test]
fn a_server_in_the_background_serves_one_command_and_writes_its_log() {
    let log = std::env::temp_dir().join(format!("netjoule-log-{}", std::process::id()));
    // Other servers' ports are of 127.0.0.1: nobody takes this one meanwhile.
    let port = TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap().port().to_string();
    let file = log.to_str().unwrap();
    // Whoever called it goes on once it listens.
    assert_eq!(
        called(&["-s1D", "-B", "127.0.0.3", "-p", &port, "--logfile", file]),
        (0, String::new(), String::new())
    );
    let (code, text, _) = called(&["-c", "127.0.0.3", "-p", &port, "-u", "-t", "0.1", "-J"]);
    assert!(code == 0 && text.contains("\"event\":\"report\""), "{text}");
    let told = || std::fs::read_to_string(&log).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !told().contains("has gone") || TcpStream::connect(format!("127.0.0.3:{port}")).is_ok() {
        assert!(std::time::Instant::now() < deadline, "{}", told());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let lines: Vec<String> = told().lines().map(str::to_owned).collect();
    std::fs::remove_file(&log).unwrap();
    assert!(lines[0].starts_with("listening on 127.0.0.3:") && lines.len() == 3, "{lines:?}");
    assert!(lines[1].contains(" sends here: udp, messages of 1440 bytes, "), "{lines:?}");
    assert!(lines[2].contains("has gone: 9 messages received, 0 lost"), "{lines:?}");
}
