// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a socket, or in a transport over it.

use std::fmt;

/// What can go wrong. The text is one clear sentence for a person.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The peer or the host refused (no listener, unreachable, TLS failure).
    #[error("{0}")]
    Refused(String),
    /// The connection was open and broke.
    #[error("{0}")]
    Lost(String),
    /// The request cannot be met by this transport (message too large).
    #[error("{0}")]
    Unsupported(String),
    /// An option makes no sense for this transport.
    #[error("{0}")]
    BadOption(String),
    /// This host lacks what the transport needs (a privilege, a part of the kernel).
    #[error("{0}")]
    HostLacks(String),
    /// The operating system failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, to what.
        context: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl TransportError {
    /// For `map_err`: `TransportError::io("bind UDP socket to 10.0.0.1:0")`.
    /// Free of cost while nothing fails: the context becomes a text then.
    pub fn io(context: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { context: context.to_string(), source }
    }
}

/// Result of a call on a socket or a transport.
pub type Result<T> = std::result::Result<T, TransportError>;
