// SPDX-License-Identifier: Apache-2.0
//! What a path holds, and the numbers of the GridFTP line of work that follow from it.
//!
//! Sources: Alan, Arslan, Kosar, "Power-aware data scheduling algorithms" (SC 2015), algorithm 1; the public code of
//! that group; Guner and Kosar, "Energy-Efficient Mobile Network I/O" (2018), section IV. Units are bytes and seconds
//! throughout: that code multiplies by an RTT which its own manual gives in milliseconds.

use serde::{Deserialize, Serialize};

/// A path as the algorithms see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Bytes a second.
    pub bandwidth_bytes_per_s: u64,
    /// Round trip without queues, nanoseconds.
    pub rtt_ns: u64,
    /// Receive buffer of one TCP connection, bytes; the kernel announces about half of it as the window.
    pub buffer_bytes: u64,
}

/// The path by which files are divided into chunks until the real one is measured: 100 Mb/s and 100 ms.
pub(crate) const UNKNOWN: Path =
    Path { bandwidth_bytes_per_s: 12_500_000, rtt_ns: 100_000_000, buffer_bytes: 2_097_152 };

impl Path {
    /// Bytes that the path holds: bandwidth x RTT, at least one.
    pub fn bdp_bytes(&self) -> u64 {
        let bytes = u128::from(self.bandwidth_bytes_per_s) * u128::from(self.rtt_ns) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }

    /// Connections that fill the path: ceil(BDP / buffer).
    pub fn connections_to_fill(&self) -> u32 {
        clamp(self.bdp_bytes().div_ceil(self.buffer_bytes.max(1)))
    }

    /// Connections for one file of this mean size: `max(1, min(ceil(BDP / buffer), ceil(mean / buffer)))`.
    pub fn parallelism(&self, mean_bytes: u64) -> u32 {
        self.connections_to_fill().min(clamp(mean_bytes.div_ceil(self.buffer_bytes.max(1))))
    }

    /// Files of this mean size that fill the path: `ceil(BDP / mean)`, the concurrency of LowE.
    pub fn files_to_fill(&self, mean_bytes: u64) -> u32 {
        clamp(self.bdp_bytes().div_ceil(mean_bytes.max(1)))
    }
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYDNEY: Path =
        Path { bandwidth_bytes_per_s: 12_500_000, rtt_ns: 290_000_000, buffer_bytes: 1_048_576 };

    #[test]
    fn a_path_of_100_mbps_and_290_ms_holds_3_625_000_bytes() {
        assert_eq!(SYDNEY.bdp_bytes(), 3_625_000);
        assert_eq!(SYDNEY.connections_to_fill(), 4);
    }

    #[test]
    fn small_files_get_one_connection_each_and_many_at_once() {
        assert_eq!(SYDNEY.parallelism(131_072), 1);
        assert_eq!(SYDNEY.files_to_fill(131_072), 28);
        assert_eq!(SYDNEY.parallelism(160_000_000), 4);
        assert_eq!(SYDNEY.files_to_fill(160_000_000), 1);
    }
}
