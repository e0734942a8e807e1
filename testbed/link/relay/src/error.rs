// SPDX-License-Identifier: Apache-2.0
//! Why did netjoule-link end, and with which exit code?

use netjoule_link_model::range::ParameterError;

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

impl From<ParameterError> for LinkError {
    fn from(error: ParameterError) -> Self {
        Self::Usage(error.0)
    }
}
