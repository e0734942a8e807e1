// SPDX-License-Identifier: Apache-2.0
//! LowE, lowest energy: from small files to large, each chunk gets what its mean size asks for, as far as there is.
//!
//! Guner and Kosar (2018), algorithm 1, whose formulae are not printed; reconstructed from its text and from MinE of
//! the same group (SC 2015, algorithm 1):
//!
//! ```text
//! cc = max(1, min(ceil(BDP / mean), ceil((available + 1) / 2)))
//! p  = max(1, min(ceil(BDP / buffer), floor(available / cc)))
//! available = available - cc p
//! ```
//!
//! A chunk that finds no channel waits for the first one that is free. The other reading takes one chunk after the
//! other, each with all channels before it.

use super::shares::mean_bytes;
use crate::level::{Decided, Left, Level, Policy, Seen, Share};
use crate::path::Path;
use crate::settings::{Algorithm, Settings};

pub(super) struct Lowe {
    path: Path,
    most: u32,
    is_sequential: bool,
    bound_by_mean: bool,
    shares: Vec<Share>,
}

impl Lowe {
    pub(super) fn of(settings: &Settings, path: Path) -> Self {
        Self {
            path,
            most: settings.max_connections,
            is_sequential: settings.algorithm == Algorithm::LoweSequential,
            bound_by_mean: settings.bound_by_mean,
            shares: Vec::new(),
        }
    }

    fn share_of(&self, left: &Left, available: u32) -> Share {
        let mean = mean_bytes(left);
        let files = self.path.files_to_fill(mean).min((available + 1).div_ceil(2)).max(1);
        let bound =
            if self.bound_by_mean { self.path.parallelism(mean) } else { self.path.connections_to_fill() };
        let parallelism = bound.min(available / files).max(1);
        Share::new(files * parallelism, parallelism)
    }
}

impl Policy for Lowe {
    fn decide(&mut self, seen: &Seen) -> Decided {
        self.shares.resize(seen.left.len(), Share::default());
        for (share, left) in self.shares.iter_mut().zip(&seen.left) {
            if left.files == 0 {
                *share = Share::default();
            }
        }
        for (k, left) in seen.left.iter().enumerate() {
            let taken: u32 = self.shares.iter().map(|share| share.connections).sum();
            let available = self.most.saturating_sub(taken);
            let has_turn = !self.is_sequential || taken == 0;
            if left.files > 0 && self.shares[k].connections == 0 && available > 0 && has_turn {
                self.shares[k] = self.share_of(left, available);
            }
        }
        let level = Level { shares: self.shares.clone(), shared: false };
        let why = format!("BDP {} bytes, mean sizes, channels left", self.path.bdp_bytes());
        Decided { level, again_ns: None, why }
    }
}
