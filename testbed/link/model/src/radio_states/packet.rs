// SPDX-License-Identifier: Apache-2.0
//! What does a radio see of a packet? Its direction and its size.

use serde::{Deserialize, Serialize};

/// Where a packet goes, seen from the device whose radio it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the device.
    Up,
    /// To the device.
    Down,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where it goes.
    pub direction: Direction,
    /// Its size with the IP header.
    pub ip_bytes: u32,
}
