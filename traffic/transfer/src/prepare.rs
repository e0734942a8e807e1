// SPDX-License-Identifier: Apache-2.0
//! From a command line to a transfer that only has to begin.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_scheduler::objective::Objective;
use netjoule_scheduler::path;
use netjoule_scheduler::scheduler::Scheduler;
use netjoule_scheduler::settings::Settings;

use crate::cli::{GetArgs, To};
use crate::fetch::Transfer;
use crate::job::{Item, Job};
use crate::network::options::{Http, Options};
use crate::network::socket::PathFacts;
use crate::storage::{Ring, Storage};

/// Requests at once on a connection of HTTP/2 or /3 where nothing is said.
const STREAMS: u32 = 8;

/// What is wrong with the command line is told here, before anything is sent.
pub(crate) fn transfer(args: &GetArgs, items: Vec<Item>) -> Outcome<Transfer> {
    if !(1 << 10..=1 << 20).contains(&args.request_bytes) {
        return Code::Usage.fail("--request-bytes is from 1K to 1M");
    }
    let options = options(args, items.iter().any(|item| item.url.scheme() == "https"))?;
    let streams = if options.http == Http::One { 1 } else { args.streams.unwrap_or(STREAMS) };
    let storage = storage(args)?;
    let jobs: Vec<Job> = items.into_iter().map(|item| Job::new(item, &storage)).collect();
    let sizes: Vec<Option<u64>> = jobs.iter().map(|job| job.item.size).collect();
    let scheduler = Scheduler::new(&settings(args, streams), &sizes);
    let mut scheduler = scheduler.map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    for (file, job) in jobs.iter().enumerate() {
        if let Some((size, there)) = job.resume() {
            scheduler.resume(file, size, &there);
        } else if let Some(size) = job.item.size.filter(|_| !job.may_be_divided(&storage)) {
            scheduler.learn(file, size, false);
        }
    }
    Ok(Transfer {
        jobs,
        storage,
        scheduler: RefCell::new(scheduler),
        options: Rc::new(options),
        pools: RefCell::new(BTreeMap::new()),
        streams,
        most_connections: Cell::new(1),
        block_bytes: args.request_bytes as usize,
        silence: seconds(args.silence_s, "--silence-s")?,
        bytes: Cell::new(0),
        retries: Cell::new(0),
    })
}

fn options(args: &GetArgs, has_tls: bool) -> Outcome<Options> {
    // HTTP/2 has no larger windows (RFC 9113, section 6.9.1).
    let window_bytes = args.window_bytes.map(i32::try_from).transpose();
    let window_bytes = window_bytes.map_err(|_| Failure::new(Code::Usage, "--window-bytes is below 2G"))?;
    let window_bytes = window_bytes.map(i32::unsigned_abs);
    // Without TLS nothing settles /2.
    let http = if args.http == Http::Auto && !has_tls { Http::One } else { args.http };
    let protocols: &'static [&'static [u8]] = match http {
        Http::Auto => &[b"h2", b"http/1.1"],
        Http::One => &[b"http/1.1"],
        Http::Two => &[b"h2"],
        Http::Three => &[],
    };
    let options = Options {
        http,
        protocols,
        judge: OnceCell::new(),
        tls: OnceCell::new(),
        ca_file: args.ca_file.clone(),
        window_bytes,
        patience: seconds(args.retry_s, "--retry-s")?,
        facts: Rc::new(PathFacts::default()),
    };
    if has_tls {
        // What is wrong with it is to be told now.
        options.judge()?;
    }
    Ok(options)
}

fn storage(args: &GetArgs) -> Outcome<Storage> {
    match args.to {
        None => {
            let lacks = |error| {
                Failure::new(Code::HostLacks, format!("make the folder {}: {error}", args.out.display()))
            };
            std::fs::create_dir_all(&args.out).map_err(lacks)?;
            Ok(Storage::Folder(args.out.clone()))
        }
        Some(To::Ring) => {
            let lacks =
                |error| Failure::new(Code::HostLacks, format!("no ring in memory (memfd_create): {error}"));
            Ring::new().map(Storage::Ring).map_err(lacks)
        }
        Some(To::Nowhere) => Ok(Storage::Nowhere),
    }
}

fn settings(args: &GetArgs, streams: u32) -> Settings {
    let path = args.bandwidth_mbps.zip(args.rtt_ms).map(|(rate_mbps, rtt_ms)| path::Path {
        bandwidth_bytes_per_s: (rate_mbps * 125_000.0) as u64,
        rtt_ns: (rtt_ms * 1e6) as u64,
        buffer_bytes: buffer_bytes(args.window_bytes),
    });
    Settings {
        algorithm: args.algorithm,
        concurrency: args.concurrency,
        parallelism: args.parallelism,
        streams,
        max_connections: args.max_connections,
        path,
        objective: objective(args),
        interval_ns: (args.interval_s * 1e9) as u64,
        ..Settings::default()
    }
}

/// What is to be best.
pub(crate) fn objective(args: &GetArgs) -> Objective {
    args.budget_j.map_or(args.objective, |budget_j| Objective::Battery { budget_j })
}

/// Receive buffer of one connection: twice the cap of its window, or else the largest that the kernel gives; it announces
/// about half of it.
pub(crate) fn buffer_bytes(window_bytes: Option<u64>) -> u64 {
    let largest = || {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").ok()?;
        text.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    window_bytes.map_or_else(|| largest().unwrap_or(6 << 20), |window| window.saturating_mul(2)).max(1)
}

fn seconds(value: f64, flag: &str) -> Outcome<Duration> {
    let wrong = |_| Failure::new(Code::Usage, format!("{flag} {value} is no time in seconds"));
    Duration::try_from_secs_f64(value).map_err(wrong)
}
