// SPDX-License-Identifier: Apache-2.0
//! Bytes as hexadecimal text, and a peer's words made fit for a terminal. Pure.

use netjoule_transport::TOKEN_BYTES;

use netjoule_measure::failure::{Code, Failure, Outcome};

/// The first `most` characters of what a peer said that cannot steer a terminal.
pub(super) fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_survive_as_text(token: [u8; TOKEN_BYTES]) {
            prop_assert_eq!(token_from(&token_text(&token)).unwrap(), token);
        }

        #[test]
        fn other_texts_are_no_tokens(text in "\\PC{0,40}") {
            prop_assume!(text.len() != 32);
            prop_assert!(token_from(&text).is_err());
        }
    }
}
