// SPDX-License-Identifier: Apache-2.0
//! Messages ready to be handed over: payload bytes that the seed decides, headers written anew for each departure. Pure.

use netjoule_transport::message::Header;

use crate::schedule::random::SplitMix64;

/// Most messages handed over at once when several are due.
const BATCH_MESSAGES: usize = 32;
/// The same for GSO trains.
const TRAIN_MESSAGES: usize = 64;
/// Most bytes handed over at once (at least one message goes): one GSO train, with room for a header of the transport's
/// own in each packet. A packet more would be a train by itself.
const BATCH_BYTES: usize = 62 << 10;

/// Room for the messages of one hand-over, each behind the bytes that the transport wants before it.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    payload: Vec<u8>,
    headroom_bytes: usize,
    most_messages: usize,
    /// Whether each message tells its own length.
    states_lengths: bool,
    /// Size of the messages that `bytes` is laid out for ...
    laid_out_bytes: usize,
    /// ... and how many of them.
    laid_out_messages: usize,
}

impl Batch {
    /// Room for messages of up to `largest_bytes`, laid out for that size. Trains may be longer than plain batches.
    pub(crate) fn new(largest_bytes: usize, headroom_bytes: usize, trains: bool, seed: u64) -> Self {
        let most_messages = if trains { TRAIN_MESSAGES } else { BATCH_MESSAGES };
        let payload = filler(largest_bytes.max(BATCH_BYTES), seed);
        let mut batch = Self {
            bytes: Vec::new(),
            payload,
            headroom_bytes,
            most_messages,
            states_lengths: false,
            laid_out_bytes: largest_bytes,
            laid_out_messages: 0,
        };
        batch.lay_out(batch.most(largest_bytes));
        batch
    }

    /// Have each message tell its own length, as messages of several sizes do.
    pub(crate) fn state_lengths(&mut self, states_lengths: bool) {
        self.states_lengths = states_lengths;
    }

    /// How many messages of `message_bytes` go at once.
    pub(crate) fn most(&self, message_bytes: usize) -> usize {
        (BATCH_BYTES / message_bytes).clamp(1, self.most_messages)
    }

    /// `messages` messages of `message_bytes`, at most [`Self::most`], with their headers; each behind its headroom.
    pub(crate) fn fill(
        &mut self,
        messages: usize,
        message_bytes: usize,
        mut header: impl FnMut(usize) -> Header,
    ) -> &mut [u8] {
        if self.laid_out_bytes != message_bytes {
            self.laid_out_bytes = message_bytes;
            self.laid_out_messages = 0;
        }
        if self.laid_out_messages < messages {
            self.lay_out(messages);
        }
        let stride = self.headroom_bytes + message_bytes;
        let batch = &mut self.bytes[..messages * stride];
        for (index, message) in batch.chunks_exact_mut(stride).enumerate() {
            let (header, message) = (header(index), &mut message[self.headroom_bytes..]);
            match self.states_lengths {
                true => header.write_with_length(message),
                false => header.write(message),
            }
        }
        batch
    }

    /// Put payload where so many messages lie: what the transport wrote before others must not become payload.
    #[cold]
    fn lay_out(&mut self, messages: usize) {
        let stride = self.headroom_bytes + self.laid_out_bytes;
        self.bytes.resize(self.bytes.len().max(messages * stride), 0);
        let payload = self.payload.chunks_exact(self.laid_out_bytes).cycle();
        let places = self.bytes.chunks_exact_mut(stride).zip(payload).take(messages);
        for (message, payload) in places.skip(self.laid_out_messages) {
            message[self.headroom_bytes..].copy_from_slice(payload);
        }
        self.laid_out_messages = messages;
    }
}

/// Payload bytes that look random, the same for the same seed (splitmix64).
fn filler(length: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let words = std::iter::repeat_with(move || random.next());
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::message::HEADER_BYTES;

    fn header(index: usize) -> Header {
        Header { sequence: 7 + index as u64, sent_ns: 9 }
    }

    #[test]
    fn the_payload_depends_on_the_seed_only() {
        assert_eq!(filler(100, 7), filler(100, 7));
        assert_ne!(filler(100, 7), filler(100, 8));
        assert_eq!(filler(13, 7), filler(100, 7)[..13]);
    }

    #[test]
    fn every_message_lies_behind_its_headroom_with_its_own_header() {
        let mut batch = Batch::new(100, 12, false, 1);
        let bytes = batch.fill(3, 100, header).to_vec();
        assert_eq!(bytes.len(), 3 * 112);
        for (index, message) in bytes.chunks_exact(112).enumerate() {
            assert_eq!(Header::read(&message[12..]), Some(header(index)));
        }
    }

    #[test]
    fn what_a_transport_left_in_its_headroom_never_becomes_payload() {
        let mut batch = Batch::new(300, 8, false, 1);
        let payload = |bytes: &[u8]| bytes[8 + HEADER_BYTES..].to_vec();
        let first = payload(batch.fill(1, 40, header));
        for size in [300, 41, 40] {
            batch.fill(5, size, header).chunks_exact_mut(8 + size).for_each(|one| one[..8].fill(0xee));
        }
        assert_eq!(payload(batch.fill(1, 40, header)), first);
    }

    #[test]
    fn messages_of_several_sizes_tell_their_lengths() {
        let mut batch = Batch::new(300, 8, false, 1);
        batch.state_lengths(true);
        for (messages, size) in [(2, 40), (1, 299), (32, 17), (3, 300)] {
            for (index, message) in batch.fill(messages, size, header).chunks_exact(8 + size).enumerate() {
                assert_eq!(netjoule_transport::message::length(&message[8..], 300), Some(size));
                assert_eq!(Header::read(&message[8..]), Some(header(index)));
            }
        }
    }

    #[test]
    fn batches_are_bounded_by_messages_and_by_the_bytes_of_a_train() {
        let (plain, trains) = (Batch::new(64, 0, false, 1), Batch::new(64, 0, true, 1));
        assert_eq!((plain.most(64), trains.most(64)), (32, 64));
        assert_eq!((plain.most(1440), trains.most(1440)), (32, 44));
        assert_eq!(Batch::new(1 << 20, 0, true, 1).most(1 << 20), 1);
        assert_eq!(Batch::new(1 << 20, 0, true, 1).fill(1, 1 << 20, header).len(), 1 << 20);
    }
}
