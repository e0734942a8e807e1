// SPDX-License-Identifier: Apache-2.0
//! The ends of the link: its stations and the wired path.

/// Where a packet enters or leaves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A station, by index.
    Station(usize),
    /// The far end of the wired path.
    Wired,
}
