// SPDX-License-Identifier: Apache-2.0
//! How two UDP ends find each other: the client proves the flow's token from an address where it also receives.
//!
//! ```text
//! client                         server
//!   HELLO(token)          ->                    who knows the token?
//!                         <-     CHALLENGE(token, nonce)     sent to where HELLO seemed to come from
//!   PROOF(token, nonce)   ->                    only who receives there can answer
//!                         <-     ACCEPTED(token, nonce)
//! ```
//! All datagrams are equally long, so a forged HELLO is not amplified. Lost ones are repeated by the client.
//! Pure: datagrams, addresses, times and random nonces are arguments.

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::backoff::Backoff;
use netjoule_transport::TOKEN_BYTES;

const MAGIC: &[u8; 4] = b"NJUD";
const NONCE_BYTES: usize = 16;
/// Length of every handshake datagram in bytes.
pub const DATAGRAM_BYTES: usize = MAGIC.len() + 1 + TOKEN_BYTES + NONCE_BYTES;

pub(crate) type Token = [u8; TOKEN_BYTES];
pub(crate) type Nonce = [u8; NONCE_BYTES];
pub(crate) type Datagram = [u8; DATAGRAM_BYTES];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Hello = 1,
    Challenge = 2,
    Proof = 3,
    Accepted = 4,
}

fn encode(step: Step, token: &Token, nonce: &Nonce) -> Datagram {
    let mut datagram = [0; DATAGRAM_BYTES];
    datagram[..4].copy_from_slice(MAGIC);
    datagram[4] = step as u8;
    datagram[5..5 + TOKEN_BYTES].copy_from_slice(token);
    datagram[5 + TOKEN_BYTES..].copy_from_slice(nonce);
    datagram
}

/// Step and nonce of a handshake datagram that carries `token`; `None` for anything else.
fn decode(bytes: &[u8], token: &Token) -> Option<(Step, Nonce)> {
    let datagram: &Datagram = bytes.try_into().ok()?;
    if &datagram[..4] != MAGIC || &datagram[5..5 + TOKEN_BYTES] != token {
        return None;
    }
    let step = match datagram[4] {
        1 => Step::Hello,
        2 => Step::Challenge,
        3 => Step::Proof,
        4 => Step::Accepted,
        _ => return None,
    };
    Some((step, datagram[5 + TOKEN_BYTES..].try_into().ok()?))
}

/// Whether `bytes` is a handshake datagram (of any flow) rather than a message.
pub fn is_handshake(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The server's half.
#[derive(Debug)]
pub(crate) struct Acceptor {
    token: Token,
    allowed_peer: Option<IpAddr>,
    challenged: Option<(SocketAddr, Nonce)>,
}

/// What the server does with a handshake datagram.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Send this back to where the datagram came from.
    pub(crate) reply: Option<Datagram>,
    /// The sender of the datagram is the peer.
    pub(crate) proven: bool,
}

impl Acceptor {
    pub(crate) fn new(token: Token, allowed_peer: Option<IpAddr>) -> Self {
        Self { token, allowed_peer, challenged: None }
    }

    /// Judge a datagram. `fresh_nonce` gives an unpredictable nonce and is asked once per new address.
    pub(crate) fn on_datagram(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        fresh_nonce: &mut dyn FnMut() -> Nonce,
    ) -> Verdict {
        if self.allowed_peer.is_some_and(|peer| peer != from.ip()) {
            return Verdict::default();
        }
        match decode(bytes, &self.token) {
            Some((Step::Hello, _)) => {
                let nonce = match self.challenged {
                    Some((address, nonce)) if address == from => nonce,
                    _ => fresh_nonce(),
                };
                self.challenged = Some((from, nonce));
                Verdict { reply: Some(encode(Step::Challenge, &self.token, &nonce)), proven: false }
            }
            Some((Step::Proof, nonce)) if self.challenged == Some((from, nonce)) => {
                Verdict { reply: Some(encode(Step::Accepted, &self.token, &nonce)), proven: true }
            }
            _ => Verdict::default(),
        }
    }
}

/// The client's half.
#[derive(Debug)]
pub(crate) struct Initiator {
    token: Token,
    nonce: Option<Nonce>,
    backoff: Backoff,
}

impl Initiator {
    pub(crate) fn new(token: Token, now_ns: i64) -> Self {
        Self { token, nonce: None, backoff: Backoff::new(now_ns) }
    }

    /// When [`Self::on_time`] has something to send.
    pub(crate) fn due_ns(&self) -> i64 {
        self.backoff.due_ns()
    }

    /// The datagram that is due at `now_ns`, if one is: HELLO until challenged, then PROOF.
    pub(crate) fn on_time(&mut self, now_ns: i64) -> Option<Datagram> {
        self.backoff.take_due(now_ns).then(|| match &self.nonce {
            None => encode(Step::Hello, &self.token, &[0; NONCE_BYTES]),
            Some(nonce) => encode(Step::Proof, &self.token, nonce),
        })
    }

    /// Take a datagram from the server; true when it accepted.
    pub(crate) fn on_datagram(&mut self, bytes: &[u8], now_ns: i64) -> bool {
        match decode(bytes, &self.token) {
            Some((Step::Challenge, nonce)) => {
                if self.nonce != Some(nonce) {
                    self.nonce = Some(nonce);
                    self.backoff.hurry(now_ns);
                }
                false
            }
            Some((Step::Accepted, nonce)) => self.nonce == Some(nonce),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::backoff::FIRST_RETRY_NS;
    use proptest::prelude::*;

    const TOKEN: Token = [7; TOKEN_BYTES];

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn counter() -> impl FnMut() -> Nonce {
        let mut calls = 0_u8;
        move || {
            calls += 1;
            [calls; NONCE_BYTES]
        }
    }

    #[test]
    fn four_datagrams_open_a_flow() {
        let mut fresh = counter();
        let mut server = Acceptor::new(TOKEN, None);
        let mut client = Initiator::new(TOKEN, 0);
        let hello = client.on_time(0).unwrap();
        let challenge = server.on_datagram(&hello, peer(1), &mut fresh);
        assert!(!challenge.proven);
        assert!(!client.on_datagram(&challenge.reply.unwrap(), 5));
        let proof = client.on_time(5).unwrap();
        let accepted = server.on_datagram(&proof, peer(1), &mut fresh);
        assert!(accepted.proven);
        assert!(client.on_datagram(&accepted.reply.unwrap(), 9));
    }

    #[test]
    fn a_proof_from_another_address_proves_nothing() {
        let mut fresh = counter();
        let mut server = Acceptor::new(TOKEN, None);
        let mut client = Initiator::new(TOKEN, 0);
        let hello = client.on_time(0).unwrap();
        let challenge = server.on_datagram(&hello, peer(1), &mut fresh).reply.unwrap();
        client.on_datagram(&challenge, 0);
        let proof = client.on_time(0).unwrap();
        assert_eq!(server.on_datagram(&proof, peer(2), &mut fresh), Verdict::default());
        assert!(server.on_datagram(&proof, peer(1), &mut fresh).proven);
    }

    #[test]
    fn a_wrong_token_or_a_peer_that_is_not_allowed_gets_no_answer() {
        let mut fresh = counter();
        let hello = Initiator::new(TOKEN, 0).on_time(0).unwrap();
        let mut other_flow = Acceptor::new([8; TOKEN_BYTES], None);
        assert_eq!(other_flow.on_datagram(&hello, peer(1), &mut fresh), Verdict::default());
        let mut other_peer = Acceptor::new(TOKEN, Some("127.0.0.2".parse().unwrap()));
        assert_eq!(other_peer.on_datagram(&hello, peer(1), &mut fresh), Verdict::default());
    }

    #[test]
    fn the_client_repeats_with_growing_pauses() {
        let mut client = Initiator::new(TOKEN, 0);
        assert!(client.on_time(0).is_some());
        assert!(client.on_time(FIRST_RETRY_NS - 1).is_none());
        assert!(client.on_time(FIRST_RETRY_NS).is_some());
        assert_eq!(client.due_ns(), 3 * FIRST_RETRY_NS);
    }

    proptest! {
        #[test]
        fn foreign_bytes_change_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut fresh = counter();
            let mut server = Acceptor::new(TOKEN, None);
            prop_assert_eq!(server.on_datagram(&bytes, peer(1), &mut fresh), Verdict::default());
            prop_assert!(!Initiator::new(TOKEN, 0).on_datagram(&bytes, 0));
        }
    }
}
