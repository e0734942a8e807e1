// SPDX-License-Identifier: Apache-2.0
//! The command line: iperf3's letters.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::arguments::{SendArgs, ServeArgs};
use crate::catalogue::TransportsArgs;
use crate::dissect::DissectArgs;
use crate::iperf3;
use crate::profile::ProfileArgs;
use crate::selftest::SelftestArgs;

/// Controlled flows over UDP, TCP, DCCP, QUIC and others, with an honest report of both ends.
#[derive(Debug, Parser)]
#[command(
    name = "netjoule-traffic",
    version,
    arg_required_else_help = true,
    after_help = "As with iperf3: netjoule-traffic -s, and netjoule-traffic -c HOST -u -b 30M -t 10"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The programs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait for flows.
    #[command(after_help = "Example: netjoule-traffic serve --bind 10.77.0.3 --max-rate 100M")]
    Serve(ServeArgs),
    /// Run one flow and print its report, or several at once and how evenly they shared the path.
    #[command(
        arg_required_else_help = true,
        after_help = "Example: netjoule-traffic send --transport udp --to 10.77.0.3 -b 30M -l 1440 -t 10 --json\n\
                      Example: netjoule-traffic send --transport udp,tcp -P 2 --bidir --to 10.77.0.3 -b 5M (8 flows)\n\
                      Rates: K M G (10^3..) or Ki Mi Gi (2^10..), b = bit/s (default), B = byte/s; sizes: K M G (2^10..)."
    )]
    Send(Box<SendArgs>),
    /// Say which transports this host has, why not the rest, and what can be chosen about each.
    #[command(after_help = "Example: netjoule-traffic transports --json")]
    Transports(TransportsArgs),
    /// Say what can carry DCCP on this host, and why not the rest.
    #[command(after_help = "Example: netjoule-traffic carriers --json")]
    Carriers(CarriersArgs),
    /// Certify that this host can keep a schedule, before a campaign relies on it.
    #[command(after_help = "Example: netjoule-traffic selftest -b 30M -l 64 --window-us 50\n\
                      The same flow goes to nowhere (null) and over loopback UDP; exit code 0 passed, 4 failed.")]
    Selftest(SelftestArgs),
    /// Read a capture file: one line per DCCP packet.
    #[command(
        arg_required_else_help = true,
        after_help = "Example: netjoule-traffic dissect capture.pcapng --udp-port 6511 --json"
    )]
    Dissect(DissectArgs),
    /// Turn a capture file into a profile (sizes and times, nothing else), or say what a profile gives.
    #[command(
        arg_required_else_help = true,
        after_help = "Example: netjoule-traffic profile call.pcapng --flow 2 -o call.json\n\
                      Example: netjoule-traffic profile call.json -t 60 --schedule-seed 7 --json"
    )]
    Profile(ProfileArgs),
}

/// `carriers`.
#[derive(Debug, Args)]
pub struct CarriersArgs {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// The command that `words`, the program's name first, ask for, be it by its own name or as iperf3 has it.
///
/// # Errors
/// clap's, which may also be a wish for help or version.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let as_iperf3 = iperf3::command_of(words.get(1..).unwrap_or_default());
    if let Some(command) = as_iperf3 {
        words.insert(1, command.into());
    }
    let matches = Cli::command().try_get_matches_from(words)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Command::Send(args), Some((_, given))) = (&mut cli.command, matches.subcommand()) {
        let is_named = given.value_source("transport") == Some(ValueSource::CommandLine);
        match (args.udp, args.sctp, is_named) {
            (true, ..) => args.transport = "udp".into(),
            (_, true, _) => args.transport = "sctp".into(),
            (.., false) if as_iperf3.is_some() => args.transport = "tcp".into(),
            _ => {}
        }
    }
    Ok(cli)
}

/// What is wrong with the command line, in one sentence: what does it here where a flag is iperf3's, else clap's message
/// without its usage block.
pub fn usage_sentence(error: &clap::Error) -> String {
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    {
        if let Some(answer) = iperf3::answer(flag) {
            return format!("{flag} is iperf3's: {answer}");
        }
    }
    let text = error.render().to_string();
    let message =
        text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = message.flat_map(str::split_whitespace).collect();
    let sentence = words.join(" ").replace(" tip: ", "; ");
    format!("{}; see --help", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let words = std::iter::once("x").chain(line.split(' ')).map(OsString::from);
        parse(words).map(|cli| cli.command).map_err(|error| usage_sentence(&error))
    }

    fn sent(line: &str) -> SendArgs {
        let Ok(Command::Send(args)) = parsed(line) else { panic!("{line}") };
        *args
    }

    #[test]
    fn iperf3s_command_lines_are_understood() {
        let args = sent("-c host -p 5999 -P 2 -J -B 10.0.0.1 --get-server-output --logfile x.log");
        assert_eq!((args.transport.as_str(), args.to.as_deref(), args.port), ("tcp", Some("host"), 5999));
        assert!(args.json && args.parallel == 2 && args.bind.is_some() && args.logfile.is_some());
        assert_eq!(sent("-uRc host -b 5M").transport, "udp");
        let args = sent("-c host -b 0 -n 128K -f M -V");
        assert_eq!((args.rate, args.bytes, args.format.to_string()), (Some(0), Some(131_072), "M".into()));
        assert_eq!(
            (sent("-c host -k 10").blocks, sent("-c host -O 2").omit),
            (Some(10), Some(2_000_000_000))
        );
        assert_eq!(sent("--sctp -c host").transport, "sctp");
        assert_eq!(sent("-c host --transport quic").transport, "quic");
        assert_eq!(sent("send -c host").transport, "udp", "as ever");
        let chosen = |line: &str| serde_json::Value::from(sent(line).transport_options.chosen);
        assert_eq!(chosen("-c h -C reno"), serde_json::json!({ "congestion_control": "reno" }));
        assert_eq!(chosen("-c h -Z -N"), serde_json::json!({ "nodelay": true, "zerocopy": true }));
        let Ok(Command::Serve(args)) = parsed("-s1D -p 5999 -B ::1 --logfile x.log") else {
            panic!("not serve")
        };
        assert!(args.one_off && args.daemon && args.port == 5999 && args.bind.is_ipv6());
    }

    #[test]
    fn what_iperf3_has_and_this_has_not_is_answered_in_a_sentence() {
        for (line, words) in [
            ("-c h -S 5", "-S is iperf3's: the type of service"),
            ("-c h -M 1400", "advmss"),
            ("-c h -w 1M", "net.ipv4.tcp_wmem"),
            ("-s -V", "netjoule-traffic send"),
            ("-s -c h", "either"),
            ("-c h -u --transport tcp", "cannot be used with"),
            ("-c h -n 1M -O 1", "cannot be used with"),
            ("-c h -b 1M/10", "burst:N"),
            ("-c h -f x", "k, m, g or t"),
        ] {
            let sentence = parsed(line).unwrap_err();
            assert!(sentence.contains(words) && !sentence.contains('\n'), "{line}: {sentence}");
        }
    }

    #[test]
    fn a_bad_flag_is_one_sentence() {
        for (flags, word) in [
            (["x", "send", "--speed"], "--speed"),
            (["x", "send", "-bfast"], "fast"),
            (["x", "send", "--pacing=slow"], "burst:N"),
            (["x", "send", "--pacing-limit=slow=1"], "max_error_p99_us"),
        ] {
            let Err(error) = Cli::try_parse_from(flags) else { panic!("{flags:?} was taken") };
            let sentence = usage_sentence(&error);
            assert!(
                sentence.contains(word) && !sentence.contains('\n') && !sentence.contains("Usage"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn iperfs_letters_parse() {
        let cli = Cli::try_parse_from(["x", "send", "--to", "h", "-b", "30M", "-l", "64", "-t", "2", "-R"])
            .unwrap();
        let Command::Send(args) = cli.command else { panic!("not send") };
        assert_eq!((args.rate, args.length, args.reverse), (Some(30_000_000), Some(64), true));
        assert_eq!((args.time, args.interval), (Some(2_000_000_000), 1_000_000_000));
        assert!(Cli::try_parse_from(["x", "send", "--to", "h", "-b", "30 K"]).is_err());
    }

    #[test]
    fn iperfs_letters_for_several_flows_parse() {
        let cli = Cli::try_parse_from(["x", "send", "-P", "4", "--bidir"]).unwrap();
        let Command::Send(args) = cli.command else { panic!("not send") };
        assert_eq!((args.parallel, args.bidir), (4, true));
        for contradiction in [&["--bidir", "-R"][..], &["-P", "0"], &["-P", "65"]] {
            assert!(
                Cli::try_parse_from([&["x", "send"], contradiction].concat()).is_err(),
                "{contradiction:?}"
            );
        }
    }

    #[test]
    fn a_profile_stands_instead_of_rate_and_length() {
        let parse =
            |more: &[&str]| Cli::try_parse_from([&["x", "send", "--profile", "p.json"], more].concat());
        let Command::Send(args) = parse(&["--schedule-seed", "9", "-t", "2"]).unwrap().command else {
            panic!("not send")
        };
        assert_eq!((args.profile, args.schedule_seed), (Some("p.json".into()), 9));
        for contradiction in [["-b", "1M"], ["-l", "64"]] {
            assert!(parse(&contradiction).is_err(), "{contradiction:?}");
        }
        assert!(Cli::try_parse_from(["x", "send", "--schedule-seed", "9"]).is_err());
    }
}
