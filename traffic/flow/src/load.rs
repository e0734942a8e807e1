// SPDX-License-Identifier: Apache-2.0
//! What a flow is asked to send: messages of one size at a constant rate, or what a profile gives.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use netjoule_transport::message::SEQUENCE_LIMIT;
use netjoule_transport::{IpVersion, Kind, Protocol, Values};

use crate::arguments::SendArgs;
use crate::control::ProfileRequest;
use crate::schedule::profile::{Profile, LONGEST_TEXT_BYTES};
use crate::schedule::{text, Schedule};
use netjoule_measure::failure::{Code, Failure, Outcome};

/// How long a flow takes where nobody says, ns.
pub(crate) const TIME_NS: u64 = 10_000_000_000;
/// How long a flow of a number of messages takes at most where nobody says, ns: what a server allows.
const LONGEST_COUNT_NS: u64 = 3_600_000_000_000;
/// What is sent where nobody says: datagrams at a rate, blocks of a stream as fast as possible, as iperf3 has it.
const DATAGRAM_RATE_BPS: u64 = 1_000_000;
const MESSAGE_BYTES: u64 = 1440;
const BLOCK_BYTES: u64 = 128 << 10;
const USUAL_MTU: u32 = 1500;

/// A schedule with what it came from.
#[derive(Debug)]
pub struct Load {
    /// Deadlines and sizes.
    pub schedule: Schedule,
    /// Size of a message, or the greatest that the profile can give.
    pub message_bytes: u64,
    /// Payload bit/s; of a profile the mean of this schedule; 0: as fast as possible.
    pub rate_bps: u64,
    /// Most messages of a flow that is as fast as possible.
    pub messages: Option<u64>,
    /// How long it takes, or at most, ns.
    pub duration_ns: u64,
    /// What the peer is told of a profile; none for a constant rate.
    pub profile: Option<ProfileRequest>,
    /// The profile for a peer that sends it; empty when this end does.
    pub profile_text: String,
    /// What stood behind the profile on stdin.
    pub stdin_rest: Vec<u8>,
}

impl Load {
    /// What the command line asks for of `protocol`. The profile, if there is one, is read and written out: this can take
    /// seconds.
    pub fn of(args: &SendArgs, protocol: &dyn Protocol) -> Outcome<Self> {
        let time_ns = args.time.unwrap_or(TIME_NS).saturating_add(args.omit.unwrap_or(0));
        if let Some(path) = &args.profile {
            let (profile, stdin_rest) = match &args.profile_on_stdin {
                Some(line) => (named_profile(line, path)?, Vec::new()),
                None => given_profile(path)?,
            };
            let load = Self::of_profile(&profile, args.schedule_seed, time_ns, args.reverse)?;
            return Ok(Self { stdin_rest, ..load });
        }
        let is_stream = protocol.kind() == Kind::Stream;
        let rate_bps = args.rate.unwrap_or(if is_stream { 0 } else { DATAGRAM_RATE_BPS });
        let message_bytes = args.length.unwrap_or_else(|| match is_stream && rate_bps == 0 {
            true => (protocol.limits(IpVersion::V4, USUAL_MTU, &Values::new()).max_message_bytes as u64)
                .min(BLOCK_BYTES),
            false => MESSAGE_BYTES,
        });
        let messages = args.bytes.map(|bytes| bytes.div_ceil(message_bytes.max(1))).or(args.blocks);
        Ok(match messages {
            Some(messages) => Self::counted(rate_bps, message_bytes, messages, args.time),
            None => Self::constant(rate_bps, message_bytes, time_ns),
        })
    }

    /// So many messages, within `time_ns` where that is given.
    fn counted(rate_bps: u64, message_bytes: u64, messages: u64, time_ns: Option<u64>) -> Self {
        if rate_bps == 0 {
            let duration_ns = time_ns.unwrap_or(LONGEST_COUNT_NS);
            let schedule = Schedule::unpaced(message_bytes, messages, duration_ns);
            let unpaced = Self::constant(rate_bps, message_bytes, duration_ns);
            return Self { schedule, messages: Some(messages), ..unpaced };
        }
        // The last message is due before the end of this time, and no further one.
        let bits_ns = u128::from(messages) * u128::from(message_bytes) * 8_000_000_000;
        let whole_ns = u64::try_from(bits_ns / u128::from(rate_bps)).unwrap_or(u64::MAX).max(1);
        Self::constant(rate_bps, message_bytes, time_ns.map_or(whole_ns, |time_ns| whole_ns.min(time_ns)))
    }

    /// A constant rate; 0: as fast as possible.
    pub fn constant(rate_bps: u64, message_bytes: u64, duration_ns: u64) -> Self {
        let schedule = match rate_bps {
            0 => Schedule::unpaced(message_bytes, SEQUENCE_LIMIT, duration_ns),
            _ => Schedule::new(rate_bps, message_bytes, duration_ns),
        };
        Self {
            schedule,
            message_bytes,
            rate_bps,
            messages: None,
            duration_ns,
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
            messages: None,
            duration_ns,
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
pub(crate) fn first_line_of_stdin() -> Outcome<(Vec<u8>, Vec<u8>)> {
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Failure::system("open stdin"))?;
    first_line(&mut File::from(stdin))
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
    use crate::cli::{Cli, Command};
    use crate::registry;

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
        let burst_rate_bps = load.profile.as_ref().unwrap().facts.burst_rate_bps;
        assert!(load.profile_text.is_empty() && burst_rate_bps > load.rate_bps);
        let constant = Load::constant(65_000, 300, 1_000_000_000);
        assert_eq!((constant.message_bytes, constant.rate_bps, constant.profile), (300, 65_000, None));
    }

    #[test]
    fn what_nobody_says_is_as_with_iperf3() {
        let of = |words: &[&str]| {
            let Ok(cli) =
                <Cli as clap::Parser>::try_parse_from([&["x", "send", "--to", "h"], words].concat())
            else {
                panic!("{words:?}")
            };
            let Command::Send(args) = cli.command else { panic!("not send") };
            let load = Load::of(&args, registry::protocol(&args.transport).unwrap()).unwrap();
            (load.rate_bps, load.message_bytes, load.duration_ns, load.schedule.count())
        };
        assert_eq!(of(&[]), (1_000_000, 1_440, 10_000_000_000, 869));
        assert_eq!(of(&["-b", "0"]), (0, 1_440, 10_000_000_000, SEQUENCE_LIMIT));
        assert_eq!(of(&["--transport", "tcp", "-t", "2"]), (0, 131_072, 2_000_000_000, SEQUENCE_LIMIT));
        assert_eq!(of(&["--transport", "tcp", "-b", "8M", "-O", "1"]).2, 11_000_000_000);
        assert_eq!(of(&["--transport", "tcp", "-n", "1M"]), (0, 131_072, LONGEST_COUNT_NS, 8));
        assert_eq!(of(&["-k", "7", "-b", "8M", "-l", "1000"]), (8_000_000, 1_000, 7_000_000, 7));
        assert_eq!(of(&["-n", "6001", "-b", "8M", "-l", "1000"]).3, 7, "whole messages");
        assert_eq!(of(&["-n", "1G", "-b", "8M", "-l", "1000", "-t", "1"]).3, 1_000, "the time ends it first");
    }

    proptest::proptest! {
        #[test]
        fn a_number_of_messages_is_that_many(
            rate_bps in 1_u64..20_000_000_000, message_bytes in 16_u64..65_536, messages in 1_u64..100_000,
        ) {
            let load = Load::counted(rate_bps, message_bytes, messages, None);
            proptest::prop_assert_eq!(load.schedule.count(), messages);
        }
    }

    #[test]
    fn the_profile_on_stdin_ends_with_its_line() {
        let mut source = &b"{\"a\": 1}\ngo\nend\n"[..];
        assert_eq!(first_line(&mut source).unwrap(), (b"{\"a\": 1}".to_vec(), b"go\nend\n".to_vec()));
        assert_eq!(first_line(&mut &b"{}"[..]).unwrap(), (b"{}".to_vec(), vec![]));
    }
}
