// SPDX-License-Identifier: Apache-2.0
//! The pacing certificate: how well the sending end kept its schedule, and whether that is good enough. Pure.
//!
//! It is about the sender, not about the transport: a message that found no room in its transport when it was due
//! (`held_back_ratio`) is in no error and no train.

mod collector;
mod document;
mod limits;

pub(crate) use collector::REMEMBERED;
pub use collector::{Certifier, HandOver, Totals};
pub use document::{Basis, Errors, Limits, PacingCertificate, Trains, NOT_CERTIFIED};
pub use limits::{BadLimit, Limit, Verdict};
