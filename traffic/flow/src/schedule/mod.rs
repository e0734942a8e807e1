// SPDX-License-Identifier: Apache-2.0
//! When each message of a flow is due and how large it is. Pure, the same on every machine.
//!
//! | question | module |
//! | --- | --- |
//! | messages of one size at a constant rate? | `constant`: exact arithmetic, no table |
//! | anything else? | `table`: written out before the flow |
//! | what is a profile? | [`document`] (as written), [`profile`] (as checked), [`text`] (files), [`trace`] |
//! | how does a profile become departures? | `shapes`, with draws from `variate`, `random` and `fixed_point` |
//! | are two schedules the same? | `digest` |

mod constant;
pub mod departure;
mod digest;
pub mod document;
mod fixed_point;
pub mod profile;
pub(crate) mod random;
mod shapes;
mod table;
pub mod text;
pub mod trace;
mod variate;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use constant::ConstantRate;
use digest::Digest;
use profile::Profile;
use table::Table;

pub use departure::Departure;
pub use document::ProfileError;
pub use table::{TooLong, MOST_MESSAGES};

/// Deadlines and sizes of a flow's messages; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Constant(ConstantRate),
    Unpaced(Unpaced),
    Table(Arc<Table>),
}

/// As fast as possible: all messages are due at once, and the flow ends with the last or with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unpaced {
    message_bytes: usize,
    most: u64,
    duration_ns: u64,
}

/// What a schedule that came of a profile amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFacts {
    /// Name of the profile.
    pub name: String,
    /// `messages`, `talk_spurts`, `video_chunks` or `trace`.
    pub shape: String,
    /// Seed of the schedule.
    pub seed: u64,
    /// Messages in it.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Smallest message.
    pub least_message_bytes: u64,
    /// Largest message.
    pub greatest_message_bytes: u64,
    /// When the last message is due, ns after the start.
    pub last_due_ns: i64,
    /// Greatest rate over 10 ms, bit/s.
    pub burst_rate_bps: u64,
}

impl Schedule {
    /// Message k is due k * size / rate after the start, for every k whose time lies before the end: a flow of `rate_bps`
    /// payload bit/s in messages of `message_bytes` for `duration_ns`; all above 0.
    pub fn new(rate_bps: u64, message_bytes: u64, duration_ns: u64) -> Self {
        Self(Form::Constant(ConstantRate::new(rate_bps, message_bytes, duration_ns)))
    }

    /// As fast as possible: at most `most` messages of `message_bytes`, for `duration_ns` at most.
    pub fn unpaced(message_bytes: u64, most: u64, duration_ns: u64) -> Self {
        Self(Form::Unpaced(Unpaced { message_bytes: message_bytes as usize, most, duration_ns }))
    }

    /// Whether messages have no deadlines.
    pub fn is_unpaced(&self) -> bool {
        matches!(self.0, Form::Unpaced(_))
    }

    /// What `profile` and `seed` give for a flow of `duration_ns`.
    ///
    /// # Errors
    /// [`TooLong`] for more than [`MOST_MESSAGES`].
    pub fn of_profile(profile: &Profile, seed: u64, duration_ns: u64) -> Result<Self, TooLong> {
        Self::of_profile_meanwhile(profile, seed, duration_ns, MOST_MESSAGES, &mut || Ok(()))
    }

    /// The same with at most `most` messages, `meanwhile` being called every thousand: a long schedule takes seconds.
    ///
    /// # Errors
    /// [`TooLong`], or what `meanwhile` failed with.
    pub fn of_profile_meanwhile<E: From<TooLong>>(
        profile: &Profile,
        seed: u64,
        duration_ns: u64,
        most: usize,
        meanwhile: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let table = Table::new(profile.departures(seed), duration_ns, most.min(MOST_MESSAGES), meanwhile)?;
        Ok(Self(Form::Table(Arc::new(table))))
    }

    /// Messages in the whole flow.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Form::Constant(constant) => constant.count(),
            Form::Unpaced(unpaced) => unpaced.most,
            Form::Table(table) => table.count(),
        }
    }

    /// When message `index` is due, in ns after the start; rounded up, so never early.
    pub fn due_ns(&self, index: u64) -> i64 {
        match &self.0 {
            Form::Constant(constant) => constant.due_ns(index),
            Form::Unpaced(_) => 0,
            Form::Table(table) => table.due_ns(index),
        }
    }

    /// How many messages are due `elapsed_ns` after the start.
    pub fn due_by(&self, elapsed_ns: i64) -> u64 {
        match &self.0 {
            Form::Constant(constant) => constant.due_by(elapsed_ns),
            Form::Unpaced(unpaced) => {
                if elapsed_ns < 0 {
                    0
                } else {
                    unpaced.most
                }
            }
            Form::Table(table) => table.due_by(elapsed_ns),
        }
    }

    /// Size of message `index`, header included.
    pub fn message_bytes(&self, index: u64) -> usize {
        match &self.0 {
            Form::Constant(constant) => constant.message_bytes(),
            Form::Unpaced(unpaced) => unpaced.message_bytes,
            Form::Table(table) => table.message_bytes(index),
        }
    }

    /// How many messages from `index` on have the same size, at most `most`: they may go in one batch.
    pub fn alike(&self, index: u64, most: u64) -> u64 {
        match &self.0 {
            Form::Constant(_) | Form::Unpaced(_) => most,
            Form::Table(table) => table.alike(index, most),
        }
    }

    /// Whether its messages state their lengths, because they may differ: schedules of profiles.
    pub fn states_lengths(&self) -> bool {
        matches!(self.0, Form::Table(_))
    }

    /// Size of the largest message.
    pub fn greatest_message_bytes(&self) -> usize {
        match &self.0 {
            Form::Constant(constant) => constant.message_bytes(),
            Form::Unpaced(unpaced) => unpaced.message_bytes,
            Form::Table(table) => table.least_and_greatest_bytes().1 as usize,
        }
    }

    /// Payload bytes of all its messages.
    pub fn total_bytes(&self) -> u64 {
        match &self.0 {
            Form::Constant(constant) => constant.count() * constant.message_bytes() as u64,
            Form::Unpaced(unpaced) => unpaced.most.saturating_mul(unpaced.message_bytes as u64),
            Form::Table(table) => table.total_bytes(),
        }
    }

    /// Name of the schedule, for example `fnv1a64:85944171f73967e8`; equal schedules have equal ones. A constant rate is
    /// named by its rate, size and duration, any other schedule by the due time and size of every message.
    pub fn digest(&self) -> String {
        match &self.0 {
            Form::Constant(constant) => constant.digest().text(),
            Form::Unpaced(unpaced) => unpaced.digest().text(),
            Form::Table(table) => table.digest().text(),
        }
    }

    /// What this schedule, which `profile` and `seed` gave, amounts to.
    pub fn facts(&self, profile: &Profile, seed: u64) -> ProfileFacts {
        let (least, greatest, burst_rate_bps) = match &self.0 {
            Form::Constant(constant) => {
                let bytes = constant.message_bytes() as u64;
                (bytes, bytes, constant.rate_bps())
            }
            Form::Unpaced(unpaced) => (unpaced.message_bytes as u64, unpaced.message_bytes as u64, 0),
            Form::Table(table) => {
                let (least, greatest) = table.least_and_greatest_bytes();
                (least, greatest, table.burst_rate_bps())
            }
        };
        ProfileFacts {
            name: profile.name().into(),
            shape: profile.shape_name().into(),
            seed,
            messages: self.count(),
            bytes: self.total_bytes(),
            least_message_bytes: least,
            greatest_message_bytes: greatest,
            last_due_ns: self.due_ns(self.count().saturating_sub(1)),
            burst_rate_bps,
        }
    }
}

impl Unpaced {
    /// Of message bits, messages and duration (8 bytes each, little-endian).
    fn digest(&self) -> Digest {
        let numbers = [self.message_bytes as u64 * 8, self.most, self.duration_ns];
        let form = Digest::new("netjoule schedule, as fast as possible\n");
        numbers.iter().fold(form, |digest, number| digest.with(&number.to_le_bytes()))
    }
}

impl ProfileFacts {
    /// Payload rate over `duration_ns`, in bit/s, rounded up: at least 1.
    pub fn mean_rate_bps(&self, duration_ns: u64) -> u64 {
        let bits = u128::from(self.bytes) * 8;
        u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(duration_ns.max(1))))
            .unwrap_or(u64::MAX)
            .max(1)
    }
}

#[cfg(test)]
mod tests;
