// SPDX-License-Identifier: Apache-2.0
//! `netjoule-traffic serve | send`.

use std::process::ExitCode;

use clap::Parser;
use netjoule_traffic::cli::{self, Cli, Command};
use netjoule_traffic::failure::{Code, Failure};
use netjoule_traffic::output::Output;
use netjoule_traffic::wait::Signals;
use netjoule_traffic::{client, host, server};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version come this way too, and belong on stdout with exit code 0.
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(error) => {
            let output =
                if std::env::args().any(|word| word == "--json") { Output::Json } else { Output::Plain };
            output.failure(&Failure::new(Code::Usage, cli::usage_sentence(&error)));
            return ExitCode::from(Code::Usage.exit());
        }
    };
    let json = match &cli.command {
        Command::Serve(args) => args.json,
        Command::Send(args) => args.json,
    };
    let output = if json { Output::Json } else { Output::Plain };
    // Before any thread, so that every thread inherits the blocked signals and the sharp timers.
    let outcome = Signals::new().map_err(Failure::system("watch for signals")).and_then(|signals| {
        host::sharpen_timers();
        match &cli.command {
            Command::Serve(args) => server::run(args, &signals, output),
            Command::Send(args) => client::run(args, &signals, output),
        }
    });
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
