// SPDX-License-Identifier: Apache-2.0
//! `selftest`: can this host keep a schedule? The flow of a campaign, once into nothing (null: the pacer alone) and once over
//! loopback UDP (pacer and socket), each with its pacing certificate.
//!
//! Server and sender are this program once more, as a campaign starts them: what is certified is what will run, and the
//! receiver's CPU time is not the sender's.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use clap::Args;
use serde_json::{json, Value};

use crate::certificate::{Limit, Limits, PacingCertificate, NOT_CERTIFIED};
use crate::load::{self, Load};
use crate::pacing::{Mode, LONGEST_WINDOW_US};
use crate::report::Pacing;
use crate::schedule::profile::Profile;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::{self, Output};
use netjoule_measure::units;

/// Version of the document that `--json` prints.
pub const SCHEMA_VERSION: u32 = 1;
/// Without limits given: this part of the schedule must leave ...
const LEAST_ACHIEVED_RATIO: f64 = 0.998;
/// ... and 99 % of departures be no later than what the pacing itself allows and this, us. A generator that is later
/// paces no better than one with a tick of 1 ms.
const GREATEST_P99_US: f64 = 500.0;

/// `selftest`.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Offered load: payload bits per second
    #[arg(short = 'b', long = "rate", value_name = "RATE", default_value = "1M", value_parser = units::rate_bps)]
    pub rate: u64,
    /// Message size in bytes
    #[arg(short = 'l', long = "length", value_name = "SIZE", default_value = "1440", value_parser = units::size_bytes)]
    pub length: u64,
    /// What to send instead of messages of one size at a constant rate, as `send` takes it: a profile or a trace; - reads
    /// one line of JSON from stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "length"])]
    pub profile: Option<PathBuf>,
    /// Seed of the profile's schedule
    #[arg(long, value_name = "N", default_value_t = 1, requires = "profile", value_parser = clap::value_parser!(u64).range(..=units::LARGEST))]
    pub schedule_seed: u64,
    /// Duration of each flow in s
    #[arg(short = 't', long = "time", value_name = "S", default_value = "5", value_parser = units::duration_ns)]
    pub time: u64,
    /// How messages are timed: absolute, hybrid, spin, so_txtime or burst:N
    #[arg(long, value_name = "MODE", default_value_t = Mode::Absolute)]
    pub pacing: Mode,
    /// Messages due within this many us leave together, late
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=LONGEST_WINDOW_US))]
    pub window_us: u64,
    /// Messages that leave together go to the kernel as one GSO train
    #[arg(long)]
    pub gso: bool,
    /// What to hold the host to, e.g. max_error_p99_us=60 (may stand several times) [default: 99.8 % of the schedule,
    /// p99 within 500 us of what the pacing allows]
    #[arg(long = "pacing-limit", value_name = "NAME=NUMBER")]
    pub pacing_limit: Vec<Limit>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl SelftestArgs {
    /// The limits given, or those that any host should keep.
    fn limits(&self, load: &Load) -> Limits {
        if self.pacing_limit.is_empty() {
            [
                Limit::new("min_achieved_ratio", LEAST_ACHIEVED_RATIO),
                Limit::new("max_error_p99_us", self.allowed_us(load) + GREATEST_P99_US),
            ]
            .into_iter()
            .flatten()
            .collect()
        } else {
            self.pacing_limit.iter().cloned().collect()
        }
    }

    /// How late the pacing lets a message leave on a host without faults, us: the window, and the wait for a burst.
    fn allowed_us(&self, load: &Load) -> f64 {
        let others = self.pacing.burst().unwrap_or(1) - 1;
        let schedule = &load.schedule;
        let waits = (0..schedule.count().saturating_sub(others))
            .map(|first| schedule.due_ns(first + others) - schedule.due_ns(first));
        // Of a constant rate every burst waits as long; one that never fills waits for the end.
        let looked_at = if load.profile.is_some() { usize::MAX } else { 1 };
        let wait_ns = waits.take(looked_at).max().unwrap_or(self.time as i64);
        self.window_us as f64 + wait_ns as f64 * 1e-3
    }

    /// The profile, if one is given, and what is to be sent.
    fn load(&self) -> Outcome<(Option<Profile>, Load)> {
        let Some(path) = &self.profile else {
            return Ok((None, Load::constant(self.rate, self.length, self.time)));
        };
        let (profile, _) = load::given_profile(path)?;
        let load = Load::of_profile(&profile, self.schedule_seed, self.time, false)?;
        Ok((Some(profile), load))
    }

    /// Arguments of `send` for one flow.
    fn flow(&self, transport: &str) -> Vec<String> {
        let mut words = vec!["send".to_owned(), "--json".into(), "--transport".into(), transport.into()];
        let what = match self.profile {
            Some(_) => [("--profile", "-".into()), ("--schedule-seed", self.schedule_seed.to_string())],
            None => [("-b", self.rate.to_string()), ("-l", self.length.to_string())],
        };
        for (flag, value) in what.into_iter().chain([
            ("-t", format!("{}us", self.time / 1_000)),
            ("--pacing", self.pacing.to_string()),
            ("--window-us", self.window_us.to_string()),
        ]) {
            words.extend([flag.to_owned(), value]);
        }
        if self.gso {
            words.push("--gso".into());
        }
        words
    }
}

/// Run `selftest`; the exit code: 0 when both flows kept the limits, 4 when one did not.
pub fn run(args: &SelftestArgs, output: Output) -> Outcome<u8> {
    let (profile, load) = args.load()?;
    let limits = args.limits(&load);
    let into_nothing = certificate_of(&args.flow("null"), profile.as_ref())?;
    let server = Server::start()?;
    let mut words = args.flow("udp");
    words.extend(["--to".to_owned(), server.control.clone()]);
    let over_udp = certificate_of(&words, profile.as_ref())?;
    let flows = [("null", into_nothing.judged(&limits)), ("udp", over_udp.judged(&limits))];
    let passed = flows.iter().all(|(_, found)| found.passed != Some(false));
    if output == Output::Json {
        output::write(&document(args, &load, &limits, &flows, passed).to_string())?;
    } else {
        table(args, &load, &limits, &flows, passed).iter().try_for_each(|line| output::write(line))?;
    }
    Ok(if passed { 0 } else { NOT_CERTIFIED })
}

/// A server of one's own on the loopback; it ends when its stdin is closed.
struct Server {
    child: Child,
    control: String,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Outcome<Self> {
        let words = [
            "serve",
            "--json",
            "--bind",
            "127.0.0.1",
            "--port",
            "0",
            "--max-rate",
            "1000G",
            "--exit-with-stdin",
        ];
        let mut child = this_program(&words.map(str::to_owned), Stdio::piped())?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or_else(no_answer)?);
        let mut line = String::new();
        stdout.read_line(&mut line).map_err(Failure::system("hear the server"))?;
        let listening: Value = serde_json::from_str(&line).map_err(|_| no_answer())?;
        let control = listening["control"].as_str().ok_or_else(no_answer)?.to_owned();
        Ok(Self { child, control, _stdout: stdout })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It is told; that it is gone is nobody's concern any more.
        let _ = self.child.wait();
    }
}

/// Run one flow to its end and take the certificate from its report. The profile goes in as a line.
fn certificate_of(words: &[String], profile: Option<&Profile>) -> Outcome<PacingCertificate> {
    let mut child = this_program(words, Stdio::piped())?;
    if let (Some(mut stdin), Some(profile)) = (child.stdin.take(), profile) {
        // A child that does not read it says why on its stdout.
        let _ = writeln!(stdin, "{}", profile.text());
    }
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text).map_err(Failure::system("hear the sender"))?;
    }
    let status = child.wait().map_err(Failure::system("wait for the sender"))?;
    let last: Value =
        text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    if !status.success() {
        let sentence = last["message"].as_str().unwrap_or("the flow was interrupted");
        return Err(Failure::new(Code::named(last["code"].as_str().unwrap_or("interrupted")), sentence));
    }
    serde_json::from_value(last["pacing_certificate"].clone()).map_err(|_| no_answer())
}

/// This program with other words; it says nothing to people.
fn this_program(words: &[String], stdin: Stdio) -> Outcome<Child> {
    let program = std::env::current_exe().map_err(Failure::system("find this program's file"))?;
    Command::new(program)
        .args(words)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Failure::system("start a flow"))
}

fn no_answer() -> Failure {
    Failure::new(Code::System, "a flow of the selftest ended without an answer; run it by hand to see why")
}

fn document(
    args: &SelftestArgs,
    load: &Load,
    limits: &Limits,
    flows: &[(&str, PacingCertificate)],
    passed: bool,
) -> Value {
    let flow = |(transport, found): &(&str, PacingCertificate)| json!({ "transport": transport, "pacing_certificate": found });
    json!({
        "schema_version": SCHEMA_VERSION,
        "kind": "selftest",
        "host": host::host_name(),
        "pacing": Pacing::new(args.pacing, args.window_us, args.gso),
        "payload_bytes": load.message_bytes,
        "offered_rate_mbps": load.rate_bps as f64 * 1e-6,
        "duration_s": args.time as f64 * 1e-9,
        "limits": limits,
        "flows": flows.iter().map(flow).collect::<Vec<_>>(),
        "passed": passed,
    })
}

const COLUMNS: [&str; 12] = [
    "transport",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "max us",
    "<= 5 us",
    "<= 50 us",
    "<= 500 us",
    "in trains",
    "longest",
    "achieved",
    "CPU",
];

fn table(
    args: &SelftestArgs,
    load: &Load,
    limits: &Limits,
    flows: &[(&str, PacingCertificate)],
    passed: bool,
) -> Vec<String> {
    let gso = if args.gso { ", GSO trains" } else { "" };
    let what = match &load.profile {
        Some(profile) => format!("profile {}: at most ", profile.facts.name),
        None => String::new(),
    };
    let mut lines = vec![format!(
        "{}: {}, window {} us{gso}, {what}{} B at {} Mb/s for {} s",
        host::host_name(),
        args.pacing,
        args.window_us,
        load.message_bytes,
        load.rate_bps as f64 * 1e-6,
        args.time as f64 * 1e-9
    )];
    lines.push(row(&COLUMNS.map(str::to_owned)));
    lines.extend(flows.iter().map(|(transport, found)| row(&cells(transport, found))));
    for (transport, found) in flows {
        lines.extend(found.failed.iter().map(|failed| format!("{transport} failed {failed}")));
    }
    lines.push(format!("{} ({limits})", if passed { "passed" } else { "failed" }));
    lines
}

fn cells(transport: &str, found: &PacingCertificate) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
    let percent =
        |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{:.2} %", 100.0 * value));
    let error = found.error_us;
    [
        transport.to_owned(),
        number(error.map(|error| error.p50)),
        number(error.map(|error| error.p99)),
        number(error.map(|error| error.p99_9)),
        number(error.map(|error| error.max)),
        percent(found.within_5us_ratio),
        percent(found.within_50us_ratio),
        percent(found.within_500us_ratio),
        percent(found.back_to_back_ratio),
        found.train_messages.map_or_else(|| "-".into(), |train| train.max.to_string()),
        percent(Some(found.achieved_ratio)),
        percent(found.cpu_ratio),
    ]
}

fn row(cells: &[String]) -> String {
    let (first, others) = cells.split_first().map_or(("", cells), |(first, others)| (first.as_str(), others));
    others.iter().fold(format!("{first:<9}"), |line, cell| line + &format!(" {cell:>10}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Basis, Certifier, HandOver, Totals};
    use crate::cli::{Cli, Command as Verb};
    use crate::schedule::Schedule;
    use clap::Parser;

    fn args(words: &[&str]) -> SelftestArgs {
        let cli = Cli::try_parse_from([&["x", "selftest"], words].concat()).unwrap();
        let Verb::Selftest(args) = cli.command else { panic!("not selftest") };
        args
    }

    fn load(args: &SelftestArgs) -> Load {
        args.load().unwrap().1
    }

    fn limits(args: &SelftestArgs) -> Limits {
        args.limits(&load(args))
    }

    fn found(late_ns: i64) -> PacingCertificate {
        let mut certifier = Certifier::new(Basis::HandOver);
        let schedule = Schedule::new(8_000_000, 1000, 10_000_000);
        let over = HandOver { first: 0, messages: 1, from_ns: late_ns, to_ns: late_ns };
        certifier.depart(&schedule, &over);
        certifier.finish(&schedule, &Totals { scheduled: 1, sent: 1, cpu_s: 0.001, span_ns: 10_000_000 })
    }

    #[test]
    fn limits_of_ones_own_take_the_place_of_those_for_any_host() {
        assert_eq!(limits(&args(&[])).to_string(), "max_error_p99_us 500, min_achieved_ratio 0.998");
        let own = args(&["--pacing-limit", "max_error_us=7", "--pacing-limit", "max_cpu_ratio=0.1"]);
        assert_eq!(limits(&own).to_string(), "max_cpu_ratio 0.1, max_error_us 7");
    }

    #[test]
    fn what_the_pacing_itself_delays_is_no_fault_of_the_host() {
        let allowed_us = |words: &[&str]| args(words).allowed_us(&load(&args(words)));
        assert_eq!(allowed_us(&["--window-us", "50"]), 50.0);
        // 1000 B at 8 Mb/s: a message a millisecond, and the first of four waits for three others.
        assert_eq!(allowed_us(&["-b", "8M", "-l", "1000", "--pacing", "burst:4"]), 3_000.0);
    }

    #[test]
    fn a_flow_is_asked_for_as_it_was_typed() {
        let words = args(&["-b", "30M", "-l", "64", "-t", "0.2", "--window-us", "50", "--gso"]).flow("null");
        let line = words.join(" ");
        assert_eq!(
            line,
            "send --json --transport null -b 30000000 -l 64 -t 200000us --pacing absolute --window-us 50 --gso"
        );
        assert!(Cli::try_parse_from(std::iter::once("x".to_owned()).chain(words)).is_ok());
    }

    #[test]
    fn a_person_sees_each_flow_what_failed_and_the_verdict() {
        let args = args(&[]);
        let limits = limits(&args);
        let flows = [("null", found(1_000).judged(&limits)), ("udp", found(900_000).judged(&limits))];
        let lines = table(&args, &load(&args), &limits, &flows, false);
        assert!(lines[2].starts_with("null ") && lines[3].starts_with("udp "), "{lines:?}");
        assert_eq!(lines[4], "udp failed max_error_p99_us 500: it is 900.0000");
        assert!(lines[5].starts_with("failed (max_error_p99_us 500"), "{lines:?}");
        let lengths: Vec<_> = lines[1..4].iter().map(|line| line.chars().count()).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    }
}
