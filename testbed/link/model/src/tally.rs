// SPDX-License-Identifier: Apache-2.0
//! How much traffic? Packets, and the bytes of them.

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// IP bytes of them.
    pub bytes: u64,
}

impl Tally {
    /// One packet more.
    pub fn add(&mut self, ip_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}
