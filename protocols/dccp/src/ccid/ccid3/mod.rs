// SPDX-License-Identifier: Apache-2.0
//! CCID 3, TFRC congestion control (RFC 4342, RFC 5348, RFC 6323).
//!
//! | question | module |
//! | --- | --- |
//! | sender: how fast, after feedback or without it? | `allowed_rate`, `receive_rates` |
//! | sender: when may the next packet leave? | `pacing` |
//! | sender: when was packet N sent? | `sent_log` |
//! | sender: what does a feedback packet say? | `feedback`, `loss_report` |
//! | receiver: which packets are lost? | `arrivals` |
//! | receiver: which losses are one loss event, how long are the intervals? | `loss_intervals` |
//! | receiver: at what rate does data arrive, over which round trip? | `receive_rate`, `receiver_rtt` |

mod allowed_rate;
mod arrivals;
mod feedback;
mod loss_intervals;
mod loss_report;
mod pacing;
mod receive_rate;
mod receive_rates;
mod receiver;
mod receiver_rtt;
mod segment_size;
mod sender;
mod sent_log;
#[cfg(test)]
mod tests;
mod window_counter;

pub use receiver::Receiver;
pub use sender::Sender;

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

/// Shortest interval between two feedback packets that no new loss event causes, ns.
///
/// RFC 5348 section 6 wants feedback at least once per round trip with SHOULD. Over a path below 1 ms that would be an
/// acknowledgement for every few packets, which costs more than it tells: the receiver then reports the rate over this
/// interval (section 6.2 allows a longer one), and this stack's sender, as Linux's, waits longer than four round trips
/// for feedback there (`allowed_rate`).
const MIN_FEEDBACK_INTERVAL_NS: i64 = 1_000_000;

/// Nanoseconds as an `i64`; what does not fit counts as the nearest.
const fn whole_ns(ns: f64) -> i64 {
    ns as i64
}
