// SPDX-License-Identifier: Apache-2.0
//! netjoule over QUIC (quiche): messages in a reliable stream, or one per DATAGRAM frame (RFC 9221).
//!
//! Bottom up: `fingerprint` and `certificate` (the pin), `options` (what a user may choose), `path` (what fits a packet, when
//! it may leave, and a socket without a connection), `config` (settings), `driver` (a connection without a socket), `messages`
//! (how they travel), `endpoint` (all of these together), `qlog` (its record), `token_exchange` and `opening` (who may
//! connect, and how), `end` (the whole, as the traffic engine sees it), `protocol` (the names that the engine asks for).

#![forbid(unsafe_code)]

mod certificate;
mod config;
mod driver;
mod end;
mod endpoint;
mod error;
mod fingerprint;
#[doc(hidden)]
pub mod fuzzing;
mod messages;
mod opening;
mod options;
mod path;
mod protocol;
mod qlog;
mod statistics;
mod token_exchange;

pub use crate::certificate::Identity;
pub use crate::config::{ALPN, MAX_MTU_BYTES};
pub use crate::error::QuicError;
pub use crate::fingerprint::{BadFingerprint, Fingerprint, FINGERPRINT_BYTES};
pub use crate::options::CongestionControl;
pub use crate::path::packet_size;
pub use crate::protocol::{QuicProtocol, QUIC, QUIC_DATAGRAM};
