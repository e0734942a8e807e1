// SPDX-License-Identifier: Apache-2.0
//! Congestion control as two traits, one file per CCID (RFC 4340 section 10).
//!
//! A connection holds one [`SendingCcid`] for the data it sends and one [`ReceivingCcid`] for the data it
//! receives. They never see bytes on the wire or sockets, only [`Incoming`] packets that passed the sequence
//! checks, and what is about to leave.

pub mod ack_vector;
pub mod ccid2;
pub mod ccid3;
mod half_connection;
pub mod tfrc;

pub use half_connection::{
    Ccid, Departure, Ecn, Figure, Incoming, ReceivingCcid, Requirements, SendingCcid, Violation,
};

use crate::seqno::Seq48;

impl Ccid {
    /// A sender whose packets carry about `segment_bytes` of data, starting with sequence number `first_seq`.
    pub fn sender(self, now_ns: i64, first_seq: Seq48, segment_bytes: usize) -> Box<dyn SendingCcid> {
        match self {
            Self::TcpLike => Box::new(ccid2::Sender::new(now_ns, first_seq, segment_bytes)),
            Self::Tfrc => Box::new(ccid3::Sender::new(now_ns, first_seq, segment_bytes)),
        }
    }

    /// A receiver.
    pub fn receiver(self, now_ns: i64) -> Box<dyn ReceivingCcid> {
        match self {
            Self::TcpLike => Box::new(ccid2::Receiver::new(now_ns)),
            Self::Tfrc => Box::new(ccid3::Receiver::new(now_ns)),
        }
    }
}
