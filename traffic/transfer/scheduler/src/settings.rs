// SPDX-License-Identifier: Apache-2.0
//! What a transfer is asked to do: algorithm, limits, objective.

use serde::{Deserialize, Serialize};

use crate::objective::Objective;
use crate::partition::Cuts;
use crate::path::Path;

/// How connections are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// A level that is given: so many files at once, each over so many connections.
    Fixed,
    /// Lowest energy: all chunks at once, each with what its mean size asks for.
    Lowe,
    /// The same, one chunk after the other.
    LoweSequential,
    /// Highest throughput: channels in turn to the chunks of large, medium and small files.
    Hat,
    /// Energy-aware high throughput: probes levels and stays at the most efficient.
    Eht,
    /// Ours: probes by doubling, refines, watches.
    Auto,
}

/// Of one transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How connections are chosen.
    pub algorithm: Algorithm,
    /// Files at once, of [`Algorithm::Fixed`].
    pub concurrency: u32,
    /// Connections of one file, of [`Algorithm::Fixed`].
    pub parallelism: u32,
    /// Requests at once on one connection (HTTP/2 and /3); one where a connection carries one at a time.
    pub streams: u32,
    /// Connections, at most.
    pub max_connections: u32,
    /// What is known of the path before; else it is measured in band.
    pub path: Option<Path>,
    /// What is to be best, for [`Algorithm::Eht`] and [`Algorithm::Auto`].
    pub objective: Objective,
    /// How long a level is probed, nanoseconds.
    pub interval_ns: u64,
    /// Where sizes are cut.
    pub cuts: Cuts,
    /// Whether LowE's parallelism is at most ceil(mean / buffer), too: MinE's bound, which the paper does not name.
    pub bound_by_mean: bool,
    /// No part of a file is smaller, bytes.
    pub least_part_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            concurrency: 1,
            parallelism: 1,
            streams: 1,
            max_connections: 16,
            path: None,
            objective: Objective::default(),
            interval_ns: 5_000_000_000,
            cuts: Cuts::default(),
            bound_by_mean: false,
            least_part_bytes: 256 << 10,
        }
    }
}

/// A setting that cannot be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{field} is {found}: {expected}")]
pub struct SettingsError {
    /// Its name.
    pub field: &'static str,
    /// What it is.
    pub found: String,
    /// What it may be.
    pub expected: String,
}

impl Settings {
    /// Refuses what cannot be.
    pub fn check(&self) -> Result<(), SettingsError> {
        let wrong = |field, found: String, expected: &str| {
            Err(SettingsError { field, found, expected: expected.to_owned() })
        };
        for (field, count) in [
            ("concurrency", self.concurrency),
            ("parallelism", self.parallelism),
            ("streams", self.streams),
            ("max_connections", self.max_connections),
        ] {
            if count == 0 || count > 10_000 {
                return wrong(field, count.to_string(), "1 to 10000 are possible");
            }
        }
        let connections = self.concurrency.saturating_mul(self.parallelism);
        if self.algorithm == Algorithm::Fixed && connections > self.max_connections {
            let expected =
                format!("with parallelism {} at most {} connections", self.parallelism, self.max_connections);
            return wrong("concurrency", self.concurrency.to_string(), &expected);
        }
        if self.interval_ns < 1_000_000 {
            return wrong("interval_ns", self.interval_ns.to_string(), "a millisecond is the least");
        }
        if self.least_part_bytes == 0 {
            return wrong("least_part_bytes", "0".to_owned(), "a byte is the least");
        }
        let cuts = &self.cuts;
        if !(cuts.small_bdp > 0.0 && cuts.small_bdp <= cuts.medium_bdp) {
            return wrong(
                "cuts",
                format!("{} and {}", cuts.small_bdp, cuts.medium_bdp),
                "small comes before medium",
            );
        }
        Ok(())
    }
}
