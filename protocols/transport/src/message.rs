// SPDX-License-Identifier: Apache-2.0
//! The 16 bytes at the front of every message: sequence number and time of sending.
//!
//! Both are big-endian. The sequence number counts sent messages from 0, so a gap is a loss and never a message
//! that the sender could not send. Sequence numbers stay below 2^56: the first byte of a message is always 0,
//! which tells it from a transport's own handshake datagrams.

/// Length of the header in bytes; also the smallest message.
pub const HEADER_BYTES: usize = 16;

/// First sequence number that is not allowed.
pub const SEQUENCE_LIMIT: u64 = 1 << 56;

/// The header of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the message among those sent, from 0.
    pub sequence: u64,
    /// When it was handed to the transport, `CLOCK_MONOTONIC` ns of the sending host.
    pub sent_ns: i64,
}

impl Header {
    /// Write the header over the first 16 bytes of `message`.
    ///
    /// # Panics
    /// When `message` is shorter than [`HEADER_BYTES`]; the engine never builds such a message.
    pub fn write(self, message: &mut [u8]) {
        message[..8].copy_from_slice(&self.sequence.to_be_bytes());
        message[8..HEADER_BYTES].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    /// Read the header of a message; `None` when it is too short or its sequence number is out of range.
    pub fn read(message: &[u8]) -> Option<Self> {
        let sequence = u64::from_be_bytes(message.get(..8)?.try_into().ok()?);
        let sent_ns = i64::from_be_bytes(message.get(8..HEADER_BYTES)?.try_into().ok()?);
        (sequence < SEQUENCE_LIMIT).then_some(Self { sequence, sent_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_or_foreign_bytes_are_not_a_header() {
        assert_eq!(Header::read(&[0; 15]), None);
        assert_eq!(Header::read(&[1; 16]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(sequence in 0..SEQUENCE_LIMIT, sent_ns: i64, extra in 0_usize..64) {
            let mut message = vec![0xaa; HEADER_BYTES + extra];
            let header = Header { sequence, sent_ns };
            header.write(&mut message);
            prop_assert_eq!(Header::read(&message), Some(header));
            prop_assert_eq!(message[0], 0);
            prop_assert!(message[HEADER_BYTES..].iter().all(|byte| *byte == 0xaa));
        }
    }
}
