// SPDX-License-Identifier: Apache-2.0
//! `netjoule-transfer get`: prepares a transfer, has it driven to its end, and tells what it was.

use std::rc::Rc;

use netjoule_measure::failure::{Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::{self, Output};
use tokio::task::LocalSet;

use crate::cli::{GetArgs, To};
use crate::drive::{Done, Energy, KnownPath, Run};
use crate::job::Job;
use crate::network::options::Server;
use crate::orders;
use crate::prepare;
use crate::progress::Progress;
use crate::report::{FileFailure, Program, Report, Settings};
use crate::source;

/// Descriptors besides those of connections and files.
const OTHER_DESCRIPTORS: u64 = 64;

/// Downloads; the exit code.
pub(crate) fn run(args: &GetArgs, output: Output) -> Outcome<u8> {
    let items = source::items(args)?;
    let transfer = Rc::new(prepare::transfer(args, items)?);
    let most = u64::from(args.max_connections) * (1 + u64::from(transfer.streams));
    host::raise_file_limit(most + OTHER_DESCRIPTORS)
        .map_err(Failure::system("raise the limit of open files"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::system("start the event loop"))?;
    if args.hold {
        orders::hold()?;
    }
    let energy = orders::energy_lines(args.energy_stdin);
    let known = KnownPath { rate_mbps: args.bandwidth_mbps, rtt_ms: args.rtt_ms };
    let energy = Energy { lines: energy, model: args.power_model };
    let run = Run::new(transfer, known, energy, Progress::new(!args.json));
    let report = report(LocalSet::new().block_on(&runtime, run.work())?, args);
    if let Some(path) = &args.report {
        let written = std::fs::write(path, text(&report) + "\n");
        written.map_err(Failure::system(format!("writing the report to {}", path.display())))?;
    }
    if args.json {
        output::write(&text(&report))?;
    }
    output.say(|| report.summary())?;
    report.complaints().iter().for_each(|line| output.complain(line));
    Ok(report.exit())
}

fn text(report: &Report) -> String {
    serde_json::to_string(report).expect("a report always serialises")
}

fn report(done: Done, args: &GetArgs) -> Report {
    let transfer = &done.transfer;
    let failures: Vec<FileFailure> = transfer.jobs.iter().filter_map(failure).collect();
    let pools = transfer.pools.borrow();
    let server = pools.values().next().map_or_else(Server::default, |pool| pool.server.borrow().clone());
    let facts = &transfer.options.facts;
    // HTTP/2 has windows of its own above TCP's.
    let cap = args.window_bytes.filter(|_| server.http_version == Some("2")).unwrap_or(u64::MAX);
    Report {
        schema_version: 1,
        program: Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
        settings: settings(&done, args),
        server,
        start_ns: done.pace.start_ns,
        end_ns: done.pace.end_ns(),
        files_n: transfer.jobs.len(),
        files_verified_n: transfer.jobs.len() - failures.len(),
        bytes: transfer.bytes.get(),
        connections_opened_n: pools.values().map(|pool| pool.opened.get()).sum(),
        retries_n: transfer.retries.get(),
        window_effective_bytes: Some(facts.window_bytes.get().min(cap)).filter(|bytes| *bytes > 0),
        rtt_ms: facts.rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
        cpu_s: done.cpu_ns as f64 * 1e-9,
        failures,
        records: transfer.scheduler.borrow().records().cloned().collect(),
        intervals: done.pace.into_intervals(),
    }
}

fn failure(job: &Job) -> Option<FileFailure> {
    match &*job.outcome.borrow() {
        Some(Err(fault)) => Some(FileFailure { file: job.item.name.clone(), fault: fault.clone() }),
        _ => None,
    }
}

fn settings(done: &Done, args: &GetArgs) -> Settings {
    Settings {
        http: done.transfer.options.http,
        tls: done.transfer.jobs.iter().any(|job| job.item.url.scheme() == "https"),
        algorithm: args.algorithm,
        objective: prepare::objective(args),
        concurrency: args.concurrency,
        parallelism: args.parallelism,
        streams: done.transfer.streams,
        max_connections: args.max_connections,
        interval_s: args.interval_s,
        bandwidth_mbps: args.bandwidth_mbps,
        rtt_ms: args.rtt_ms,
        request_bytes: args.request_bytes,
        window_bytes: args.window_bytes,
        storage: match args.to {
            None => "files",
            Some(To::Ring) => "ring",
            Some(To::Nowhere) => "nowhere",
        },
    }
}
