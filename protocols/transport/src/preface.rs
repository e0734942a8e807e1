// SPDX-License-Identifier: Apache-2.0
//! What is said before the first message where the kernel makes the connection: the client's token, the server's answer.
//!
//! The client says four bytes of its transport and the token; the server answers `NJOK`. Pure: bytes in, verdicts out.

use crate::candidates::Verdict;
use crate::TOKEN_BYTES;

/// What the server answers to a right token.
pub const ACCEPTED: &[u8; 4] = b"NJOK";
/// Length of the four bytes that name the transport.
const MAGIC_BYTES: usize = 4;
/// Length of the client's preface in bytes.
pub const PREFACE_BYTES: usize = MAGIC_BYTES + TOKEN_BYTES;

/// A client's preface.
pub type Preface = [u8; PREFACE_BYTES];

/// The preface of a flow.
pub fn encode(magic: &[u8; MAGIC_BYTES], token: &[u8; TOKEN_BYTES]) -> Preface {
    let mut preface = [0; PREFACE_BYTES];
    preface[..MAGIC_BYTES].copy_from_slice(magic);
    preface[MAGIC_BYTES..].copy_from_slice(token);
    preface
}

/// Compare what was read so far with what is expected.
pub fn judge(read: &[u8], expected: &[u8]) -> Verdict {
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
        let preface = encode(b"NJTC", &[9; TOKEN_BYTES]);
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
