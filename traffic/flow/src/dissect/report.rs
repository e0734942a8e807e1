// SPDX-License-Identifier: Apache-2.0
//! Lines for people or JSON for machines, and the totals.

use std::io::{self, Write};

use netjoule_dccp::describe::{self, Summary};
use netjoule_dccp::Packet;
use serde_json::{json, Map, Value};

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
            Style::Json => writeln!(self.out, "{}", told.json(json_start(frame, since_s))),
            Style::Plain => writeln!(self.out, "{} {} {}", frame.number, plain_time(since_s), told.plain()),
        }
    }

    /// A frame that may hold DCCP, but nobody can tell.
    pub fn unreadable(&mut self, frame: &Frame<'_>, reason: &str) -> io::Result<()> {
        self.totals.undecodable += 1;
        let since_s = self.since_first_s(frame);
        match self.style {
            Style::Json => {
                let mut line = json_start(frame, since_s);
                line.insert("undecodable".into(), json!(reason));
                writeln!(self.out, "{}", Value::Object(line))
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

    /// The rest of a line that begins with `line`.
    fn json(self, mut line: Map<String, Value>) -> Value {
        line.insert("source".into(), json!(self.transported.source));
        line.insert("destination".into(), json!(self.transported.destination));
        if let Encapsulation::Udp { source, destination } = self.encapsulation {
            line.insert("udp_source_port".into(), json!(source));
            line.insert("udp_destination_port".into(), json!(destination));
        }
        match self.parsed {
            Ok((packet, judgement)) => {
                line.insert("checksum".into(), json!(judgement.verdict.name()));
                if !judgement.note.is_empty() {
                    line.insert("checksum_note".into(), json!(judgement.note));
                }
                let fields = describe::fields(&packet).into_iter();
                line.extend(fields.map(|(name, value)| (name.to_owned(), to_json(value))));
            }
            Err(reason) => {
                line.insert("undecodable".into(), json!(reason));
            }
        }
        Value::Object(line)
    }
}

fn json_start(frame: &Frame<'_>, since_s: Option<f64>) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("number".into(), json!(frame.number));
    if let Some(since_s) = since_s {
        line.insert("time_s".into(), json!(since_s));
    }
    if let Some(time) = frame.time_ns.and_then(rfc_3339) {
        line.insert("time_utc".into(), json!(time));
    }
    line
}

fn plain_time(since_s: Option<f64>) -> String {
    since_s.map_or_else(|| "-".to_owned(), |since_s| format!("{since_s:.6}"))
}

fn to_json(value: describe::Value) -> Value {
    match value {
        describe::Value::Number(number) => json!(number),
        describe::Value::Text(text) => json!(text),
        describe::Value::List(values) => values.into_iter().map(to_json).collect(),
        describe::Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name.to_owned(), to_json(value))).collect()
        }
    }
}

/// A time as in 2026-11-21T17:00:00.123456789Z; `None` outside the years 1970 to 9999.
fn rfc_3339(time_ns: i128) -> Option<String> {
    let seconds = time_ns.div_euclid(NS_PER_S);
    if !(0..YEAR_10000_S).contains(&seconds) {
        return None;
    }
    let (days, second) = ((seconds / 86_400) as i64, (seconds % 86_400) as i64);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let ns = time_ns.rem_euclid(NS_PER_S);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z"))
}

/// Year, month and day of the Gregorian calendar, so many days after 1 January 1970.
fn civil_date(days: i64) -> (i64, i64, i64) {
    // Count from 1 March of year 0, so that a leap day is the last of its year; 400 years repeat.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
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
