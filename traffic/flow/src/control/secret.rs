// SPDX-License-Identifier: Apache-2.0
//! The secret that both ends may share, and how knowing it is proved without saying it.
//!
//! A proof is HMAC-SHA-256 (RFC 2104) under the secret over four things: which end proves, the client's nonce, the
//! server's nonce, the client's whole hello. So it is good for one end of one connection with one request, and an old
//! one is worth nothing. It settles who may use a server; it does not encrypt what is said afterwards.
//!
//! The command line holds a reference, `env:NAME` or `file:PATH`, and never the secret: every user of the host can read it
//! there.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use netjoule_measure::failure::{Code, Failure, Outcome};

/// Shortest secret: who has overheard a proof can try secrets as fast as a computer hashes.
pub const LEAST_BYTES: usize = 16;
/// Longest secret.
pub const MOST_BYTES: usize = 1024;
/// Length of a nonce in bytes.
pub const NONCE_BYTES: usize = 16;
/// Length of a proof in bytes.
pub const PROOF_BYTES: usize = 32;

/// An unpredictable number used once.
pub type Nonce = [u8; NONCE_BYTES];
/// What shows that an end knows the secret.
pub type Proof = [u8; PROOF_BYTES];

/// Which end a proof is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prover {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Prover {
    /// Of one length, so that what follows in the proof begins at one place.
    fn label(self) -> &'static [u8; 15] {
        match self {
            Self::Client => b"netjoule client",
            Self::Server => b"netjoule server",
        }
    }
}

/// A shared secret. It prints as stars.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

impl Secret {
    /// The secret that `reference` names: `env:NAME` or `file:PATH`; none without one. `variable` reads the environment.
    ///
    /// # Errors
    /// [`Code::HostLacks`] when the variable or the file is not there, [`Code::Usage`] when this is no reference or what is
    /// there is no secret. No message holds a part of it, nor what stands in the place of a reference.
    pub fn find(
        reference: Option<&str>,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Outcome<Option<Self>> {
        let Some(reference) = reference else { return Ok(None) };
        match reference.split_once(':') {
            Some(("env", name)) if !name.is_empty() => match variable(name) {
                Some(value) => Self::new(value.as_bytes(), &format!("the variable {name}")).map(Some),
                None => Code::HostLacks.fail(format!("the environment variable {name} is not set")),
            },
            Some(("file", path)) if !path.is_empty() => Self::read(Path::new(path)).map(Some),
            _ => Code::Usage.fail(
                "--secret takes a reference, env:NAME or file:PATH, never the secret itself: everybody on this host \
                 can read a process's arguments",
            ),
        }
    }

    /// The first line of a file that others on this host cannot read.
    fn read(path: &Path) -> Outcome<Self> {
        let place = format!("the secret file {}", path.display());
        let failed = |error| Failure::new(Code::HostLacks, format!("cannot read {place}: {error}"));
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o007 != 0 {
            return Code::Usage.fail(format!(
                "every user of this host may open {place}: chmod o-rwx it, and change the secret"
            ));
        }
        let mut bytes = Vec::new();
        // One byte beyond the longest line is enough to see that it is too long.
        file.take(MOST_BYTES as u64 + 2).read_to_end(&mut bytes).map_err(failed)?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Self::new(line.strip_suffix(b"\r").unwrap_or(line), &place)
    }

    /// A secret; `place` says where it was found, for the message.
    ///
    /// # Errors
    /// [`Code::Usage`] when it is too short or too long.
    pub fn new(bytes: &[u8], place: &str) -> Outcome<Self> {
        if (LEAST_BYTES..=MOST_BYTES).contains(&bytes.len()) {
            return Ok(Self(bytes.to_vec()));
        }
        Code::Usage.fail(format!(
            "a shared secret has {LEAST_BYTES} to {MOST_BYTES} bytes, {place} has {}; \
                 make one with: head -c 24 /dev/urandom | base64",
            if bytes.len() > MOST_BYTES { "more".into() } else { bytes.len().to_string() }
        ))
    }

    /// The proof of one end. `hello` is the client's first line without its line feed.
    ///
    /// # Errors
    /// [`Code::System`] when the library has no memory.
    pub fn prove(&self, prover: Prover, client: &Nonce, server: &Nonce, hello: &[u8]) -> Outcome<Proof> {
        let said = [prover.label(), &client[..], &server[..], hello].concat();
        boring::hash::hmac_sha256(&self.0, &said)
            .map_err(|_| Failure::new(Code::System, "HMAC-SHA-256 failed in the TLS library"))
    }

    /// Whether a proof is the one that [`Self::prove`] makes. The time taken says nothing about where it differs.
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn accepts(
        &self,
        proof: &Proof,
        prover: Prover,
        client: &Nonce,
        server: &Nonce,
        hello: &[u8],
    ) -> Outcome<bool> {
        let right = self.prove(prover, client, server, hello)?;
        Ok(boring::memcmp::eq(&right, proof))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    const ONE: Nonce = [1; NONCE_BYTES];
    const OTHER: Nonce = [2; NONCE_BYTES];

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes(), "a test").unwrap()
    }

    /// What a reference leads to where the environment has one variable, `SHARED`.
    fn find(reference: &str, value: &str) -> Outcome<Vec<u8>> {
        let variable = |name: &str| (name == "SHARED").then(|| value.into());
        Secret::find(Some(reference), variable).map(|found| found.unwrap().0)
    }

    /// Writes a file that only the owner opens, unless `mode` says otherwise.
    fn file(name: &str, mode: u32, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("netjoule-secret-{}-{name}", std::process::id()));
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(mode).open(&path).unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_proof_is_hmac_sha_256_over_end_nonces_and_hello() {
        // Independent of this code: Python's hmac.new(b"0123456789abcdef", b"netjoule client" + b"\1"*16 + b"\2"*16
        // + b"hello", "sha256").
        let proof = secret("0123456789abcdef").prove(Prover::Client, &ONE, &OTHER, b"hello").unwrap();
        assert_eq!(
            crate::control::hex(&proof),
            "bb4732891279ce8f03c4245e51749fb8d45de3eb56eb631770f51a017ffb049a"
        );
    }

    #[test]
    fn a_proof_is_good_for_one_end_one_connection_and_one_request() {
        let (ours, theirs) = (secret("correct horse battery"), secret("correct horse batterz"));
        let proof = ours.prove(Prover::Client, &ONE, &OTHER, b"hello").unwrap();
        let accepts = |secret: &Secret, prover, client, server, hello: &[u8]| {
            secret.accepts(&proof, prover, client, server, hello).unwrap()
        };
        assert!(accepts(&ours, Prover::Client, &ONE, &OTHER, b"hello"));
        assert!(!accepts(&theirs, Prover::Client, &ONE, &OTHER, b"hello"));
        assert!(!accepts(&ours, Prover::Server, &ONE, &OTHER, b"hello"));
        assert!(!accepts(&ours, Prover::Client, &OTHER, &ONE, b"hello"));
        assert!(!accepts(&ours, Prover::Client, &ONE, &OTHER, b"hellp"));
    }

    #[test]
    fn a_reference_leads_to_a_variable_or_to_the_first_line_of_a_file() {
        let path = file("line", 0o600, b"a secret of the file\nanother line\n");
        let reference = format!("file:{}", path.display());
        assert_eq!(find(&reference, "").unwrap(), b"a secret of the file");
        assert_eq!(
            find("env:SHARED", "a secret of the environment").unwrap(),
            b"a secret of the environment"
        );
        assert!(Secret::find(None, |_| panic!("nothing is asked for")).unwrap().is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_secret_is_refused_without_showing_it() {
        let short = find("env:SHARED", "hunter2").unwrap_err();
        assert_eq!(short.code, Code::Usage);
        assert!(short.message.contains("SHARED has 7") && !short.message.contains("hunter2"), "{short}");
        let long = file("long", 0o600, &[b'x'; MOST_BYTES + 100]);
        assert!(find(&format!("file:{}", long.display()), "").unwrap_err().message.contains("has more"));
        let open = file("open", 0o644, b"a secret for everybody");
        let refused = find(&format!("file:{}", open.display()), "").unwrap_err();
        assert!(refused.message.contains("chmod") && !refused.message.contains("everybody"), "{refused}");
        for path in [long, open] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_is_not_there_is_missed_by_name_and_a_literal_is_not_repeated() {
        for (reference, name) in [("env:OTHER", "OTHER"), ("file:/nonexistent/secret", "/nonexistent/secret")]
        {
            let missing = find(reference, "").unwrap_err();
            assert_eq!(missing.code, Code::HostLacks);
            assert!(missing.message.contains(name), "{missing}");
        }
        for literal in ["hunter2-canary", "vault:hunter2-canary", "env:", "file:", ""] {
            let refused = find(literal, "").unwrap_err();
            assert_eq!(refused.code, Code::Usage);
            assert!(!refused.message.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn it_does_not_print() {
        assert_eq!(format!("{:?}", secret("correct horse battery")), "Secret(***)");
    }
}
