// SPDX-License-Identifier: Apache-2.0
//! A server that is to send millions of a profile's messages: it computes them while it serves, and only as many as it
//! allows and as were announced.

use serde_json::{json, Value};

use crate::conversation::{hello, request, Conversation};
use crate::harness::Server;
use crate::reflection::{handshake, socket, welcomed};

/// About three million messages in 30 s.
const PROFILE: &str = r#"{"schema_version":1,"name":"many","messages":{"size_bytes":64,
    "inter_departure_s":{"distribution":"exponential","mean":0.00001}}}"#;
const DURATION_S: u64 = 30;
const MESSAGES: u64 = 3_200_000;

/// A flow to the client by [`PROFILE`], of so many messages as the client says.
fn flow(messages: u64) -> Value {
    let bytes = messages * 64;
    json!({
        "direction": "down",
        "payload_bytes": 64,
        "rate_bps": (bytes * 8).div_ceil(DURATION_S),
        "duration_ns": DURATION_S * 1_000_000_000,
        "interval_ns": 1_000_000_000,
        "profile": {
            "facts": {
                "name": "many",
                "shape": "messages",
                "seed": 1,
                "messages": messages,
                "bytes": bytes,
                "least_message_bytes": 64,
                "greatest_message_bytes": 64,
                "last_due_ns": 1,
                "burst_rate_bps": 100_000_000,
            },
            "digest": "fnv1a64:0",
            "text_bytes": PROFILE.len(),
        },
    })
}

#[test]
fn a_server_that_computes_a_long_schedule_answers_meanwhile() {
    let server = Server::start("127.0.0.1", &[]);
    let (mut conversation, data, token) = welcomed(&server, &flow(MESSAGES));
    let peer = socket("127.0.0.1");
    let mut answer = [0; 2048];
    peer.send_to(&handshake(1, &token, &[0; 16]), data).unwrap();
    peer.recv(&mut answer).unwrap();
    peer.send_to(&handshake(3, &token, &answer[21..37]), data).unwrap();
    peer.recv(&mut answer).unwrap();
    assert_eq!(&answer[..5], b"NJUD\x04");
    conversation.say(&json!({ "type": "profile", "part": PROFILE }));
    // The first question may come with the profile. The others come while the server computes.
    for asked_ns in 0..3 {
        conversation.say(&json!({ "type": "clock", "asked_ns": asked_ns }));
        let heard = conversation.hear().unwrap();
        assert_eq!(
            (&heard["type"], &heard["asked_ns"]),
            (&"clock_answer".into(), &asked_ns.into()),
            "{heard}"
        );
    }
    // They were not as many as this client said.
    let (code, sentence) = conversation.refusal();
    assert!(code == "protocol" && sentence.contains("different schedules"), "{sentence}");
}

#[test]
fn a_server_computes_no_more_messages_than_it_allows() {
    let server = Server::start("127.0.0.1", &["--max-messages", "1000"]);
    let mut conversation = Conversation::begin(&server.control);
    conversation.say(&hello(&request(&flow(1_001))));
    let (code, sentence) = conversation.refusal();
    assert!(code == "refused" && sentence.contains("--max-messages"), "{sentence}");
}
