// SPDX-License-Identifier: Apache-2.0
//! What ends a command early: one clear sentence, a code for machines, an exit code.

use netjoule_sockets::TransportError;

/// A sentence for a person, a code for a machine, an exit code for a shell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Machine-readable name of the case.
    pub code: Code,
    /// What, where, and what to do.
    pub message: String,
}

/// Cases of failure. The names travel over the control channel and in error events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A request that makes no sense.
    Usage,
    /// The message does not fit the transport or the path.
    TooLarge,
    /// This host lacks what the transport needs: a privilege, a part of the kernel.
    HostLacks,
    /// The other end cannot be reached, or said no.
    Refused,
    /// The server is at work for somebody else.
    Busy,
    /// The other end speaks another version of the control protocol, or none.
    Protocol,
    /// The control connection broke.
    ControlLost,
    /// The data path broke.
    DataLost,
    /// Something did not happen in time.
    Timeout,
    /// A signal or the end of stdin.
    Interrupted,
    /// The operating system failed.
    System,
}

const NAMES: [(Code, &str, u8); 11] = [
    (Code::Usage, "usage", 2),
    (Code::TooLarge, "too_large", 2),
    (Code::HostLacks, "host_lacks", 3),
    (Code::Refused, "refused", 1),
    (Code::Busy, "busy", 1),
    (Code::Protocol, "protocol", 1),
    (Code::ControlLost, "control_lost", 1),
    (Code::DataLost, "data_lost", 1),
    (Code::Timeout, "timeout", 1),
    (Code::Interrupted, "interrupted", 1),
    (Code::System, "system", 1),
];

impl Code {
    /// Name in events and control messages.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(code, ..)| *code == self).map_or("system", |(_, name, _)| name)
    }

    /// Process exit code.
    pub fn exit(self) -> u8 {
        NAMES.iter().find(|(code, ..)| *code == self).map_or(1, |(.., exit)| *exit)
    }

    /// Code of a name that the peer sent; an unknown one is a refusal.
    pub fn named(name: &str) -> Self {
        NAMES.iter().find(|(_, known, _)| *known == name).map_or(Self::Refused, |(code, ..)| *code)
    }
}

impl Code {
    /// Fail in this way.
    ///
    /// # Errors
    /// Always.
    pub fn fail<T>(self, message: impl Into<String>) -> Outcome<T> {
        Err(Failure::new(self, message))
    }
}

impl Failure {
    /// A failure of the given kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// For `map_err` on system calls. The sentence is made when there is an error: most calls are made once per wake-up.
    pub fn system(context: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::new(Code::System, format!("{context}: {error}"))
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        let code = match error {
            TransportError::Refused(_) => Code::Refused,
            TransportError::Lost(_) => Code::DataLost,
            TransportError::Unsupported(_) => Code::TooLarge,
            TransportError::BadOption(_) => Code::Usage,
            TransportError::HostLacks(_) => Code::HostLacks,
            TransportError::Io { .. } => Code::System,
        };
        Self::new(code, error.to_string())
    }
}

/// Result of a command or a part of it.
pub type Outcome<T> = Result<T, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        for (code, name, _) in NAMES {
            assert_eq!(Code::named(name), code);
            assert_eq!(code.name(), name);
        }
        assert_eq!(Code::named("from a later version"), Code::Refused);
    }
}
