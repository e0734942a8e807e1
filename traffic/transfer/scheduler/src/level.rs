// SPDX-License-Identifier: Apache-2.0
//! What an algorithm reads and what it answers. It reads what was [`Seen`] and nothing else, so that the same inputs give
//! the same decisions.

use serde::{Deserialize, Serialize};

/// All that a policy reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Time since the transfer began, nanoseconds.
    pub at_ns: u64,
    /// Bytes of files so far.
    pub bytes: u64,
    /// Dynamic energy so far, microjoules; none where nobody reads a meter.
    pub energy_uj: Option<u64>,
    /// What each chunk has left, from small files to large.
    pub left: Vec<Left>,
}

/// Of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Files that are not whole.
    pub files: u64,
    /// Bytes of theirs that have not come; of files whose size is known.
    pub bytes: u64,
}

impl Seen {
    /// Bytes that have not come.
    pub fn left_bytes(&self) -> u64 {
        self.left.iter().map(|left| left.bytes).sum()
    }
}

/// Connections of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// All of them.
    pub connections: u32,
    /// Of one file, at most.
    pub parallelism: u32,
}

impl Share {
    /// So many connections, of which a file has at most so many.
    pub(crate) fn new(connections: u32, parallelism: u32) -> Self {
        Self { connections, parallelism: parallelism.min(connections).max(1) }
    }
}

/// What is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Of each chunk, from small files to large.
    pub shares: Vec<Share>,
    /// Whether files share all connections of their chunk: each has one as long as there are files.
    pub shared: bool,
}

impl Level {
    /// Files of a chunk at once.
    pub fn files(&self, share: Share) -> u32 {
        if self.shared {
            share.connections
        } else {
            share.connections.div_ceil(share.parallelism.max(1))
        }
    }

    /// Connections together.
    pub fn connections(&self) -> u32 {
        self.shares.iter().map(|share| share.connections).sum()
    }
}

/// The answer of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// In force from now on.
    pub level: Level,
    /// When to ask again, if nothing else happens before; nanoseconds since the transfer began.
    pub again_ns: Option<u64>,
    /// One line for people.
    pub why: String,
}

/// An algorithm. It is asked when the transfer begins, when a chunk has no more to start or ends, and when it wants to.
pub trait Policy: Send {
    /// The level from now on.
    fn decide(&mut self, seen: &Seen) -> Decided;
}
