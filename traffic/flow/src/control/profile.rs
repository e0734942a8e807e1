// SPDX-License-Identifier: Apache-2.0
//! The profile of a flow that the server sends, as the client tells it: both ends must compute the same schedule.

use serde::{Deserialize, Serialize};

use crate::schedule::{text, ProfileFacts, Schedule, TooLong};
use netjoule_measure::failure::{Code, Failure, Outcome};

/// A flow's profile as the peer is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRequest {
    /// What the schedule amounts to.
    pub facts: ProfileFacts,
    /// Name of the schedule, see [`Schedule::digest`].
    pub digest: String,
    /// Length of the profile's text, which follows when the peer is to send; else 0.
    pub text_bytes: u64,
}

impl ProfileRequest {
    /// At the end that was asked to send: the schedule of the profile in `text`, if it is the one that was announced.
    /// `meanwhile` is called every thousand messages: many take seconds. It is given up at the first message beyond those
    /// that were announced.
    ///
    /// # Errors
    /// [`Code::Protocol`] for another schedule than announced, and what `meanwhile` failed with.
    pub fn schedule(
        &self,
        text: &str,
        duration_ns: u64,
        meanwhile: &mut dyn FnMut() -> Outcome<()>,
    ) -> Outcome<Schedule> {
        let profile = text::read(text.as_bytes(), "profile").map_err(|what| {
            Failure::new(Code::Protocol, format!("the profile that the client sent {what}"))
        })?;
        let (seed, most) = (self.facts.seed, usize::try_from(self.facts.messages).unwrap_or(usize::MAX));
        let written_out = Schedule::of_profile_meanwhile(&profile, seed, duration_ns, most, &mut || {
            meanwhile().map_err(GivenUp::Meanwhile)
        });
        match written_out {
            Ok(schedule)
                if schedule.facts(&profile, seed) == self.facts && schedule.digest() == self.digest =>
            {
                Ok(schedule)
            }
            Err(GivenUp::Meanwhile(failure)) => Err(failure),
            Ok(_) | Err(GivenUp::TooLong) => Code::Protocol.fail(
                "the two ends compute different schedules from the same profile; use the same netjoule-traffic at both",
            ),
        }
    }
}

/// Why a schedule was not written out to its end.
enum GivenUp {
    TooLong,
    Meanwhile(Failure),
}

impl From<TooLong> for GivenUp {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}
