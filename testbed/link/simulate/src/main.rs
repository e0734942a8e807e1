// SPDX-License-Identifier: Apache-2.0
//! netjoule-simulate: a JSON document on a line asks, one on a line answers, until standard input ends. Or it plays a trace of
//! packets to a radio.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use netjoule_link_model::range::ParameterError;
use netjoule_simulate::radio_states::{answer::answer, machine, trace};
use netjoule_simulate::{config, transfer, world};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{json, Value};

/// Simulate flows between model endpoints over a path, in simulated time: documents on stdin, answers on stdout.
///
/// Example: echo '{"id": 1, "seed": 1, "duration_s": 60, "interval_s": 10, "flows": [{}], "elements": [{"rate_mbps": 10,
/// "queue_packets": 42, "delay_ms": 50, "scaling": {"kind": "practra", "interval_ms": 10}}]}' | netjoule-simulate
#[derive(Parser)]
#[command(name = "netjoule-simulate", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    RadioStates(RadioStates),
}

/// What a Wi-Fi, LTE or UMTS radio would have cost under a trace of packets: a JSON document with its states, the delay of
/// packets, and energies, all of a model.
///
/// Example: netjoule-simulate radio-states --machine aro-lte trace.csv
#[derive(Args)]
struct RadioStates {
    /// A preset (energybox-s2, aro-wifi, n9-wlan, mobisys12, aro-lte, aro-i997, aro-inspire, energybox-teliasonera, n9-umts), or
    /// a file with a machine of your own, which is of the form of `document` in an answer
    #[arg(long, value_name = "NAME|FILE.json")]
    machine: String,
    /// The end, s from the start of the trace; when the radio is at rest after the last packet unless told
    #[arg(long, value_name = "X")]
    until_s: Option<f64>,
    /// Packets: lines of `0.125,up,1500` under the header `t_s,direction,bytes` (IP bytes), in order of time
    #[arg(value_name = "TRACE.csv")]
    trace: String,
}

fn main() -> ExitCode {
    let Some(Command::RadioStates(asked)) = Cli::parse().command else { return answer_lines() };
    match play(&asked) {
        Ok(document) => {
            // A reader that has gone is no failure.
            let _ = writeln!(std::io::stdout(), "{document}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("netjoule-simulate: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn play(asked: &RadioStates) -> Result<Value, ParameterError> {
    let document = machine::of(&asked.machine, read)?;
    let packets = trace::parse(&asked.trace, &read(&asked.trace)?)?;
    answer(&asked.machine, document, &packets, asked.until_s).map(|answer| json!(answer))
}

fn read(file: &str) -> Result<String, ParameterError> {
    std::fs::read_to_string(file).map_err(|error| ParameterError(format!("cannot read {file}: {error}")))
}

fn answer_lines() -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return ExitCode::FAILURE };
        if writeln!(stdout, "{}", answer_line(&line)).and_then(|()| stdout.flush()).is_err() {
            // Who asked has gone.
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

fn answer_line(line: &str) -> Value {
    let document: Value = match serde_json::from_str(line) {
        Ok(document) => document,
        Err(error) => return json!({"error": format!("the document is not JSON: {error}")}),
    };
    let id = document["id"].clone();
    let outcome = if document.get("transfer").is_some() {
        outcome_of(document, transfer::run::transfer)
    } else {
        outcome_of::<config::Asked, _>(document, world::simulate)
    };
    outcome.unwrap_or_else(|sentence| json!({"id": id, "error": sentence}))
}

fn outcome_of<A: DeserializeOwned, O: Serialize>(
    document: Value,
    of: impl Fn(&A) -> Result<O, ParameterError>,
) -> Result<Value, String> {
    let asked = serde_json::from_value(document).map_err(|error| error.to_string())?;
    of(&asked).map(|outcome| json!(outcome)).map_err(|error| error.to_string())
}
