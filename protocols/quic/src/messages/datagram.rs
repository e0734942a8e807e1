// SPDX-License-Identifier: Apache-2.0
//! How do messages travel in DATAGRAM frames (RFC 9221)? One message, one frame; nothing is sent twice.

use std::collections::VecDeque;

use netjoule_transport::{Arrival, Stop};

use crate::config::DATAGRAM_RECEIVE_QUEUE;
use crate::error::QuicError;

/// Offers one message. When the congestion window has been closed for long enough to fill the queue, there is no
/// room for it.
pub(crate) fn offer(quic: &mut quiche::Connection, message: &[u8]) -> Result<Stop, QuicError> {
    match quic.dgram_send(message) {
        Ok(()) => Ok(Stop::None),
        Err(quiche::Error::Done) => Ok(Stop::QueueFull),
        Err(quiche::Error::BufferTooShort) => Err(QuicError::MessageTooLarge {
            payload_bytes: message.len(),
            limit_bytes: quic.dgram_max_writable_len().unwrap_or(0),
        }),
        Err(quiche::Error::InvalidState) => Err(QuicError::DatagramsRefused),
        Err(source) => Err(QuicError::Library { doing: "sending a datagram", source }),
    }
}

/// Whether messages of `payload_bytes` can be sent at all on the established connection `quic`.
pub(crate) fn check_size(quic: &quiche::Connection, payload_bytes: usize) -> Result<(), QuicError> {
    match quic.dgram_max_writable_len() {
        None => Err(QuicError::DatagramsRefused),
        Some(limit_bytes) if payload_bytes > limit_bytes => {
            Err(QuicError::MessageTooLarge { payload_bytes, limit_bytes })
        }
        Some(_) => Ok(()),
    }
}

/// Throws away the messages that still wait for the congestion window; returns how many there were.
pub(crate) fn discard_queued(quic: &mut quiche::Connection) -> u64 {
    let before = quic.dgram_send_queue_len();
    quic.dgram_purge_outgoing(|_| true);
    (before - quic.dgram_send_queue_len()) as u64
}

/// Messages that have arrived, each with the time at which its packet, or train of packets, did.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: VecDeque<(Vec<u8>, i64)>,
}

impl Inbox {
    /// Takes what came with the packets since the last call, which arrived at `arrived_ns`. What finds no room stays with
    /// quiche, which drops the oldest when it has none either.
    pub(crate) fn take_in(&mut self, quic: &mut quiche::Connection, arrived_ns: i64) {
        while self.waiting.len() < DATAGRAM_RECEIVE_QUEUE {
            let Ok(message) = quic.dgram_recv_buf() else { return };
            self.waiting.push_back((message, arrived_ns));
        }
    }

    /// Hands every message to `sink`; returns how many there were.
    pub(crate) fn give(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let messages = self.waiting.len();
        for (bytes, arrived_ns) in self.waiting.drain(..) {
            sink(Arrival { bytes: &bytes, arrived_ns });
        }
        messages
    }
}
