// SPDX-License-Identifier: Apache-2.0
//! DCCP (RFC 4340) as a state machine: no sockets, no clock, no threads, no randomness of its own.
//!
//! Bytes go in with [`Connection::handle`], bytes come out with [`Connection::poll_transmit`], time and random
//! numbers are arguments. Times are nanoseconds (`i64`) of one monotonic clock with any origin. What carries
//! the packets is the caller's: IP protocol 33 or, with [`Carriage::Udp`], UDP encapsulation (RFC 6773).
//!
//! | question | module |
//! | --- | --- |
//! | what is on the wire? | [`packet`], [`options`], [`checksum`], [`seqno`], [`reset`], [`encapsulation`] |
//! | what does a packet say, in words? | [`describe`] |
//! | who may say what when? (RFC 4340 section 8) | [`connection`], [`listener`] |
//! | which features were agreed? (section 6) | [`feature`] |
//! | when may a packet leave? | [`ccid`]: [`ccid::ccid2`] (RFC 4341), [`ccid::ccid3`] (RFC 4342, RFC 5348) |

#![forbid(unsafe_code)]

pub mod ccid;
pub mod checksum;
pub mod connection;
pub mod describe;
pub mod encapsulation;
pub mod feature;
pub mod listener;
pub mod options;
pub mod packet;
mod packet_type;
pub mod reset;
pub mod seqno;

pub use connection::{Carriage, Config, Connection, State};
pub use listener::Listener;
pub use packet::{Packet, PacketType};
pub use reset::ResetCode;
pub use seqno::Seq48;

#[cfg(doctest)]
#[doc = include_str!("../EXAMPLES.md")]
struct Examples;
