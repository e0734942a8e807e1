// SPDX-License-Identifier: Apache-2.0
//! The command line: iperf3's letters.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use netjoule_transport::Values;

use crate::catalogue::TransportsArgs;
use crate::certificate::{Limit, Limits};
use crate::dissect::DissectArgs;
use crate::iperf3;
use crate::output::Format;
use crate::pacing::Mode;
use crate::profile::ProfileArgs;
use crate::registry;
use crate::selftest::SelftestArgs;
use crate::sender::LONGEST_WINDOW_US;
use crate::transport_options::TransportOptions;
use crate::units;

/// Default port of the control channel.
pub const PORT: u16 = 5301;

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

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address for the data, and for control unless --control-bind says otherwise
    #[arg(short = 'B', long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub bind: IpAddr,
    /// Control port (0 = any free one)
    #[arg(short = 'p', long, default_value_t = PORT)]
    pub port: u16,
    /// Same as the command `serve` (as in iperf3)
    #[arg(short = 's', long, hide = true)]
    pub server: bool,
    /// End after the flows of one client's command
    #[arg(short = '1', long)]
    pub one_off: bool,
    /// Serve in the background, once it listens
    #[arg(short = 'D', long, conflicts_with = "exit_with_stdin")]
    pub daemon: bool,
    /// Append what is printed to this file
    #[arg(long, value_name = "FILE")]
    pub logfile: Option<PathBuf>,
    /// Port for the data (0 = any free one, told to the client)
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub data_port: u16,
    /// Address for control, to keep it off the path under test
    #[arg(long, value_name = "ADDR")]
    pub control_bind: Option<IpAddr>,
    /// Longest flow allowed, in s
    #[arg(long, value_name = "S", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_duration_s: u32,
    /// Greatest payload rate allowed (default: 10G, and as fast as possible)
    #[arg(long, value_name = "RATE", value_parser = units::rate_bps)]
    pub max_rate: Option<u64>,
    /// Most messages of a profile that the server sends (-R); their schedule is held in memory
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_messages: u64,
    /// Longest wait for a held flow to go on, in s (default: 60; 3600 for a client that proved the --secret)
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_hold_s: Option<u32>,
    /// Write what happens to each flow's connection to a file in this folder, where the transport can (QUIC: qlog)
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Most flows at once; a client beyond them is told that the server is busy (default: the flows of one command)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub max_flows: Option<u32>,
    /// Most of these flows for one client (default: all)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub max_flows_per_peer: Option<u32>,
    /// Serve only clients that know this secret: env:NAME (variable) or file:PATH (first line)
    #[arg(long, value_name = "REFERENCE")]
    pub secret: Option<String>,
    /// Print events as lines of JSON
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Each flow's process under SCHED_FIFO, with its memory locked, on one CPU (sched(7))
    #[arg(long)]
    pub realtime: bool,
    /// End when stdin ends
    #[arg(long)]
    pub exit_with_stdin: bool,
}

/// `send`.
#[derive(Debug, Clone, Args)]
pub struct SendArgs {
    /// What carries the messages; several names with commas between them: flows side by side
    #[arg(long, value_name = "NAME[,NAME..]", default_value = "udp", help = transport_help())]
    pub transport: String,
    /// The same as --transport udp
    #[arg(short = 'u', long, conflicts_with = "transport")]
    pub udp: bool,
    /// The same as --transport sctp
    #[arg(long, hide = true, conflicts_with_all = ["transport", "udp"])]
    pub sctp: bool,
    /// Number of flows of each transport at once; each has the given rate, length or profile
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Names this command to the server where it has several flows.
    #[arg(skip)]
    pub command_id: Option<String>,
    /// Both directions at once: each flow up, and one like it down
    #[arg(long, conflicts_with = "reverse")]
    pub bidir: bool,
    /// Server: address for the data; the port is that of control
    #[arg(short = 'c', long, visible_alias = "client", value_name = "HOST[:PORT]")]
    pub to: Option<String>,
    /// Server's port for control, where --to names none
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Server's address for control, when it is another
    #[arg(long, value_name = "HOST[:PORT]")]
    pub control: Option<String>,
    /// Offered load: payload bits per second, 0 = as fast as possible (default: 1M, of streams 0)
    #[arg(short = 'b', long = "rate", visible_alias = "bitrate", value_name = "RATE", value_parser = offered_rate_bps)]
    pub rate: Option<u64>,
    /// What to send instead of messages of one size at a constant rate: a profile (JSON) or a trace (CSV or NDJSON of
    /// t_s and bytes); - reads one line of JSON from stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "length"])]
    pub profile: Option<PathBuf>,
    /// Seed of the profile's schedule: the same seed, profile and duration give the same schedule everywhere
    #[arg(long, value_name = "N", default_value_t = 1, requires = "profile", value_parser = clap::value_parser!(u64).range(..=units::LARGEST))]
    pub schedule_seed: u64,
    /// The profile that this process's starter read from stdin.
    #[arg(skip)]
    pub profile_on_stdin: Option<Vec<u8>>,
    /// Message size in bytes (default: 1440, of streams as fast as possible 128K)
    #[arg(short = 'l', long = "length", value_name = "SIZE", value_parser = units::size_bytes)]
    pub length: Option<u64>,
    /// Duration in s (default: 10)
    #[arg(short = 't', long = "time", value_name = "S", value_parser = units::duration_ns)]
    pub time: Option<u64>,
    /// End after so many payload bytes, in whole messages, and after -t at the latest
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with_all = ["blocks", "profile", "omit"], value_parser = units::size_bytes)]
    pub bytes: Option<u64>,
    /// End after so many messages, and after -t at the latest
    #[arg(short = 'k', long, visible_alias = "blockcount", value_name = "N", conflicts_with_all = ["profile", "omit"], value_parser = units::size_bytes)]
    pub blocks: Option<u64>,
    /// Seconds at the beginning, before -t, left out of all sums; their intervals are marked
    #[arg(short = 'O', long, value_name = "S", value_parser = units::duration_ns)]
    pub omit: Option<u64>,
    /// Interval of the running report in s
    #[arg(short = 'i', long = "interval", value_name = "S", default_value = "1", value_parser = units::duration_ns)]
    pub interval: u64,
    /// The server sends, this end receives
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Unit of printed rates: k, m, g or t for bits per second, K, M, G or T for bytes
    #[arg(short = 'f', long, value_name = "UNIT", default_value_t = Format::default())]
    pub format: Format,
    /// Also print the transport's options and counters
    #[arg(short = 'V', long)]
    pub verbose: bool,
    /// Somebody watches the flow.
    #[arg(skip)]
    pub live: bool,
    /// Local address for the data
    #[arg(short = 'B', long, value_name = "ADDR")]
    pub bind: Option<IpAddr>,
    /// Seed of the payload bytes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=units::LARGEST))]
    pub seed: u64,
    /// How messages are timed: absolute, hybrid (sleep, then spin), spin, so_txtime (needs fq) or burst:N
    #[arg(long, value_name = "MODE", default_value_t = Mode::Absolute)]
    pub pacing: Mode,
    /// Messages due within this many us leave together, at the end of that time
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=LONGEST_WINDOW_US))]
    pub window_us: u64,
    /// Messages that leave together go to the kernel in one call: as a GSO train, or sharing packets of a stream
    #[arg(long)]
    pub gso: bool,
    /// Hold the pacing certificate to a limit, e.g. max_error_p99_us=60 (may stand several times); exit code 4 when one is
    /// not kept
    #[arg(long = "pacing-limit", value_name = "NAME=NUMBER")]
    pub pacing_limit: Vec<Limit>,
    /// This end's process under SCHED_FIFO, with its memory locked, on one CPU (sched(7)); exit code 3 where that is not
    /// allowed
    #[arg(long)]
    pub realtime: bool,
    /// Report the sending end's congestion control once per interval
    #[arg(long)]
    pub traces: bool,
    /// Write this flow's packets, as this host sees them, to a pcapng file (needs libpcap and CAP_NET_RAW)
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Keep only the packets' headers, no payload
    #[arg(long, requires = "capture")]
    pub capture_headers: bool,
    /// Wait for a line "go" on stdin before the flow, and for "end" after it, sockets open
    #[arg(long)]
    pub hold: bool,
    /// Keep the sockets open and idle for this long after the flow, in s
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub linger_s: f64,
    /// Prove this secret to the server: env:NAME (variable) or file:PATH (first line)
    #[arg(long, value_name = "REFERENCE")]
    pub secret: Option<String>,
    /// auto: ends of the same boot share a clock; exchange: always measure the offset (time namespaces)
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "exchange"])]
    pub clock: String,
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "six")]
    pub four: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    pub six: bool,
    /// Write what happens to the connection to a file in this folder, where the transport can (QUIC: qlog)
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Print events and the report as lines of JSON
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Append what is printed to this file
    #[arg(long, value_name = "FILE")]
    pub logfile: Option<PathBuf>,
    /// iperf3's wish for what every report here has: both ends' figures.
    #[arg(long, hide = true)]
    pub get_server_output: bool,
    /// What was chosen about the transport
    #[command(flatten)]
    pub transport_options: TransportOptions,
}

impl SendArgs {
    /// What the pacing certificate is held to.
    pub fn pacing_limits(&self) -> Limits {
        self.pacing_limit.iter().cloned().collect()
    }

    /// The options given to the transport, by name.
    pub fn options(&self) -> Values {
        self.transport_options.chosen.clone()
    }
}

fn transport_help() -> String {
    let names = registry::names().collect::<Vec<_>>().join(", ");
    format!("What carries the messages (several with commas between them: side by side): {names}")
}

/// A rate in bit/s; 0 is one, too.
fn offered_rate_bps(text: &str) -> Result<u64, String> {
    if text.contains('/') {
        return Err("has a number of packets behind its rate: bursts are --pacing burst:N".into());
    }
    match units::rate_bps(text) {
        Err(units::UnitError::Zero) => Ok(0),
        rate => rate.map_err(|error| error.to_string()),
    }
}

/// A host with an optional port, as in `10.0.0.1`, `host:5301`, `fe80::1`, `[fe80::1]:5301`.
pub fn host_and_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let bad_port = |port: &str| format!("{port:?} in {text:?} is not a port");
    let bad_host = || format!("{text:?} names no host");
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(bad_host)?;
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err(bad_host()),
        }
    } else {
        match text.split_once(':') {
            // More than one colon: a bare IPv6 address.
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(bad_host());
    }
    let port = port.map(|port| port.parse().map_err(|_| bad_port(port))).transpose()?;
    Ok((host, port))
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
    fn hosts_come_with_and_without_ports() {
        assert_eq!(host_and_port("10.0.0.1"), Ok(("10.0.0.1", None)));
        assert_eq!(host_and_port("server:5301"), Ok(("server", Some(5301))));
        assert_eq!(host_and_port("fd77::1"), Ok(("fd77::1", None)));
        assert_eq!(host_and_port("[fd77::1]:80"), Ok(("fd77::1", Some(80))));
        assert_eq!(host_and_port("[fd77::1]"), Ok(("fd77::1", None)));
        for bad in ["", ":80", "server:", "server:99999", "[::1", "[::1]x", "[]:1"] {
            assert!(host_and_port(bad).is_err(), "{bad}");
        }
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
