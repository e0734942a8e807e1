// SPDX-License-Identifier: Apache-2.0
//! netjoule over QUIC (quiche): messages in a reliable stream, or one per DATAGRAM frame (RFC 9221).
//!
//! Bottom up: [`packet_size`] (what fits), `fingerprint` and `certificate` (the pin), `options` (what a user may choose), `config` (settings),
//! `driver` (a connection without a socket), `pacer` (when a packet may leave), `packet_io` (a socket without a
//! connection), `endpoint` (all of these together), `qlog` (its record), `token_exchange`, `opening` and `listener` (who may
//! connect, and how), `stream` and `datagram` (how messages travel), `end` (the whole, as the traffic engine
//! sees it), `protocol` (the names that the engine asks for).

#![forbid(unsafe_code)]

mod certificate;
mod clock;
mod config;
mod datagram;
mod driver;
mod end;
mod endpoint;
mod error;
mod fingerprint;
#[doc(hidden)]
pub mod fuzzing;
mod listener;
mod opening;
mod options;
mod pacer;
mod packet_io;
pub mod packet_size;
mod packetisation;
mod protocol;
mod qlog;
mod statistics;
mod stream;
mod token_exchange;

pub use crate::certificate::Identity;
pub use crate::config::{ALPN, MAX_MTU_BYTES};
pub use crate::error::QuicError;
pub use crate::fingerprint::{BadFingerprint, Fingerprint, FINGERPRINT_BYTES};
pub use crate::options::CongestionControl;
pub use crate::protocol::{Quic, QuicDatagram};
