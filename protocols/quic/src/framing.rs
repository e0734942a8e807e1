// SPDX-License-Identifier: Apache-2.0
//! Where does one message end and the next begin in the byte stream?
//!
//! Every message of a flow has the same size, so the borders are at its multiples. Messages that arrive whole
//! are passed on without a copy.

/// Cuts a byte stream into messages of one size.
#[derive(Debug)]
pub(crate) struct Cutter {
    message_bytes: usize,
    partial: Vec<u8>,
}

impl Cutter {
    /// For messages of `message_bytes` (at least 1).
    pub(crate) fn new(message_bytes: usize) -> Self {
        Self { message_bytes: message_bytes.max(1), partial: Vec::with_capacity(message_bytes) }
    }

    /// Takes the next `bytes` of the stream and hands each message that they complete to `sink`.
    /// Returns the number of messages.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> usize {
        let mut messages = 0;
        if !self.partial.is_empty() {
            let missing = (self.message_bytes - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.partial.len() < self.message_bytes {
                return 0;
            }
            sink(&self.partial);
            self.partial.clear();
            messages += 1;
        }
        let mut whole = bytes.chunks_exact(self.message_bytes);
        for message in &mut whole {
            sink(message);
            messages += 1;
        }
        self.partial.extend_from_slice(whole.remainder());
        messages
    }

    /// Bytes of a message that has not arrived whole.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(message_bytes: usize, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, usize) {
        let mut cutter = Cutter::new(message_bytes);
        let mut messages = Vec::new();
        let mut counted = 0;
        for piece in pieces {
            counted += cutter.feed(piece, &mut |message| messages.push(message.to_vec()));
        }
        assert_eq!(counted, messages.len());
        (messages, cutter.partial_bytes())
    }

    #[test]
    fn the_cut_does_not_depend_on_how_the_bytes_come() {
        let stream: Vec<u8> = (0..=99).collect();
        let expected: Vec<Vec<u8>> = stream.chunks_exact(7).map(<[u8]>::to_vec).collect();
        for piece_bytes in 1..=100 {
            let pieces: Vec<&[u8]> = stream.chunks(piece_bytes).collect();
            assert_eq!(cut(7, &pieces), (expected.clone(), 100 % 7), "in pieces of {piece_bytes}");
        }
    }

    #[test]
    fn nothing_yields_nothing() {
        assert_eq!(cut(16, &[b""]), (vec![], 0));
    }
}
