// SPDX-License-Identifier: Apache-2.0
//! What is read before a connection is one, over any bytes and without a socket: what the fuzz target `transports` drives.
//! Everything else is quiche's to read.

use netjoule_transport::TOKEN_BYTES;

use crate::token_exchange::{judge_answer, judge_token, Progress};

/// Whether a listening end answers this packet of a stranger.
pub fn opens_a_connection(packet: &[u8]) -> bool {
    crate::opening::listener::opens_a_connection(&mut packet.to_vec())
}

/// Whether a client has proven `token` with what it has `said`; `None` while that cannot be told.
pub fn proves(said: &[u8], token: &[u8; TOKEN_BYTES]) -> Option<bool> {
    told(judge_token(said, token))
}

/// Whether a server has accepted a client with its `answer`; `None` while that cannot be told.
pub fn accepts(answer: &[u8]) -> Option<bool> {
    told(judge_answer(answer))
}

fn told(progress: Progress) -> Option<bool> {
    match progress {
        Progress::Underway => None,
        Progress::Done => Some(true),
        Progress::Wrong => Some(false),
    }
}
