// SPDX-License-Identifier: Apache-2.0
//! What the two ends say to each other beside the data: one JSON object per line. Pure.
//!
//! ```text
//! client                              server
//!   hello(version, nonce, flow) ->
//!                               <-    challenge(nonce)                   (when the server has a shared secret)
//!   proof                       ->
//!                               <-    welcome(token, data port, offer, proof) | failure(code, message)
//!   profile(part) ...           ->    (only where the server is to send what a profile gives)
//!   ... the client opens the data path and proves the token ...
//!                               <-    open
//!   clock(t0)                   ->                                     (not on the same boot: 8 times now and after
//!                               <-    clock_answer(t0, t1, t2)          the messages, every 10 s between)
//!   compared(t0, t1, t2, t3)    ->
//!   go(offset)                  ->
//!                               <-    started
//!   ... messages; either end may say stop ...
//!   finished(messages sent)     ->    (from whichever end sends messages)
//!   intervals ..., part         <->   (each end's half, to the client in the end)
//!   end                         ->
//! ```
//! A connection that ends early ends the flow. How the two ends greet each other is [`crate::greeting`]'s, in which order
//! they may speak afterwards [`crate::order`]'s.

use netjoule_transport::message::{HEADER_BYTES, SEQUENCE_LIMIT};
use netjoule_transport::{Values, TOKEN_BYTES};
use serde::{Deserialize, Serialize};

use crate::clock_offset::Exchange;
use crate::failure::{Code, Failure, Outcome};
use crate::intervals::Interval;
use crate::load::ProfileRequest;
use crate::pacing::Mode;
use crate::report::{Direction, Generator, PathFacts, ReceiverPart, SenderPart};
use crate::schedule::profile::LONGEST_TEXT_BYTES;
use crate::schedule::{Schedule, MOST_MESSAGES};
use crate::traces::CongestionSample;

/// Version of this protocol; both ends must have the same.
pub const VERSION: u32 = 2;
/// What a hello starts with.
pub const PROTOCOL: &str = "netjoule";
/// Longest line in bytes, line feed included.
pub const LINE_BYTES: usize = 64 << 10;
/// Intervals per line; keeps a line well under [`LINE_BYTES`].
pub const INTERVALS_PER_LINE: usize = 80;
/// Intervals per end and flow.
pub const INTERVALS: usize = 200_000;
/// Samples of congestion control per line.
pub const SAMPLES_PER_LINE: usize = 80;
/// Samples of congestion control per flow.
pub const SAMPLES: usize = INTERVALS + 2;
/// Longest interval of a report, ns: a day.
pub const LONGEST_INTERVAL_NS: u64 = 86_400 * 1_000_000_000;
/// Longest name of a transport that is worth looking up, in bytes.
const TRANSPORT_NAME_BYTES: usize = 32;
/// Characters of a profile per line; escaped they stay well under [`LINE_BYTES`].
pub const PROFILE_CHARACTERS_PER_LINE: usize = 10_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Client: who I am and what I want.
    Hello(Box<Hello>),
    /// Server: prove that you know the shared secret.
    Challenge {
        /// Server's nonce, in hexadecimal.
        nonce: String,
    },
    /// Client: I know it.
    Proof {
        /// The client's proof ([`crate::secret`]), in hexadecimal.
        proof: String,
    },
    /// Server: come in.
    Welcome(Box<Welcome>),
    /// Either: this flow ends here, for this reason.
    Failure {
        /// Name of a [`Code`].
        code: String,
        /// One sentence.
        message: String,
    },
    /// Client: some of the profile that the server is to send by, in order.
    Profile {
        /// At most [`PROFILE_CHARACTERS_PER_LINE`].
        part: String,
    },
    /// Server: the data path stands.
    Open,
    /// Client: what time is it?
    Clock {
        /// Client's clock, ns.
        asked_ns: i64,
    },
    /// Server: its clock.
    ClockAnswer {
        /// The question's time stamp.
        asked_ns: i64,
        /// Server's clock at arrival of the question, ns.
        arrived_ns: i64,
        /// Server's clock at the answer, ns.
        answered_ns: i64,
    },
    /// Client: what a comparison of clocks gave.
    Compared {
        /// All four time stamps.
        exchange: Exchange,
    },
    /// Client: start. `offset_ns` is the server's clock minus the client's.
    Go {
        /// Clock offset for one-way delays, ns.
        offset_ns: i64,
    },
    /// Server: started.
    Started,
    /// Either: please end the flow early.
    Stop,
    /// Sending end: nothing more will come.
    Finished {
        /// Messages sent in all.
        messages_sent: u64,
    },
    /// Some of this end's intervals, in order.
    Intervals {
        /// At most [`INTERVALS_PER_LINE`].
        intervals: Vec<Interval>,
    },
    /// Some of the sending end's samples of congestion control, in order.
    Congestion {
        /// At most [`SAMPLES_PER_LINE`].
        samples: Vec<CongestionSample>,
    },
    /// The sending end's half of the report.
    SenderPart {
        /// Counts.
        sender: Box<SenderPart>,
        /// Path and packets.
        path: PathFacts,
    },
    /// The receiving end's half of the report.
    ReceiverPart {
        /// Counts.
        receiver: Box<ReceiverPart>,
    },
    /// Client: all done, close.
    End,
}

/// The client's first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: String,
    /// [`VERSION`].
    pub version: u32,
    /// Program of the client.
    pub generator: Generator,
    /// Boot of the client's host.
    pub boot_id: String,
    /// Client's nonce for proofs of a shared secret, in hexadecimal.
    pub nonce: String,
    /// What is asked for.
    pub flow: FlowRequest,
}

/// A flow as the client wants it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRequest {
    /// Random name of the flow.
    pub flow_id: String,
    /// Transport by its command-line name.
    pub transport: String,
    /// Who sends.
    pub direction: Direction,
    /// Message size; with a profile the greatest that it can give.
    pub payload_bytes: u64,
    /// Payload bit/s; with a profile the mean of its schedule.
    pub rate_bps: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Interval length.
    pub interval_ns: u64,
    /// How messages are timed.
    #[serde(default)]
    pub pacing: Mode,
    /// Coalescing window.
    pub window_us: u64,
    /// GSO trains.
    pub gso: bool,
    /// Seed of the payload.
    pub seed: u64,
    /// IP address of the server as the client will use it for the data.
    pub data_address: std::net::IpAddr,
    /// The control connection runs over another address than the data.
    pub control_apart: bool,
    /// Options of the transport, as its own check completed them.
    #[serde(default)]
    pub options: Values,
    /// Sample the sending end's congestion control once per interval.
    #[serde(default)]
    pub traces: bool,
    /// What is sent when it is not messages of one size at a constant rate.
    #[serde(default)]
    pub profile: Option<ProfileRequest>,
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Program of the server.
    pub generator: Generator,
    /// Boot of the server's host.
    pub boot_id: String,
    /// Port of the data path.
    pub data_port: u16,
    /// The flow's secret, in hexadecimal.
    pub token: String,
    /// What the transport needs to connect.
    pub offer: Values,
    /// The server's proof of a shared secret, in hexadecimal; none where it asked for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// What a server allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Longest flow.
    pub duration_ns: u64,
    /// Greatest payload rate.
    pub rate_bps: u64,
}

impl FlowRequest {
    /// Refuse what makes no sense or goes beyond `caps`, with a sentence that names the limit.
    pub fn check(&self, caps: Caps) -> Outcome<()> {
        let usage = |message: String| Err(Failure::new(Code::Usage, message));
        if self.payload_bytes == 0 || self.rate_bps == 0 || self.duration_ns == 0 || self.interval_ns == 0 {
            return usage("size, rate, duration and interval must be above zero".into());
        }
        if let Err(sentence) = self.pacing.fits(self.window_us, self.gso) {
            return usage(sentence.into());
        }
        if self.interval_ns > LONGEST_INTERVAL_NS {
            return usage("an interval is at most a day".into());
        }
        let intervals = self.duration_ns / self.interval_ns;
        if intervals > INTERVALS as u64 / 2 {
            return usage(format!(
                "{intervals} intervals are too many; ask for longer ones (at most {} per flow)",
                INTERVALS / 2
            ));
        }
        if self.duration_ns > caps.duration_ns {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows flows of at most {} s, asked for {} s (serve --max-duration-s)",
                    caps.duration_ns as f64 * 1e-9,
                    self.duration_ns as f64 * 1e-9
                ),
            ));
        }
        if self.rate_bps > caps.rate_bps {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows at most {} Mb/s, asked for {} Mb/s (serve --max-rate)",
                    caps.rate_bps as f64 * 1e-6,
                    self.rate_bps as f64 * 1e-6
                ),
            ));
        }
        match &self.profile {
            None if self.constant_schedule().count() > SEQUENCE_LIMIT => {
                usage("more than 2^40 messages are too many; ask for fewer, larger ones".into())
            }
            None => Ok(()),
            Some(profile) => self.check_profile(profile, caps),
        }
    }

    /// A profile of another end: its figures must fit each other and the server's cap also in bursts.
    fn check_profile(&self, profile: &ProfileRequest, caps: Caps) -> Outcome<()> {
        let facts = &profile.facts;
        let sizes = HEADER_BYTES as u64..=self.payload_bytes;
        let fits = facts.messages <= MOST_MESSAGES as u64
            && sizes.contains(&facts.least_message_bytes)
            && sizes.contains(&facts.greatest_message_bytes)
            && facts.mean_rate_bps(self.duration_ns) == self.rate_bps
            && profile.text_bytes <= LONGEST_TEXT_BYTES as u64
            && (profile.text_bytes > 0) == (self.direction == Direction::Down);
        if !fits {
            return Err(Failure::new(Code::Usage, "the profile's figures contradict the flow's"));
        }
        if facts.burst_rate_bps > caps.rate_bps {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows at most {} Mb/s, and the profile's bursts have {} Mb/s over 10 ms (serve --max-rate)",
                    caps.rate_bps as f64 / 1e6,
                    facts.burst_rate_bps as f64 / 1e6
                ),
            ));
        }
        Ok(())
    }

    /// The schedule of a flow without a profile.
    pub fn constant_schedule(&self) -> Schedule {
        Schedule::new(self.rate_bps, self.payload_bytes, self.duration_ns)
    }

    /// Name of the flow's schedule.
    pub fn schedule_digest(&self) -> String {
        self.profile
            .as_ref()
            .map_or_else(|| self.constant_schedule().digest(), |profile| profile.digest.clone())
    }
}

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
        return Err(Failure::new(
            Code::Protocol,
            format!(
                "the client speaks version {theirs} of the control protocol, this server version {VERSION}; use the same netjoule-traffic at both ends",
            ),
        ));
    }
    let Message::Hello(hello) = decode(line)? else { return Err(unknown()) };
    let id = &hello.flow.flow_id;
    // Both names are printed: they must not be able to fill a log or steer a terminal.
    if hello.flow.transport.len() > TRANSPORT_NAME_BYTES {
        let message = format!("a transport's name has at most {TRANSPORT_NAME_BYTES} bytes");
        return Err(Failure::new(Code::Usage, message));
    }
    if id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Failure::new(Code::Usage, "a flow's name is at most 64 letters, digits and dashes"));
    }
    Ok(*hello)
}

/// A failure that the peer sent, with its sentence made fit for a terminal: one line, not endless.
pub fn refusal(code: &str, message: &str) -> Failure {
    Failure::new(Code::named(code), printable(message, 500))
}

/// The first `most` characters of what a peer said that cannot steer a terminal.
fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
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
        _ => Err(Failure::new(Code::Protocol, format!("the peer sent a line of over {LINE_BYTES} bytes"))),
    }
}

/// A failure as a message.
pub fn failure_message(failure: &Failure) -> Message {
    Message::Failure { code: failure.code.name().into(), message: failure.message.clone() }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes from hexadecimal; `None` for any other text.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |index: usize| char::from(digits[index]).to_digit(16).map(|value| value as u8);
    let mut bytes = [0; N];
    for (byte, index) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = digit(index)? << 4 | digit(index + 1)?;
    }
    Some(bytes)
}

/// A token as text.
pub fn token_text(token: &[u8; TOKEN_BYTES]) -> String {
    hex(token)
}

/// A token from text.
pub fn token_from(text: &str) -> Outcome<[u8; TOKEN_BYTES]> {
    from_hex(text).ok_or_else(|| Failure::new(Code::Protocol, "the server sent a malformed token"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ProfileFacts;
    use proptest::prelude::*;

    const CAPS: Caps = Caps { duration_ns: 10_000_000_000, rate_bps: 1_000_000 };

    fn request() -> FlowRequest {
        FlowRequest {
            flow_id: "ab-12".into(),
            transport: "udp".into(),
            direction: Direction::Up,
            payload_bytes: 64,
            rate_bps: 1_000_000,
            duration_ns: 10_000_000_000,
            interval_ns: 100_000_000,
            pacing: Mode::Absolute,
            window_us: 0,
            gso: false,
            seed: 7,
            data_address: "127.0.0.1".parse().unwrap(),
            control_apart: false,
            options: Values::new(),
            traces: false,
            profile: None,
        }
    }

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
    fn requests_beyond_the_caps_are_refused_by_name() {
        assert_eq!(request().check(CAPS), Ok(()));
        let fast = FlowRequest { rate_bps: 1_000_001, ..request() };
        assert!(fast.check(CAPS).unwrap_err().message.contains("--max-rate"));
        let long = FlowRequest { duration_ns: 10_000_000_001, ..request() };
        assert!(long.check(CAPS).unwrap_err().message.contains("--max-duration-s"));
        let fine = FlowRequest { interval_ns: 1, ..request() };
        assert!(fine.check(CAPS).unwrap_err().message.contains("intervals"));
        let shared = FlowRequest { pacing: Mode::SoTxtime, window_us: 50, ..request() };
        assert!(shared.check(CAPS).unwrap_err().message.contains("window"));
        let endless = Caps { duration_ns: u64::MAX, rate_bps: u64::MAX };
        let many = FlowRequest { rate_bps: 1 << 50, duration_ns: 1 << 50, interval_ns: 1 << 40, ..request() };
        assert!(many.check(endless).unwrap_err().message.contains("2^40 messages"));
        // Beyond any number that the arithmetic of intervals could hold.
        let endless = FlowRequest { interval_ns: u64::MAX, ..request() };
        assert!(endless.check(CAPS).unwrap_err().message.contains("at most a day"));
        let empty = FlowRequest { payload_bytes: 0, ..request() };
        assert_eq!(empty.check(CAPS).unwrap_err().code, Code::Usage);
    }

    /// 1000 messages of 64 to 200 bytes in 10 s.
    fn profiled() -> FlowRequest {
        let facts = ProfileFacts {
            name: "x".into(),
            shape: "messages".into(),
            seed: 1,
            messages: 1_000,
            bytes: 100_000,
            least_message_bytes: 64,
            greatest_message_bytes: 200,
            last_due_ns: 9_000_000_000,
            burst_rate_bps: 900_000,
        };
        FlowRequest {
            payload_bytes: 200,
            rate_bps: 80_000,
            profile: Some(ProfileRequest { facts, digest: "fnv1a64:0".into(), text_bytes: 0 }),
            ..request()
        }
    }

    #[test]
    fn a_profile_is_told_and_its_figures_must_fit() {
        assert_eq!(profiled().check(CAPS), Ok(()));
        assert_eq!(profiled().schedule_digest(), "fnv1a64:0");
        let line = serde_json::to_string(&profiled()).unwrap();
        assert_eq!(serde_json::from_str::<FlowRequest>(&line).unwrap(), profiled());
        let contradictions: [fn(&mut FlowRequest); 6] = [
            |flow| flow.rate_bps += 1,
            |flow| flow.payload_bytes = 199,
            |flow| flow.direction = Direction::Down,
            |flow| flow.profile.as_mut().unwrap().text_bytes = 1,
            |flow| flow.profile.as_mut().unwrap().facts.least_message_bytes = 15,
            |flow| flow.profile.as_mut().unwrap().facts.messages = u64::MAX,
        ];
        for contradict in contradictions {
            let mut flow = profiled();
            contradict(&mut flow);
            assert_eq!(flow.check(CAPS).unwrap_err().code, Code::Usage, "{flow:?}");
        }
        let mut bursts = profiled();
        bursts.profile.as_mut().unwrap().facts.burst_rate_bps = 1_000_001;
        let refusal = bursts.check(CAPS).unwrap_err();
        assert!(refusal.code == Code::Refused && refusal.message.contains("--max-rate"), "{refusal}");
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

        #[test]
        fn tokens_survive_as_text(token: [u8; TOKEN_BYTES]) {
            prop_assert_eq!(token_from(&token_text(&token)).unwrap(), token);
        }

        #[test]
        fn a_request_of_any_numbers_is_taken_or_refused_and_one_that_is_taken_stays_within_bounds(
            numbers: [u64; 6], exponents in proptest::collection::vec(0_u32..64, 6), gso: bool,
        ) {
            let number = |index: usize| numbers[index] >> exponents[index];
            let wild = FlowRequest {
                payload_bytes: number(0),
                rate_bps: number(1),
                duration_ns: number(2),
                interval_ns: number(3),
                window_us: number(4),
                seed: number(5),
                gso,
                ..request()
            };
            if wild.check(CAPS).is_ok() {
                prop_assert!(wild.duration_ns <= CAPS.duration_ns && wild.rate_bps <= CAPS.rate_bps);
                prop_assert!(wild.duration_ns / wild.interval_ns <= INTERVALS as u64 / 2);
                prop_assert!(wild.interval_ns <= LONGEST_INTERVAL_NS && wild.payload_bytes > 0);
            }
        }

        #[test]
        fn other_texts_are_no_tokens(text in "\\PC{0,40}") {
            prop_assume!(text.len() != 32);
            prop_assert!(token_from(&text).is_err());
        }
    }
}
