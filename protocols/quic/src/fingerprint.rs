// SPDX-License-Identifier: Apache-2.0
//! The SHA-256 of a certificate, by which a client knows the one server that it wants.

use std::fmt;
use std::str::FromStr;

use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::x509::X509;

/// Length of a fingerprint in bytes.
pub const FINGERPRINT_BYTES: usize = 32;

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no certificate fingerprint: 64 hexadecimal digits (SHA-256) are expected")]
pub struct BadFingerprint {
    /// What was to be parsed.
    pub text: String,
}

/// SHA-256 of a certificate's DER form; printed and parsed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; FINGERPRINT_BYTES]);

impl Fingerprint {
    /// Fingerprint of `certificate`.
    pub(crate) fn of(certificate: &X509) -> Result<Self, ErrorStack> {
        let digest = certificate.digest(MessageDigest::sha256())?;
        let mut bytes = [0; FINGERPRINT_BYTES];
        bytes.copy_from_slice(&digest);
        Ok(Self(bytes))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; FINGERPRINT_BYTES] {
        &self.0
    }
}

impl From<[u8; FINGERPRINT_BYTES]> for Fingerprint {
    fn from(bytes: [u8; FINGERPRINT_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let bad = || BadFingerprint { text: text.to_owned() };
        if text.len() != 2 * FINGERPRINT_BYTES || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut bytes = [0; FINGERPRINT_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}
