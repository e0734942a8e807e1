// SPDX-License-Identifier: Apache-2.0
//! The ends of the link: its stations and the hosts behind the access point.

/// Where a packet enters or leaves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A station, by index.
    Station(usize),
    /// A host behind the access point, by index: the far end of its path.
    Wired(usize),
}
