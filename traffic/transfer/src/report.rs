// SPDX-License-Identifier: Apache-2.0
//! What a transfer was: for programs as one document, for people as a few lines.

use netjoule_scheduler::log::Record;
use netjoule_scheduler::objective::Objective;
use netjoule_scheduler::settings::Algorithm;
use serde::Serialize;

use crate::fault::Fault;
use crate::network::options::{Http, Server};

/// Failures that people are told of one by one.
const MOST_TOLD: usize = 10;

/// The document.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) schema_version: u32,
    pub(crate) program: Program,
    pub(crate) settings: Settings,
    /// Of the first server.
    pub(crate) server: Server,
    /// From the first request on, `CLOCK_MONOTONIC`.
    pub(crate) start_ns: i64,
    /// When the last file was verified.
    pub(crate) end_ns: i64,
    pub(crate) files_n: usize,
    pub(crate) files_verified_n: usize,
    /// Of files; what came twice counts twice.
    pub(crate) bytes: u64,
    pub(crate) connections_opened_n: u64,
    pub(crate) retries_n: u64,
    /// Most that a connection could have in flight.
    pub(crate) window_effective_bytes: Option<u64>,
    /// Shortest round trip.
    pub(crate) rtt_ms: Option<f64>,
    /// Of the whole process.
    pub(crate) cpu_s: f64,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) failures: Vec<FileFailure>,
    /// From what the scheduler decided what.
    pub(crate) records: Vec<Record>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// What was asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) http: Http,
    pub(crate) tls: bool,
    pub(crate) algorithm: Algorithm,
    pub(crate) objective: Objective,
    pub(crate) concurrency: u32,
    pub(crate) parallelism: u32,
    pub(crate) streams: u32,
    pub(crate) max_connections: u32,
    pub(crate) interval_s: f64,
    pub(crate) bandwidth_mbps: Option<f64>,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) request_bytes: u64,
    pub(crate) window_bytes: Option<u64>,
    /// files, ring or nowhere.
    pub(crate) storage: &'static str,
}

/// Bytes of files that came within a time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Interval {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) bytes: u64,
}

/// A file that did not come.
#[derive(Debug, Serialize)]
pub(crate) struct FileFailure {
    pub(crate) file: String,
    #[serde(flatten)]
    pub(crate) fault: Fault,
}

impl Report {
    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        let time_s = (self.end_ns - self.start_ns) as f64 * 1e-9;
        let megabytes = self.bytes as f64 * 1e-6;
        let rate_mbps = megabytes * 8.0 / time_s.max(1e-9);
        format!(
            "{} of {} files verified, {megabytes:.2} MB in {time_s:.2} s: {rate_mbps:.2} Mb/s \
             ({} connections, {} requests made again, {:.2} s CPU)",
            self.files_verified_n, self.files_n, self.connections_opened_n, self.retries_n, self.cpu_s
        )
    }

    /// What went wrong, a line each; the same sentence once.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut lines: Vec<(&str, usize)> = Vec::new();
        for failure in &self.failures {
            match lines.iter_mut().find(|(sentence, _)| *sentence == failure.fault.sentence) {
                Some((_, times)) => *times += 1,
                None => lines.push((&failure.fault.sentence, 1)),
            }
        }
        let more = lines.len().saturating_sub(MOST_TOLD);
        let told = lines.iter().take(MOST_TOLD).map(|(sentence, times)| match times {
            1 => (*sentence).to_owned(),
            times => format!("{sentence} ({times} files)"),
        });
        let rest = (more > 0).then(|| format!("and {more} more: see --json or --report"));
        told.chain(rest).collect()
    }

    /// Exit code: of the gravest failure.
    pub(crate) fn exit(&self) -> u8 {
        self.failures.iter().map(|failure| failure.fault.exit()).max().unwrap_or(0)
    }
}
