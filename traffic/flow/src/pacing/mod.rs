// SPDX-License-Identifier: Apache-2.0
//! How messages are spread over time: which [`Mode`], and what a [`Pacer`] makes of it at a given time. Pure: times
//! are arguments, sleeping is [`netjoule_measure::wait`]'s.

mod mode;
mod pacer;

pub use mode::{BadMode, Mode, LARGEST_BURST, SPIN_US};
pub use pacer::{Pacer, PacerWork, Rest};

/// Longest coalescing window, us.
pub const LONGEST_WINDOW_US: u64 = 1_000_000;
