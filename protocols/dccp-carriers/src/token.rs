// SPDX-License-Identifier: Apache-2.0
//! How a client proves the flow's token over an open DCCP connection. The same over every carrier. Pure.
//!
//! ```text
//! client                              server
//!   ... DCCP's own handshake: the client's address is proven ...
//!   "NJDC" 1 token            ->                                  repeated after 100, 200, 400, 800, 800, ... ms
//!                             <-      "NJDC" 2 token              to every question until data flows
//! ```
//! Messages of a flow start with a zero byte, so none is taken for one of these.

use netjoule_transport::backoff::Backoff;
use netjoule_transport::TOKEN_BYTES;

const MAGIC: &[u8; 4] = b"NJDC";
/// Length of both messages in bytes.
pub(crate) const MESSAGE_BYTES: usize = MAGIC.len() + 1 + TOKEN_BYTES;

const ASK: u8 = 1;
const ANSWER: u8 = 2;

pub(crate) type Token = [u8; TOKEN_BYTES];
pub(crate) type Message = [u8; MESSAGE_BYTES];

fn encode(step: u8, token: &Token) -> Message {
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(MAGIC);
    message[4] = step;
    message[5..].copy_from_slice(token);
    message
}

/// Whether this is one of ours (of any flow) rather than a message of a flow.
pub fn is_proof(bytes: &[u8]) -> bool {
    bytes.first_chunk() == Some(MAGIC)
}

/// The server's half.
#[derive(Debug, Clone)]
pub(crate) struct Verifier {
    token: Token,
}

/// What the server thinks of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The right token: send this back.
    Proven(Message),
    /// A question with another token.
    Wrong,
    /// No question.
    Other,
}

impl Verifier {
    pub(crate) fn new(token: Token) -> Self {
        Self { token }
    }

    pub(crate) fn on_message(&self, bytes: &[u8]) -> Verdict {
        if bytes.len() != MESSAGE_BYTES || !is_proof(bytes) || bytes[4] != ASK {
            return Verdict::Other;
        }
        // Every byte is compared, so that the time taken says nothing about where a wrong token differs.
        let differing = bytes[5..].iter().zip(&self.token).fold(0, |sum, (one, other)| sum | (one ^ other));
        if differing == 0 {
            Verdict::Proven(encode(ANSWER, &self.token))
        } else {
            Verdict::Wrong
        }
    }
}

/// The client's half.
#[derive(Debug, Clone)]
pub(crate) struct Prover {
    token: Token,
    backoff: Backoff,
}

impl Prover {
    pub(crate) fn new(token: Token, now_ns: i64) -> Self {
        Self { token, backoff: Backoff::new(now_ns) }
    }

    /// When [`Self::on_time`] has something to say.
    pub(crate) fn due_ns(&self) -> i64 {
        self.backoff.due_ns()
    }

    /// The question when it is due at `now_ns`.
    pub(crate) fn on_time(&mut self, now_ns: i64) -> Option<Message> {
        self.backoff.take_due(now_ns).then(|| encode(ASK, &self.token))
    }

    /// Whether the server accepted.
    pub(crate) fn on_message(&self, bytes: &[u8]) -> bool {
        bytes == encode(ANSWER, &self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: Token = [7; TOKEN_BYTES];

    #[test]
    fn a_question_with_the_right_token_is_answered_and_the_answer_believed() {
        let mut client = Prover::new(TOKEN, 5);
        assert_eq!(client.on_time(4), None);
        let question = client.on_time(5).unwrap();
        assert_eq!(&question[..5], b"NJDC\x01");
        let Verdict::Proven(answer) = Verifier::new(TOKEN).on_message(&question) else {
            panic!("not proven")
        };
        assert_eq!(&answer[..5], b"NJDC\x02");
        assert!(client.on_message(&answer) && !client.on_message(&question));
        assert_eq!(Verifier::new([8; TOKEN_BYTES]).on_message(&question), Verdict::Wrong);
    }

    #[test]
    fn questions_are_repeated_with_growing_pauses() {
        let mut client = Prover::new(TOKEN, 0);
        let mut asked_ms = Vec::new();
        for now_ms in 0..4_000 {
            if client.on_time(now_ms * 1_000_000).is_some() {
                asked_ms.push(now_ms);
            }
        }
        assert_eq!(asked_ms, [0, 100, 300, 700, 1_500, 2_300, 3_100, 3_900]);
    }

    proptest! {
        #[test]
        fn other_bytes_prove_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Verifier::new(TOKEN).on_message(&bytes), Verdict::Other);
            prop_assert!(!Prover::new(TOKEN, 0).on_message(&bytes));
        }
    }
}
