// SPDX-License-Identifier: Apache-2.0
//! What every transport offers to the traffic engine, and nothing about when to send.
//!
//! A [`Protocol`] makes [`Transport`]s: one end of one flow. Nothing here blocks and nothing reads a
//! clock: the engine waits (`ppoll` over [`Transport::poll_fds`] until [`Transport::next_wakeup_ns`]),
//! then calls [`Transport::service`] with the time. All times are nanoseconds of this host's
//! `CLOCK_MONOTONIC`.
//!
//! Life of a transport, the same for both ends:
//!
//! 1. [`Protocol::listen`] (server) or [`Protocol::connect`] (client) returns at once, in
//!    [`State::Connecting`]. The server's [`Transport::local_address`] and [`Transport::offer`] travel to the
//!    client over the control channel.
//! 2. The engine polls and services until [`State::Open`]. A listening end opens only to a peer that proved
//!    [`FlowSpec::token`] from an address where it can also receive, so that nobody can aim a flow at
//!    a third party with a forged source address. Wrong tokens are dropped, not errors.
//! 3. The [`Role::Sender`] end calls [`Transport::send_batch`] and [`Transport::flush`]; the
//!    [`Role::Receiver`] end calls [`Transport::receive`]. Either end services acknowledgements and timers.
//! 4. After the last message the sender calls [`Transport::finish`] and services until
//!    [`Transport::drained`]. The connection stays open and silent: an idle window may follow.
//! 5. [`Transport::close`] says goodbye; the engine services until [`Transport::parted`], for a second at most;
//!    dropping the value closes its descriptors.
//!
//! Every message of a flow has the same size, [`FlowSpec::payload_bytes`], or in a flow of several sizes at most that;
//! it starts with the 16-byte header of [`message`]. A datagram transport puts one message into one datagram; a stream
//! transport writes messages back to back and its receiving end cuts the stream with a [`deframer::Deframer`]. The messages
//! of one batch always have one size, so only a receiving end meets messages of several.

#![forbid(unsafe_code)]

pub mod backoff;
pub mod candidates;
pub mod deframer;
mod flow;
pub mod kernel_structure;
pub mod message;
pub mod message_rate;
pub mod opening;
pub mod options;
pub mod preface;
mod protocol;
mod statistics;
pub mod timestamp_counts;
mod transport;
mod values;

pub use flow::{FlowSpec, Kind, Limits, Role, State, TOKEN_BYTES};
pub use netjoule_sockets::tx_timestamps::Departure;
pub use netjoule_sockets::{IpVersion, PollFd, Result, TransportError};
pub use protocol::{Description, NewTransport, Protocol};
pub use statistics::{Congestion, Packetisation, PacketisationSource};
pub use transport::{Arrival, BatchOutcome, Stop, Transport};
pub use values::Values;
