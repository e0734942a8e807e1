// SPDX-License-Identifier: Apache-2.0
//! What a flow's process says: lines of JSON, which are passed on as they are. Pure.

use serde::Deserialize;
use serde_json::Value;

use crate::intervals::Interval;
use crate::report::FlowReport;
use netjoule_measure::failure::{Code, Failure, Outcome};

/// One event. Only its heading is read: a report is as long as its flow.
#[derive(Debug)]
pub(crate) struct FlowEvent {
    line: String,
    heading: Heading,
}

#[derive(Debug, Deserialize)]
struct Heading {
    event: String,
    code: Option<String>,
    message: Option<String>,
}

impl FlowEvent {
    fn new(line: String) -> Outcome<Self> {
        let heading = serde_json::from_str(&line).map_err(|error| unreadable(&error))?;
        Ok(Self { line, heading })
    }

    /// Name of the event.
    pub(crate) fn name(&self) -> &str {
        &self.heading.event
    }

    /// Why the flow failed: code and sentence, if this says so.
    pub(crate) fn failure(&self) -> Option<(Code, &str)> {
        let Heading { event, code, message } = &self.heading;
        let code = Code::named(code.as_deref().filter(|_| event == "error")?);
        Some((code, message.as_deref().unwrap_or("failed")))
    }

    /// The flow's report.
    pub(crate) fn report(&self) -> Outcome<FlowReport> {
        serde_json::from_str(&self.line).map_err(|error| unreadable(&error))
    }

    /// The line with the flow's number; every figure stays as the flow wrote it.
    pub(crate) fn numbered(&self, number: usize) -> String {
        let open = self.line.trim_end().strip_suffix('}').unwrap_or(&self.line);
        format!("{open},\"flow\":{number}}}")
    }

    /// The interval that it tells.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let mut fields: Value = serde_json::from_str(&self.line).ok()?;
        fields.as_object_mut()?.remove("event");
        serde_json::from_value(fields).ok()
    }

    /// What a person is told of it at once; none of intervals and reports, which make a table.
    pub(crate) fn words(&self) -> Option<String> {
        let fields: Value = serde_json::from_str(&self.line).ok()?;
        let text = |name: &str| fields[name].as_str().unwrap_or("nowhere");
        match self.name() {
            "ready" => {
                let (from, to) = (text("local"), text("peer"));
                let (from, to) = if text("direction") == "up" { (from, to) } else { (to, from) };
                Some(format!("{} from {from} to {to}", text("transport")).replace("from nowhere ", ""))
            }
            "partial_report" => {
                let count =
                    |value: &Value| value.as_u64().map_or("unknown".into(), |count| count.to_string());
                Some(format!(
                    "the flow failed: {} of {} messages sent, {} received",
                    count(&fields["sender"]["messages_sent"]),
                    count(&fields["sender"]["messages_scheduled"]),
                    count(&fields["receiver"]["messages_received_unique"])
                ))
            }
            _ => None,
        }
    }
}

/// The events in the lines that `more` makes whole; `unparsed` keeps the rest.
///
/// # Errors
/// [`Code::System`] for what is no event.
pub(crate) fn whole_lines(unparsed: &mut Vec<u8>, more: &[u8]) -> Outcome<Vec<FlowEvent>> {
    let Some(end) = more.iter().rposition(|byte| *byte == b'\n') else {
        unparsed.extend_from_slice(more);
        return Ok(Vec::new());
    };
    unparsed.extend_from_slice(&more[..end]);
    let lines = std::mem::replace(unparsed, more[end + 1..].to_vec());
    lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| FlowEvent::new(String::from_utf8_lossy(line).into_owned()))
        .collect()
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::new(Code::System, format!("a flow's process said what cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> FlowEvent {
        FlowEvent::new(line.into()).unwrap()
    }

    #[test]
    fn events_come_in_whole_lines_however_they_were_read() {
        let text = b"{\"event\": \"ready\"}\n{\"event\": \"started\"}\n{\"event\": \"report\"}\n";
        for size in 1..=text.len() {
            let mut unparsed = Vec::new();
            let all: Vec<_> =
                text.chunks(size).flat_map(|part| whole_lines(&mut unparsed, part).unwrap()).collect();
            let names: Vec<_> = all.iter().map(FlowEvent::name).collect();
            assert_eq!(names, ["ready", "started", "report"], "{size}");
            assert!(unparsed.is_empty());
        }
        assert_eq!(whole_lines(&mut Vec::new(), b"no JSON\n").unwrap_err().code, Code::System);
    }

    #[test]
    fn a_line_gets_its_flows_number_and_is_else_what_the_flow_wrote() {
        // Read and written again this would be another number.
        let line = r#"{"event":"interval","goodput_mbps":0.30000000000000004000}"#;
        assert_eq!(
            said(line).numbered(7),
            r#"{"event":"interval","goodput_mbps":0.30000000000000004000,"flow":7}"#
        );
    }

    #[test]
    fn only_an_error_is_a_failure() {
        let error = said(r#"{"event":"error","code":"busy","message":"come later"}"#);
        assert_eq!(error.failure(), Some((Code::Busy, "come later")));
        assert_eq!(said(r#"{"event":"report","code":"busy"}"#).failure(), None);
    }

    #[test]
    fn a_person_hears_what_is_left_of_a_flow() {
        let line = r#"{"event":"partial_report","sender":{"messages_sent":3,"messages_scheduled":9},"receiver":null}"#;
        let words = said(line).words().unwrap();
        assert_eq!(words, "the flow failed: 3 of 9 messages sent, unknown received");
        let line = r#"{"event":"ready","transport":"udp","direction":"down","local":"a:1","peer":"b:2"}"#;
        assert_eq!(said(line).words().unwrap(), "udp from b:2 to a:1");
        assert_eq!(
            said(r#"{"event":"ready","transport":"null","direction":"up"}"#).words().unwrap(),
            "null to nowhere"
        );
        assert_eq!(said(r#"{"event":"started"}"#).words(), None);
    }
}
