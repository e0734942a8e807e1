// SPDX-License-Identifier: Apache-2.0
//! Which files are treated alike: chunks of small, medium and large files.
//!
//! The paper says "based on the characteristics of the dataset and network". The cuts are those that the group's code
//! had when its SC 2015 paper appeared (a tenth of the BDP, and the BDP), and its rule for chunks that are too little
//! to be treated on their own: fewer than two files, or less than five times the BDP.

use serde::{Deserialize, Serialize};

use crate::path::Path;

/// Where sizes are cut, as shares of the BDP, and what is too little for a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cuts {
    /// Below this share of the BDP a file is small.
    pub small_bdp: f64,
    /// Below this share a file is medium.
    pub medium_bdp: f64,
    /// A chunk of fewer files joins the one that is nearest in mean size.
    pub least_files: usize,
    /// So does one of fewer bytes, in BDP.
    pub least_bdp: f64,
}

impl Default for Cuts {
    fn default() -> Self {
        Self { small_bdp: 0.1, medium_bdp: 1.0, least_files: 2, least_bdp: 5.0 }
    }
}

/// Files that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Their numbers, as they came.
    pub files: Vec<usize>,
    /// Their sizes together.
    pub bytes: u64,
}

impl Chunk {
    /// A chunk of files, whose number and size are given.
    pub fn of(files: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut chunk = Self { files: Vec::new(), bytes: 0 };
        for (file, size) in files {
            chunk.files.push(file);
            chunk.bytes += size;
        }
        chunk
    }

    fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.files.len().max(1) as f64
    }

    fn join(&mut self, other: Self) {
        self.files.extend(other.files);
        self.files.sort_unstable();
        self.bytes += other.bytes;
    }
}

/// Chunks of files, from the one of small files to the one of large files; none of them is empty.
pub fn partition(files: &[(usize, u64)], path: &Path, cuts: &Cuts) -> Vec<Chunk> {
    let bdp = path.bdp_bytes() as f64;
    let class = |size: u64| match size as f64 {
        size if size < bdp * cuts.small_bdp => 0,
        size if size < bdp * cuts.medium_bdp => 1,
        _ => 2,
    };
    let of_class = |wanted| Chunk::of(files.iter().copied().filter(|(_, size)| class(*size) == wanted));
    let mut chunks: Vec<Chunk> = (0..3).map(of_class).filter(|chunk| !chunk.files.is_empty()).collect();
    let too_little =
        |chunk: &Chunk| chunk.files.len() < cuts.least_files || (chunk.bytes as f64) < bdp * cuts.least_bdp;
    while chunks.len() > 1 {
        let Some(at) = chunks.iter().position(too_little) else { break };
        let chunk = chunks.remove(at);
        let mean = chunk.mean_bytes();
        let apart = |other: &Chunk| (other.mean_bytes() - mean).abs();
        let nearest = (0..chunks.len()).min_by(|a, b| apart(&chunks[*a]).total_cmp(&apart(&chunks[*b])));
        chunks[nearest.unwrap_or(0)].join(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYDNEY: Path =
        Path { bandwidth_bytes_per_s: 12_500_000, rtt_ns: 290_000_000, buffer_bytes: 1_048_576 };
    const CHAMELEON: Path =
        Path { bandwidth_bytes_per_s: 16_250_000, rtt_ns: 59_000_000, buffer_bytes: 1_048_576 };

    fn numbered(groups: &[(usize, u64)]) -> Vec<(usize, u64)> {
        groups.iter().flat_map(|(count, size)| std::iter::repeat_n(*size, *count)).enumerate().collect()
    }

    fn counts(groups: &[(usize, u64)], path: &Path) -> Vec<usize> {
        let chunks = partition(&numbered(groups), path, &Cuts::default());
        chunks.iter().map(|chunk| chunk.files.len()).collect()
    }

    #[test]
    fn the_mixed_set_of_the_paper_has_three_classes_on_a_long_path() {
        let mixed = [(1500, 112 << 10), (60, (27 << 20) / 10), (4, 152 << 20)];
        assert_eq!(counts(&mixed, &SYDNEY), [1500, 60, 4]);
        // Over 59 ms html is medium, and images are large: two classes.
        assert_eq!(counts(&mixed, &CHAMELEON), [1500, 64]);
    }

    #[test]
    fn what_is_too_little_joins_the_nearest_and_a_set_of_one_kind_stays_whole() {
        assert_eq!(counts(&[(1500, 112 << 10), (1, 152 << 20)], &SYDNEY), [1501]);
        assert_eq!(counts(&[(1, 1000)], &SYDNEY), [1]);
        assert_eq!(counts(&[(10, 1000), (100, 2 << 20), (10, 100 << 20)], &SYDNEY), [110, 10]);
        assert_eq!(counts(&[], &SYDNEY), Vec::<usize>::new());
    }
}
