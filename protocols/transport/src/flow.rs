// SPDX-License-Identifier: Apache-2.0
//! What is a flow? The words that both its ends and all transports share.

use std::path::PathBuf;

use crate::Values;

/// Length of a flow's token in bytes.
pub const TOKEN_BYTES: usize = 16;

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

/// What one end needs to know about its flow.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// Size of every message in bytes, header included (at least [`crate::message::HEADER_BYTES`]); in a flow of several
    /// sizes the greatest.
    pub payload_bytes: usize,
    /// Whether this end sends or receives messages.
    pub role: Role,
    /// Random secret of this flow, given to the client over the control channel.
    pub token: [u8; TOKEN_BYTES],
    /// Let the transport hand batches to the kernel as one packet that the device cuts (UDP GSO/GRO). Off means that each packet
    /// is one to the kernel, too; calls may be shared all the same ([`crate::message_rate`]).
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

/// Message sizes a transport can carry unfragmented; the smallest is a message that is all header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest message in bytes.
    pub max_message_bytes: usize,
    /// What sets the largest size, for the error sentence (e.g. "MTU 1500 - 28 bytes of IPv4 and UDP header").
    pub reason: String,
}
