// SPDX-License-Identifier: Apache-2.0
//! `netjoule-transfer get | dataset`: downloads many files, and makes files to download.

#![forbid(unsafe_code)]

mod cli;
mod drive;
mod fault;
mod fetch;
mod get;
mod job;
mod make;
mod network;
mod orders;
mod pace;
mod power_model;
mod prepare;
mod progress;
mod report;
mod sets;
mod source;
mod storage;

use std::process::ExitCode;

use clap::Parser;
use netjoule_measure::failure::{Code, Failure};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::process::call_program;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    call_program(env!("CARGO_PKG_NAME"));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version come this way, and belong on stdout with exit code 0.
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(error) => {
            let is_json = std::env::args().any(|word| word == "--json");
            let output = if is_json { Output::Json } else { Output::Plain };
            output.failure(&Failure::new(Code::Usage, cli::usage_sentence(&error)));
            return ExitCode::from(Code::Usage.exit());
        }
    };
    host::keep_freed_memory();
    let (output, outcome) = match &cli.command {
        Command::Get(args) => {
            let output = if args.json { Output::Json } else { Output::Plain };
            (output, get::run(args, output))
        }
        Command::Dataset(args) => (Output::Plain, make::run(args).map(|()| 0)),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
