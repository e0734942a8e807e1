// SPDX-License-Identifier: Apache-2.0
//! Flows by a profile: one schedule for every transport and null, books that balance in bytes of several sizes.

mod harness;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::{assert_honest, send, transports, Client, Finished, Server};
use serde_json::Value;

/// Sizes from 16 to 1000 bytes at about 500 messages a second.
const BUSY: &str = r#"{"schema_version": 1, "name": "busy", "messages": {
    "size_bytes": {"distribution": "uniform", "min": 16, "max": 1000},
    "inter_departure_s": {"distribution": "exponential", "mean": 0.002}}}"#;

/// A file of this test alone, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("netjoule-{}-{name}", std::process::id()));
        std::fs::write(&path, contents).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The report of a whole flow whose books balance, in bytes too.
fn honest(finished: &Finished) -> &Value {
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let report = finished.report();
    assert_honest(report);
    let (profile, sender) = (&report["profile"], &report["sender"]);
    assert_eq!(profile["messages"], sender["messages_scheduled"]);
    if sender["messages_not_sent"] == 0 {
        assert_eq!(profile["bytes"], sender["bytes_sent"]);
    }
    if report["receiver"]["messages_lost"] == 0 {
        assert_eq!(sender["bytes_sent"], report["receiver"]["bytes_received_unique"]);
    }
    report
}

/// `selftest` of a profile on stdin, held to what every host keeps.
fn selftest(profile: &str, more: &[&str]) -> Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .args(["selftest", "--profile", "-", "--schedule-seed", "42", "-t", "0.4", "--json"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", profile.replace('\n', " ")).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_selftest_certifies_the_schedule_of_a_profile() {
    let file = Scratch::new("selftest.json", BUSY);
    let args = ["--profile", file.path(), "--schedule-seed", "42", "-t", "0.4", "--transport", "null"];
    let flow = send(&args);
    let document = selftest(BUSY, &["--pacing-limit", "min_achieved_ratio=0"]);
    harness::assert_fits("selftest", &document);
    assert_eq!(document["payload_bytes"], 1000);
    assert_eq!(document["offered_rate_mbps"], flow.report()["offered_rate_mbps"]);
    for certified in document["flows"].as_array().unwrap() {
        // A busy host may not have sent them all.
        let certificate = &certified["pacing_certificate"];
        let scheduled =
            number(&certificate["departures"]) as f64 / certificate["achieved_ratio"].as_f64().unwrap();
        assert_eq!(
            scheduled.round(),
            number(&flow.report()["sender"]["messages_scheduled"]) as f64,
            "{certified}"
        );
    }
}

#[test]
fn a_selftest_without_limits_allows_for_the_longest_burst_of_a_profile() {
    const THREE: &str =
        r#"{"schema_version": 1, "name": "three", "trace": {"csv": "t_s,bytes\n0,64\n0.1,64\n0.3,64\n"}}"#;
    let document = selftest(THREE, &["--pacing", "burst:2"]);
    assert_eq!(document["limits"]["max_error_p99_us"], 200_500.0);
}

#[test]
fn every_transport_and_null_have_the_same_schedule() {
    let file = Scratch::new("busy.json", BUSY);
    let server = Server::start("127.0.0.1", &[]);
    let args = ["--profile", file.path(), "--schedule-seed", "42", "-t", "0.4"];
    let null = send(&[&args[..], &["--transport", "null"]].concat());
    let digest = honest(&null)["schedule_digest"].clone();
    assert!(digest.as_str().unwrap().starts_with("fnv1a64:"), "{digest}");
    for transport in transports() {
        for reverse in [&[][..], &["-R"]] {
            let more = ["--transport", transport, "--to", &server.control];
            let finished = send(&[&args[..], &more, reverse].concat());
            let report = honest(&finished);
            assert_eq!(report["schedule_digest"], digest, "{transport} {reverse:?}");
            assert_eq!(report["profile"], null.report()["profile"], "{transport} {reverse:?}");
            assert_eq!(report["payload_bytes"], 1000);
            assert!(number(&report["receiver"]["messages_received_unique"]) > 0);
            if matches!(transport, "tcp" | "quic" | "sctp") {
                assert_eq!(report["receiver"]["messages_lost"], 0, "{transport}");
            }
        }
    }
}

#[test]
fn another_seed_is_another_schedule_and_another_pace_is_not() {
    let file = Scratch::new("seeds.json", BUSY);
    let digest = |seed: &str, more: &[&str]| {
        let args = ["--transport", "null", "--profile", file.path(), "--schedule-seed", seed, "-t", "0.1"];
        honest(&send(&[&args[..], more].concat()))["schedule_digest"].clone()
    };
    assert_ne!(digest("1", &[]), digest("2", &[]));
    assert_eq!(digest("1", &[]), digest("1", &["--seed", "9", "--window-us", "500"]));
}

#[test]
fn trains_hold_messages_of_one_size_and_the_window_keeps_the_books() {
    let two_sizes = r#"{"schema_version": 1, "name": "two", "messages": {
        "size_bytes": {"distribution": "empirical", "values": [64, 700], "weights": [3, 1]},
        "inter_departure_s": 0.0001}}"#;
    let file = Scratch::new("two.json", two_sizes);
    let server = Server::start("127.0.0.1", &[]);
    for transport in transports() {
        let args = ["--transport", transport, "--to", &server.control, "--profile", file.path(), "-t", "0.3"];
        let report = send(&[&args[..], &["--window-us", "2000", "--gso"]].concat());
        honest(&report);
    }
}

#[test]
fn a_constant_rate_has_a_digest_too_and_no_profile() {
    let server = Server::start("127.0.0.1", &[]);
    let args = ["-b", "1M", "-l", "300", "-t", "0.1"];
    let null = send(&[&args[..], &["--transport", "null"]].concat());
    let udp = send(&[&args[..], &["--to", &server.control]].concat());
    assert_eq!(null.report()["schedule_digest"], udp.report()["schedule_digest"]);
    assert!(udp.report()["profile"].is_null());
    assert_honest(udp.report());
}

#[test]
fn a_flow_that_ends_in_silence_lasts_to_its_end() {
    let file = Scratch::new("silence.csv", "t_s,bytes\n0,100\n0.01,200\n");
    let server = Server::start("127.0.0.1", &[]);
    for transport in ["udp", "tcp"] {
        let to = ["--transport", transport, "--to", &server.control];
        let finished = send(&[&to[..], &["--profile", file.path(), "-t", "0.3"]].concat());
        let report = honest(&finished);
        let sender = &report["sender"];
        assert_eq!((number(&sender["messages_sent"]), number(&sender["bytes_sent"])), (2, 300));
        let lasted_ns = number(&sender["end_ns"]) - number(&sender["start_ns"]);
        assert!(lasted_ns >= 300_000_000, "{transport}: {lasted_ns}");
        // 2400 bits in 0.3 s.
        assert!((report["offered_rate_mbps"].as_f64().unwrap() - 0.008).abs() < 1e-6);
    }
}

#[test]
fn a_profile_may_come_over_stdin_before_the_flow_is_held() {
    let mut client = Client::start(&["--transport", "null", "--profile", "-", "-t", "0.1", "--hold"]);
    client.say(&BUSY.replace('\n', " "));
    client.expect("ready");
    client.say("go");
    client.say("end");
    let finished = client.finish();
    assert_eq!(honest(&finished)["profile"]["name"], "busy");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let large = BUSY.replace("1000", "9000");
    let cases = [
        ("large.json", large.as_str(), "9000 bytes is too large for quic-datagram"),
        ("broken.json", "{\"schema_version\": 1}", "missing field `name`"),
        ("mean.json", &BUSY.replace("\"mean\"", "\"median\""), "median"),
        ("back.csv", "t_s,bytes\n1,64\n0,64\n", "line 3: time goes back"),
        (
            "endless.json",
            "{\"schema_version\": 1, \"name\": \"x\", \"messages\": {\"size_bytes\": 64, \"inter_departure_s\": 0}}",
            "more than 20000000 messages",
        ),
    ];
    let server = Server::start("127.0.0.1", &[]);
    for (name, text, words) in cases {
        let file = Scratch::new(name, text);
        let to = ["--transport", "quic-datagram", "--to", &server.control];
        let finished = send(&[&to[..], &["--profile", file.path(), "-t", "1"]].concat());
        assert_eq!(finished.code, 2, "{name}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{name}: {}", finished.stderr);
    }
}

#[test]
fn a_server_caps_the_bursts_of_a_profile() {
    let burst = Scratch::new("burst.csv", "t_s,bytes\n0,1000\n0.001,1000\n0.9,1000\n");
    let server = Server::start("127.0.0.1", &["--max-rate", "1M"]);
    let finished = send(&["--to", &server.control, "--profile", burst.path(), "-t", "1"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("1.6 Mb/s over 10 ms"), "{}", finished.stderr);
}

// --- captures -----------------------------------------------------------------------------------------

const NS: u64 = 1_000_000_000;

/// An IPv4 packet of UDP (17) or TCP (6) with a payload of so many bytes; TCP with this sequence number.
fn packet(protocol: u8, source_port: u16, sequence: u32, payload: usize) -> Vec<u8> {
    let ports = [source_port.to_be_bytes(), 7000_u16.to_be_bytes()].concat();
    let header = match protocol {
        17 => [&ports[..], &(8 + payload as u16).to_be_bytes(), &[0, 0]].concat(),
        _ => [&ports[..], &sequence.to_be_bytes(), &[0; 4], &[0x50, 0x10, 0, 0, 0, 0, 0, 0]].concat(),
    };
    let length = (20 + header.len() + payload) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 33, 198, 51, 100, 44]);
    bytes.extend(header);
    bytes.extend(b"secret".iter().cycle().take(payload));
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (padded as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &vec![0; padded - body.len()], &length].concat()
}

/// A pcapng file of raw IP packets, nanoseconds; only `captured` bytes of each are in it.
fn pcapng(packets: &[(u64, Vec<u8>)], captured: usize) -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let interface = [&[101, 0, 0, 0, 0, 0, 0, 0][..], &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat();
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    for (time_ns, packet) in packets {
        let bytes = &packet[..packet.len().min(captured)];
        let words = [0, (time_ns >> 32) as u32, *time_ns as u32, bytes.len() as u32, packet.len() as u32];
        let fields: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.extend(block(6, &[&fields[..], bytes].concat()));
    }
    file
}

/// The same as a classic pcap file.
fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let head = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101];
    let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (time_ns, packet) in packets {
        let words = [(time_ns / NS) as u32, (time_ns % NS) as u32, packet.len() as u32, packet.len() as u32];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

/// `netjoule-traffic profile`: exit code, the JSON line, stderr.
fn profile(args: &[&str]) -> (i32, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .arg("profile")
        .args(args)
        .arg("--json")
        .output()
        .unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let document = serde_json::from_str(&line).unwrap_or(Value::Null);
    (output.status.code().unwrap(), document, String::from_utf8(output.stderr).unwrap())
}

const BEGIN_NS: u64 = 1_700_000_000 * NS;

/// Two UDP flows, the second with more bytes.
fn two_flows() -> Vec<(u64, Vec<u8>)> {
    let small = [(0, 100), (20, 120), (40, 5), (90, 80)].map(|(ms, bytes)| (ms, packet(17, 5000, 0, bytes)));
    let large = [(10, 1200), (60, 1100)].map(|(ms, bytes)| (ms, packet(17, 5001, 0, bytes)));
    let mut all: Vec<_> = small.into_iter().chain(large).collect();
    all.sort_by_key(|(ms, _)| *ms);
    all.into_iter().map(|(ms, packet)| (BEGIN_NS + ms * 1_000_000, packet)).collect()
}

#[test]
fn a_capture_becomes_a_profile_and_the_profile_its_schedule() {
    let packets = two_flows();
    let written = Scratch::new("written.json", "");
    // Whole, cut off behind the headers by the capture, and classic: all tell the same.
    let files = [pcapng(&packets, usize::MAX), pcapng(&packets, 28), pcap(&packets)];
    for (index, file) in files.into_iter().enumerate() {
        let capture = Scratch::new(&format!("capture-{index}"), file);
        let (code, told, stderr) =
            profile(&[capture.path(), "--flow", "2", "--name", "call", "-o", written.path()]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(told["flows"].as_array().unwrap().len(), 2);
        assert_eq!(told["messages_raised"], 1);
        let text = std::fs::read_to_string(written.path()).unwrap();
        for word in ["secret", "192.0.2.33", "198.51.100.44", "5000", "7000"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["trace"]["csv"], "t_s,bytes\n0,100\n0.02,120\n0.04,16\n0.09,80\n");
        assert_eq!(document["trace"]["period_s"], 0.12);
        // Twice the period: eight messages, and the summary's schedule is the flow's.
        let (_, again, _) = profile(&[written.path(), "-t", "0.24"]);
        let finished = send(&["--transport", "null", "--profile", written.path(), "-t", "0.24"]);
        let report = honest(&finished);
        assert_eq!(
            (&report["profile"], &report["schedule_digest"]),
            (&again["profile"], &again["schedule_digest"])
        );
        assert_eq!((number(&report["profile"]["messages"]), number(&report["profile"]["bytes"])), (8, 632));
        assert_eq!(report["profile"]["last_due_ns"], 210_000_000);
    }
}

#[test]
fn the_flow_with_the_most_bytes_is_taken_unless_told() {
    let capture = Scratch::new("biggest.pcapng", pcapng(&two_flows(), usize::MAX));
    let (_, told, _) = profile(&[capture.path()]);
    assert_eq!((number(&told["profile"]["messages"]), number(&told["profile"]["bytes"])), (2, 2300));
    assert!(told["flows"][0]["flow"].as_str().unwrap().contains("192.0.2.33:5001"), "{told}");
    let (_, cut, _) = profile(&[capture.path(), "--cut", "1000"]);
    assert_eq!((number(&cut["profile"]["messages"]), number(&cut["profile"]["bytes"])), (4, 2300));
    let (_, short, _) = profile(&[capture.path(), "-t", "0.05"]);
    assert_eq!((number(&short["profile"]["messages"]), &short["mean_rate_mbps"]), (1, &Value::Null));
    let (code, _, stderr) = profile(&[capture.path(), "--flow", "3"]);
    assert!(code == 4 && stderr.contains("has 2 flows"), "{code} {stderr}");
}

#[test]
fn distributions_have_the_captures_mean_rate() {
    let packets: Vec<_> = (0..3_000_u64)
        .map(|k| {
            (BEGIN_NS + k * 10_000_000 + k % 7 * 1_000_000, packet(17, 5000, 0, 100 + (k % 3) as usize * 50))
        })
        .collect();
    let capture = Scratch::new("many.pcapng", pcapng(&packets, 40));
    let (_, trace, _) = profile(&[capture.path()]);
    let (code, told, stderr) = profile(&[capture.path(), "--distributions", "-t", "600"]);
    assert_eq!(code, 0, "{stderr}");
    let rate = |told: &Value| told["mean_rate_mbps"].as_f64().unwrap();
    // 60,000 draws: the spread of size and gap (about 0.3 of their means) leaves well under 1 %.
    assert!((rate(&told) / rate(&trace) - 1.0).abs() < 0.01, "{told} {trace}");
}

#[test]
fn a_retransmitted_segment_is_not_sent_twice() {
    let segments = [(0, 1000, 500), (10, 1500, 500), (20, 1000, 500), (30, 2000, 100), (40, 2100, 0)];
    let packets =
        segments.map(|(ms, sequence, bytes)| (BEGIN_NS + ms * 1_000_000, packet(6, 5000, sequence, bytes)));
    let capture = Scratch::new("tcp.pcap", pcap(&packets));
    let (code, told, stderr) = profile(&[capture.path()]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!((number(&told["profile"]["messages"]), number(&told["profile"]["bytes"])), (3, 1100));
    assert_eq!(told["segments_repeated"], 1);
}

#[test]
fn what_holds_no_flow_is_invalid_and_what_is_cut_off_is_used_as_far_as_it_goes() {
    let empty = Scratch::new("empty.pcapng", pcapng(&[], 0));
    let (code, _, stderr) = profile(&[empty.path()]);
    assert!(code == 4 && stderr.contains("no UDP, TCP or DCCP packet"), "{code} {stderr}");
    let mut other = pcap(&two_flows());
    other[20..24].copy_from_slice(&195_u32.to_le_bytes());
    let other = Scratch::new("zigbee.pcap", other);
    let (code, _, stderr) = profile(&[other.path()]);
    assert!(code == 4 && stderr.contains("link type 195 is not known (IEEE 802.15.4)"), "{code} {stderr}");
    let packed = Scratch::new("packed.pcap.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    for verb in ["profile", "dissect"] {
        let output = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
            .args([verb, packed.path()])
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && stderr.contains("gzip): unpack it first"),
            "{verb}: {stderr}"
        );
    }
    let mut file = pcap(&two_flows());
    file.truncate(file.len() - 10);
    let torn = Scratch::new("torn.pcap", file);
    let (code, told, stderr) = profile(&[torn.path(), "--flow", "2"]);
    assert!(code == 4 && stderr.contains("cut off"), "{code} {stderr}");
    assert_eq!(number(&told["profile"]["messages"]), 3);
    let (code, _, stderr) = profile(&["/nonexistent/capture.pcap"]);
    assert!(code == 2 && stderr.contains("cannot open"), "{code} {stderr}");
}

#[test]
fn people_are_told_in_lines() {
    let capture = Scratch::new("people.pcapng", pcapng(&two_flows(), usize::MAX));
    let output = Command::new(env!("CARGO_BIN_EXE_netjoule-traffic"))
        .args(["profile", capture.path(), "--flow", "2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "*  2  UDP 192.0.2.33:5000 > 198.51.100.44:7000  4 messages",
        "16 to 120 bytes",
        "raised to 16",
        "ms median",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
