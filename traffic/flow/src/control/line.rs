// SPDX-License-Identifier: Apache-2.0
//! How messages look on the wire: one line of JSON each, of bounded length. Pure.

use netjoule_transport::Values;

use super::message::{Hello, Message, PROTOCOL, VERSION};
use super::text::printable;
use netjoule_measure::failure::{Code, Failure, Outcome};

/// Longest line in bytes, line feed included.
pub const LINE_BYTES: usize = 64 << 10;
/// Longest name of a transport that is worth looking up, in bytes.
const TRANSPORT_NAME_BYTES: usize = 32;
/// Options that a client may choose, and bytes of their names and texts: several times what any transport has. Each is a
/// name with one value: lists in lists would take a hundred times their text when they are kept.
const OPTIONS: usize = 16;
const OPTIONS_BYTES: usize = 1024;

/// A line for the wire, line feed included.
pub fn encode(message: &Message) -> String {
    let mut line = serde_json::to_string(message).expect("control messages always serialise");
    line.push('\n');
    line
}

/// A line from the wire.
pub fn decode(line: &[u8]) -> Outcome<Message> {
    serde_json::from_slice(line).map_err(|error| {
        // It may quote what was said.
        let error = printable(&error.to_string(), 200);
        Failure::new(Code::Protocol, format!("the peer said something unintelligible: {error}"))
    })
}

/// The hello in a client's first line.
pub fn expect_hello(line: &[u8]) -> Outcome<Hello> {
    let unknown =
        || Failure::new(Code::Protocol, "this is a netjoule-traffic control port; use netjoule-traffic send");
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|_| unknown())?;
    if value["type"] != "hello" || value["protocol"] != PROTOCOL {
        return Err(unknown());
    }
    if value["version"] != VERSION {
        let theirs =
            value["version"].as_u64().map_or_else(|| "unknown".into(), |version| version.to_string());
        return Code::Protocol.fail(format!(
                "the client speaks version {theirs} of the control protocol, this server version {VERSION}; use the same netjoule-traffic at both ends",
            ));
    }
    let Message::Hello(hello) = decode(line)? else { return Err(unknown()) };
    let id = &hello.flow.flow_id;
    // Both names are printed: they must not be able to fill a log or steer a terminal.
    if hello.flow.transport.len() > TRANSPORT_NAME_BYTES {
        let message = format!("a transport's name has at most {TRANSPORT_NAME_BYTES} bytes");
        return Code::Usage.fail(message);
    }
    if id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Code::Usage.fail("a flow's name is at most 64 letters, digits and dashes");
    }
    check_options(&hello.flow.options)?;
    Ok(*hello)
}

/// Refuse options that no transport has and that would take much to keep.
fn check_options(options: &Values) -> Outcome<()> {
    let text_bytes =
        |(name, value): (&String, &serde_json::Value)| name.len() + value.as_str().map_or(0, str::len);
    let are_flat = options.values().all(|value| !value.is_array() && !value.is_object());
    if are_flat && options.len() <= OPTIONS && options.iter().map(text_bytes).sum::<usize>() <= OPTIONS_BYTES
    {
        return Ok(());
    }
    let message = format!(
        "a transport has at most {OPTIONS} options of {OPTIONS_BYTES} bytes in all, each with one value"
    );
    Code::Usage.fail(message)
}

/// Cut the first whole line off `received`, without its line feed; an error when it is too long.
pub fn take_line(received: &mut Vec<u8>) -> Outcome<Option<Vec<u8>>> {
    match received.iter().position(|byte| *byte == b'\n') {
        Some(length) if length < LINE_BYTES => {
            let mut line: Vec<u8> = received.drain(..=length).collect();
            line.pop();
            Ok(Some(line))
        }
        None if received.len() < LINE_BYTES => Ok(None),
        _ => Code::Protocol.fail(format!("the peer sent a line of over {LINE_BYTES} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::{refusal, INTERVALS_PER_LINE, PROFILE_CHARACTERS_PER_LINE, SAMPLES_PER_LINE};
    use super::super::request::tests::request;
    use super::super::text::hex;
    use super::*;
    use crate::intervals::Interval;
    use crate::report::Generator;
    use crate::traces::CongestionSample;

    fn hello(version: u32) -> Message {
        Message::Hello(Box::new(Hello {
            protocol: PROTOCOL.into(),
            version,
            generator: Generator::this(),
            boot_id: "b".into(),
            nonce: hex(&[7; 16]),
            flow: request(),
        }))
    }

    #[test]
    fn messages_survive_the_wire() {
        let messages = [
            hello(VERSION),
            Message::Open,
            Message::Clock { asked_ns: -1 },
            Message::Failure { code: "busy".into(), message: "line\nfeed".into() },
            Message::Finished { messages_sent: 1 << 52 },
        ];
        for message in messages {
            let line = encode(&message);
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(decode(line.trim_end().as_bytes()).unwrap(), message);
        }
    }

    #[test]
    fn a_full_line_of_intervals_stays_under_the_limit() {
        let interval = Interval {
            end: crate::intervals::End::Receiver,
            start_ns: i64::MIN,
            end_ns: i64::MIN,
            messages: u64::MAX,
            bytes: u64::MAX,
            messages_lost: Some(u64::MAX),
            messages_duplicate: Some(u64::MAX),
            messages_reordered: Some(u64::MAX),
            jitter_ms: Some(f64::MIN_POSITIVE),
            goodput_mbps: f64::MIN_POSITIVE,
            cpu_s: f64::MIN_POSITIVE,
            cpu_user_s: Some(f64::MIN_POSITIVE),
            cpu_system_s: Some(f64::MIN_POSITIVE),
            context_switches_voluntary: u64::MAX,
            context_switches_involuntary: u64::MAX,
            host_irq_s: Some(f64::MIN_POSITIVE),
            host_softirq_s: Some(f64::MIN_POSITIVE),
            omitted: true,
        };
        let line = encode(&Message::Intervals { intervals: vec![interval; INTERVALS_PER_LINE] });
        assert!(line.len() < LINE_BYTES, "{}", line.len());
    }

    #[test]
    fn a_full_line_of_samples_stays_under_the_limit() {
        let congestion = netjoule_transport::Congestion {
            window_bytes: Some(u64::MAX),
            slow_start_threshold_bytes: Some(u64::MAX),
            pacing_rate_mbps: Some(f64::MIN_POSITIVE),
            in_flight_bytes: Some(u64::MAX),
            smoothed_rtt_ms: Some(f64::MIN_POSITIVE),
            rtt_variation_ms: Some(f64::MIN_POSITIVE),
            packets_lost: Some(u64::MAX),
            packets_retransmitted: Some(u64::MAX),
            loss_events: Some(u64::MAX),
        };
        let sample = CongestionSample { at_ns: i64::MIN, congestion };
        let line = encode(&Message::Congestion { samples: vec![sample; SAMPLES_PER_LINE] });
        assert!(line.len() < LINE_BYTES, "{}", line.len());
    }

    #[test]
    fn a_hello_of_another_version_is_told_so() {
        assert_eq!(expect_hello(encode(&hello(VERSION)).as_bytes()).unwrap().flow, request());
        let error = expect_hello(encode(&hello(VERSION + 1)).as_bytes()).unwrap_err();
        assert!(error.message.contains(&format!("version {}", VERSION + 1)), "{error}");
        for line in ["GET / HTTP/1.1", "{}", "null", "{\"type\":\"open\"}"] {
            assert_eq!(expect_hello(line.as_bytes()).unwrap_err().code, Code::Protocol);
        }
    }

    #[test]
    fn options_that_would_take_much_to_keep_are_refused() {
        let refused = |options: serde_json::Value| {
            let Message::Hello(mut hello) = hello(VERSION) else { panic!("not a hello") };
            hello.flow.options = options.as_object().unwrap().clone();
            expect_hello(encode(&Message::Hello(hello)).as_bytes())
                .is_err_and(|failure| failure.code == Code::Usage)
        };
        let numbered = |count: usize| (0..count).map(|number| (number.to_string(), 0.into())).collect();
        assert!(!refused(serde_json::json!({ "ccid": 3, "carrier": "udp", "ecn": true, "none": null })));
        assert!(!refused(serde_json::Value::Object(numbered(OPTIONS))));
        assert!(refused(serde_json::Value::Object(numbered(OPTIONS + 1))));
        assert!(refused(serde_json::json!({ "deep": [[]] })));
        assert!(refused(serde_json::json!({ "deep": {} })));
        assert!(refused(serde_json::json!({ "long": "x".repeat(OPTIONS_BYTES) })));
        assert!(refused(serde_json::json!({ "x".repeat(OPTIONS_BYTES + 1): 0 })));
    }

    #[test]
    fn a_full_line_of_a_profile_stays_under_the_limit() {
        for character in ["\"", "\n", "\u{1}", "\u{1f980}"] {
            let line = encode(&Message::Profile { part: character.repeat(PROFILE_CHARACTERS_PER_LINE) });
            assert!(line.len() < LINE_BYTES, "{}", line.len());
        }
    }

    #[test]
    fn names_and_sentences_cannot_steer_the_terminal() {
        let Message::Hello(mut hello) = hello(VERSION) else { panic!("not a hello") };
        hello.flow.flow_id = "\u{1b}[31m".into();
        let line = encode(&Message::Hello(hello));
        assert_eq!(expect_hello(line.as_bytes()).unwrap_err().code, Code::Usage);
        assert_eq!(refusal("busy", "no\u{1b}[31m way\n").message, "no[31m way");
        let Message::Hello(mut long) = self::hello(VERSION) else { panic!("not a hello") };
        long.flow.transport = "x".repeat(60_000);
        let refused = expect_hello(encode(&Message::Hello(long)).as_bytes()).unwrap_err();
        assert!(refused.code == Code::Usage && refused.message.len() < 100, "{refused}");
        let quoting =
            decode(format!(r#"{{"type":"\u001b]0;{}"}}"#, "x".repeat(9_999)).as_bytes()).unwrap_err();
        assert!(!quoting.message.contains('\u{1b}') && quoting.message.len() < 300, "{quoting}");
        assert_eq!(refusal("busy", &"x".repeat(9_999)).message.len(), 500);
    }

    proptest! {
        #[test]
        fn any_line_is_answered(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&line);
            prop_assert!(expect_hello(&line).is_err());
        }
    }
}
