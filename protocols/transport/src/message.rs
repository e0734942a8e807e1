// SPDX-License-Identifier: Apache-2.0
//! The 16 bytes at the front of every message: length, sequence number and time of sending.
//!
//! ```text
//! byte  0   1        3                      8                              16
//!       +---+--------+----------------------+------------------------------+
//!       | 0 | length | sequence number      | time of sending, ns          |   big-endian
//!       +---+--------+----------------------+------------------------------+
//! ```
//! The first byte is always 0, which tells a message from a transport's own handshake datagrams. The sequence number
//! counts sent messages from 0, so a gap is a loss and never a message that the sender could not send. The length is 0
//! where every message has the flow's size; in a flow of messages of several sizes it is the message's own, so that a
//! stream can be cut by what arrives: the receiving end need not know the sender's schedule, nor which messages of it
//! were not sent.

/// Length of the header in bytes; also the smallest message.
pub const HEADER_BYTES: usize = 16;

/// First sequence number that is not allowed: over 3 hours at 100 million messages a second.
pub const SEQUENCE_LIMIT: u64 = 1 << SEQUENCE_BITS;

/// Longest message of a flow of several sizes: what the length field holds, and no datagram is longer.
pub const LONGEST_STATED_BYTES: usize = u16::MAX as usize;

/// Bytes from the front of a message that tell its length.
pub(crate) const LENGTH_KNOWN_BYTES: usize = 3;

const SEQUENCE_BITS: u32 = 40;

/// The header of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the message among those sent, from 0.
    pub sequence: u64,
    /// When it was handed to the transport, `CLOCK_MONOTONIC` ns of the sending host.
    pub sent_ns: i64,
}

impl Header {
    /// Write the header over the first 16 bytes of `message`, which has the flow's size.
    ///
    /// # Panics
    /// When `message` is shorter than [`HEADER_BYTES`]; the engine never builds such a message.
    pub fn write(self, message: &mut [u8]) {
        message[..8].copy_from_slice(&self.sequence.to_be_bytes());
        message[8..HEADER_BYTES].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    /// The same in a flow of messages of several sizes: `message` is this message and nothing else.
    ///
    /// # Panics
    /// When `message` is shorter than [`HEADER_BYTES`] or longer than [`LONGEST_STATED_BYTES`]; a schedule has neither.
    pub fn write_with_length(self, message: &mut [u8]) {
        let length = u16::try_from(message.len()).expect("a schedule holds no longer message");
        self.write(message);
        message[1..LENGTH_KNOWN_BYTES].copy_from_slice(&length.to_be_bytes());
    }

    /// Read the header of a message; `None` when it is too short or no message of ours.
    pub fn read(message: &[u8]) -> Option<Self> {
        let word = u64::from_be_bytes(message.get(..8)?.try_into().ok()?);
        let sent_ns = i64::from_be_bytes(message.get(8..HEADER_BYTES)?.try_into().ok()?);
        (word >> 56 == 0).then_some(Self { sequence: word & (SEQUENCE_LIMIT - 1), sent_ns })
    }
}

/// Length in bytes of the message that begins with `front`, in a flow whose messages have `flow_bytes`, or several
/// sizes up to that. `None` while `front` is too short to tell.
pub fn length(front: &[u8], flow_bytes: usize) -> Option<usize> {
    let stated = front.get(1..LENGTH_KNOWN_BYTES)?;
    match u16::from_be_bytes([stated[0], stated[1]]) {
        0 => Some(flow_bytes),
        length => Some(usize::from(length)),
    }
}

/// Whether `message`, as it arrived in a datagram, has the length that it should have; `flow_bytes` as in [`length`].
pub fn is_whole(message: &[u8], flow_bytes: usize) -> bool {
    message.len() <= flow_bytes && length(message, flow_bytes) == Some(message.len())
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

    #[test]
    fn the_bytes_of_a_header_are_these() {
        let header = Header { sequence: 0x01_02_03_04_05, sent_ns: 0x11_12_13_14_15_16_17_18 };
        let mut message = [0xaa; 300];
        header.write(&mut message);
        assert_eq!(message[..8], [0, 0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(message[8..17], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xaa]);
        header.write_with_length(&mut message);
        assert_eq!(message[..8], [0, 1, 44, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_datagram_must_have_the_length_that_it_states_or_the_flows() {
        let header = Header { sequence: 7, sent_ns: 1 };
        let mut message = [0; 300];
        header.write(&mut message);
        assert!(is_whole(&message, 300) && !is_whole(&message, 400) && !is_whole(&message, 200));
        header.write_with_length(&mut message);
        assert!(is_whole(&message, 300) && is_whole(&message, 400) && !is_whole(&message, 299));
        assert!(!is_whole(&message[..299], 400) && !is_whole(&[0, 1], 2));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(sequence in 0..SEQUENCE_LIMIT, sent_ns: i64, extra in 0_usize..600, stated: bool) {
            let mut message = vec![0xaa; HEADER_BYTES + extra];
            let header = Header { sequence, sent_ns };
            match stated {
                true => header.write_with_length(&mut message),
                false => header.write(&mut message),
            }
            prop_assert_eq!(Header::read(&message), Some(header));
            prop_assert_eq!(length(&message, 9_999), Some(if stated { message.len() } else { 9_999 }));
            prop_assert_eq!(message[0], 0);
            prop_assert!(message[HEADER_BYTES..].iter().all(|byte| *byte == 0xaa));
        }
    }
}
