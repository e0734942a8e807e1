// SPDX-License-Identifier: Apache-2.0
//! The bytes before the first message: the client's token, the server's answer.
//!
//! The client writes `NJTC` and the token; the server answers `NJOK`. TCP's own handshake has proved the client's
//! address by then. Pure: bytes in, verdicts out.

use netjoule_transport::TOKEN_BYTES;

const MAGIC: &[u8; 4] = b"NJTC";
/// What the server answers to a right token.
pub(crate) const ACCEPTED: &[u8; 4] = b"NJOK";
/// Length of the client's preface in bytes.
pub(crate) const PREFACE_BYTES: usize = MAGIC.len() + TOKEN_BYTES;

/// The client's preface.
pub(crate) fn encode(token: &[u8; TOKEN_BYTES]) -> [u8; PREFACE_BYTES] {
    let mut preface = [0; PREFACE_BYTES];
    preface[..4].copy_from_slice(MAGIC);
    preface[4..].copy_from_slice(token);
    preface
}

/// What the bytes read so far say about the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Right so far, incomplete.
    More,
    /// The peer is proven.
    Proven,
    /// Not this flow's peer.
    Wrong,
}

/// Compare what was read so far with what is expected.
pub(crate) fn judge(read: &[u8], expected: &[u8]) -> Verdict {
    if !expected.starts_with(read) {
        Verdict::Wrong
    } else if read.len() == expected.len() {
        Verdict::Proven
    } else {
        Verdict::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_right_preface_proves() {
        let preface = encode(&[9; TOKEN_BYTES]);
        for length in 0..PREFACE_BYTES {
            assert_eq!(judge(&preface[..length], &preface), Verdict::More);
        }
        assert_eq!(judge(&preface, &preface), Verdict::Proven);
        let mut wrong = preface;
        wrong[PREFACE_BYTES - 1] ^= 1;
        assert_eq!(judge(&wrong, &preface), Verdict::Wrong);
        assert_eq!(judge(b"GET / HTTP", &preface), Verdict::Wrong);
    }
}
