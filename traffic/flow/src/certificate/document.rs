// SPDX-License-Identifier: Apache-2.0
//! The pacing certificate as it is written.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Exit code of a flow that did not keep the limits of its certificate, and of a host that did not.
pub const NOT_CERTIFIED: u8 = 4;

/// What the errors are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Time at which a message was handed to its transport, less its deadline. Of messages handed over together each
    /// is taken to follow the one before at an even pace.
    HandOver,
    /// How much later than its deadline a message with a launch time was handed over (`so_txtime` into nothing: beyond
    /// that there is no departure that could be late).
    LaunchTime,
    /// Time at which a message with a launch time left the host, by the kernel's stamp, less its deadline (`so_txtime`).
    LaunchTimeMeasured,
}

/// The document, part of the flow report (protocols/contracts/schemas/flow_report.schema.json). What has no value, as in
/// a flow in which nothing left, is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PacingCertificate {
    /// What the errors are of.
    pub error_basis: Basis,
    /// Messages that left on the sender's own account: what the errors and shares are of.
    pub departures: u64,
    /// How many of these the kernel did not stamp, so that nobody knows when they left: the shares count them as late, and a
    /// percentile that one of them may be is missing. Only with [`Basis::LaunchTimeMeasured`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures_not_stamped: Option<u64>,
    /// Departure less deadline.
    pub error_us: Option<Errors>,
    /// Share of departures at most 5 us late.
    pub within_5us_ratio: Option<f64>,
    /// At most 50 us late.
    pub within_50us_ratio: Option<f64>,
    /// At most 500 us late.
    pub within_500us_ratio: Option<f64>,
    /// Share of departures that followed the one before without a wait.
    pub back_to_back_ratio: Option<f64>,
    /// Lengths of the trains that they make.
    pub train_messages: Option<Trains>,
    /// Departures before their deadline: none, unless something is wrong.
    pub messages_early: u64,
    /// Share of the scheduled messages whose transport had no room when they were due: they left later or never.
    pub held_back_ratio: f64,
    /// Share of the scheduled messages that never left for this reason.
    pub held_back_not_sent_ratio: f64,
    /// Sent over scheduled.
    pub achieved_ratio: f64,
    /// CPU time of the sending process, s.
    pub cpu_s: f64,
    /// The same over the length of the flow: 1 is a core.
    pub cpu_ratio: Option<f64>,
    /// What it was held to; empty when it was only reported.
    #[serde(default)]
    pub limits: Limits,
    /// What did not keep its limit, a sentence each.
    #[serde(default)]
    pub failed: Vec<String>,
    /// Whether every limit was kept; missing without limits.
    #[serde(default)]
    pub passed: Option<bool>,
}

/// Departure less deadline in us, percentiles to three digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Greatest.
    pub max: f64,
}

/// Messages per train; a message that left alone is a train of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trains {
    /// Mean over trains.
    pub mean: f64,
    /// 99th percentile over trains, to two digits.
    pub p99: u64,
    /// Longest.
    pub max: u64,
}

/// Limits by name; a name stands once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(pub(super) BTreeMap<String, f64>);

impl Limits {
    /// Nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        formatter.write_str(&words.join(", "))
    }
}

impl PacingCertificate {
    /// Departures of which nobody knows when they were.
    pub(super) fn not_stamped(&self) -> u64 {
        self.departures_not_stamped.unwrap_or(0)
    }
}
