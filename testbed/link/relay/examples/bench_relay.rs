// SPDX-License-Identifier: Apache-2.0
//! How close does the running relay come to its model on this machine?
//!
//! For 64, 512 and 1470 bytes, with A-MPDU (64 subframes) and without, at 216 Mb/s, and for the capped
//! preset: a UDP sender saturates the relay, a receiver counts for some seconds. One JSON line per case. Run by
//! `testbed/link/relay/bench_relay.sh`, which builds both programs and enters a user namespace when needed.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use netjoule_link::clock::now_ns;
use netjoule_link::config::Config;
use netjoule_link::error::LinkError;
use netjoule_link::netns::Netns;
use netjoule_link_model::saturation::{saturation, Saturation};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::{json, Value};

/// Preset, subframe limit, payload in bytes.
type Case = (&'static str, u32, u32);
const CASES: [Case; 7] = [
    ("ideal-216", 64, 64),
    ("ideal-216", 64, 512),
    ("ideal-216", 64, 1470),
    ("ideal-216", 1, 64),
    ("ideal-216", 1, 512),
    ("ideal-216", 1, 1470),
    ("seed-like", 32, 64),
];
/// The sender offers this much of the model's saturation.
const OVERLOAD: f64 = 1.25;
/// Until queues are full and caches warm.
const SETTLE_NS: u64 = 500_000_000;
/// The sender wakes this often.
const TICK_NS: u64 = 500_000;

/// Measures the running relay against its model.
#[derive(Parser)]
struct Flags {
    /// How packets get in and out: auto, tun, packet.
    #[arg(long, default_value = "auto")]
    io: String,
    /// Length of each measurement, s.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// The relay's program.
    #[arg(long)]
    link: Option<PathBuf>,
}

fn main() {
    let flags = Flags::parse();
    for case in CASES {
        match measure(&flags, case) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                eprintln!("bench_relay: {error}");
                std::process::exit(i32::from(error.exit_code()));
            }
        }
    }
}

fn measure(flags: &Flags, case: Case) -> Result<Value, LinkError> {
    let (preset, subframe_limit, payload_bytes) = case;
    let (client, server) = (Netns::create()?, Netns::create()?);
    let document = config(flags, case, &client, &server);
    let station = &Config::parse(&document.to_string())?.stations[0];
    let model = saturation(&station.params.framing, payload_bytes, station.radio.packet_rate_cap_pps);
    let file = std::env::temp_dir().join(format!("netjoule-bench-{}.json", std::process::id()));
    std::fs::write(&file, document.to_string()).map_err(failed)?;
    let mut relay = start(flags, &file)?;
    let mut output = BufReader::new(relay.stdout.take().ok_or_else(|| failed("the relay has no output"))?);
    let ready = next_line(&mut output);
    std::fs::remove_file(&file).map_err(failed)?;
    let ready = ready?;
    let measured_pps = saturate(flags, &client, &server, &model, payload_bytes)?;
    drop(relay.stdin.take());
    let last = next_line(&mut output)?;
    relay.wait().map_err(failed)?;
    let measured_mbps = measured_pps * f64::from(payload_bytes) * 8e-6;
    let rounded = |value: f64, digits: i32| (value * 10f64.powi(digits)).round() / 10f64.powi(digits);
    Ok(json!({
        "case": format!("{preset}, {payload_bytes} B, A-MPDU of at most {subframe_limit}"),
        "io": ready["io"], "model_mbps": rounded(model.goodput_mbps, 2), "measured_mbps": rounded(measured_mbps, 2),
        "ratio": rounded(measured_mbps / model.goodput_mbps, 3), "model_kpps": rounded(model.packets_per_s / 1e3, 2),
        "measured_kpps": rounded(measured_pps / 1e3, 2),
        "relay_cpu_share": rounded(number(&last["cpu_s"]) / number(&last["duration_s"]), 3),
        "late_mean_us": rounded(number(&last["late_mean_us"]), 1), "kernel_drops": last["kernel_drops"],
    }))
}

fn config(flags: &Flags, (preset, subframe_limit, _): Case, client: &Netns, server: &Netns) -> Value {
    let socket = std::env::temp_dir().join(format!("netjoule-bench-{}.sock", std::process::id()));
    json!({
        "schema_version": 2, "preset": preset, "overrides": {"subframe_limit": subframe_limit}, "seed": 1,
        "io": flags.io, "stats_socket": socket,
        "stations": [{"name": "client", "netns": client.path(), "ifname": "wlan0", "addresses": ["10.77.0.2/24"]}],
        "wired": [{"name": "server", "netns": server.path(), "ifname": "eth0", "addresses": ["10.77.0.1/24"]}],
    })
}

fn start(flags: &Flags, config_file: &Path) -> Result<Child, LinkError> {
    let program = match &flags.link {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(failed)?.with_file_name("../netjoule-link"),
    };
    Command::new(&program)
        .args(["run", "--config"])
        .arg(config_file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot run {}: {error}", program.display())))
}

/// Packets per second that arrive while the sender offers more than the link can take.
fn saturate(
    flags: &Flags,
    client: &Netns,
    server: &Netns,
    model: &Saturation,
    payload_bytes: u32,
) -> Result<f64, LinkError> {
    let receiver = server.run(|| UdpSocket::bind("10.77.0.1:0").map_err(failed))?;
    let sender = client.run(|| UdpSocket::bind("10.77.0.2:0").map_err(failed))?;
    // Best effort: the receiver's own losses would be taken for the relay's.
    let _ = setsockopt(&receiver, sockopt::RcvBufForce, &8_000_000);
    sender.connect(receiver.local_addr().map_err(failed)?).map_err(failed)?;
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).map_err(failed)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| blast(&sender, model.packets_per_s * OVERLOAD, payload_bytes, &stop));
        let counted = count(&receiver, (flags.seconds * 1e9) as u64);
        stop.store(true, Ordering::Relaxed);
        counted
    })
}

/// Sends at `pps` until told to stop, in ticks of absolute time.
fn blast(sender: &UdpSocket, pps: f64, payload_bytes: u32, stop: &AtomicBool) {
    let message = vec![0u8; payload_bytes as usize];
    let (start_ns, mut sent) = (now_ns(), 0u64);
    let mut due_ns = start_ns;
    while !stop.load(Ordering::Relaxed) {
        due_ns += TICK_NS;
        let due = ((due_ns - start_ns) as f64 / 1e9 * pps) as u64;
        // A full queue is what saturation is about.
        (sent..due).for_each(|_| drop(sender.send(&message)));
        sent = due;
        // Not thread::sleep in the library; here it paces, and a late tick is made up by the next.
        #[allow(clippy::disallowed_methods)]
        std::thread::sleep(std::time::Duration::from_nanos(due_ns.saturating_sub(now_ns())));
    }
}

fn count(receiver: &UdpSocket, length_ns: u64) -> Result<f64, LinkError> {
    let mut buffer = [0u8; 2048];
    let begin_ns = now_ns() + SETTLE_NS;
    while now_ns() < begin_ns {
        receiver.recv(&mut buffer).map_err(failed)?;
    }
    let (begin_ns, mut packets) = (now_ns(), 0u64);
    while now_ns() < begin_ns + length_ns {
        receiver.recv(&mut buffer).map_err(failed)?;
        packets += 1;
    }
    Ok(packets as f64 * 1e9 / (now_ns() - begin_ns) as f64)
}

fn next_line(output: &mut impl BufRead) -> Result<Value, LinkError> {
    let mut line = String::new();
    output.read_line(&mut line).map_err(failed)?;
    serde_json::from_str(&line)
        .map_err(|_| failed("the relay did not start or ended early; see its message above"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn failed(error: impl std::fmt::Display) -> LinkError {
    LinkError::Failed(error.to_string())
}
