// SPDX-License-Identifier: Apache-2.0
//! Why did netjoule-link end, and with which exit code?

/// One clear sentence and its exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Wrong flags or configuration: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The host lacks a capability, a device or a program: exit code 3.
    #[error("{0}")]
    Host(String),
    /// The link failed while it was set up or running: exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl LinkError {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Host(_) => 3,
        }
    }
}

/// A usage error.
pub(crate) fn usage(sentence: impl Into<String>) -> LinkError {
    LinkError::Usage(sentence.into())
}

/// The value, if it is in its range.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    what: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, LinkError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(usage(format!("{what} is {value}; it must be {} to {}", range.start(), range.end())))
}
