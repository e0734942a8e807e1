// SPDX-License-Identifier: Apache-2.0
//! The departures of each shape of profile, one after the other. Pure integer arithmetic.

use super::departure::{Departure, MESSAGE_BYTES};
use super::random::Random;
use super::variate::Sampler;

const SECOND_NS: u128 = 1_000_000_000;

/// Message 0 at 0, each further one an inter-departure time after the one before.
pub(super) fn messages<'a>(
    size: &'a Sampler,
    gap: &'a Sampler,
    mut sizes: Random,
    mut gaps: Random,
) -> impl Iterator<Item = Departure> + 'a {
    let mut next_ns: u64 = 0;
    std::iter::repeat_with(move || {
        let due_ns = next_ns;
        next_ns = due_ns.saturating_add(gap.draw(&mut gaps));
        Departure { due_ns, bytes: message_bytes(size.draw(&mut sizes)) }
    })
}

/// Begin and length of each spurt, in ns. The first begins at 0.
pub(super) fn spurts<'a>(
    on: &'a Sampler,
    off: &'a Sampler,
    mut ons: Random,
    mut offs: Random,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    let mut next_ns: u64 = 0;
    std::iter::repeat_with(move || {
        let (start_ns, length_ns) = (next_ns, on.draw(&mut ons));
        next_ns = start_ns.saturating_add(length_ns).saturating_add(off.draw(&mut offs));
        (start_ns, length_ns)
    })
}

/// Messages from the start of each spurt for as long as it lasts; the time that leads beyond it is drawn and dropped.
pub(super) fn talk<'a>(
    mut spurts: impl Iterator<Item = (u64, u64)> + 'a,
    size: &'a Sampler,
    gap: &'a Sampler,
    mut sizes: Random,
    mut gaps: Random,
) -> impl Iterator<Item = Departure> + 'a {
    let mut spurt = spurts.next();
    let mut into_ns: u64 = 0;
    std::iter::from_fn(move || {
        let (start_ns, length_ns) = spurt?;
        let due_ns = start_ns.saturating_add(into_ns);
        into_ns = into_ns.saturating_add(gap.draw(&mut gaps));
        if into_ns >= length_ns {
            spurt = spurts.next();
            into_ns = 0;
        }
        Some(Departure { due_ns, bytes: message_bytes(size.draw(&mut sizes)) })
    })
}

/// The messages of the chunks that a player fetches, each chunk at the download rate.
pub(super) fn video<'a>(player: &'a Player, mut sizes: Random) -> impl Iterator<Item = Departure> + 'a {
    let mut buffer = Buffer::default();
    let mut next_ns: u64 = 0;
    std::iter::repeat_with(move || {
        let (start_ns, bytes) = (next_ns, player.chunk.draw(&mut sizes));
        next_ns = start_ns.saturating_add(buffer.fetch(player, player.download_ns(bytes)));
        player.chunk_departures(start_ns, bytes)
    })
    .flatten()
}

/// A trace, again and again when it has a period.
pub(super) fn replay(
    departures: &[Departure],
    period_ns: Option<u64>,
) -> impl Iterator<Item = Departure> + '_ {
    let rounds = if period_ns.is_some() { u64::MAX } else { 1 };
    (0..rounds).flat_map(move |round| {
        let start_ns = round.saturating_mul(period_ns.unwrap_or(0));
        departures.iter().map(move |departure| Departure {
            due_ns: departure.due_ns.saturating_add(start_ns),
            ..*departure
        })
    })
}

/// A video player and what it fetches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Player {
    pub(super) chunk: Sampler,
    pub(super) chunk_ns: u64,
    pub(super) message_bytes: u64,
    pub(super) download_bps: u64,
    pub(super) start_buffer_ns: u64,
    pub(super) greatest_buffer_ns: u64,
}

impl Player {
    /// Greatest message that it asks for, in bytes.
    pub(super) fn greatest_message_bytes(&self) -> u64 {
        self.message_bytes.min(self.chunk.greatest()).max(*MESSAGE_BYTES.start())
    }

    /// Time from the first bit of `bytes` to the last, rounded up: never early.
    fn download_ns(&self, bytes: u64) -> u64 {
        let bits = 8 * u128::from(bytes);
        (bits * SECOND_NS).div_ceil(u128::from(self.download_bps)) as u64
    }

    fn chunk_departures(&self, start_ns: u64, bytes: u64) -> impl Iterator<Item = Departure> + '_ {
        (0..bytes.div_ceil(self.message_bytes)).map(move |index| {
            let before = index * self.message_bytes;
            let rest = (bytes - before).min(self.message_bytes);
            Departure {
                due_ns: start_ns.saturating_add(self.download_ns(before)),
                bytes: message_bytes(rest.max(*MESSAGE_BYTES.start())),
            }
        })
    }
}

/// A player's buffer, filled by chunks and emptied by playing.
#[derive(Debug, Default)]
struct Buffer {
    media_ns: u64,
    is_playing: bool,
}

impl Buffer {
    /// A chunk is fetched in `download_ns`; how long after its start the next one is asked for.
    fn fetch(&mut self, player: &Player, download_ns: u64) -> u64 {
        self.play(download_ns);
        self.media_ns += player.chunk_ns;
        self.is_playing |= self.media_ns >= player.start_buffer_ns;
        let wait_ns = (self.media_ns + player.chunk_ns).saturating_sub(player.greatest_buffer_ns);
        self.play(wait_ns);
        download_ns + wait_ns
    }

    /// Time passes. An empty buffer stalls the player until it has filled to its start again.
    fn play(&mut self, passed_ns: u64) {
        if !self.is_playing {
            return;
        }
        self.is_playing = passed_ns < self.media_ns;
        self.media_ns = self.media_ns.saturating_sub(passed_ns);
    }
}

/// A size that a sampler of message sizes gave.
fn message_bytes(bytes: u64) -> u16 {
    u16::try_from(bytes).expect("the profile's check bounds sizes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::document::Document;
    use crate::schedule::profile::Profile;

    fn departures(shape: &str, count: usize) -> Vec<(u64, u16)> {
        let text = format!(r#"{{"schema_version":1,"name":"x",{shape}}}"#);
        let document: Document = serde_json::from_str(&text).unwrap();
        let profile = Profile::new(document).unwrap();
        profile.departures(1).take(count).map(|departure| (departure.due_ns, departure.bytes)).collect()
    }

    #[test]
    fn a_spurt_lasts_as_long_as_it_says_and_silence_follows() {
        let talk = r#""talk_spurts":{"on_s":0.05,"off_s":0.1,"size_bytes":300,"inter_departure_s":0.02}"#;
        let ms = |times: [u64; 7]| times.map(|time| (time * 1_000_000, 300)).to_vec();
        assert_eq!(departures(talk, 7), ms([0, 20, 40, 150, 170, 190, 300]));
        // A message due just when the spurt ends is not in it; a spurt of no length has its first one.
        let short = r#""talk_spurts":{"on_s":0.04,"off_s":0.01,"size_bytes":300,"inter_departure_s":0.02}"#;
        assert_eq!(departures(short, 7), ms([0, 20, 50, 70, 100, 120, 150]));
        let none = r#""talk_spurts":{"on_s":0,"off_s":0.01,"size_bytes":300,"inter_departure_s":0.02}"#;
        assert_eq!(departures(none, 7), ms([0, 10, 20, 30, 40, 50, 60]));
    }

    #[test]
    fn chunks_come_back_to_back_until_the_buffer_is_full_and_then_as_it_empties() {
        // 2500 bytes at 8 Mb/s take 2.5 ms; each plays for 10 ms; there is room for three.
        let video = r#""video_chunks":{"chunk_bytes":2500,"chunk_s":0.01,"message_bytes":1000,"download_mbps":8,"start_buffer_s":0.01,"greatest_buffer_s":0.03}"#;
        let seen = departures(video, 18);
        let sizes: Vec<_> = seen.iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!(sizes[..6], [1000, 1000, 500, 1000, 1000, 500]);
        let starts: Vec<_> = seen.iter().step_by(3).map(|(due_ns, _)| due_ns / 1_000).collect();
        // Playing starts at 2.5 ms with 10 ms; at 7.5 ms there are 25 ms, and 5 ms later room for the next.
        assert_eq!(starts, [0, 2_500, 5_000, 12_500, 22_500, 32_500]);
        assert_eq!(seen[1].0, 1_000_000);
        assert_eq!(seen[2].0, 2_000_000);
    }

    #[test]
    fn a_download_slower_than_the_video_stalls_and_never_waits() {
        let video = r#""video_chunks":{"chunk_bytes":20000,"chunk_s":0.01,"message_bytes":20000,"download_mbps":8,"start_buffer_s":0.02,"greatest_buffer_s":0.05}"#;
        let starts: Vec<_> = departures(video, 5).iter().map(|(due_ns, _)| due_ns / 1_000_000).collect();
        assert_eq!(starts, [0, 20, 40, 60, 80]);
        let mut buffer = Buffer { media_ns: 10, is_playing: true };
        buffer.play(9);
        assert_eq!((buffer.media_ns, buffer.is_playing), (1, true));
        buffer.play(5);
        assert_eq!((buffer.media_ns, buffer.is_playing), (0, false));
    }

    #[test]
    fn a_rest_smaller_than_a_header_is_a_message_of_a_header() {
        let video = r#""video_chunks":{"chunk_bytes":1010,"chunk_s":1,"message_bytes":1000,"download_mbps":8,"start_buffer_s":1,"greatest_buffer_s":3}"#;
        assert_eq!(departures(video, 2)[1].1, 16);
    }

    #[test]
    fn a_trace_is_played_once_or_in_rounds() {
        let once = r#""trace":{"csv":"t_s,bytes\n5.0,20\n5.25,30\n"}"#;
        assert_eq!(departures(once, 9), [(0, 20), (250_000_000, 30)]);
        let rounds = r#""trace":{"csv":"t_s,bytes\n5,20\n5.25,30\n","period_s":1}"#;
        let (second, quarter) = (1_000_000_000, 250_000_000);
        assert_eq!(departures(rounds, 4), [(0, 20), (quarter, 30), (second, 20), (second + quarter, 30)]);
    }
}
