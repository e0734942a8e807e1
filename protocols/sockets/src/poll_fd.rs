// SPDX-License-Identifier: Apache-2.0
//! What is waited for.

use std::os::fd::RawFd;

/// A descriptor to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollFd {
    /// The descriptor.
    pub fd: RawFd,
    /// Wake when readable.
    pub read: bool,
    /// Wake when writable. Only when there is something to write: a writable idle socket would spin.
    pub write: bool,
}
