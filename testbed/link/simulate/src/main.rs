// SPDX-License-Identifier: Apache-2.0
//! netjoule-simulate: a JSON document on a line asks, one on a line answers, until standard input ends.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use clap::Parser;
use netjoule_simulate::config::Asked;
use netjoule_simulate::world::simulate;
use serde_json::{json, Value};

/// Simulate flows between model endpoints over a path, in simulated time: documents on stdin, answers on stdout.
///
/// Example: echo '{"id": 1, "seed": 1, "duration_s": 60, "interval_s": 10, "flows": [{}], "elements": [{"rate_mbps": 10,
/// "queue_packets": 42, "delay_ms": 50, "scaling": {"kind": "practra", "interval_ms": 10}}]}' | netjoule-simulate
#[derive(Parser)]
#[command(name = "netjoule-simulate", version)]
struct Cli {}

fn main() -> ExitCode {
    Cli::parse();
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return ExitCode::FAILURE };
        if writeln!(stdout, "{}", answer(&line)).and_then(|()| stdout.flush()).is_err() {
            // Who asked has gone.
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

fn answer(line: &str) -> Value {
    let document: Value = match serde_json::from_str(line) {
        Ok(document) => document,
        Err(error) => return json!({"error": format!("the document is not JSON: {error}")}),
    };
    let id = document["id"].clone();
    let outcome = serde_json::from_value::<Asked>(document)
        .map_err(|error| error.to_string())
        .and_then(|asked| simulate(&asked).map_err(|error| error.to_string()));
    match outcome {
        Ok(outcome) => json!(outcome),
        Err(sentence) => json!({"id": id, "error": sentence}),
    }
}
