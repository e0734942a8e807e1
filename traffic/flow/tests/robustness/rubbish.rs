// SPDX-License-Identifier: Apache-2.0
//! Malformed control messages: any bytes, endless lines, absurd values, the wrong order. Each is answered with a sentence
//! or a closed connection, and the server serves on.

use serde_json::{json, Value};

use crate::conversation::{hello, request, Conversation};
use crate::harness::{assert_honest, send, Server};

/// More than the server has when it has just begun, less than any of these could make it take unbounded.
const MOST_RESIDENT_KB: u64 = 64 << 10;

/// Resident memory of a process in KB. VmRSS of status would lag behind by some pages per core.
pub(crate) fn resident_kb(process: u32) -> u64 {
    let sums = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = sums.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The most resident memory that a process ever had, in KB.
pub(crate) fn most_resident_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[track_caller]
fn assert_serves(server: &mut Server) {
    assert!(server.child.try_wait().unwrap().is_none(), "the server has ended");
    assert!(resident_kb(server.child.id()) < MOST_RESIDENT_KB);
    let finished = send(&["--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_honest(finished.report());
}

/// Code of the refusal of a first line.
#[track_caller]
fn refused(server: &Server, first_line: &Value) -> (String, String) {
    let mut conversation = Conversation::begin(&server.control);
    conversation.say(first_line);
    conversation.refusal()
}

#[test]
fn bytes_that_are_no_greeting_are_answered_in_words() {
    let mut server = Server::start("127.0.0.1", &[]);
    let deep = ["[".repeat(60_000), "\n".into()].concat();
    let wide = format!("[{}0]\n", "0,".repeat(30_000));
    let lines: [&[u8]; 9] = [
        b"\n",
        b"\0\0\0\0\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
        b"{\"type\":\"hello\"\n",
        b"{\"type\":\"hello\",\"protocol\":\"netjoule\",\"version\":1e999}\n",
        b"\xff\xfe\xfd\n",
        deep.as_bytes(),
        wide.as_bytes(),
    ];
    for line in lines {
        let mut conversation = Conversation::begin(&server.control);
        conversation.say_bytes(line);
        let (code, _) = conversation.refusal();
        assert_eq!(code, "protocol", "{:?}", &line[..line.len().min(40)]);
    }
    assert_serves(&mut server);
}

#[test]
fn an_endless_line_and_one_that_never_ends_are_cut_off() {
    let mut server = Server::start("127.0.0.1", &[]);
    let mut endless = Conversation::begin(&server.control);
    for _ in 0..1_000 {
        endless.say_bytes(&[b'x'; 4_096]);
    }
    // Who is refused while it is still talking may lose the refusal; it is cut off in any case.
    while endless.hear().is_some() {}
    let mut half = Conversation::begin(&server.control);
    half.say_bytes(b"{\"type\":\"hello\",");
    half.fall_silent();
    assert_eq!(half.hear(), None);
    assert_serves(&mut server);
}

#[test]
fn absurd_values_are_refused() {
    let mut server = Server::start("127.0.0.1", &[]);
    let most = json!(u64::MAX);
    let names = ["payload_bytes", "rate_bps", "duration_ns", "interval_ns", "window_us", "seed"];
    for name in names {
        for absurd in [json!(-1), json!(1.5), json!("many"), json!(null), json!(1e30), json!([])] {
            let (code, _) = refused(&server, &hello(&request(&json!({ name: absurd }))));
            assert_eq!(code, "protocol", "{name} {absurd}");
        }
    }
    for (changes, code) in [
        (json!({ "payload_bytes": most }), "too_large"),
        (json!({ "payload_bytes": 0 }), "usage"),
        (json!({ "payload_bytes": 1 }), "usage"),
        (json!({ "transport": "tcp", "payload_bytes": 1_u64 << 40 }), "too_large"),
        (json!({ "rate_bps": most }), "refused"),
        (json!({ "rate_bps": 0, "window_us": 5 }), "usage"),
        (json!({ "rate_bps": 0, "messages": 0 }), "usage"),
        (json!({ "messages": 5 }), "usage"),
        (json!({ "omit_ns": most }), "usage"),
        (json!({ "duration_ns": most }), "usage"),
        (json!({ "duration_ns": most, "interval_ns": 86_400_000_000_000_u64 }), "usage"),
        (json!({ "duration_ns": 86_400_000_000_000_u64, "interval_ns": 60_000_000_000_u64 }), "refused"),
        (json!({ "interval_ns": most }), "usage"),
        (json!({ "interval_ns": 1 }), "usage"),
        (json!({ "transport": "x".repeat(60_000) }), "usage"),
        (json!({ "transport": "sctp\u{1b}[31m" }), "usage"),
        (json!({ "flow_id": "\u{1b}]0;x\u{7}" }), "usage"),
        (json!({ "options": { "no_such_option": [[[[]]]] } }), "usage"),
        (json!({ "options": { "no_such_option": "x".repeat(60_000) } }), "usage"),
        (json!({ "transport": "dccp", "options": { "ccid": 1e300 } }), "usage"),
        (json!({ "data_address": "224.0.0.1:80" }), "protocol"),
        (json!({ "data_address": "::1" }), "refused"),
        (json!({ "control_apart": true }), "refused"),
        (json!({ "direction": "sideways" }), "protocol"),
    ] {
        let (got, message) = refused(&server, &hello(&request(&changes)));
        let shown = changes.to_string();
        assert_eq!(got, code, "{}: {message}", &shown[..shown.len().min(80)]);
        assert!(!message.contains('\u{1b}') && message.len() < 1_000, "{message:?}");
    }
    assert_serves(&mut server);
}

#[test]
fn values_at_the_edge_of_what_is_allowed_are_served_or_refused_and_end() {
    let mut server = Server::start("127.0.0.1", &[]);
    for changes in [
        json!({ "window_us": u64::MAX, "seed": u64::MAX }),
        json!({ "interval_ns": 86_400_000_000_000_u64 }),
        json!({ "rate_bps": 1 }),
        json!({ "rate_bps": 0, "messages": u64::MAX }),
        json!({ "rate_bps": 10_000_000_000_u64, "payload_bytes": 16 }),
        json!({ "duration_ns": 1, "interval_ns": 1 }),
    ] {
        let mut conversation = Conversation::begin(&server.control);
        conversation.say(&hello(&request(&changes)));
        let answer = conversation.hear().unwrap();
        assert_eq!(answer["type"], "welcome", "{changes}: {answer}");
        drop(conversation);
        assert_eq!(server.expect("flow_failed")["code"], "control_lost", "{changes}");
    }
    assert_serves(&mut server);
}

#[test]
fn who_speaks_out_of_turn_is_cut_off() {
    let mut server = Server::start("127.0.0.1", &[]);
    for message in [
        json!({ "type": "finished", "messages_sent": u64::MAX }),
        json!({ "type": "stop" }),
        json!({ "type": "open" }),
        json!({ "type": "started" }),
        json!({ "type": "intervals", "intervals": [] }),
        json!({ "type": "clock_answer", "asked_ns": 0, "arrived_ns": 0, "answered_ns": 0 }),
        json!({ "type": "proof", "proof": "00" }),
        hello(&request(&json!({}))),
    ] {
        let mut conversation = Conversation::begin(&server.control);
        conversation.say(&hello(&request(&json!({}))));
        assert_eq!(conversation.hear().unwrap()["type"], "welcome");
        conversation.say(&message);
        let (code, sentence) = conversation.refusal();
        assert_eq!(code, "protocol", "{message}");
        assert!(sentence.contains("out of turn"), "{sentence}");
        server.expect("flow_failed");
    }
    // Two greetings in one breath.
    let mut hasty = Conversation::begin(&server.control);
    let line = format!("{}\n", hello(&request(&json!({}))));
    hasty.say_bytes(line.repeat(2).as_bytes());
    assert_eq!(hasty.refusal().0, "protocol");
    assert_serves(&mut server);
}

#[test]
fn a_flow_that_is_talked_to_without_end_ends() {
    let mut server = Server::start("127.0.0.1", &[]);
    let mut conversation = Conversation::begin(&server.control);
    conversation.say(&hello(&request(&json!({}))));
    assert_eq!(conversation.hear().unwrap()["type"], "welcome");
    // Nothing of this is ever read: the answers fill the connection until the server gives up.
    let questions = "{\"type\":\"clock\",\"asked_ns\":0}\n".repeat(1_000);
    let mut stream = conversation;
    for _ in 0..400 {
        stream.say_bytes(questions.as_bytes());
    }
    let failed = server.expect("flow_failed");
    assert!(["protocol", "control_lost", "timeout"].contains(&failed["code"].as_str().unwrap()), "{failed}");
    drop(stream);
    assert_serves(&mut server);
}
