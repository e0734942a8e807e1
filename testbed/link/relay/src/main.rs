// SPDX-License-Identifier: Apache-2.0
//! Command line of netjoule-link.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use netjoule_link::config::Config;
use netjoule_link::error::LinkError;
use netjoule_link::relay;
use netjoule_link_model::presets;

/// Emulated 802.11n/ac link: relays packets between network namespaces by air time.
#[derive(Parser)]
#[command(name = "netjoule-link", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the interfaces and relay until SIGTERM, SIGINT or the end of standard input.
    ///
    /// Example: netjoule-link run --config link.json
    Run {
        /// Configuration (link_config.schema.json); - reads standard input up to its end and implies --keep.
        #[arg(long)]
        config: PathBuf,
        /// Do not end when standard input ends.
        #[arg(long)]
        keep: bool,
    },
    /// Check a configuration and print the radio parameters that it comes to.
    ///
    /// Example: netjoule-link check --config link.json
    Check {
        /// Configuration (link_config.schema.json).
        #[arg(long)]
        config: PathBuf,
    },
    /// List the presets with their parameters; what is fitted says so.
    ///
    /// Example: netjoule-link presets --json
    Presets {
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // No command at all is answered with the help, too.
        Err(asked) if asked.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            print!("{}", asked.render());
            return ExitCode::SUCCESS;
        }
        // Help and version come this way, and belong on stdout with exit code 0.
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(error) => {
            eprintln!("netjoule-link: {}", usage_sentence(&error));
            return ExitCode::from(2);
        }
    };
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netjoule-link: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// What is wrong with the command line, in one sentence: clap's message without its usage block.
fn usage_sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message =
        text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let sentence = message.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    format!("{}; see --help", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

fn execute(command: Command) -> Result<(), LinkError> {
    match command {
        Command::Run { config, keep } => {
            let from_stdin = config == Path::new("-");
            relay::run(&load(&config)?, keep || from_stdin)
        }
        Command::Check { config } => {
            for station in load(&config)?.stations {
                say(&serde_json::json!({"station": station.end.name, "radio": station.radio}));
            }
            Ok(())
        }
        Command::Presets { json } => {
            presets::PRESETS.iter().for_each(|preset| print_preset(preset, json));
            Ok(())
        }
    }
}

fn load(path: &Path) -> Result<Config, LinkError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| LinkError::Usage(format!("cannot read configuration {}: {error}", path.display())))?;
    Config::parse(&text)
}

fn print_preset(preset: &presets::Preset, json: bool) {
    let radio = presets::radio(preset);
    if json {
        let line = serde_json::json!({
            "name": preset.name, "description": preset.description, "fitted": preset.fitted, "radio": radio,
        });
        say(&line);
        return;
    }
    say(&format!("{}{}", preset.name, if preset.fitted { "  [fitted]" } else { "" }));
    say(&format!("    {}", preset.description));
    for (name, value) in radio.iter().filter(|(_, value)| !value.is_null()) {
        say(&format!("    {name} = {value}"));
    }
}

/// One line on standard output; a reader that has gone (`| head`) is no failure.
fn say(line: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
