// SPDX-License-Identifier: Apache-2.0
//! Which key does a QUIC server show, and how does a client know that it is the right one?
//!
//! Every server makes a fresh self-signed certificate. Nobody vouches for it: the control channel carries
//! its SHA-256 fingerprint, and the client accepts this one certificate and no other. Names and validity
//! dates are therefore not looked at.

use std::fmt;
use std::sync::{Arc, OnceLock};

use boring::asn1::Asn1Time;
use boring::bn::{BigNum, MsbOption};
use boring::ec::{EcGroup, EcKey};
use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::{PKey, Private};
use boring::ssl::{SslAlert, SslContextBuilder, SslMethod, SslOptions, SslVerifyError, SslVerifyMode};
use boring::x509::{X509NameBuilder, X509};

use crate::error::QuicError;
use crate::fingerprint::Fingerprint;

/// Of the key that seals session tickets.
const TICKET_KEY_BYTES: usize = 48;

/// End of validity, 2100-01-01: the pinned fingerprint limits trust, not the date.
const NOT_AFTER_UNIX_S: i64 = 4_102_444_800;

/// A server's certificate and private key. The key never leaves the process.
pub struct Identity {
    certificate: X509,
    key: PKey<Private>,
    fingerprint: Fingerprint,
    ticket_key: [u8; TICKET_KEY_BYTES],
}

impl Identity {
    /// Makes a P-256 key and its self-signed certificate, and a key for session tickets: they are good for this flow only.
    ///
    /// # Errors
    /// `QuicError::Certificate` when BoringSSL refuses.
    pub fn generate() -> Result<Self, QuicError> {
        let key = PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?)?)?;
        let certificate = self_signed(&key)?;
        let fingerprint = Fingerprint::of(&certificate)?;
        let mut ticket_key = [0; TICKET_KEY_BYTES];
        boring::rand::rand_bytes(&mut ticket_key)?;
        Ok(Self { certificate, key, fingerprint, ticket_key })
    }

    /// What seals session tickets.
    pub(crate) fn ticket_key(&self) -> &[u8] {
        &self.ticket_key
    }

    /// What the control channel tells the client.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// TLS context of a server that shows this certificate, and gives tickets if `resumable`.
    pub(crate) fn server_context(&self, resumable: bool) -> Result<SslContextBuilder, QuicError> {
        let mut context = bare_context(resumable)?;
        context.set_certificate(&self.certificate)?;
        context.set_private_key(&self.key)?;
        Ok(context)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key: it must not end up in a log.
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// The client's side of the pin: what it expects, and what it was shown.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    expected: Fingerprint,
    refused: Arc<OnceLock<Fingerprint>>,
}

impl Pin {
    pub(crate) fn new(expected: Fingerprint) -> Self {
        Self { expected, refused: Arc::new(OnceLock::new()) }
    }

    /// The error to report when another certificate was shown, else nothing.
    pub(crate) fn refusal(&self) -> Option<QuicError> {
        let shown = *self.refused.get()?;
        Some(QuicError::WrongCertificate { announced: self.expected, shown })
    }

    /// TLS context of a client that accepts the pinned certificate only, and keeps tickets if `resumable`. Who resumes is not
    /// shown the certificate again: only the server that showed it can open the ticket.
    pub(crate) fn client_context(&self, resumable: bool) -> Result<SslContextBuilder, QuicError> {
        let mut context = bare_context(resumable)?;
        let pin = self.clone();
        context.set_custom_verify_callback(SslVerifyMode::PEER, move |tls| {
            let shown = tls.peer_certificate().and_then(|certificate| Fingerprint::of(&certificate).ok());
            pin.judge(shown)
        });
        Ok(context)
    }

    fn judge(&self, shown: Option<Fingerprint>) -> Result<(), SslVerifyError> {
        match shown {
            Some(shown) if shown == self.expected => Ok(()),
            Some(shown) => {
                // Only the first refusal is of interest; a second one in the same handshake cannot happen.
                let _ = self.refused.set(shown);
                Err(SslVerifyError::Invalid(SslAlert::BAD_CERTIFICATE))
            }
            None => Err(SslVerifyError::Invalid(SslAlert::NO_CERTIFICATE)),
        }
    }
}

fn bare_context(resumable: bool) -> Result<SslContextBuilder, QuicError> {
    let mut context = SslContextBuilder::new(SslMethod::tls())?;
    if !resumable {
        // Tickets would only be packets in the idle window before the flow.
        context.set_options(SslOptions::NO_TICKET);
    }
    Ok(context)
}

fn self_signed(key: &PKey<Private>) -> Result<X509, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_nid(Nid::COMMONNAME, "netjoule")?;
    let name = name.build();

    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;

    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_not_before(&*Asn1Time::from_unix(0)?)?;
    builder.set_not_after(&*Asn1Time::from_unix(NOT_AFTER_UNIX_S)?)?;
    builder.set_pubkey(key)?;
    builder.sign(key, MessageDigest::sha256())?;
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identity_is_new() {
        let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        assert_ne!(one.fingerprint(), two.fingerprint());
    }

    #[test]
    fn a_fingerprint_survives_its_text_form() {
        let fingerprint = Identity::generate().unwrap().fingerprint();
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
        assert_eq!(text.to_uppercase().parse::<Fingerprint>().unwrap(), fingerprint);
    }

    #[test]
    fn text_that_is_no_fingerprint_is_refused() {
        for text in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66), &"+1".repeat(32)] {
            let error = text.parse::<Fingerprint>().unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn the_debug_form_of_an_identity_shows_no_key() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.fingerprint()));
    }
}
