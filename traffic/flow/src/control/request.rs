// SPDX-License-Identifier: Apache-2.0
//! What a client asks for, and whether a server allows it. Pure.

use netjoule_transport::message::{HEADER_BYTES, SEQUENCE_LIMIT};
use netjoule_transport::Values;
use serde::{Deserialize, Serialize};

use super::profile::ProfileRequest;
use crate::pacing::Mode;
use crate::report::Direction;
use crate::schedule::profile::LONGEST_TEXT_BYTES;
use crate::schedule::{Schedule, MOST_MESSAGES};
use netjoule_measure::failure::{Code, Outcome};

/// Intervals per end and flow.
pub const INTERVALS: usize = 200_000;
/// Longest interval of a report, ns: a day.
pub const LONGEST_INTERVAL_NS: u64 = 86_400 * 1_000_000_000;

/// What transports make ready for where nobody knows the rate, payload bit/s.
const UNPACED_RATE_BPS: u64 = 10_000_000_000;

/// A flow as the client wants it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRequest {
    /// Random name of the flow.
    pub flow_id: String,
    /// Random name of the command whose flows are to be on at once; none: it has this one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// Transport by its command-line name.
    pub transport: String,
    /// Who sends.
    pub direction: Direction,
    /// Message size; with a profile the greatest that it can give.
    pub payload_bytes: u64,
    /// Payload bit/s; with a profile the mean of its schedule; 0: as fast as possible.
    pub rate_bps: u64,
    /// Most messages of a flow that is as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The first part of the flow, which no sum holds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omit_ns: u64,
    /// The client has somebody watching: the server tells intervals as they close.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// Duration.
    pub duration_ns: u64,
    /// Interval length.
    pub interval_ns: u64,
    /// How messages are timed.
    #[serde(default)]
    pub pacing: Mode,
    /// Coalescing window.
    pub window_us: u64,
    /// GSO trains.
    pub gso: bool,
    /// Seed of the payload.
    pub seed: u64,
    /// IP address of the server as the client will use it for the data.
    pub data_address: std::net::IpAddr,
    /// The control connection runs over another address than the data.
    pub control_apart: bool,
    /// Options of the transport, as its own check completed them.
    #[serde(default)]
    pub options: Values,
    /// Sample the sending end's congestion control once per interval.
    #[serde(default)]
    pub traces: bool,
    /// What is sent when it is not messages of one size at a constant rate.
    #[serde(default)]
    pub profile: Option<ProfileRequest>,
}

/// What a server allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Longest flow.
    pub duration_ns: u64,
    /// Greatest payload rate.
    pub rate_bps: u64,
    /// Flows as fast as possible, too.
    pub unpaced: bool,
    /// Most messages of a profile that the server itself is to send: it writes their schedule out before the flow.
    pub messages: u64,
}

impl FlowRequest {
    /// Refuse what makes no sense or goes beyond `caps`, with a sentence that names the limit.
    pub fn check(&self, caps: Caps) -> Outcome<()> {
        let usage = |message: String| Code::Usage.fail(message);
        let of_profile = self.profile.is_some();
        if self.payload_bytes == 0
            || self.duration_ns == 0
            || self.interval_ns == 0
            || self.messages == Some(0)
        {
            return usage("size, duration, interval and messages must be above zero".into());
        }
        if self.is_unpaced() && (of_profile || self.pacing != Mode::Absolute || self.window_us > 0) {
            return usage(
                "as fast as possible (-b 0) has no deadlines: leave --pacing, --window-us and --profile out"
                    .into(),
            );
        }
        if self.messages.is_some() && !self.is_unpaced() {
            return usage("a number of messages is for flows as fast as possible".into());
        }
        if self.omit_ns >= self.duration_ns {
            return usage("the first part that is omitted is all of the flow".into());
        }
        if let Err(sentence) = self.pacing.fits(self.window_us, self.gso) {
            return usage(sentence.into());
        }
        if self.interval_ns > LONGEST_INTERVAL_NS {
            return usage("an interval is at most a day".into());
        }
        let intervals = self.duration_ns / self.interval_ns;
        if intervals > INTERVALS as u64 / 2 {
            return usage(format!(
                "{intervals} intervals are too many; ask for longer ones (at most {} per flow)",
                INTERVALS / 2
            ));
        }
        if self.duration_ns > caps.duration_ns {
            return Code::Refused.fail(format!(
                "the server allows flows of at most {} s, asked for {} s (serve --max-duration-s)",
                caps.duration_ns as f64 * 1e-9,
                self.duration_ns as f64 * 1e-9
            ));
        }
        if self.rate_bps > caps.rate_bps {
            return Code::Refused.fail(format!(
                "the server allows at most {} Mb/s, asked for {} Mb/s (serve --max-rate)",
                caps.rate_bps as f64 * 1e-6,
                self.rate_bps as f64 * 1e-6
            ));
        }
        if self.is_unpaced() && !caps.unpaced {
            let message = format!(
                "the server allows at most {} Mb/s, asked for as fast as possible (name a rate: -b; serve --max-rate)",
                caps.rate_bps as f64 * 1e-6
            );
            return Code::Refused.fail(message);
        }
        match &self.profile {
            None if self.constant_schedule().count() > SEQUENCE_LIMIT => {
                usage("more than 2^40 messages are too many; ask for fewer, larger ones".into())
            }
            None => Ok(()),
            Some(profile) => self.check_profile(profile, caps),
        }
    }

    /// A profile of another end: its figures must fit each other and the server's cap also in bursts.
    fn check_profile(&self, profile: &ProfileRequest, caps: Caps) -> Outcome<()> {
        let facts = &profile.facts;
        let sizes = HEADER_BYTES as u64..=self.payload_bytes;
        let fits = facts.messages <= MOST_MESSAGES as u64
            && sizes.contains(&facts.least_message_bytes)
            && sizes.contains(&facts.greatest_message_bytes)
            && facts.mean_rate_bps(self.duration_ns) == self.rate_bps
            && profile.text_bytes <= LONGEST_TEXT_BYTES as u64
            && (profile.text_bytes > 0) == (self.direction == Direction::Down);
        if !fits {
            return Code::Usage.fail("the profile's figures contradict the flow's");
        }
        if self.direction == Direction::Down && facts.messages > caps.messages {
            return Code::Refused.fail(format!(
                "the server sends at most {} messages of a profile, asked for {} (serve --max-messages)",
                caps.messages, facts.messages
            ));
        }
        if facts.burst_rate_bps > caps.rate_bps {
            return Code::Refused.fail(format!(
                    "the server allows at most {} Mb/s, and the profile's bursts have {} Mb/s over 10 ms (serve --max-rate)",
                    caps.rate_bps as f64 / 1e6,
                    facts.burst_rate_bps as f64 / 1e6
                ));
        }
        Ok(())
    }

    /// As fast as possible.
    pub fn is_unpaced(&self) -> bool {
        self.rate_bps == 0
    }

    /// Payload rate asked for, Mb/s; none as fast as possible.
    pub fn offered_rate_mbps(&self) -> Option<f64> {
        (!self.is_unpaced()).then_some(self.rate_bps as f64 * 1e-6)
    }

    /// What the transport is to be ready for, payload bit/s.
    pub fn burst_rate_bps(&self) -> u64 {
        match &self.profile {
            Some(profile) => profile.facts.burst_rate_bps,
            None if self.is_unpaced() => UNPACED_RATE_BPS,
            None => self.rate_bps,
        }
    }

    /// The schedule of a flow without a profile.
    pub fn constant_schedule(&self) -> Schedule {
        match self.rate_bps {
            0 => {
                let most = self.messages.map_or(SEQUENCE_LIMIT, |most| most.min(SEQUENCE_LIMIT));
                Schedule::unpaced(self.payload_bytes, most, self.duration_ns)
            }
            rate_bps => Schedule::new(rate_bps, self.payload_bytes, self.duration_ns),
        }
    }

    /// Name of the flow's schedule.
    pub fn schedule_digest(&self) -> String {
        self.profile
            .as_ref()
            .map_or_else(|| self.constant_schedule().digest(), |profile| profile.digest.clone())
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
pub(super) mod tests;
