// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a socket.

use std::fmt;

/// What can go wrong. The text is one clear sentence for a person.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// This host lacks what was asked for (a privilege, a part of the kernel).
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

impl SocketError {
    /// For `map_err`: `SocketError::io("bind UDP socket to 10.0.0.1:0")`.
    /// Free of cost while nothing fails: the context becomes a text then.
    pub fn io(context: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { context: context.to_string(), source }
    }
}

/// Result of a call on a socket.
pub type Result<T> = std::result::Result<T, SocketError>;
