// SPDX-License-Identifier: Apache-2.0
//! TCP without sockets, in whole segments: the sender has no end of data, the receiver reads at once.

pub mod receiver;
pub mod rto;
pub mod sender;

/// The segment that opens a connection; data begins behind it. The answer to it counts as an acknowledgement.
pub const SYN: u64 = 0;

/// What TCP sends between its ends; sequence numbers count segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Data, or [`SYN`].
    Data(u64),
    /// All before this has come.
    Ack(u64),
}
