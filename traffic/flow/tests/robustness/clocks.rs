// SPDX-License-Identifier: Apache-2.0
//! Steps of the wall clock (CLOCK_REALTIME) must not matter: everything is measured on CLOCK_MONOTONIC.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{assert_honest, not_run, Client, Server, BINARY, TRANSPORTS};

/// The only sources that may name the wall clock: what the kernel stamps and takes in its time is moved from and to
/// CLOCK_MONOTONIC there.
const ALLOWED: [&str; 1] = ["protocols/sockets/src/"];
/// What reads the wall clock.
const WALL_CLOCK: [&str; 6] = [
    "CLOCK_REALTIME",
    "SystemTime",
    "gettimeofday",
    "UNIX_EPOCH.elapsed",
    "CLOCK_TAI",
    "TFD_TIMER_CANCEL_ON_SET",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("target") && !entry.ends_with("fuzz") {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

#[test]
fn no_source_of_the_engine_reads_the_wall_clock_but_those_that_talk_to_the_kernel_about_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = Vec::new();
    let crates = ["protocols", "traffic"].map(|part| std::fs::read_dir(root.join(part)).unwrap());
    for room in crates.into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if room.join("src").is_dir() {
            sources(&room.join("src"), &mut files);
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let reads = WALL_CLOCK.iter().find(|word| text.contains(**word));
        assert!(
            reads.is_none() || ALLOWED.iter().any(|place| name.starts_with(place)),
            "{name} names {}",
            reads.unwrap_or(&"")
        );
    }
}

/// A library that has the wall clock step by hours with every reading, for LD_PRELOAD; it goes when this does.
struct SteppingClock(PathBuf);

impl SteppingClock {
    fn build() -> Self {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/robustness/shim/stepping_clock.rs");
        let library = std::env::temp_dir().join(format!("netjoule-stepping-clock-{}.so", std::process::id()));
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(compiler)
            .args(["--edition", "2021", "--crate-type", "cdylib", "-O", source, "-o"])
            .arg(&library)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(library)
    }

    fn under(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", &self.0);
        command
    }
}

impl Drop for SteppingClock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn flows_do_not_notice_a_wall_clock_that_steps_by_hours() {
    let clock = SteppingClock::build();
    let now_s = || {
        let output = clock.under("date").arg("+%s").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let true_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((now_s() - true_s).abs() > 3_000, "the library is not loaded");
    let server = Server::start_by(clock.under(BINARY), "127.0.0.1", &[]);
    for transport in TRANSPORTS {
        for reverse in [&[][..], &["-R"]] {
            let args =
                ["--transport", transport, "--to", &server.control, "-b", "2M", "-l", "1000", "-t", "0.4"];
            let client = Client::start_by(clock.under(BINARY), &[&args[..], reverse].concat());
            let finished = client.finish();
            assert_eq!(finished.code, 0, "{transport} {reverse:?}: {}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            let delay_ms = |name: &str| report["receiver"]["one_way_delay_ms"][name].as_f64().unwrap();
            assert!(
                delay_ms("min") >= 0.0 && delay_ms("max") < 60_000.0,
                "{transport} {reverse:?}: {report}"
            );
            let jitter_ms = report["receiver"]["jitter_ms"].as_f64().unwrap();
            assert!(jitter_ms < 60_000.0, "{transport} {reverse:?}: jitter {jitter_ms} ms");
        }
    }
}

#[test]
fn ends_with_different_monotonic_clocks_find_their_difference() {
    const AHEAD_S: i64 = 1_000_000;
    let ways: [&[&str]; 2] = [&["--time"], &["-Ur", "--time"]];
    let allowed = |way: &&&[&str]| {
        let probe = Command::new("unshare").args(**way).args(["--monotonic", "1", "true"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(allowed) else {
        let test = "clocks::ends_with_different_monotonic_clocks_find_their_difference";
        let why = "no time namespaces are allowed here; run as root or allow unprivileged user namespaces";
        return not_run(test, why, Path::new("/proc/self/ns/time").exists());
    };
    let mut ahead = Command::new("unshare");
    ahead.args(*way).args(["--monotonic", &AHEAD_S.to_string(), BINARY]);
    let server = Server::start_by(ahead, "127.0.0.1", &[]);
    for reverse in [&[][..], &["-R"]] {
        let args = ["--to", &server.control, "-b", "2M", "-l", "500", "-t", "0.3", "--clock", "exchange"];
        let finished = Client::start(&[&args[..], reverse].concat()).finish();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let report = finished.report();
        assert_honest(report);
        let ns = |name: &str| report["clock_offset"][name].as_i64().unwrap();
        assert!(
            (ns("offset_ns") - AHEAD_S * 1_000_000_000).abs() <= ns("residual_ns"),
            "{}",
            report["clock_offset"]
        );
        let delay_ms = report["receiver"]["one_way_delay_ms"]["p50"].as_f64().unwrap();
        assert!(delay_ms.abs() < 60_000.0, "{delay_ms} ms");
        // Of one boot the ends seem to have one clock.
        let finished = Client::start(&[&args[..8], &["--clock", "auto"], reverse].concat()).finish();
        let receiver = &finished.report()["receiver"];
        assert_honest(finished.report());
        assert_eq!(receiver["one_way_delay_ms"], serde_json::Value::Null, "{receiver}");
        assert_eq!(receiver["one_way_delay_reason"], "clocks_not_comparable");
        assert!(receiver["pdv_ms"]["max"].as_f64().unwrap() < 60_000.0, "a difference of clocks cancels out");
    }
}
