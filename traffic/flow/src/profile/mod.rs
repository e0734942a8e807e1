// SPDX-License-Identifier: Apache-2.0
//! `netjoule-traffic profile`: a capture becomes a profile; a profile or trace says what it gives.
//!
//! | question | module |
//! | --- | --- |
//! | which flows are in the capture, and what did each send? | `flows` |
//! | which frames hold one packet? | `views` |
//! | what profile is that? | `make` |
//!
//! A profile holds sizes and times only. Addresses and ports are shown to choose a flow by, and written nowhere.

mod flows;
mod make;
mod views;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::{json, Value};

use crate::load::{self, Load};
use crate::schedule::document::Document;
use crate::schedule::profile::{Profile, LONGEST_TEXT_BYTES};
use crate::schedule::Schedule;
use flows::{Flow, Flows};
use make::Departures;
use netjoule_measure::capture::file::{is_capture, opened, refuse_compressed};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::output::{self, Output};
use netjoule_measure::units;

/// Exit code of a file that holds no flow, or ends too early.
const INVALID_DATA: u8 = 4;

/// Flows that people are shown.
const SHOWN_FLOWS: usize = 10;
/// How much of an endless profile is looked at unless told, ns.
const USUAL_SPAN_NS: u64 = 60_000_000_000;

/// `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Capture (pcap, pcapng), profile (JSON) or trace (CSV or NDJSON of t_s and bytes)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the profile here
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Capture: which flow, by its number in the list; the one with the most bytes is number 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub flow: u32,
    /// Capture: write the distributions of sizes and inter-departure times instead of the trace
    #[arg(long)]
    pub distributions: bool,
    /// Capture: cut messages that are longer, as a network device's segmentation does
    #[arg(long, value_name = "SIZE", value_parser = cut_bytes)]
    pub cut: Option<u64>,
    /// Capture: name of the profile (default: the file's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Capture: only so much of it, in s; otherwise how much of the profile is summed up (default: 60 s, a trace whole)
    #[arg(short = 't', long = "time", value_name = "S", value_parser = units::duration_ns)]
    pub time: Option<u64>,
    /// Seed of the schedule that is summed up
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=units::LARGEST))]
    pub schedule_seed: u64,
    /// Print a line of JSON
    #[arg(long)]
    pub json: bool,
}

fn cut_bytes(text: &str) -> Result<u64, String> {
    let bytes = units::size_bytes(text).map_err(|error| error.to_string())?;
    let sizes = crate::schedule::departure::MESSAGE_BYTES;
    match sizes.contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("must be between {} and {}", sizes.start(), sizes.end())),
    }
}

/// Run `profile`. Returns the exit code: 0, or 4 with a sentence on stderr for a capture without a flow or with an end
/// that is missing (what came before it is used).
pub fn run(args: &ProfileArgs, output: Output) -> Outcome<u8> {
    refuse_compressed(&args.file)?;
    if is_capture(&args.file)? {
        return of_capture(args, output);
    }
    let profile = load::named_profile(&load::read_file(&args.file)?, &args.file)?;
    tell(args, &profile, &[], None, output)?;
    Ok(0)
}

fn of_capture(args: &ProfileArgs, output: Output) -> Outcome<u8> {
    let found = Flows::read(opened(&args.file)?);
    if let Some(damage) = &found.damage {
        output.complain(&format!("{}: {damage}", args.file.display()));
    }
    let Some(flow) = found.flows.get(args.flow as usize - 1) else {
        let what = match found.flows.len() {
            0 => match found.unknown_link {
                Some(unknown) => format!("has no packet that can be read: {unknown}"),
                None => "has no UDP, TCP or DCCP packet with payload".to_owned(),
            },
            count => format!(
                "has {} with payload, so no flow {} (--flow)",
                counted(count as u64, "flow"),
                args.flow
            ),
        };
        output.complain(&format!("{}: {what}", args.file.display()));
        return Ok(INVALID_DATA);
    };
    let departures = Departures::of(flow, args.cut, args.time);
    let document = written(args, flow, &departures)?;
    let profile = Profile::new(document)
        .map_err(|error| Failure::new(Code::Usage, format!("the capture gives no profile: {error}")))?;
    tell(args, &profile, &found.flows, Some((flow, &departures)), output)?;
    Ok(if found.damage.is_some() { INVALID_DATA } else { 0 })
}

/// The profile of a flow, as asked for.
fn written(args: &ProfileArgs, flow: &Flow, departures: &Departures) -> Outcome<Document> {
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let name = args.name.as_deref().unwrap_or(&stem);
    let last_ns = departures.list.last().map_or(0, |departure| departure.due_ns);
    let description = format!(
        "From a capture: {} in {:.3} s over {}; sizes and times only.",
        counted(departures.list.len() as u64, "message"),
        last_ns as f64 * 1e-9,
        flow.ends.protocol_name()
    );
    if !args.distributions {
        return Ok(departures.trace(name, description));
    }
    departures.distributions(name, description).ok_or_else(|| {
        Failure::new(Code::Usage, "one message has no inter-departure times: leave --distributions out")
    })
}

/// Write the profile where asked, and sum it up.
fn tell(
    args: &ProfileArgs,
    profile: &Profile,
    flows: &[Flow],
    source: Option<(&Flow, &Departures)>,
    output: Output,
) -> Outcome<()> {
    let text = profile.text();
    if let Some(path) = &args.output {
        if text.len() > LONGEST_TEXT_BYTES {
            let most = LONGEST_TEXT_BYTES >> 20;
            return Code::Usage.fail(format!(
                "the profile is longer than {most} MiB: take less of the capture (-t) or --distributions"
            ));
        }
        fs::write(path, format!("{text}\n")).map_err(|error| {
            Failure::new(Code::Usage, format!("cannot write {}: {error}", path.display()))
        })?;
    }
    // -t has already decided how much of a capture the profile holds.
    let asked_ns = args.time.filter(|_| flows.is_empty() || args.distributions);
    let span_ns = asked_ns.or(profile.span_ns()).unwrap_or(USUAL_SPAN_NS);
    let load = Load::of_profile(profile, args.schedule_seed, span_ns, false)?;
    match output {
        Output::Json => output.event("profile", document(args, &load, flows, source, span_ns)),
        _ => lines(args, &load, flows, source, span_ns).iter().try_for_each(|line| output::write(line)),
    }
}

fn document(
    args: &ProfileArgs,
    load: &Load,
    flows: &[Flow],
    source: Option<(&Flow, &Departures)>,
    span_ns: u64,
) -> Value {
    let listed: Vec<_> = flows
        .iter()
        .map(|flow| {
            json!({ "flow": flow.ends.to_string(), "messages": flow.messages.len(), "bytes": flow.bytes() })
        })
        .collect();
    json!({
        "profile": load.profile.as_ref().map(|profile| &profile.facts),
        "schedule_digest": load.schedule.digest(),
        "duration_s": span_ns as f64 / 1e9,
        "greatest_message_bytes": load.message_bytes,
        "mean_rate_mbps": mean_rate_mbps(load),
        "flows": listed,
        "messages_raised": source.map(|(_, departures)| departures.raised),
        "segments_repeated": source.map(|(flow, _)| flow.repeated),
        "written": args.output.as_ref().map(|path| path.display().to_string()),
    })
}

/// Mean payload rate of the schedule; none of a single message, which takes no time.
fn mean_rate_mbps(load: &Load) -> Option<f64> {
    (load.schedule.count() > 1).then(|| load.rate_bps as f64 / 1e6)
}

/// So many things; one is no plural.
fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The same for people.
fn lines(
    args: &ProfileArgs,
    load: &Load,
    flows: &[Flow],
    source: Option<(&Flow, &Departures)>,
    span_ns: u64,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, flow) in (1..=SHOWN_FLOWS).zip(flows) {
        let chosen = if number == args.flow as usize { "*" } else { " " };
        lines.push(format!(
            "{chosen}{number:>3}  {}  {}, {}",
            flow.ends,
            counted(flow.messages.len() as u64, "message"),
            counted(flow.bytes(), "byte")
        ));
    }
    if flows.len() > SHOWN_FLOWS {
        lines.push(format!("      and {}", counted((flows.len() - SHOWN_FLOWS) as u64, "smaller one")));
    }
    if let Some(facts) = load.profile.as_ref().map(|profile| &profile.facts) {
        let rates = mean_rate_mbps(load).map_or("no average rate".into(), |mbps| {
            format!(
                "{mbps:.4} Mb/s on average, at most {:.4} Mb/s over 10 ms",
                facts.burst_rate_bps as f64 * 1e-6
            )
        });
        lines.push(format!(
            "{} ({}): {} in {:.3} s, {rates}",
            facts.name,
            facts.shape,
            counted(facts.messages, "message"),
            span_ns as f64 * 1e-9
        ));
        lines.push(format!(
            "sizes {} to {} bytes, {:.1} on average",
            facts.least_message_bytes,
            facts.greatest_message_bytes,
            facts.bytes as f64 / facts.messages as f64
        ));
    }
    lines.extend(gap_line(&load.schedule));
    lines.push(format!("schedule {} with seed {}", load.schedule.digest(), args.schedule_seed));
    if let Some((flow, departures)) = source {
        if departures.raised > 0 {
            lines.push(format!(
                "{} of under 16 bytes {} raised to 16, a message's header",
                counted(departures.raised, "message"),
                if departures.raised == 1 { "was" } else { "were" }
            ));
        }
        if flow.repeated > 0 {
            let were = if flow.repeated == 1 { "was" } else { "were" };
            lines.push(format!("{} with nothing new {were} left out", counted(flow.repeated, "TCP segment")));
        }
    }
    lines.extend(args.output.as_ref().map(|path| format!("written to {}", path.display())));
    lines
}

/// Inter-departure times of a schedule in a few figures.
fn gap_line(schedule: &Schedule) -> Option<String> {
    let mut gaps: Vec<i64> =
        (1..schedule.count()).map(|index| schedule.due_ns(index) - schedule.due_ns(index - 1)).collect();
    gaps.sort_unstable();
    let ms = |share: f64| Some(*gaps.get(((gaps.len() as f64 - 1.0) * share) as usize)? as f64 * 1e-6);
    Some(format!(
        "inter-departure times {:.3} ms median, {:.3} ms p99, {:.3} ms longest",
        ms(0.5)?,
        ms(0.99)?,
        ms(1.0)?
    ))
}
