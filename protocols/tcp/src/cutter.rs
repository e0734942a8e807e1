// SPDX-License-Identifier: Apache-2.0
//! Cuts a byte stream into messages of one size. Pure.

/// Holds the beginning of a message whose rest has not arrived.
#[derive(Debug)]
pub(crate) struct Cutter {
    message_bytes: usize,
    partial: Vec<u8>,
}

impl Cutter {
    /// A cutter for messages of `message_bytes` (at least 1).
    pub(crate) fn new(message_bytes: usize) -> Self {
        Self { message_bytes, partial: Vec::with_capacity(message_bytes) }
    }

    /// Take the next bytes of the stream and give every message that is complete, in order, to `sink`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(&[u8])) {
        if !self.partial.is_empty() {
            let missing = (self.message_bytes - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.partial.len() < self.message_bytes {
                return;
            }
            sink(&self.partial);
            self.partial.clear();
        }
        let whole = bytes.chunks_exact(self.message_bytes);
        self.partial.extend_from_slice(whole.remainder());
        whole.for_each(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            message_bytes in 1_usize..40,
            count in 0_usize..20,
            pieces in proptest::collection::vec(1_usize..60, 1..40),
        ) {
            let stream: Vec<u8> = (0..message_bytes * count).map(|index| (index % 251) as u8).collect();
            let mut cutter = Cutter::new(message_bytes);
            let (mut rest, mut messages) = (stream.as_slice(), Vec::new());
            for piece in pieces.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                cutter.push(now, |message| messages.push(message.to_vec()));
                rest = later;
            }
            prop_assert_eq!(messages.len(), count);
            prop_assert_eq!(messages.concat(), stream);
        }
    }
}
