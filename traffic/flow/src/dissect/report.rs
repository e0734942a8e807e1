// SPDX-License-Identifier: Apache-2.0
//! Lines for people or JSON for machines, and the totals.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use netjoule_dccp::describe::{self, Summary};
use netjoule_dccp::Packet;
use serde_json::{json, Value};

use super::packet::{Encapsulation, Judgement, Seen, Verdict};
use netjoule_measure::capture::frames::Frame;
use netjoule_measure::capture::network::Transported;

const NS_PER_S: i128 = 1_000_000_000;
/// First second of the year 10000, which RFC 3339 cannot write.
const YEAR_10000_S: i128 = 253_402_300_800;

/// How to tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Lines of text.
    Plain,
    /// One JSON object per line.
    Json,
}

/// Counts, in the order of their printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// DCCP packets told.
    pub packets: u64,
    /// Those of them whose checksum is wrong.
    pub bad_checksums: u64,
    /// DCCP packets, and frames of unknown kind, that could not be taken apart.
    pub undecodable: u64,
    /// Frames looked at, whatever they hold.
    pub frames: u64,
}

/// Writes what was seen.
pub struct Reporter<'w> {
    style: Style,
    out: &'w mut dyn Write,
    totals: Totals,
    first_ns: Option<i128>,
}

impl<'w> Reporter<'w> {
    /// Writes to `out`.
    pub fn new(style: Style, out: &'w mut dyn Write) -> Self {
        Self { style, out, totals: Totals::default(), first_ns: None }
    }

    /// A frame that holds DCCP.
    pub fn packet(
        &mut self,
        frame: &Frame<'_>,
        transported: &Transported<'_>,
        seen: &Seen<'_>,
    ) -> io::Result<()> {
        let parsed = match &seen.contents {
            Ok((bytes, judgement)) => {
                Packet::parse(bytes).map(|packet| (packet, judgement)).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason.clone()),
        };
        match &parsed {
            Ok((_, judgement)) => {
                self.totals.packets += 1;
                self.totals.bad_checksums += u64::from(judgement.verdict == Verdict::Bad);
            }
            Err(_) => self.totals.undecodable += 1,
        }
        let since_s = self.since_first_s(frame);
        let told = Told { transported, encapsulation: seen.encapsulation, parsed };
        match self.style {
            Style::Json => writeln!(self.out, "{}", of_frame(frame, since_s, told.json())),
            Style::Plain => writeln!(self.out, "{} {} {}", frame.number, plain_time(since_s), told.plain()),
        }
    }

    /// A frame that may hold DCCP, but nobody can tell.
    pub fn unreadable(&mut self, frame: &Frame<'_>, reason: &str) -> io::Result<()> {
        self.totals.undecodable += 1;
        let since_s = self.since_first_s(frame);
        match self.style {
            Style::Json => {
                let line = of_frame(frame, since_s, json!({ "undecodable": reason }));
                writeln!(self.out, "{line}")
            }
            Style::Plain => {
                writeln!(self.out, "{} {} undecodable: {reason}", frame.number, plain_time(since_s))
            }
        }
    }

    /// A frame was looked at; the first one with a time starts the clock of the report.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.totals.frames += 1;
        self.first_ns = self.first_ns.or(frame.time_ns);
    }

    /// The last line. `damage` is what is wrong with the file.
    pub fn totals(&mut self, damage: Option<&str>) -> io::Result<()> {
        let Totals { packets, bad_checksums, undecodable, frames } = self.totals;
        match self.style {
            Style::Plain => writeln!(
                self.out,
                "packets {packets} bad_checksums {bad_checksums} undecodable {undecodable} frames {frames}"
            ),
            Style::Json => {
                let mut totals = json!({
                    "packets": packets,
                    "bad_checksums": bad_checksums,
                    "undecodable": undecodable,
                    "frames": frames,
                });
                if let Some(damage) = damage {
                    totals["damage"] = json!(damage);
                }
                writeln!(self.out, "{totals}")
            }
        }
    }

    fn since_first_s(&self, frame: &Frame<'_>) -> Option<f64> {
        Some((frame.time_ns? - self.first_ns?) as f64 / NS_PER_S as f64)
    }
}

/// A packet or why it is none, ready to be told.
struct Told<'a> {
    transported: &'a Transported<'a>,
    encapsulation: Encapsulation,
    parsed: Result<(Packet<'a>, &'a Judgement), String>,
}

impl Told<'_> {
    fn plain(&self) -> String {
        let udp = match self.encapsulation {
            Encapsulation::Ip => String::new(),
            Encapsulation::Udp { source, destination } => format!(" udp {source} > {destination}"),
        };
        let words = match &self.parsed {
            Ok((packet, judgement)) if judgement.note.is_empty() => {
                format!("{} checksum {}", Summary(packet), judgement.verdict.name())
            }
            Ok((packet, judgement)) => {
                format!("{} checksum {} ({})", Summary(packet), judgement.verdict.name(), judgement.note)
            }
            Err(reason) => format!("undecodable: {reason}"),
        };
        format!("{} > {}{udp} {words}", self.transported.source, self.transported.destination)
    }

    fn json(self) -> Value {
        let mut line = match self.parsed {
            Ok((packet, judgement)) => {
                let mut line = describe::fields(&packet);
                line["checksum"] = json!(judgement.verdict.name());
                if !judgement.note.is_empty() {
                    line["checksum_note"] = json!(judgement.note);
                }
                line
            }
            Err(reason) => json!({ "undecodable": reason }),
        };
        line["source"] = json!(self.transported.source);
        line["destination"] = json!(self.transported.destination);
        if let Encapsulation::Udp { source, destination } = self.encapsulation {
            line["udp_source_port"] = json!(source);
            line["udp_destination_port"] = json!(destination);
        }
        line
    }
}

/// `line` with the number and the times of its frame.
fn of_frame(frame: &Frame<'_>, since_s: Option<f64>, mut line: Value) -> Value {
    line["number"] = json!(frame.number);
    if let Some(since_s) = since_s {
        line["time_s"] = json!(since_s);
    }
    if let Some(time) = frame.time_ns.and_then(rfc_3339) {
        line["time_utc"] = json!(time);
    }
    line
}

fn plain_time(since_s: Option<f64>) -> String {
    since_s.map_or_else(|| "-".to_owned(), |since_s| format!("{since_s:.6}"))
}

/// A time as in 2026-11-21T17:00:00.123456789Z; `None` outside the years 1970 to 9999.
fn rfc_3339(time_ns: i128) -> Option<String> {
    let seconds = time_ns.div_euclid(NS_PER_S);
    if !(0..YEAR_10000_S).contains(&seconds) {
        return None;
    }
    let since_1970 = Duration::new(seconds as u64, time_ns.rem_euclid(NS_PER_S) as u32);
    Some(humantime::format_rfc3339_nanos(UNIX_EPOCH + since_1970).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(rfc_3339(0).as_deref(), Some("1970-01-01T00:00:00.000000000Z"));
        assert_eq!(rfc_3339(951_782_400 * NS_PER_S + 1).as_deref(), Some("2000-02-29T00:00:00.000000001Z"));
        assert_eq!(rfc_3339(1_795_280_399 * NS_PER_S).as_deref(), Some("2026-11-21T16:59:59.000000000Z"));
        assert_eq!(
            rfc_3339((YEAR_10000_S - 1) * NS_PER_S).as_deref(),
            Some("9999-12-31T23:59:59.000000000Z")
        );
        assert_eq!(rfc_3339(YEAR_10000_S * NS_PER_S), None);
        assert_eq!(rfc_3339(-1), None);
    }
}
