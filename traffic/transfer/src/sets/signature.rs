// SPDX-License-Identifier: Apache-2.0
//! What a file of a data set holds where it is not zero: 32 bytes at the start of each MiB, and its last 32 bytes.
//!
//! They are ChaCha8 (key: the seed, little-endian, padded with zeros) of stream = number of the file, block = number of
//! the MiB, or [`END_BLOCK`] for the last bytes: each place of each file has its own, so that a range that is written
//! elsewhere, or comes from another file, is noticed. Where both would lie, the MiB's own signature stands.

use std::ops::Range;

use chacha20::rand_core::{Rng, SeedableRng};
use chacha20::ChaCha8Rng;

/// From one signature to the next, bytes.
pub(crate) const SPACING_BYTES: u64 = 1 << 20;

/// Length of each, bytes; less where the file is shorter.
pub(crate) const SIGNATURE_BYTES: u64 = 32;

/// Block of the cipher that signs a file's last bytes: further than any MiB.
const END_BLOCK: u64 = 1 << 40;

/// The signatures of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signed {
    /// Of the data set.
    pub(crate) seed: u64,
    /// The file's place in it.
    pub(crate) number: u64,
    /// Its length, bytes.
    pub(crate) size: u64,
}

/// Random numbers of `seed` and `stream`, from the first on.
pub(crate) fn random(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    random
}

impl Signed {
    /// All signatures that lie in `range`, whole or in part: where each begins, and its bytes.
    pub(crate) fn within(self, range: Range<u64>) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let first = range.start.saturating_sub(SIGNATURE_BYTES - 1).div_ceil(SPACING_BYTES);
        let last = range.end.min(self.size).div_ceil(SPACING_BYTES);
        let starts = (first..last).map(move |block| (block * SPACING_BYTES, block));
        let end = self.end_start().filter(|start| range.end > *start && range.start < self.size);
        let places = starts.chain(end.map(|start| (start, END_BLOCK)));
        places.map(move |(start, block)| (start, self.bytes(start, block)))
    }

    /// Where `bytes`, which lie at `offset`, are not what they should be; `None` when they are.
    pub(crate) fn wrong_at(self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let range = offset..offset + bytes.len() as u64;
        self.within(range.clone()).find_map(|(start, wanted)| {
            let from = start.max(range.start);
            let until = (start + wanted.len() as u64).min(range.end);
            let here = &bytes[(from - offset) as usize..(until - offset) as usize];
            (here != &wanted[(from - start) as usize..(until - start) as usize]).then_some(start)
        })
    }

    /// What stands at `offset`, as many bytes as there is room for.
    pub(crate) fn put(self, offset: u64, room: &mut [u8]) {
        let range = offset..offset + room.len() as u64;
        room.fill(0);
        for (start, signature) in self.within(range.clone()) {
            let from = start.max(range.start);
            let until = (start + signature.len() as u64).min(range.end);
            let here = &mut room[(from - offset) as usize..(until - offset) as usize];
            here.copy_from_slice(&signature[(from - start) as usize..(until - start) as usize]);
        }
    }

    /// Where the last signature begins: behind the one of its MiB.
    fn end_start(self) -> Option<u64> {
        let block_start = self.size.checked_sub(1)? / SPACING_BYTES * SPACING_BYTES;
        let start = (block_start + SIGNATURE_BYTES).max(self.size.saturating_sub(SIGNATURE_BYTES));
        (start < self.size).then_some(start)
    }

    fn bytes(self, start: u64, block: u64) -> Vec<u8> {
        let mut bytes = vec![0; (self.size - start).min(SIGNATURE_BYTES) as usize];
        let mut random = random(self.seed, self.number);
        random.set_block_pos(block);
        random.fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(signed: Signed) -> Vec<u8> {
        let mut bytes = vec![1; signed.size as usize];
        for (index, piece) in bytes.chunks_mut(700_001).enumerate() {
            signed.put(index as u64 * 700_001, piece);
        }
        bytes
    }

    #[test]
    fn every_piece_of_a_file_fits_its_place_and_no_other() {
        for size in [1, 31, 32, 33, 40, 64, 5_000, SPACING_BYTES + 1, SPACING_BYTES + 40, 2 * SPACING_BYTES] {
            let signed = Signed { seed: 7, number: 3, size };
            let bytes = whole(signed);
            for piece in [1, 7, 31, 32, 1_000, 300_000] {
                for (index, chunk) in bytes.chunks(piece).enumerate() {
                    assert_eq!(signed.wrong_at((index * piece) as u64, chunk), None, "{size} in {piece}");
                }
            }
            for other in [Signed { seed: 8, ..signed }, Signed { number: 4, ..signed }] {
                assert_eq!(other.wrong_at(0, &bytes), Some(0));
            }
        }
    }

    #[test]
    fn a_shifted_range_and_a_wrong_end_are_noticed() {
        let signed = Signed { seed: 7, number: 0, size: 3 * SPACING_BYTES - 5 };
        let bytes = whole(signed);
        let block = SPACING_BYTES as usize;
        assert_eq!(signed.wrong_at(SPACING_BYTES, &bytes[..block]), Some(SPACING_BYTES));
        let mut damaged = bytes;
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(signed.wrong_at(0, &damaged), Some(signed.size - SIGNATURE_BYTES));
    }

    #[test]
    fn an_empty_file_has_no_signature() {
        assert_eq!(Signed { seed: 1, number: 0, size: 0 }.within(0..0).count(), 0);
    }
}
