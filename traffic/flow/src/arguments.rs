// SPDX-License-Identifier: Apache-2.0
//! What `serve` and `send` are told on the command line.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;
use netjoule_transport::Values;

use crate::certificate::{Limit, Limits};
use crate::pacing::{Mode, LONGEST_WINDOW_US};
use crate::registry;
use crate::transport_options::TransportOptions;
use netjoule_measure::units::{self, Format};

/// Default port of the control channel.
pub const PORT: u16 = 5301;
/// Most flows that a server has on at once, and that a command may ask for.
pub(crate) const MOST_FLOWS: usize = 64;

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
