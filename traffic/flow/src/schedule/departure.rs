// SPDX-License-Identifier: Apache-2.0
//! One message of a schedule.

use std::ops::RangeInclusive;

use netjoule_transport::message::{HEADER_BYTES, LONGEST_STATED_BYTES};

/// Sizes that a message of a profile may have, in bytes.
pub(crate) const MESSAGE_BYTES: RangeInclusive<u64> = HEADER_BYTES as u64..=LONGEST_STATED_BYTES as u64;

/// One message of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When it is due, ns after the start of the flow.
    pub due_ns: u64,
    /// Its size.
    pub bytes: u16,
}
