// SPDX-License-Identifier: Apache-2.0
//! Feature negotiation (RFC 4340 section 6).
//!
//! | question | module |
//! | --- | --- |
//! | which features are there, what do their values look like? | [`table`] |
//! | what was agreed, what must be said? | `negotiation` |

pub(crate) mod negotiation;
pub mod table;
#[cfg(test)]
mod tests;

pub(crate) use negotiation::Negotiation;
pub use table::{Feature, Rule};

/// Where a feature is located, seen from this end: F/A and F/B of section 6 for an end A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Located here: this end sends Change L and Confirm L about it.
    Local,
    /// Located at the peer: this end sends Change R and Confirm R about it.
    Remote,
}

/// Which end of the connection this is: decides whose preference list rules (section 6.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sent the Request.
    Client,
    /// Answered it.
    Server,
}

/// The four feature negotiation options, told apart by what they do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    /// Change L (the feature is located at the peer) or Change R (located here).
    Change(Location),
    /// Confirm L (located at the peer) or Confirm R (located here).
    Confirm(Location),
}

impl Speech {
    /// Option type of a received option of this meaning.
    pub(crate) const fn received_type(self) -> u8 {
        match self {
            Self::Change(Location::Remote) => 32,
            Self::Confirm(Location::Remote) => 33,
            Self::Change(Location::Local) => 34,
            Self::Confirm(Location::Local) => 35,
        }
    }
}
