// SPDX-License-Identifier: Apache-2.0
//! What goes between the ends of TCP, in whole segments.

/// The segment that opens a connection; data begins behind it. The answer to it counts as an acknowledgement.
pub const SYN: u64 = 0;

/// What TCP sends between its ends; sequence numbers count segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Data, or [`SYN`].
    Data(u64),
    /// What has come.
    Ack(Ack),
    /// A message of a client to the server that sends it data, by its number.
    Message(u64),
}

/// What has come at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All before this.
    pub next: u64,
    /// And a block behind it, the newest one: how far behind, and of how many segments; 0 of them = none (RFC 2018).
    pub block: (u32, u32),
}

impl Ack {
    /// The segments of the block.
    pub fn sacked(self) -> std::ops::Range<u64> {
        let first = self.next + u64::from(self.block.0);
        first..first + u64::from(self.block.1)
    }
}

impl From<u64> for Ack {
    /// Nothing behind what has come in order.
    fn from(next: u64) -> Self {
        Self { next, block: (0, 0) }
    }
}
