// SPDX-License-Identifier: Apache-2.0
//! What a command prints: lines of JSON for machines, or a few lines for people.

use std::io::Write;

use netjoule_transport::Values;
use serde_json::{json, Value};

use crate::certificate::PacingCertificate;
use crate::failure::{Code, Failure, Outcome};
use crate::intervals::Interval;
use crate::report::FlowReport;
use crate::traces::CongestionSample;

/// Where the words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One JSON object per line on stdout.
    Json,
    /// The same for the process that started this one for a flow: people are told by that one.
    Relayed,
    /// Plain lines on stdout, by whoever knows all flows of a command ([`crate::several`]).
    Plain,
    /// Nothing (the server's flows: the client prints both halves).
    Silent,
}

impl Output {
    /// Whether events are printed.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Relayed)
    }

    /// An event with its fields (a JSON object).
    pub fn event(self, name: &str, fields: Value) -> Outcome<()> {
        if !self.is_json() {
            return Ok(());
        }
        let mut line = json!({ "event": name });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        write(&line.to_string())
    }

    /// A line for a person.
    pub(crate) fn say(self, words: impl FnOnce() -> String) -> Outcome<()> {
        if self == Self::Plain {
            write(&words())?;
        }
        Ok(())
    }

    /// Closed intervals.
    pub fn intervals(self, intervals: &[Interval]) -> Outcome<()> {
        intervals.iter().try_for_each(|interval| match self {
            Self::Json | Self::Relayed => self.event("interval", to_value(interval)),
            Self::Plain | Self::Silent => Ok(()),
        })
    }

    /// Samples of congestion control: for machines only, a person reads them in the report.
    pub fn congestion(self, samples: &[CongestionSample]) -> Outcome<()> {
        samples.iter().try_for_each(|sample| self.event("congestion", to_value(sample)))
    }

    /// The final report.
    pub fn report(self, report: &FlowReport) -> Outcome<()> {
        match self {
            Self::Json | Self::Relayed => self.event("report", to_value(report)),
            Self::Plain | Self::Silent => Ok(()),
        }
    }

    /// One line for a person on stderr.
    pub fn complain(self, message: &str) {
        if self == Self::Relayed {
            return;
        }
        // Nothing is left to do when stderr is gone too.
        let _ = std::io::stderr().write_all(format!("netjoule-traffic: {message}\n").as_bytes());
    }

    /// A failure: an event for machines, always one line on stderr.
    pub fn failure(self, failure: &Failure) {
        // Nothing is left to do when stdout is gone too.
        let _ = self.event("error", json!({ "code": failure.code.name(), "message": failure.message }));
        self.complain(&failure.message);
    }
}

/// In what people read rates (`-f`): k, m, g, t bits or K, M, G, T bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format(char);

impl Default for Format {
    fn default() -> Self {
        Self('m')
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::str::FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letter = text.chars().next().filter(|letter| text.len() == 1 && "kmgtKMGT".contains(*letter));
        letter.map(Self).ok_or("is no unit: k, m, g or t for bits, K, M, G or T for bytes per second")
    }
}

impl Format {
    /// A rate with its unit.
    pub(crate) fn rate(self, mbps: f64) -> String {
        let (prefix, scale) = match self.0.to_ascii_lowercase() {
            'k' => ("k", 1e3),
            'g' => ("G", 1e-3),
            't' => ("T", 1e-6),
            _ => ("M", 1.0),
        };
        match self.0.is_ascii_uppercase() {
            true => format!("{:.4} {prefix}B/s", mbps * scale / 8.0),
            false => format!("{:.4} {prefix}b/s", mbps * scale),
        }
    }
}

/// Write a line to stdout now, in one piece: a server's flows, each a process, share it.
pub fn write(line: &str) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    let _turn = crate::stdout_turns::on_stdout();
    stdout
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::new(Code::Interrupted, format!("stdout was closed: {error}")))
}

fn to_value(document: &impl serde::Serialize) -> Value {
    serde_json::to_value(document).expect("reports always serialise")
}

/// A report for a person.
pub(crate) fn plain_report(report: &FlowReport) -> String {
    let sender = &report.sender;
    let mut text = format!(
        "{} {} B, {} for {} s: {} of {} messages sent, {:.4} Mb/s, {:.3} s CPU",
        report.transport,
        report.payload_bytes,
        offered(report.offered_rate_mbps),
        report.duration_s,
        sender.messages_sent,
        sender.messages_scheduled,
        sender.goodput_mbps,
        sender.cpu.cpu_s
    );
    if let Some(certificate) = &report.pacing_certificate {
        text.push_str(&plain_certificate(report, certificate));
    }
    if let Some(receiver) = &report.receiver {
        text.push_str(&format!(
            "\nreceived {} messages, {:.4} Mb/s, {} lost, {} duplicate, {} reordered, {:.3} s CPU",
            receiver.messages_received_unique,
            receiver.goodput_mbps,
            receiver.messages_lost,
            receiver.messages_duplicate,
            receiver.messages_reordered,
            receiver.cpu.cpu_s
        ));
        if let (Some(delay), Some(jitter_ms)) = (receiver.one_way_delay_ms, receiver.jitter_ms) {
            text.push_str(&format!(
                "\none-way delay {:.3} ms median, {:.3} ms p99, jitter {jitter_ms:.3} ms",
                delay.p50, delay.p99
            ));
        }
        if receiver.one_way_delay_reason.is_some() {
            text.push_str(
                "\none-way delay not known: clocks not comparable (time namespaces: --clock exchange)",
            );
        }
        if let Some(bursts) = receiver.loss_bursts.as_ref().filter(|bursts| bursts.count > 0) {
            text.push_str(&format!(
                "\n{} loss bursts, {:.2} messages on average, {} at most",
                bursts.count, bursts.mean_messages, bursts.max_messages
            ));
        }
    }
    text
}

/// What was offered, for a person.
pub(crate) fn offered(rate_mbps: Option<f64>) -> String {
    rate_mbps.map_or("as fast as possible".into(), |rate_mbps| format!("{rate_mbps} Mb/s offered"))
}

/// What a person who wants to know more is told of a flow's transport.
pub(crate) fn plain_details(report: &FlowReport) -> String {
    let listed = |name: &str, values: &Values| {
        let words: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!words.is_empty()).then(|| format!("{name}: {}", words.join(", ")))
    };
    let receiver =
        report.receiver.as_ref().and_then(|end| listed("receiver's counters", &end.transport_stats));
    let parts = [
        Some(format!("{} {}, flow {}", report.generator.name, report.generator.version, report.flow_id)),
        report.path.mtu_bytes.map(|bytes| format!("path MTU {bytes} bytes")),
        listed("options", &report.transport_options),
        listed("sender's counters", &report.sender.transport_stats),
        receiver,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// How the schedule was kept, as far as anything left, and what the transport had no room for.
fn plain_certificate(report: &FlowReport, certificate: &PacingCertificate) -> String {
    let mut text = String::new();
    if let (Some(error), Some(within), Some(together)) =
        (certificate.error_us, certificate.within_50us_ratio, certificate.back_to_back_ratio)
    {
        text = format!(
            "\npacing {}: {:.1} us late median, {:.1} us p99, {:.1} us at most; {:.1} % within 50 us, {:.1} % back to back{}",
            report.pacing.mode,
            error.p50,
            error.p99,
            error.max,
            100.0 * within,
            100.0 * together,
            plain_verdict(certificate)
        );
    }
    if certificate.held_back_ratio > 0.0 {
        text.push_str(&format!(
            "\n{:.1} % held back by the transport, {:.1} % never sent for it",
            100.0 * certificate.held_back_ratio,
            100.0 * certificate.held_back_not_sent_ratio
        ));
    }
    text
}

fn plain_verdict(certificate: &PacingCertificate) -> String {
    match certificate.passed {
        None => String::new(),
        Some(true) => "; limits kept".into(),
        Some(false) => format!("; failed: {}", certificate.failed.join("; ")),
    }
}
