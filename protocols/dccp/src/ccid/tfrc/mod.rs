// SPDX-License-Identifier: Apache-2.0
//! TCP-friendly rate control (RFC 5348) without packets: the throughput equation and the loss event rate. Pure.

pub mod equation;
pub mod loss_rate;

/// Longest interval between packets and longest back-off, seconds (t_mbi, RFC 5348 appendix A).
pub const MAX_BACKOFF_S: f64 = 64.0;
