// SPDX-License-Identifier: Apache-2.0
//! A profile from the text of a file: a profile document (JSON), or a trace (CSV or NDJSON).

use super::document::{Document, Trace, SCHEMA_VERSION};
use super::profile::{Profile, LONGEST_TEXT_BYTES};
use super::trace;

/// Read a profile; `file_name` names a trace, which has no name of its own.
///
/// # Errors
/// A clause that says what is wrong, to stand behind the file's name.
pub fn read(text: &[u8], file_name: &str) -> Result<Profile, String> {
    if text.len() > LONGEST_TEXT_BYTES {
        return Err(format!("is longer than {} MiB", LONGEST_TEXT_BYTES >> 20));
    }
    let text = std::str::from_utf8(text).map_err(|_| "is no text (UTF-8)")?;
    Profile::new(document(text, file_name)?).map_err(|error| format!("is no profile: {error}"))
}

fn document(text: &str, file_name: &str) -> Result<Document, String> {
    if !text.trim_start().starts_with('{') {
        // A trace that cannot be read is refused with its line by the check of the document.
        return Ok(traced(text.to_owned(), file_name));
    }
    // The first object of an NDJSON trace has another behind it, or the fields of a line.
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_line =
        serde_json::from_str::<serde_json::Value>(first).is_ok_and(|value| value.get("t_s").is_some());
    if is_line {
        let departures = trace::from_ndjson(text).map_err(|error| format!("is no trace: {error}"))?;
        return Ok(traced(trace::to_csv(&departures), file_name));
    }
    serde_json::from_str(text).map_err(|error| format!("is no profile: {error}"))
}

/// The profile of a trace.
pub(crate) fn traced(csv: String, file_name: &str) -> Document {
    let fits = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = file_name.chars().filter(fits).take(64).collect();
    Document {
        schema_version: SCHEMA_VERSION,
        name: if name.is_empty() { "trace".into() } else { name },
        description: None,
        messages: None,
        talk_spurts: None,
        video_chunks: None,
        trace: Some(Trace { csv, period_s: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_trace_are_one_profile() {
        let csv = read(b"t_s,bytes\n0,64\n0.5,80\n", "call 1").unwrap();
        let ndjson = read(b"\n{\"t_s\":7,\"bytes\":64}\n{\"t_s\":7.5,\"bytes\":80}\n", "call 1").unwrap();
        let json = r#"{"schema_version": 1, "name": "call1", "trace": {"csv": "t_s,bytes\n0,64\n0.5,80\n"}}"#;
        assert_eq!(csv, ndjson);
        assert_eq!(csv, read(json.as_bytes(), "x").unwrap());
        assert_eq!((csv.name(), csv.shape_name()), ("call1", "trace"));
        assert_eq!(read(csv.text().as_bytes(), "x").unwrap(), csv);
    }

    #[test]
    fn what_is_no_profile_is_told_so() {
        for (text, words) in [
            (&b"\xff\xfe"[..], "no text"),
            (b"hello\n", "trace.csv"),
            (b"{\"t_s\":1}\n", "line 1"),
            (b"{\"name\":\"x\"}", "schema_version"),
            (b"{\"schema_version\":1,\"name\":\"x\",\"speed\":1}", "speed"),
            (b"", "trace.csv"),
        ] {
            let error = read(text, "x").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(read(&vec![b' '; LONGEST_TEXT_BYTES + 1], "x").unwrap_err().contains("4 MiB"));
    }
}
