// SPDX-License-Identifier: Apache-2.0
//! `netjoule-traffic serve | send | transports | carriers | selftest | dissect | profile`.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use netjoule_measure::background::{self, Background};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::process::call_program;
use netjoule_measure::wait::Signals;
use netjoule_traffic::arguments::ServeArgs;
use netjoule_traffic::cli::{self, Command};
use netjoule_traffic::{carriers, catalogue, dissect, parallel, profile, selftest, server};

fn main() -> ExitCode {
    call_program(env!("CARGO_PKG_NAME"));
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        // No command at all is answered with the help, too.
        Err(asked) if asked.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            print!("{}", asked.render());
            return ExitCode::SUCCESS;
        }
        // Help and version come this way, and belong on stdout with exit code 0.
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(error) => {
            let is_json = std::env::args().any(|word| word == "--json" || word == "-J");
            let output = if is_json { Output::Json } else { Output::Plain };
            output.failure(&Failure::new(Code::Usage, cli::usage_sentence(&error)));
            return ExitCode::from(Code::Usage.exit());
        }
    };
    let json = match &cli.command {
        Command::Serve(args) => args.json,
        Command::Send(args) => args.json,
        Command::Transports(args) => args.json,
        Command::Carriers(args) => args.json,
        Command::Selftest(args) => args.json,
        Command::Dissect(args) => args.json,
        Command::Profile(args) => args.json,
    };
    let output = if json { Output::Json } else { Output::Plain };
    let outcome = match &cli.command {
        Command::Serve(args) => serve(args, output),
        Command::Send(args) => logged(args.logfile.as_deref())
            .and_then(|()| prepared(|signals| parallel::run(args, signals, output))),
        Command::Transports(args) => catalogue::run(args),
        Command::Carriers(_) => carriers::run(output),
        // Starts programs of its own; signals end all of them.
        Command::Selftest(args) => selftest::run(args, output),
        // Reads a file and nothing else: signals end it as they end any program.
        Command::Dissect(args) => dissect::run(args),
        Command::Profile(args) => profile::run(args, output),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.code.exit())
        }
    }
}

fn serve(args: &ServeArgs, output: Output) -> Outcome<u8> {
    logged(args.logfile.as_deref())?;
    let background = args.daemon.then(|| Background::enter(args.logfile.is_some())).transpose()?;
    prepared(|signals| server::run(args, signals, output, background))
}

fn logged(file: Option<&Path>) -> Outcome<()> {
    file.map_or(Ok(()), background::log_to)
}

/// Work with threads and timers. Signals are blocked before any thread, so that every thread inherits them blocked, and
/// the sharp timers.
fn prepared(work: impl FnOnce(&Signals) -> Outcome<u8>) -> Outcome<u8> {
    let signals = Signals::new().map_err(Failure::system("watch for signals"))?;
    host::sharpen_timers();
    host::keep_freed_memory();
    work(&signals)
}
