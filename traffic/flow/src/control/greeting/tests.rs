// SPDX-License-Identifier: Apache-2.0
//! Both halves of the greeting against each other and against rubbish.

use netjoule_transport::Values;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::control::secret::NONCE_BYTES;
use crate::control::{PROTOCOL, VERSION};
use crate::report::Generator;

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes(), "a test").unwrap()
}

/// A client's first line, but for its nonce; what a later version may leave out is left out.
pub(crate) fn hello() -> Hello {
    serde_json::from_value(json!({
        "protocol": PROTOCOL,
        "version": VERSION,
        "generator": { "name": "a client", "version": "1" },
        "boot_id": "b",
        "nonce": "",
        "flow": {
            "flow_id": "ab-12",
            "transport": "udp",
            "direction": "up",
            "payload_bytes": 64,
            "rate_bps": 1_000_000,
            "duration_ns": 10_000_000_000_u64,
            "interval_ns": 100_000_000,
            "window_us": 0,
            "gso": false,
            "seed": 7,
            "data_address": "127.0.0.1",
            "control_apart": false,
        },
    }))
    .unwrap()
}

fn welcome(proof: Option<Proof>) -> Message {
    Message::Welcome(Box::new(Welcome {
        generator: Generator::this(),
        boot_id: "b".into(),
        data_port: 9,
        token: hex(&[1; 16]),
        offer: Values::new(),
        proof: proof.as_ref().map(|proof| hex(proof)),
    }))
}

/// The whole greeting: how it ended at the server and at the client.
fn greet(servers: Option<&Secret>, clients: Option<&Secret>) -> (Outcome<()>, Outcome<()>) {
    let mut call = Call::new(hello(), [3; NONCE_BYTES], clients);
    let mut greeting = Greeting::default();
    let mut said = control::encode(call.hello());
    loop {
        let answer = match greeting.hear(said.as_bytes(), servers, &mut || Ok([4; NONCE_BYTES])) {
            Ok(Step::Say(message)) => message,
            Ok(Step::Enter(guest)) => welcome(guest.proof),
            Ok(Step::More) => panic!("a whole line asks for more"),
            Err(failure) => {
                let refused = call.hear(control::failure_message(&failure)).map(drop);
                return (Err(failure), refused);
            }
        };
        let entered = matches!(answer, Message::Welcome(_));
        match call.hear(answer) {
            Ok(Reply::Say(message)) => said = control::encode(&message),
            Ok(Reply::Enter(_)) => return (Ok(()), Ok(())),
            Err(failure) if entered => return (Ok(()), Err(failure)),
            Err(failure) => return (Code::ControlLost.fail("the client left"), Err(failure)),
        }
    }
}

#[test]
fn without_a_secret_everybody_enters_and_with_the_same_one_who_has_it() {
    assert_eq!(greet(None, None), (Ok(()), Ok(())));
    let shared = secret("correct horse battery");
    assert_eq!(greet(Some(&shared), Some(&shared)), (Ok(()), Ok(())));
}

#[test]
fn a_wrong_or_missing_secret_is_refused_at_both_ends_in_words() {
    let (ours, theirs) = (secret("correct horse battery"), secret("incorrect horse battery"));
    let (server, client) = greet(Some(&ours), Some(&theirs));
    assert_eq!(server.unwrap_err().code, Code::Refused);
    let client = client.unwrap_err();
    assert_eq!(client.code, Code::Refused);
    assert!(client.message.contains("another shared secret"), "{client}");
    let (_, missing) = greet(Some(&ours), None);
    assert!(missing.unwrap_err().message.contains("asks for its shared secret"));
    let (_, unasked) = greet(None, Some(&ours));
    assert!(unasked.unwrap_err().message.contains("the server asked for none"));
}

#[test]
fn a_server_that_only_pretends_is_not_believed() {
    let ours = secret("correct horse battery");
    let challenge = || Message::Challenge { nonce: hex(&[4; NONCE_BYTES]) };
    for proof in [None, Some([0; 32])] {
        let mut call = Call::new(hello(), [3; NONCE_BYTES], Some(&ours));
        assert!(matches!(call.hear(challenge()), Ok(Reply::Say(Message::Proof { .. }))));
        assert_eq!(call.hear(welcome(proof)).unwrap_err().code, Code::Refused);
    }
    let mut call = Call::new(hello(), [3; NONCE_BYTES], Some(&ours));
    call.hear(challenge()).unwrap();
    assert_eq!(call.hear(challenge()).unwrap_err().code, Code::Protocol);
    // The client's own proof, sent back to it.
    let mut call = Call::new(hello(), [3; NONCE_BYTES], Some(&ours));
    let Ok(Reply::Say(Message::Proof { proof })) = call.hear(challenge()) else { panic!("no proof") };
    assert!(call.hear(welcome(from_hex(&proof))).is_err());
}

#[test]
fn an_overheard_proof_is_worth_nothing_on_another_connection() {
    let ours = secret("correct horse battery");
    let mut call = Call::new(hello(), [3; NONCE_BYTES], Some(&ours));
    let first = control::encode(call.hello());
    let Ok(Reply::Say(overheard)) = call.hear(Message::Challenge { nonce: hex(&[4; NONCE_BYTES]) }) else {
        panic!("no proof")
    };
    for (nonce, enters) in [(4, true), (5, false)] {
        let mut greeting = Greeting::default();
        let mut fresh = || Ok([nonce; NONCE_BYTES]);
        assert!(matches!(greeting.hear(first.as_bytes(), Some(&ours), &mut fresh), Ok(Step::Say(_))));
        let second = greeting.hear(control::encode(&overheard).as_bytes(), Some(&ours), &mut fresh);
        assert_eq!(second.is_ok(), enters);
    }
}

#[test]
fn who_speaks_before_being_asked_is_turned_away() {
    let line = control::encode(Call::new(hello(), [3; NONCE_BYTES], None).hello());
    for secret in [None, Some(secret("correct horse battery"))] {
        let mut greeting = Greeting::default();
        let both = format!("{line}{line}");
        let early = greeting.hear(both.as_bytes(), secret.as_ref(), &mut || Ok([4; NONCE_BYTES]));
        assert_eq!(early.unwrap_err().code, Code::Protocol);
    }
}

/// Hears `bytes` cut into pieces; how it ended.
fn hear_in_pieces(bytes: &[u8], pieces: &[usize], secret: Option<&Secret>) -> Option<Outcome<bool>> {
    let mut greeting = Greeting::default();
    let mut rest = bytes;
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        match greeting.hear(now, secret, &mut || Ok([4; NONCE_BYTES])) {
            Err(failure) => return Some(Err(failure)),
            Ok(Step::Enter(_)) => return Some(Ok(true)),
            Ok(Step::Say(_)) => return Some(Ok(false)),
            Ok(Step::More) if later.is_empty() => return None,
            Ok(Step::More) => rest = later,
        }
    }
    None
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_are_answered_and_never_let_in(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        pieces in proptest::collection::vec(1_usize..50, 1..8),
        has_secret: bool,
    ) {
        let secret = has_secret.then(|| secret("correct horse battery"));
        let outcome = hear_in_pieces(&bytes, &pieces, secret.as_ref());
        prop_assert!(!matches!(outcome, Some(Ok(_))), "{outcome:?}");
    }

    #[test]
    fn a_hello_is_one_however_it_is_cut(pieces in proptest::collection::vec(1_usize..200, 1..8)) {
        let line = control::encode(Call::new(hello(), [3; NONCE_BYTES], None).hello());
        prop_assert_eq!(hear_in_pieces(line.as_bytes(), &pieces, None), Some(Ok(true)));
    }

    #[test]
    fn a_hello_with_one_byte_changed_proves_nothing(at: prop::sample::Index, flip in 1_u8..=255) {
        let ours = secret("correct horse battery");
        let mut call = Call::new(hello(), [3; NONCE_BYTES], Some(&ours));
        let mut line = control::encode(call.hello()).into_bytes();
        let place = at.index(line.len() - 1);
        line[place] ^= flip;
        let mut greeting = Greeting::default();
        let mut fresh = || Ok([4; NONCE_BYTES]);
        if let Ok(Step::Say(challenge)) = greeting.hear(&line, Some(&ours), &mut fresh) {
            let Ok(Reply::Say(proof)) = call.hear(challenge) else { panic!("no proof") };
            let judged = greeting.hear(control::encode(&proof).as_bytes(), Some(&ours), &mut fresh);
            prop_assert!(judged.is_err());
        }
    }
}
