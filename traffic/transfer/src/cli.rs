// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use netjoule_measure::units;
use netjoule_scheduler::objective::Objective;
use netjoule_scheduler::settings::Algorithm;
use serde::de::value::{Error as NoSuchWord, StrDeserializer};
use serde::de::IntoDeserializer;
use serde::Deserialize;

use crate::network::options::Http;
use crate::power_model::PowerModel;

/// Downloads many files, chooses its connections, and tells what that took.
#[derive(Debug, Parser)]
#[command(name = "netjoule-transfer", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download files.
    #[command(
        arg_required_else_help = true,
        after_help = "Example: netjoule-transfer get https://example.org/disk.img --out images\n\
                      Example: netjoule-transfer get --dataset html-1 --from https://10.77.0.3/ --to nowhere --json\n\
                      Sizes: K M G (2^10..). Exit codes: 0 all verified, 1 failed, 2 usage, 3 no room, 4 wrong bytes."
    )]
    Get(Box<GetArgs>),
    /// Write the files of a data set for a server to serve, or say which sets there are.
    #[command(after_help = "Example: netjoule-transfer dataset html-1 --out /dev/shm/www --seed 7")]
    Dataset(DatasetArgs),
}

/// `dataset`.
#[derive(Debug, Args)]
pub(crate) struct DatasetArgs {
    /// Name of a set, a file that ends in .yaml, or its text as JSON; without it the sets are named
    pub(crate) name: Option<String>,
    /// Folder for files and manifest.json; without it the manifest is printed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Of sizes and signatures
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// As many files instead, shared out among the kinds as in the set
    #[arg(long, value_name = "N")]
    pub(crate) files: Option<u64>,
    /// Put the SHA-256 of each file into the manifest
    #[arg(long)]
    pub(crate) sha256: bool,
}

/// `get`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["urls", "manifest", "dataset"]).required(true)))]
pub(crate) struct GetArgs {
    /// Files
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Files of a manifest.json
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Files of a data set, named as for `netjoule-transfer dataset`, which writes them
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) dataset: Option<String>,
    /// Of the data set
    #[arg(long, default_value_t = 1, requires = "dataset", conflicts_with_all = ["urls", "manifest"])]
    pub(crate) seed: u64,
    /// As many files of the data set
    #[arg(long, value_name = "N", requires = "dataset", conflicts_with_all = ["urls", "manifest"])]
    pub(crate) files: Option<u64>,
    /// Folder on the server of the manifest's or data set's files; or `memory`: a data set without a network
    #[arg(long, value_name = "URL", conflicts_with = "urls")]
    pub(crate) from: Option<String>,

    /// Folder for the files; one that is there under the same name is replaced
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,
    /// Keep no files: write to a ring of 64 MiB in memory, or nowhere
    #[arg(long, value_enum, conflicts_with = "out")]
    pub(crate) to: Option<To>,
    /// Size of each write, 1K to 1M
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub(crate) request_bytes: u64,

    /// HTTP version; auto takes /2 where TLS settles it, else /1.1
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) http: Http,
    /// Believe these authorities (PEM) and no others
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Cap of a connection's receive window; HTTP/3's effective one is half of it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) window_bytes: Option<u64>,

    /// How connections are chosen: fixed, lowe, lowe-sequential, hat, eht or auto
    #[arg(long, default_value = "auto", value_parser = word::<Algorithm>)]
    pub(crate) algorithm: Algorithm,
    /// Files at once (fixed)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) concurrency: u32,
    /// Ranges of each file at once (fixed)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) parallelism: u32,
    /// Requests at once on each connection of HTTP/2 and /3 [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) streams: Option<u32>,
    /// Connections, at most
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) max_connections: u32,
    /// What is to be best (eht, auto): throughput, frugal, and with a meter or a model of it energy or efficiency
    #[arg(long, default_value = "frugal", value_parser = word::<Objective>)]
    pub(crate) objective: Objective,
    /// As fast as possible within so many joules; needs --energy-stdin or --power-model
    #[arg(long, value_name = "J", conflicts_with = "objective", requires = "energy", value_parser = above_zero)]
    pub(crate) budget_j: Option<f64>,
    /// How long a level is probed
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = above_zero)]
    pub(crate) interval_s: f64,
    /// Rate of the path, where it is known; else it is measured
    #[arg(long, value_name = "MBPS", value_parser = above_zero)]
    pub(crate) bandwidth_mbps: Option<f64>,
    /// Round trip of the path, where it is known; else it is measured
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    pub(crate) rtt_ms: Option<f64>,

    /// Give a file up when nothing of it has come for so long
    #[arg(long, value_name = "S", default_value_t = 15.0)]
    pub(crate) retry_s: f64,
    /// Give a connection up when nothing has come over it for so long
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) silence_s: f64,

    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Be ready, say so (a line of JSON), and begin at the line `go` on stdin
    #[arg(long)]
    pub(crate) hold: bool,
    /// Take lines `{"energy_j": J}`, dynamic energy since the beginning, from stdin while it runs
    #[arg(long, group = "energy")]
    pub(crate) energy_stdin: bool,
    /// A model, no measurement, in place of a meter: BASE_W (1 + SHARE_PER_RATE r + SHARE_PER_CONNECTION n) above idle,
    /// r in Mb/s, n connections that have a request
    #[arg(long, value_name = "BASE_W,SHARE_PER_RATE,SHARE_PER_CONNECTION", group = "energy")]
    pub(crate) power_model: Option<PowerModel>,
}

/// Where bytes go that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// Over each other, in memory.
    Ring,
    /// Counted and dropped.
    Nowhere,
}

fn size(text: &str) -> Result<u64, String> {
    units::size_bytes(text).map_err(|error| error.to_string())
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "is no number above 0".to_owned())
}

/// A word of one of the scheduler's choices, as its documents have it.
fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    let word: StrDeserializer<'_, NoSuchWord> = text.into_deserializer();
    T::deserialize(word).map_err(|error| error.to_string())
}

/// clap's message in one sentence, without its usage block.
pub(crate) fn usage_sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let sentence = words.join(" ").replace(" tip: ", "; ");
    format!("{}; see --help", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &str) -> Result<Cli, String> {
        let words = std::iter::once("x").chain(line.split(' '));
        Cli::try_parse_from(words).map_err(|error| usage_sentence(&error))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn contradictions_are_one_sentence() {
        for line in [
            "get",
            "get --dataset html-1",
            "get http://a/ --from http://b/",
            "get http://a/ --manifest m.json",
            "get http://a/ --algorithm fastest",
            "get http://a/ --out x --to ring",
            "get http://a/ --request-bytes 1x",
            "get http://a/ --budget-j 5",
            "get http://a/ --budget-j 0 --energy-stdin",
            "get http://a/ --seed 3",
            "get --manifest m.json --files 3",
            "get http://a/ --interval-s nan",
            "get http://a/ --bandwidth-mbps inf",
            "get http://a/ --rtt-ms 0",
            "get http://a/ --power-model 1,0.075",
            "get http://a/ --power-model 1,0.075,0.015 --energy-stdin",
        ] {
            let sentence = parsed(line).unwrap_err();
            assert!(!sentence.contains('\n'), "{line}: {sentence}");
        }
    }

    #[test]
    fn algorithms_and_objectives_have_the_schedulers_names() {
        let line = "get http://a/b --algorithm lowe-sequential --objective efficiency --request-bytes 16K";
        let Ok(Cli { command: Command::Get(args) }) = parsed(line) else { panic!("not get") };
        assert_eq!((args.algorithm, args.objective), (Algorithm::LoweSequential, Objective::Efficiency));
        assert_eq!(args.request_bytes, 16_384);
    }
}
