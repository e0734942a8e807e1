// SPDX-License-Identifier: Apache-2.0
//! What a flow is asked to send: messages of one size at a constant rate, or what a profile gives.

use std::fs::File;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cli::SendArgs;
use crate::failure::{Code, Failure, Outcome};
use crate::schedule::profile::{Profile, LONGEST_TEXT_BYTES};
use crate::schedule::{text, ProfileFacts, Schedule, TooLong};

/// A schedule with what it came from.
#[derive(Debug)]
pub struct Load {
    /// Deadlines and sizes.
    pub schedule: Schedule,
    /// Size of a message, or the greatest that the profile can give.
    pub message_bytes: u64,
    /// Payload bit/s; of a profile the mean of this schedule.
    pub rate_bps: u64,
    /// Payload bit/s of its bursts; the same for a constant rate.
    pub burst_rate_bps: u64,
    /// What the peer is told of a profile; none for a constant rate.
    pub profile: Option<ProfileRequest>,
    /// The profile for a peer that sends it; empty when this end does.
    pub profile_text: String,
    /// What stood behind the profile on stdin.
    pub stdin_rest: Vec<u8>,
}

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

impl Load {
    /// What the command line asks for. The profile, if there is one, is read and written out: this can take seconds.
    pub fn of(args: &SendArgs) -> Outcome<Self> {
        let Some(path) = &args.profile else {
            return Ok(Self::constant(args.rate, args.length, args.time));
        };
        let (profile, stdin_rest) = given_profile(path)?;
        let load = Self::of_profile(&profile, args.schedule_seed, args.time, args.reverse)?;
        Ok(Self { stdin_rest, ..load })
    }

    /// A constant rate.
    pub fn constant(rate_bps: u64, message_bytes: u64, duration_ns: u64) -> Self {
        Self {
            schedule: Schedule::new(rate_bps, message_bytes, duration_ns),
            message_bytes,
            rate_bps,
            burst_rate_bps: rate_bps,
            profile: None,
            profile_text: String::new(),
            stdin_rest: Vec::new(),
        }
    }

    /// What a profile gives. `peer_sends`: then the peer computes the same schedule.
    pub fn of_profile(profile: &Profile, seed: u64, duration_ns: u64, peer_sends: bool) -> Outcome<Self> {
        let schedule = written_out(profile, seed, duration_ns)?;
        let facts = schedule.facts(profile, seed);
        let profile_text = if peer_sends { profile.text() } else { String::new() };
        Ok(Self {
            message_bytes: profile.greatest_message_bytes(),
            rate_bps: facts.mean_rate_bps(duration_ns),
            burst_rate_bps: facts.burst_rate_bps,
            profile: Some(ProfileRequest {
                digest: schedule.digest(),
                text_bytes: profile_text.len() as u64,
                facts,
            }),
            schedule,
            profile_text,
            stdin_rest: Vec::new(),
        })
    }
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
            Ok(_) | Err(GivenUp::TooLong) => Err(Failure::new(
                Code::Protocol,
                "the two ends compute different schedules from the same profile; use the same netjoule-traffic at both",
            )),
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

fn written_out(profile: &Profile, seed: u64, duration_ns: u64) -> Outcome<Schedule> {
    Schedule::of_profile(profile, seed, duration_ns).map_err(|error| {
        Failure::new(Code::Usage, format!("the schedule of profile {} is too long: {error}", profile.name()))
    })
}

/// The profile of `--profile`: a file's, or for `-` that of stdin's first line with what stood behind it.
///
/// # Errors
/// [`Code::Usage`] with the file's name.
pub fn given_profile(path: &Path) -> Outcome<(Profile, Vec<u8>)> {
    let (bytes, stdin_rest) = match path.as_os_str() == "-" {
        true => first_line_of_stdin()?,
        false => (read_file(path)?, Vec::new()),
    };
    Ok((named_profile(&bytes, path)?, stdin_rest))
}

/// The profile in the bytes of a file.
///
/// # Errors
/// [`Code::Usage`] with the file's name.
pub fn named_profile(bytes: &[u8], path: &Path) -> Outcome<Profile> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let called = if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() };
    text::read(bytes, &stem).map_err(|what| Failure::new(Code::Usage, format!("{called} {what}")))
}

/// The bytes of a file, at most one more than a profile may have.
///
/// # Errors
/// [`Code::Usage`].
pub fn read_file(path: &Path) -> Outcome<Vec<u8>> {
    let refused = |error: io::Error| {
        Failure::new(Code::Usage, format!("cannot read the profile {}: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    file.take(LONGEST_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

/// The first line of stdin, and what was read beyond it. Not through the library's buffer, which [`crate::session`] could
/// not see.
fn first_line_of_stdin() -> Outcome<(Vec<u8>, Vec<u8>)> {
    // SAFETY: descriptor 0 is stdin for the whole life of the process, and ManuallyDrop never closes it.
    let mut stdin = ManuallyDrop::new(unsafe { File::from_raw_fd(0) });
    first_line(&mut *stdin)
}

fn first_line(source: &mut impl Read) -> Outcome<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut block = vec![0; 64 << 10];
    loop {
        let length = source.read(&mut block).map_err(Failure::system("read the profile from stdin"))?;
        let line_end = block[..length].iter().position(|byte| *byte == b'\n');
        bytes.extend_from_slice(&block[..line_end.unwrap_or(length)]);
        if bytes.len() > LONGEST_TEXT_BYTES || line_end.is_some() || length == 0 {
            let rest = line_end.map_or(length, |end| end + 1);
            return Ok((bytes, block[rest..length].to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = r#"{"schema_version":1,"name":"x","messages":{"size_bytes":{"distribution":"uniform","min":64,"max":800},"inter_departure_s":0.01}}"#;

    #[test]
    fn both_ends_compute_the_same_or_the_flow_is_refused() {
        let profile = text::read(PROFILE.as_bytes(), "x").unwrap();
        let load = Load::of_profile(&profile, 5, 1_000_000_000, true).unwrap();
        let request = load.profile.unwrap();
        assert_eq!(request.text_bytes, load.profile_text.len() as u64);
        let schedule = |text: &str, duration_ns| request.schedule(text, duration_ns, &mut || Ok(()));
        assert_eq!(schedule(&load.profile_text, 1_000_000_000).unwrap(), load.schedule);
        for (text, duration_ns) in [
            (load.profile_text.replace("800", "801"), 1_000_000_000),
            (load.profile_text.clone(), 2_000_000_000),
            ("{}".into(), 1_000_000_000),
        ] {
            assert_eq!(schedule(&text, duration_ns).unwrap_err().code, Code::Protocol);
        }
    }

    #[test]
    fn a_schedule_is_written_out_no_further_than_was_announced_and_only_while_somebody_wants_it() {
        let profile = text::read(PROFILE.as_bytes(), "x").unwrap();
        // 100 messages a second.
        let request = Load::of_profile(&profile, 5, 60_000_000_000, true).unwrap().profile.unwrap();
        let text = profile.text();
        let looks = |duration_s: u64, most: u32| {
            let mut looks = 0;
            let outcome = request.schedule(&text, duration_s * 1_000_000_000, &mut || {
                looks += 1;
                let gone = || Failure::new(Code::ControlLost, "the client has gone");
                (looks < most).then_some(()).ok_or_else(gone)
            });
            (looks, outcome.map_err(|failure| failure.code).err())
        };
        assert_eq!(looks(60, 99), (5, None));
        assert_eq!(looks(60, 2), (2, Some(Code::ControlLost)));
        // An hour of it would be 360,000.
        assert_eq!(looks(3_600, 99), (5, Some(Code::Protocol)));
    }

    #[test]
    fn a_profile_has_the_mean_rate_of_its_schedule_and_the_greatest_message_of_itself() {
        let profile = text::read(PROFILE.as_bytes(), "x").unwrap();
        let load = Load::of_profile(&profile, 5, 10_000_000_000, false).unwrap();
        assert_eq!(load.message_bytes, 800);
        assert_eq!(load.rate_bps, (load.schedule.total_bytes() * 8).div_ceil(10));
        assert!(load.profile_text.is_empty() && load.burst_rate_bps > load.rate_bps);
        let constant = Load::constant(65_000, 300, 1_000_000_000);
        assert_eq!((constant.message_bytes, constant.rate_bps, constant.profile), (300, 65_000, None));
    }

    #[test]
    fn the_profile_on_stdin_ends_with_its_line() {
        let mut source = &b"{\"a\": 1}\ngo\nend\n"[..];
        assert_eq!(first_line(&mut source).unwrap(), (b"{\"a\": 1}".to_vec(), b"go\nend\n".to_vec()));
        assert_eq!(first_line(&mut &b"{}"[..]).unwrap(), (b"{}".to_vec(), vec![]));
    }
}
