// SPDX-License-Identifier: Apache-2.0
//! What to send and when.

use netjoule_transport::Kind;

use crate::control::FlowRequest;
use crate::pacing::{Mode, LONGEST_WINDOW_US};
use crate::schedule::Schedule;

/// What to send and when.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Deadlines and sizes.
    pub schedule: Schedule,
    /// Size of the largest message.
    pub message_bytes: usize,
    /// Length of the flow in ns.
    pub duration_ns: i64,
    /// How messages are timed.
    pub pacing: Mode,
    /// Messages due within this window leave together, in ns.
    pub window_ns: i64,
    /// Length of an interval in ns.
    pub interval_ns: i64,
    /// Intervals that begin before this, ns after the start, are in no sum.
    pub omit_ns: i64,
    /// Seed of the payload bytes.
    pub seed: u64,
    /// Hand trains to the kernel.
    pub gso: bool,
    /// Datagrams or stream.
    pub kind: Kind,
    /// Sample congestion control once per interval.
    pub traces: bool,
}

impl Plan {
    /// The plan of a checked request and its schedule.
    pub fn of(request: &FlowRequest, schedule: Schedule, kind: Kind) -> Self {
        Self {
            schedule,
            message_bytes: request.payload_bytes as usize,
            duration_ns: request.duration_ns as i64,
            pacing: request.pacing,
            window_ns: request.window_us.min(LONGEST_WINDOW_US) as i64 * 1_000,
            interval_ns: request.interval_ns as i64,
            omit_ns: request.omit_ns as i64,
            seed: request.seed,
            gso: request.gso,
            kind,
            traces: request.traces,
        }
    }
}
