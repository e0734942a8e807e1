// SPDX-License-Identifier: Apache-2.0
//! What is a flow? The words that both its ends and all transports share.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::{Values, TOKEN_BYTES};

/// Whether messages keep their borders on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One message is one datagram; it can be lost, duplicated, reordered.
    Datagram,
    /// Messages lie back to back in a reliable byte stream.
    Stream,
}

/// Which end sends the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This end sends messages.
    Sender,
    /// This end receives messages.
    Receiver,
}

/// Where a transport stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waiting for the peer, or for the end of the handshake.
    Connecting,
    /// Messages can flow.
    Open,
    /// The peer closed; nothing more will arrive or leave. Not an error by itself.
    Closed,
}

/// IP version of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4: 20-byte header.
    V4,
    /// IPv6: 40-byte header.
    V6,
}

impl IpVersion {
    /// Version of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// Length of the IP header without options or extension headers, in bytes.
    pub fn header_bytes(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// 4 or 6.
    pub fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// What one end needs to know about its flow.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// Size of every message in bytes, header included (at least [`crate::message::HEADER_BYTES`]); in a flow of several
    /// sizes the greatest.
    pub message_bytes: usize,
    /// Whether this end sends or receives messages.
    pub role: Role,
    /// Random secret of this flow, given to the client over the control channel.
    pub token: [u8; TOKEN_BYTES],
    /// Let the transport hand batches to the kernel as one packet that the device cuts (UDP GSO/GRO). Off means that each packet
    /// is one to the kernel, too; calls may be shared all the same ([`crate::pace`]).
    pub gso: bool,
    /// Seed for anything a transport draws at random that need not be secret.
    pub seed: u64,
    /// Offered load in payload bit/s (of a flow in bursts: in its bursts): what a transport sizes its queues by. 0 when
    /// not known.
    pub rate_bps: u64,
    /// What [`crate::Protocol::options`] made of the user's choices.
    pub options: Values,
    /// Where this end may write the events of its connection, for transports that can (QUIC's qlog): a file name without
    /// its ending, in a folder that exists. `None`: nothing is written.
    pub event_log: Option<PathBuf>,
}

/// Message sizes a transport can carry unfragmented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Smallest message in bytes.
    pub min_message_bytes: usize,
    /// Largest message in bytes.
    pub max_message_bytes: usize,
    /// What sets the largest size, for the error sentence (e.g. "MTU 1500 - 28 bytes of IPv4 and UDP header").
    pub reason: String,
}
