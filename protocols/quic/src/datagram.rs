// SPDX-License-Identifier: Apache-2.0
//! How do messages travel in DATAGRAM frames (RFC 9221)? One message, one frame; nothing is sent twice.

use netjoule_transport::SendOutcome;

use crate::error::QuicError;

/// Offers one message. When the congestion window has been closed for long enough to fill the queue,
/// it is refused.
pub(crate) fn offer(quic: &mut quiche::Connection, message: &[u8]) -> Result<SendOutcome, QuicError> {
    match quic.dgram_send(message) {
        Ok(()) => Ok(SendOutcome::Sent),
        Err(quiche::Error::Done) => Ok(SendOutcome::Refused),
        Err(quiche::Error::BufferTooShort) => Err(QuicError::MessageTooLarge {
            message_bytes: message.len(),
            limit_bytes: quic.dgram_max_writable_len().unwrap_or(0),
        }),
        Err(quiche::Error::InvalidState) => Err(QuicError::DatagramsRefused),
        Err(source) => Err(QuicError::Library { doing: "sending a datagram", source }),
    }
}

/// Whether messages of `message_bytes` can be sent at all on the established connection `quic`.
pub(crate) fn check_size(quic: &quiche::Connection, message_bytes: usize) -> Result<(), QuicError> {
    match quic.dgram_max_writable_len() {
        None => Err(QuicError::DatagramsRefused),
        Some(limit_bytes) if message_bytes > limit_bytes => {
            Err(QuicError::MessageTooLarge { message_bytes, limit_bytes })
        }
        Some(_) => Ok(()),
    }
}

/// Hands every message that has arrived to `sink`; returns how many there were.
pub(crate) fn collect(quic: &mut quiche::Connection, sink: &mut dyn FnMut(&[u8])) -> usize {
    let mut messages = 0;
    while let Ok(message) = quic.dgram_recv_buf() {
        sink(&message);
        messages += 1;
    }
    messages
}
