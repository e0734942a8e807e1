// SPDX-License-Identifier: Apache-2.0
//! HAT, highest throughput: channels in turn to the chunks of large, medium and small files.
//!
//! Guner and Kosar (2018), algorithm 2. With `i = 3 m + r` channels large files get `m + [r >= 1]`, medium ones
//! `m + [r >= 2]`, small ones `m`. A chunk takes no more than its files can use; what is over goes on to the others,
//! and the channels of a chunk that has ended are divided again. A channel is a connection here, so a file over p of
//! them counts p times, and the sum never passes the limit.

use super::shares::{in_turn, mean_bytes, share};
use crate::level::{Decided, Level, Policy, Seen};
use crate::path::Path;

pub(super) struct Hat {
    path: Path,
    most: u32,
}

impl Hat {
    pub(super) fn new(path: Path, most: u32) -> Self {
        Self { path, most }
    }
}

impl Policy for Hat {
    fn decide(&mut self, seen: &Seen) -> Decided {
        let large_first = || seen.left.iter().rev();
        let uses: Vec<u32> = large_first()
            .map(|left| {
                let files = u32::try_from(left.files).unwrap_or(u32::MAX);
                files.saturating_mul(self.path.parallelism(mean_bytes(left)))
            })
            .collect();
        let given = in_turn(self.most, &uses);
        let shares = large_first().zip(given).map(|(left, count)| share(count, &self.path, mean_bytes(left)));
        let mut shares: Vec<_> = shares.collect();
        shares.reverse();
        let level = Level { shares, shared: false };
        Decided { level, again_ns: None, why: format!("{} channels in turn, large files first", self.most) }
    }
}
