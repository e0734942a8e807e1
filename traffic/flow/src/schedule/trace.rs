// SPDX-License-Identifier: Apache-2.0
//! Traces as text: lines of CSV under the header `t_s,bytes`, or one JSON object `{"t_s": ..., "bytes": ...}` a line.
//!
//! Times are decimal numbers of seconds and are read exactly, to the nearest nanosecond. They count from the first line's,
//! so a capture's times of day will do; they must not go back.

use serde::Deserialize;

use super::departure::{Departure, MESSAGE_BYTES};

/// Header of the CSV.
pub const HEADER: &str = "t_s,bytes";

/// What is wrong with a trace, and in which line (from 1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TraceError {
    line: usize,
    what: String,
}

/// A line of an NDJSON trace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t_s: serde_json::Number,
    bytes: u64,
}

/// Read CSV.
///
/// # Errors
/// [`TraceError`].
pub fn from_csv(text: &str) -> Result<Vec<Departure>, TraceError> {
    let mut lines = numbered(text);
    match lines.next() {
        Some((_, header)) if header == HEADER => {}
        Some((line, _)) => return refuse(line, format!("the header must be {HEADER}")),
        None => return refuse(1, "it is empty"),
    }
    collect(lines, |line| {
        let (time, bytes) = line.split_once(',').ok_or("two values are wanted")?;
        let bytes = bytes.trim().parse().map_err(|_| format!("{bytes:?} is no number of bytes"))?;
        Ok((nanoseconds(time.trim())?, bytes))
    })
}

/// Read NDJSON.
///
/// # Errors
/// [`TraceError`].
pub fn from_ndjson(text: &str) -> Result<Vec<Departure>, TraceError> {
    collect(numbered(text), |line| {
        let line: Line =
            serde_json::from_str(line).map_err(|error| format!("not a line of a trace: {error}"))?;
        Ok((nanoseconds(&line.t_s.to_string())?, line.bytes))
    })
}

/// Write CSV, its times without trailing zeros.
pub fn to_csv(departures: &[Departure]) -> String {
    let mut text = format!("{HEADER}\n");
    for Departure { due_ns, bytes } in departures {
        let (seconds, rest_ns) = (due_ns / 1_000_000_000, due_ns % 1_000_000_000);
        let fraction = format!(".{rest_ns:09}");
        text.push_str(&format!(
            "{seconds}{},{bytes}\n",
            fraction.trim_end_matches('0').trim_end_matches('.')
        ));
    }
    text
}

/// Lines that hold something, with their numbers.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty())
}

fn refuse<T>(line: usize, what: impl Into<String>) -> Result<T, TraceError> {
    Err(TraceError { line, what: what.into() })
}

fn collect<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    parse: impl Fn(&str) -> Result<(u64, u64), String>,
) -> Result<Vec<Departure>, TraceError> {
    let mut departures: Vec<Departure> = Vec::new();
    let mut first_ns = None;
    for (line, text) in lines {
        let (at_ns, bytes) = parse(text).map_err(|what| TraceError { line, what })?;
        let before_ns = departures.last().map_or(0, |departure| departure.due_ns);
        let due_ns = at_ns.checked_sub(*first_ns.get_or_insert(at_ns)).filter(|due_ns| *due_ns >= before_ns);
        let Some(due_ns) = due_ns else { return refuse(line, "time goes back") };
        if !MESSAGE_BYTES.contains(&bytes) {
            let (least, greatest) = (MESSAGE_BYTES.start(), MESSAGE_BYTES.end());
            return refuse(line, format!("{bytes} bytes are not between {least} and {greatest}"));
        }
        departures.push(Departure { due_ns, bytes: bytes as u16 });
    }
    if departures.is_empty() {
        return refuse(1, "it has no message");
    }
    Ok(departures)
}

/// A decimal number of seconds, as in `0.0213` or `1.5e-3`, in ns.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no time in seconds");
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| bad())?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = [whole, fraction].concat();
    if whole.is_empty() || digits.len() > 30 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let value: u128 = digits.parse().map_err(|_| bad())?;
    let places = i64::from(exponent) + 9 - fraction.len() as i64;
    let scaled = match u32::try_from(places.unsigned_abs()).map(|power| 10_u128.checked_pow(power)) {
        Ok(Some(scale)) if places >= 0 => value.checked_mul(scale).ok_or_else(bad)?,
        Ok(Some(scale)) => (value + scale / 2) / scale,
        _ if places < 0 || value == 0 => 0,
        _ => return Err(bad()),
    };
    u64::try_from(scaled).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn departure(due_ns: u64, bytes: u16) -> Departure {
        Departure { due_ns, bytes }
    }

    #[test]
    fn times_are_read_to_the_nanosecond() {
        for (text, ns) in [
            ("0", 0),
            ("12", 12_000_000_000),
            ("0.000000001", 1),
            ("0.0000000014", 1),
            ("0.0000000015", 2),
            ("1.5e-3", 1_500_000),
            ("2E1", 20_000_000_000),
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("3e-40", 0),
        ] {
            assert_eq!(nanoseconds(text), Ok(ns), "{text}");
        }
        for text in ["", ".5", "-1", "+1", "1s", "1e99", "nan", "1e", "1.2.3", "99999999999999999999"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn both_forms_give_the_same_and_count_from_the_first() {
        let expected = vec![departure(0, 300), departure(20_000_000, 16), departure(20_000_000, 65_535)];
        let csv = "t_s,bytes\r\n1654.25,300\n\n1654.27, 16\n1654.27,65535";
        let ndjson = "{\"t_s\": 1654.25, \"bytes\": 300}\n{\"t_s\":1654.27,\"bytes\":16}\n{\"bytes\":65535,\"t_s\":1654.27}\n";
        assert_eq!(from_csv(csv), Ok(expected.clone()));
        assert_eq!(from_ndjson(ndjson), Ok(expected));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, words) in [
            ("", "line 1: it is empty"),
            ("t_s,bytes\n", "no message"),
            ("time,size\n0,64\n", "line 1: the header"),
            ("t_s,bytes\n0,64\n\nsoon,64\n", "line 4: \"soon\""),
            ("t_s,bytes\n0,64\n0.1\n", "line 3: two values"),
            ("t_s,bytes\n0,64\n0.1,many\n", "line 3: \"many\""),
            ("t_s,bytes\n0,64\n0.1,15\n", "line 3: 15 bytes"),
            ("t_s,bytes\n0,65536\n", "line 2: 65536 bytes"),
            ("t_s,bytes\n5,64\n4,64\n", "line 3: time goes back"),
            ("t_s,bytes\n5,64\n6,64\n5.5,64\n", "line 4: time goes back"),
        ] {
            let error = from_csv(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
        let error = from_ndjson("{\"t_s\":0,\"bytes\":64}\n{\"t_s\":1}\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(gaps in proptest::collection::vec((0..3_000_000_000_u64, 16..=65_535_u16), 1..50)) {
            let mut due_ns = 0;
            let departures: Vec<_> = gaps
                .iter()
                .enumerate()
                .map(|(index, (gap, bytes))| {
                    due_ns += if index == 0 { 0 } else { *gap };
                    departure(due_ns, *bytes)
                })
                .collect();
            prop_assert_eq!(from_csv(&to_csv(&departures)), Ok(departures));
        }

        #[test]
        fn any_text_is_answered(text in "(?s).{0,200}") {
            let _ = from_csv(&text);
            let _ = from_csv(&format!("{HEADER}\n{text}"));
            let _ = from_ndjson(&text);
        }
    }
}
