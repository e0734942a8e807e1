// SPDX-License-Identifier: Apache-2.0
//! How any message fares that may be about the token, without a connection: what the fuzz target `transports` drives.

use netjoule_transport::TOKEN_BYTES;

use crate::token::{Prover, Verdict, Verifier};

pub use crate::token::is_proof;

/// What a server that was told `token` answers; `None` when nobody has proven it.
pub fn answer(message: &[u8], token: [u8; TOKEN_BYTES]) -> Option<Vec<u8>> {
    match Verifier::new(token).on_message(message) {
        Verdict::Proven(answer) => Some(answer.to_vec()),
        Verdict::Wrong | Verdict::Other => None,
    }
}

/// Whether a client that was told `token` is let in by this message.
pub fn lets_in(message: &[u8], token: [u8; TOKEN_BYTES]) -> bool {
    Prover::new(token, 0).on_message(message)
}
