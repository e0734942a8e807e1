// SPDX-License-Identifier: Apache-2.0
//! Where does one message end and the next begin in a byte stream? Pure; for every stream transport.
//!
//! Each message tells its length at its front ([`crate::message`]). Messages that arrive whole are passed on without a
//! copy.

use crate::message::{self, HEADER_BYTES, LENGTH_KNOWN_BYTES};
use crate::TransportError;

/// Cuts a byte stream into messages.
#[derive(Debug)]
pub struct Deframer {
    flow_bytes: usize,
    /// The beginning of a message whose rest has not arrived.
    partial: Vec<u8>,
}

/// The stream holds a message that cannot be of this flow, so nothing that follows can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stream is out of step: it announces a message of {stated_bytes} bytes where messages have {HEADER_BYTES} \
     to {flow_bytes}"
)]
pub struct FramingError {
    /// What the message says of itself.
    pub stated_bytes: usize,
    /// Longest message of the flow.
    pub flow_bytes: usize,
}

impl From<FramingError> for TransportError {
    fn from(error: FramingError) -> Self {
        Self::Lost(error.to_string())
    }
}

impl Deframer {
    /// For a flow of messages of `flow_bytes` (at least 16), or of several sizes up to that.
    pub fn new(flow_bytes: usize) -> Self {
        let flow_bytes = flow_bytes.max(HEADER_BYTES);
        Self { flow_bytes, partial: Vec::with_capacity(flow_bytes) }
    }

    /// Take the next `bytes` of the stream and hand each message that they complete to `sink`, in order. Returns the
    /// number of messages.
    ///
    /// # Errors
    /// [`FramingError`]; the messages before it were handed over.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, FramingError> {
        let mut messages = 0;
        if !self.partial.is_empty() {
            self.take(&mut bytes, LENGTH_KNOWN_BYTES);
            let Some(length) = self.length(&self.partial)? else { return Ok(0) };
            self.take(&mut bytes, length);
            if self.partial.len() < length {
                return Ok(0);
            }
            sink(&self.partial);
            self.partial.clear();
            messages += 1;
        }
        while let Some(length) = self.length(bytes)?.filter(|length| *length <= bytes.len()) {
            let (message, rest) = bytes.split_at(length);
            sink(message);
            bytes = rest;
            messages += 1;
        }
        self.partial.extend_from_slice(bytes);
        Ok(messages)
    }

    /// Bytes of a message that has not arrived whole.
    pub fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Move bytes to the partial message until it has `wanted`.
    fn take(&mut self, bytes: &mut &[u8], wanted: usize) {
        let missing = wanted.saturating_sub(self.partial.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(missing);
        self.partial.extend_from_slice(taken);
        *bytes = rest;
    }

    /// Length of the message that begins with `front`, when that can be told yet.
    fn length(&self, front: &[u8]) -> Result<Option<usize>, FramingError> {
        match message::length(front, self.flow_bytes) {
            Some(stated_bytes) if !(HEADER_BYTES..=self.flow_bytes).contains(&stated_bytes) => {
                Err(FramingError { stated_bytes, flow_bytes: self.flow_bytes })
            }
            length => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Header;
    use proptest::prelude::*;

    /// Messages of these sizes; without `stated`, of one size.
    fn stream(sizes: &[usize], stated: bool) -> (Vec<Vec<u8>>, Vec<u8>) {
        let messages: Vec<Vec<u8>> = (0..)
            .zip(sizes)
            .map(|(sequence, size)| {
                let mut message = vec![0x5a; *size];
                let header = Header { sequence, sent_ns: -1 };
                match stated {
                    true => header.write_with_length(&mut message),
                    false => header.write(&mut message),
                }
                message
            })
            .collect();
        let bytes = messages.concat();
        (messages, bytes)
    }

    fn cut(flow_bytes: usize, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, usize) {
        let mut deframer = Deframer::new(flow_bytes);
        let (mut messages, mut counted) = (Vec::new(), 0);
        for piece in pieces {
            counted += deframer.feed(piece, &mut |message| messages.push(message.to_vec())).unwrap();
        }
        assert_eq!(counted, messages.len());
        (messages, deframer.partial_bytes())
    }

    #[test]
    fn nothing_yields_nothing() {
        assert_eq!(cut(16, &[b""]), (vec![], 0));
    }

    #[test]
    fn the_rest_of_a_message_is_known_to_be_missing() {
        let (messages, bytes) = stream(&[20, 30], true);
        assert_eq!(cut(40, &[&bytes[..22]]), (messages[..1].to_vec(), 2));
        assert_eq!(cut(40, &[&bytes[..22], &bytes[22..49]]), (messages[..1].to_vec(), 29));
    }

    #[test]
    fn a_length_that_no_message_of_the_flow_has_ends_the_stream() {
        for (stated_bytes, flow_bytes) in [(41, 40), (15, 40), (65_535, 40)] {
            let mut bytes = stream(&[20, 30], true).1;
            bytes[21..23].copy_from_slice(&u16::try_from(stated_bytes).unwrap().to_be_bytes());
            let mut messages = 0;
            let outcome = Deframer::new(flow_bytes).feed(&bytes, &mut |_| messages += 1);
            assert_eq!((outcome, messages), (Err(FramingError { stated_bytes, flow_bytes }), 1));
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            sizes in proptest::collection::vec(16_usize..60, 0..20),
            one_size in any::<bool>(),
            pieces in proptest::collection::vec(1_usize..90, 1..40),
        ) {
            let sizes = if one_size { vec![33; sizes.len()] } else { sizes };
            let (messages, stream) = stream(&sizes, !one_size);
            let flow_bytes = if one_size { 33 } else { 60 };
            let mut deframer = Deframer::new(flow_bytes);
            let (mut rest, mut got) = (stream.as_slice(), Vec::new());
            for piece in pieces.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                deframer.feed(now, &mut |message| got.push(message.to_vec())).unwrap();
                rest = later;
            }
            prop_assert_eq!(got, messages);
            prop_assert_eq!(deframer.partial_bytes(), 0);
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400), flow_bytes in 0_usize..200) {
            let _ = Deframer::new(flow_bytes).feed(&bytes, &mut |_| {});
        }
    }
}
