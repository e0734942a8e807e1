// SPDX-License-Identifier: Apache-2.0
//! A profile that makes sense: sizes and departure times of a flow as distributions or as a trace.
//!
//! A schedule is computed from a profile, a seed and a duration before its flow starts, and nothing that happens on the
//! way changes it: every transport and null get the same one. So the buffer of a video player, too, is that of a player
//! whose chunks arrive at the profile's download rate.

use super::departure::{Departure, MESSAGE_BYTES};
use super::document::{self, Document, ProfileError};
use super::random::{Purpose, Random};
use super::shapes::Player;
use super::trace;
use super::variate::{Sampler, Unit};

/// Longest text of a profile in bytes.
pub const LONGEST_TEXT_BYTES: usize = 4 << 20;

/// Longest time in a profile: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;
const LARGEST_CHUNK_BYTES: u64 = 1_000_000_000;
const GREATEST_RATE_BPS: u64 = 100_000_000_000;
const NAME_CHARACTERS: usize = 64;

const TIME: Unit = Unit { scale: 1e9, least: 0, greatest: LONGEST_NS, wants_max: false, name: "s" };
const SPAN: Unit = Unit { least: 1, ..TIME };
const MESSAGE: Unit = Unit {
    scale: 1.0,
    least: *MESSAGE_BYTES.start(),
    greatest: *MESSAGE_BYTES.end(),
    wants_max: true,
    name: "bytes",
};
const CHUNK: Unit = Unit { greatest: LARGEST_CHUNK_BYTES, ..MESSAGE };
const RATE: Unit = Unit { scale: 1e6, least: 1, greatest: GREATEST_RATE_BPS, wants_max: true, name: "Mb/s" };

/// A checked profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    document: Document,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Messages { size: Sampler, gap: Sampler },
    TalkSpurts { on: Sampler, off: Sampler, size: Sampler, gap: Sampler },
    VideoChunks(Player),
    Trace { departures: Vec<Departure>, period_ns: Option<u64> },
}

impl Profile {
    /// Make sense of a document.
    ///
    /// # Errors
    /// [`ProfileError`] naming the field that makes none.
    pub fn new(document: Document) -> Result<Self, ProfileError> {
        if document.schema_version != document::SCHEMA_VERSION {
            let known = document::SCHEMA_VERSION;
            return Err(ProfileError::new("schema_version", format!("only version {known} is known")));
        }
        let name = &document.name;
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_CHARACTERS || !name.chars().all(fits) {
            return Err(ProfileError::new(
                "name",
                "letters, digits, dots, dashes and underscores, 64 at most",
            ));
        }
        let shape = shape(&document)?;
        Ok(Self { document, shape })
    }

    /// What reports call it.
    pub fn name(&self) -> &str {
        &self.document.name
    }

    /// Name of its shape, as in the document.
    pub fn shape_name(&self) -> &'static str {
        match self.shape {
            Shape::Messages { .. } => "messages",
            Shape::TalkSpurts { .. } => "talk_spurts",
            Shape::VideoChunks(_) => "video_chunks",
            Shape::Trace { .. } => "trace",
        }
    }

    /// As it is written down; [`super::text::read`] gives the same profile back.
    pub fn text(&self) -> String {
        serde_json::to_string(&self.document).expect("a profile always serialises")
    }

    /// Greatest message that a schedule of it can hold, in bytes.
    pub fn greatest_message_bytes(&self) -> u64 {
        match &self.shape {
            Shape::Messages { size, .. } | Shape::TalkSpurts { size, .. } => size.greatest(),
            Shape::VideoChunks(player) => player.greatest_message_bytes(),
            Shape::Trace { departures, .. } => {
                departures.iter().map(|departure| u64::from(departure.bytes)).max().unwrap_or(0)
            }
        }
    }

    /// How long one round of a trace takes, ns; `None` for what has no end.
    pub fn span_ns(&self) -> Option<u64> {
        match &self.shape {
            Shape::Trace { departures, period_ns } => {
                period_ns.or_else(|| departures.last().map(|departure| departure.due_ns + 1))
            }
            _ => None,
        }
    }

    /// Its departures in order, without end unless it is a trace that is played once.
    pub(super) fn departures(&self, seed: u64) -> Box<dyn Iterator<Item = Departure> + '_> {
        let random = |purpose| Random::new(seed, purpose);
        let (sizes, gaps) = (random(Purpose::Size), random(Purpose::InterDeparture));
        match &self.shape {
            Shape::Messages { size, gap } => Box::new(super::shapes::messages(size, gap, sizes, gaps)),
            Shape::TalkSpurts { on, off, size, gap } => {
                let spurts = super::shapes::spurts(on, off, random(Purpose::On), random(Purpose::Off));
                Box::new(super::shapes::talk(spurts, size, gap, sizes, gaps))
            }
            Shape::VideoChunks(player) => Box::new(super::shapes::video(player, sizes)),
            Shape::Trace { departures, period_ns } => Box::new(super::shapes::replay(departures, *period_ns)),
        }
    }
}

fn shape(document: &Document) -> Result<Shape, ProfileError> {
    let Document { messages, talk_spurts, video_chunks, trace, .. } = document;
    match (messages, talk_spurts, video_chunks, trace) {
        (Some(given), None, None, None) => Ok(Shape::Messages {
            size: Sampler::new(&given.size_bytes, &MESSAGE, "messages.size_bytes")?,
            gap: Sampler::new(&given.inter_departure_s, &TIME, "messages.inter_departure_s")?,
        }),
        (None, Some(given), None, None) => Ok(Shape::TalkSpurts {
            on: Sampler::new(&given.on_s, &TIME, "talk_spurts.on_s")?,
            off: Sampler::new(&given.off_s, &TIME, "talk_spurts.off_s")?,
            size: Sampler::new(&given.size_bytes, &MESSAGE, "talk_spurts.size_bytes")?,
            gap: Sampler::new(&given.inter_departure_s, &TIME, "talk_spurts.inter_departure_s")?,
        }),
        (None, None, Some(given), None) => player(given).map(Shape::VideoChunks),
        (None, None, None, Some(given)) => replayed(given),
        _ => Err(ProfileError::new(
            "(top)",
            "exactly one of messages, talk_spurts, video_chunks and trace says what is sent",
        )),
    }
}

fn player(given: &document::VideoChunks) -> Result<Player, ProfileError> {
    let at = |name: &str| format!("video_chunks.{name}");
    let player = Player {
        chunk: Sampler::new(&given.chunk_bytes, &CHUNK, &at("chunk_bytes"))?,
        chunk_ns: SPAN.whole(given.chunk_s, &at("chunk_s"))?,
        message_bytes: MESSAGE.whole(given.message_bytes, &at("message_bytes"))?,
        download_bps: RATE.whole(given.download_mbps, &at("download_mbps"))?,
        start_buffer_ns: TIME.whole(given.start_buffer_s, &at("start_buffer_s"))?,
        greatest_buffer_ns: SPAN.whole(given.greatest_buffer_s, &at("greatest_buffer_s"))?,
    };
    // Otherwise a full buffer could wait for a player that waits for a fuller one.
    if player.start_buffer_ns + player.chunk_ns > player.greatest_buffer_ns {
        return Err(ProfileError::new(
            &at("greatest_buffer_s"),
            "it must hold start_buffer_s and one chunk more",
        ));
    }
    Ok(player)
}

fn replayed(given: &document::Trace) -> Result<Shape, ProfileError> {
    let departures =
        trace::from_csv(&given.csv).map_err(|error| ProfileError::new("trace.csv", error.to_string()))?;
    let last_ns = departures.last().map_or(0, |departure| departure.due_ns);
    let period_ns = given.period_s.map(|period_s| SPAN.whole(period_s, "trace.period_s")).transpose()?;
    if period_ns.is_some_and(|period_ns| period_ns < last_ns) {
        return Err(ProfileError::new("trace.period_s", "it is shorter than the trace"));
    }
    Ok(Shape::Trace { departures, period_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Result<Profile, ProfileError> {
        Profile::new(serde_json::from_str(text).unwrap())
    }

    fn with(shape: &str) -> Result<Profile, ProfileError> {
        profile(&format!(r#"{{"schema_version":1,"name":"x",{shape}}}"#))
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_field() {
        let video = |more: &str| {
            format!(
                r#""video_chunks":{{"chunk_bytes":100000,"chunk_s":2,"message_bytes":1400,"download_mbps":8,{more}}}"#
            )
        };
        let cases = [
            (r#""messages":{"size_bytes":15,"inter_departure_s":1}"#.into(), "messages.size_bytes: 15 bytes"),
            (r#""messages":{"size_bytes":70000,"inter_departure_s":1}"#.into(), "between 16 and 65535"),
            (r#""messages":{"size_bytes":64,"inter_departure_s":-1}"#.into(), "inter_departure_s: -1 s"),
            (
                r#""messages":{"size_bytes":{"distribution":"exponential","mean":100},"inter_departure_s":1}"#
                    .into(),
                "size_bytes: it needs a max",
            ),
            (
                r#""messages":{"size_bytes":{"distribution":"uniform","min":90,"max":80},"inter_departure_s":1}"#
                    .into(),
                "least value is above its greatest",
            ),
            (
                r#""messages":{"size_bytes":{"distribution":"empirical","values":[80],"weights":[0]},"inter_departure_s":1}"#
                    .into(),
                "weights are all 0",
            ),
            (
                r#""messages":{"size_bytes":64,"inter_departure_s":{"distribution":"pareto","shape":0,"scale":1,"max":2}}"#
                    .into(),
                "inter_departure_s.shape: 0",
            ),
            (r#""trace":{"csv":"t_s,bytes\n0,64\n2,64\n","period_s":1}"#.into(), "shorter than the trace"),
            (r#""trace":{"csv":"t_s,bytes\n"}"#.into(), "trace.csv"),
            (video(r#""start_buffer_s":9,"greatest_buffer_s":10"#), "greatest_buffer_s"),
            (r#""description":"nothing else""#.into(), "exactly one of"),
        ];
        for (shape, words) in cases {
            let error = with(&shape).unwrap_err().to_string();
            assert!(error.contains(words), "{shape}: {error}");
        }
        assert!(with(&video(r#""start_buffer_s":8,"greatest_buffer_s":10"#)).is_ok());
        for text in [
            r#"{"schema_version":2,"name":"x"}"#,
            r#"{"schema_version":1,"name":"a b"}"#,
            r#"{"schema_version":1,"name":""}"#,
        ] {
            assert!(profile(text).is_err(), "{text}");
        }
    }

    #[test]
    fn it_knows_its_greatest_message() {
        for (shape, greatest) in [
            (
                r#""messages":{"size_bytes":{"distribution":"uniform","min":90,"max":800},"inter_departure_s":1}"#,
                800,
            ),
            (r#""trace":{"csv":"t_s,bytes\n0,64\n2,164\n"}"#, 164),
            (
                r#""video_chunks":{"chunk_bytes":900,"chunk_s":2,"message_bytes":1400,"download_mbps":8,"start_buffer_s":1,"greatest_buffer_s":9}"#,
                900,
            ),
        ] {
            assert_eq!(with(shape).unwrap().greatest_message_bytes(), greatest, "{shape}");
        }
    }
}
