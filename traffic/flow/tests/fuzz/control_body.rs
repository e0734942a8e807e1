// SPDX-License-Identifier: Apache-2.0
//! What the fuzz target `control` asserts about any bytes. Shared by path with the fuzz crate.

use netjoule_measure::failure::Failure;
use netjoule_traffic::control::greeting::{Call, Greeting, Reply, Step, HELLO_BYTES};
use netjoule_traffic::control::order::{Order, Side};
use netjoule_traffic::control::secret::{Secret, NONCE_BYTES};
use netjoule_traffic::control::{self, Caps, FlowRequest, Hello, Message, LINE_BYTES};
use netjoule_traffic::report::Generator;

/// Nonces are arguments: each end's is always the same here.
const CLIENT: [u8; NONCE_BYTES] = [3; NONCE_BYTES];
const SERVER: [u8; NONCE_BYTES] = [4; NONCE_BYTES];
const CAPS: Caps =
    Caps { duration_ns: 3_600_000_000_000, rate_bps: 10_000_000_000, unpaced: true, messages: 4_000_000 };

/// The first byte chooses: its lowest bit whether there is a secret, the others into pieces of which length the rest is
/// cut. The rest is said to a server, and as a server to a client.
pub(crate) fn control(bytes: &[u8]) {
    let Some((choice, said)) = bytes.split_first() else { return };
    let secret = Secret::new(b"correct horse battery staple", "here").expect("it is long enough");
    let secret = (choice & 1 == 1).then_some(secret);
    to_a_server(said, usize::from(choice >> 1) + 1, secret.as_ref());
    for side in [Side::Client, Side::Server] {
        in_a_flow(said, side);
    }
    to_a_client(said, secret.as_ref());
}

/// Nobody comes in without the secret, little is kept, and a refusal is one short line.
fn to_a_server(said: &[u8], piece_bytes: usize, secret: Option<&Secret>) {
    let mut greeting = Greeting::default();
    for piece in said.chunks(piece_bytes) {
        match greeting.hear(piece, secret, &mut || Ok(SERVER)) {
            Ok(Step::More) => {}
            Ok(Step::Say(message)) => {
                assert!(secret.is_some() && matches!(message, Message::Challenge { .. }), "{message:?}");
            }
            Ok(Step::Enter(guest)) => {
                assert!(secret.is_none(), "without the secret nobody can prove that he knows it");
                let id = &guest.hello.flow.flow_id;
                assert!(id.len() <= 64 && !id.chars().any(char::is_control), "{id:?}");
                return within_bounds(&guest.hello.flow);
            }
            Err(failure) => return is_a_sentence(&failure),
        }
        let most = 3 * LINE_BYTES + HELLO_BYTES + piece_bytes;
        assert!(greeting.held_bytes() <= most, "{} bytes", greeting.held_bytes());
    }
}

/// What the server would serve is within its limits.
fn within_bounds(flow: &FlowRequest) {
    match flow.check(CAPS) {
        Ok(()) => {
            assert!(flow.duration_ns <= CAPS.duration_ns && flow.rate_bps <= CAPS.rate_bps);
            assert!(flow.duration_ns / flow.interval_ns <= control::INTERVALS as u64);
        }
        Err(failure) => is_a_sentence(&failure),
    }
}

/// Each line is a message in its turn or a failure; a message survives being written and read again.
fn in_a_flow(said: &[u8], side: Side) {
    let mut order = Order::of(side);
    let mut received = said.to_vec();
    loop {
        let line = match control::take_line(&mut received) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(failure) => return is_a_sentence(&failure),
        };
        let message = match control::decode(&line) {
            Ok(message) => message,
            Err(failure) => return is_a_sentence(&failure),
        };
        let written = control::encode(&message);
        assert_eq!(written.matches('\n').count(), 1);
        let again = control::decode(written.trim_end().as_bytes()).expect("what was written is read");
        // Not the message itself: a decimal fraction may be read a bit off.
        assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&message));
        if let Err(failure) = order.admit(&message) {
            return is_a_sentence(&failure);
        }
    }
}

/// A server that does not know the secret is not believed.
fn to_a_client(said: &[u8], secret: Option<&Secret>) {
    let Some(hello) = hello() else { return };
    let mut call = Call::new(hello, CLIENT, secret);
    let mut received = said.to_vec();
    while let Ok(Some(line)) = control::take_line(&mut received) {
        let Ok(message) = control::decode(&line) else { return };
        match call.hear(message) {
            Ok(Reply::Say(answer)) => {
                assert!(secret.is_some() && matches!(answer, Message::Proof { .. }), "{answer:?}");
            }
            Ok(Reply::Enter(_)) => return assert!(secret.is_none(), "this server cannot know the secret"),
            Err(failure) => return is_a_sentence(&failure),
        }
    }
}

/// What a client would say; fields that have a default are left out.
fn hello() -> Option<Hello> {
    let flow = serde_json::json!({
        "flow_id": "ab-12", "transport": "udp", "direction": "up", "payload_bytes": 64, "rate_bps": 1_000_000,
        "duration_ns": 1_000_000_000, "interval_ns": 100_000_000, "window_us": 0, "gso": false, "seed": 7,
        "data_address": "127.0.0.1", "control_apart": false,
    });
    Some(Hello {
        protocol: control::PROTOCOL.into(),
        version: control::VERSION,
        generator: Generator::this(),
        boot_id: String::new(),
        nonce: String::new(),
        flow: serde_json::from_value(flow).ok()?,
    })
}

/// Fit for a terminal: one line, not endless.
fn is_a_sentence(failure: &Failure) {
    let message = &failure.message;
    assert!(!message.is_empty() && message.chars().count() < 700, "{message:?}");
    assert!(!message.chars().any(char::is_control), "{message:?}");
}
