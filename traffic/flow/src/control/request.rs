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
use netjoule_measure::failure::{Code, Failure, Outcome};

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
        let usage = |message: String| Err(Failure::new(Code::Usage, message));
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
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows flows of at most {} s, asked for {} s (serve --max-duration-s)",
                    caps.duration_ns as f64 * 1e-9,
                    self.duration_ns as f64 * 1e-9
                ),
            ));
        }
        if self.rate_bps > caps.rate_bps {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows at most {} Mb/s, asked for {} Mb/s (serve --max-rate)",
                    caps.rate_bps as f64 * 1e-6,
                    self.rate_bps as f64 * 1e-6
                ),
            ));
        }
        if self.is_unpaced() && !caps.unpaced {
            let message = format!(
                "the server allows at most {} Mb/s, asked for as fast as possible (name a rate: -b; serve --max-rate)",
                caps.rate_bps as f64 * 1e-6
            );
            return Err(Failure::new(Code::Refused, message));
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
            return Err(Failure::new(Code::Usage, "the profile's figures contradict the flow's"));
        }
        if self.direction == Direction::Down && facts.messages > caps.messages {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server sends at most {} messages of a profile, asked for {} (serve --max-messages)",
                    caps.messages, facts.messages
                ),
            ));
        }
        if facts.burst_rate_bps > caps.rate_bps {
            return Err(Failure::new(
                Code::Refused,
                format!(
                    "the server allows at most {} Mb/s, and the profile's bursts have {} Mb/s over 10 ms (serve --max-rate)",
                    caps.rate_bps as f64 / 1e6,
                    facts.burst_rate_bps as f64 / 1e6
                ),
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
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::ProfileFacts;

    const CAPS: Caps =
        Caps { duration_ns: 10_000_000_000, rate_bps: 1_000_000, unpaced: false, messages: 1_000 };

    pub(crate) fn request() -> FlowRequest {
        FlowRequest {
            flow_id: "ab-12".into(),
            command_id: None,
            transport: "udp".into(),
            direction: Direction::Up,
            payload_bytes: 64,
            rate_bps: 1_000_000,
            messages: None,
            omit_ns: 0,
            live: false,
            duration_ns: 10_000_000_000,
            interval_ns: 100_000_000,
            pacing: Mode::Absolute,
            window_us: 0,
            gso: false,
            seed: 7,
            data_address: "127.0.0.1".parse().unwrap(),
            control_apart: false,
            options: Values::new(),
            traces: false,
            profile: None,
        }
    }

    #[test]
    fn requests_beyond_the_caps_are_refused_by_name() {
        assert_eq!(request().check(CAPS), Ok(()));
        let fast = FlowRequest { rate_bps: 1_000_001, ..request() };
        assert!(fast.check(CAPS).unwrap_err().message.contains("--max-rate"));
        let long = FlowRequest { duration_ns: 10_000_000_001, ..request() };
        assert!(long.check(CAPS).unwrap_err().message.contains("--max-duration-s"));
        let fine = FlowRequest { interval_ns: 1, ..request() };
        assert!(fine.check(CAPS).unwrap_err().message.contains("intervals"));
        let shared = FlowRequest { pacing: Mode::SoTxtime, window_us: 50, ..request() };
        assert!(shared.check(CAPS).unwrap_err().message.contains("window"));
        let endless = Caps { duration_ns: u64::MAX, rate_bps: u64::MAX, unpaced: true, messages: u64::MAX };
        let many = FlowRequest { rate_bps: 1 << 50, duration_ns: 1 << 50, interval_ns: 1 << 40, ..request() };
        assert!(many.check(endless).unwrap_err().message.contains("2^40 messages"));
        // Beyond any number that the arithmetic of intervals could hold.
        let daily = FlowRequest { interval_ns: u64::MAX, ..request() };
        assert!(daily.check(CAPS).unwrap_err().message.contains("at most a day"));
        let unpaced = FlowRequest { rate_bps: 0, messages: Some(5), ..request() };
        assert_eq!(unpaced.check(endless), Ok(()));
        assert_eq!((unpaced.constant_schedule().count(), unpaced.offered_rate_mbps()), (5, None));
        let refusal = unpaced.check(CAPS).unwrap_err();
        assert!(refusal.code == Code::Refused && refusal.message.contains("--max-rate"), "{refusal}");
        for contradiction in [
            FlowRequest { window_us: 5, ..unpaced.clone() },
            FlowRequest { pacing: Mode::Spin, ..unpaced.clone() },
            FlowRequest { messages: Some(0), ..unpaced.clone() },
            FlowRequest { messages: Some(5), ..request() },
            FlowRequest { omit_ns: 10_000_000_000, ..request() },
        ] {
            assert_eq!(contradiction.check(endless).unwrap_err().code, Code::Usage, "{contradiction:?}");
        }
        let empty = FlowRequest { payload_bytes: 0, ..request() };
        assert_eq!(empty.check(CAPS).unwrap_err().code, Code::Usage);
    }

    /// 1000 messages of 64 to 200 bytes in 10 s.
    fn profiled() -> FlowRequest {
        let facts = ProfileFacts {
            name: "x".into(),
            shape: "messages".into(),
            seed: 1,
            messages: 1_000,
            bytes: 100_000,
            least_message_bytes: 64,
            greatest_message_bytes: 200,
            last_due_ns: 9_000_000_000,
            burst_rate_bps: 900_000,
        };
        FlowRequest {
            payload_bytes: 200,
            rate_bps: 80_000,
            profile: Some(ProfileRequest { facts, digest: "fnv1a64:0".into(), text_bytes: 0 }),
            ..request()
        }
    }

    #[test]
    fn a_profile_is_told_and_its_figures_must_fit() {
        assert_eq!(profiled().check(CAPS), Ok(()));
        assert_eq!(profiled().schedule_digest(), "fnv1a64:0");
        let line = serde_json::to_string(&profiled()).unwrap();
        assert_eq!(serde_json::from_str::<FlowRequest>(&line).unwrap(), profiled());
        let contradictions: [fn(&mut FlowRequest); 6] = [
            |flow| flow.rate_bps += 1,
            |flow| flow.payload_bytes = 199,
            |flow| flow.direction = Direction::Down,
            |flow| flow.profile.as_mut().unwrap().text_bytes = 1,
            |flow| flow.profile.as_mut().unwrap().facts.least_message_bytes = 15,
            |flow| flow.profile.as_mut().unwrap().facts.messages = u64::MAX,
        ];
        for contradict in contradictions {
            let mut flow = profiled();
            contradict(&mut flow);
            assert_eq!(flow.check(CAPS).unwrap_err().code, Code::Usage, "{flow:?}");
        }
        let mut bursts = profiled();
        bursts.profile.as_mut().unwrap().facts.burst_rate_bps = 1_000_001;
        let refusal = bursts.check(CAPS).unwrap_err();
        assert!(refusal.code == Code::Refused && refusal.message.contains("--max-rate"), "{refusal}");
    }

    #[test]
    fn a_server_writes_out_only_so_many_messages_and_counts_nobody_elses() {
        let mut down = profiled();
        (down.direction, down.profile.as_mut().unwrap().text_bytes) = (Direction::Down, 1);
        assert_eq!(down.check(CAPS), Ok(()));
        let few = Caps { messages: 999, ..CAPS };
        let refusal = down.check(few).unwrap_err();
        assert!(refusal.code == Code::Refused && refusal.message.contains("--max-messages"), "{refusal}");
        assert_eq!(profiled().check(few), Ok(()));
    }

    proptest! {
        #[test]
        fn a_request_of_any_numbers_is_taken_or_refused_and_one_that_is_taken_stays_within_bounds(
            numbers: [u64; 6], exponents in proptest::collection::vec(0_u32..64, 6), gso: bool,
        ) {
            let number = |index: usize| numbers[index] >> exponents[index];
            let wild = FlowRequest {
                payload_bytes: number(0),
                rate_bps: number(1),
                duration_ns: number(2),
                interval_ns: number(3),
                window_us: number(4),
                seed: number(5),
                gso,
                ..request()
            };
            if wild.check(CAPS).is_ok() {
                prop_assert!(wild.duration_ns <= CAPS.duration_ns && wild.rate_bps <= CAPS.rate_bps);
                prop_assert!(wild.duration_ns / wild.interval_ns <= INTERVALS as u64 / 2);
                prop_assert!(wild.interval_ns <= LONGEST_INTERVAL_NS && wild.payload_bytes > 0);
            }
        }
    }
}
