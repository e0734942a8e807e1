// SPDX-License-Identifier: Apache-2.0
//! What the transport accepted: messages, their bytes, and the sizes of the last ones, which it may still give back. Pure.

use std::collections::VecDeque;

use crate::certificate::REMEMBERED;

/// Messages that the transport accepted.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    messages: u64,
    bytes: u64,
    /// Runs of messages of one size, the latest last: how many, and their size.
    latest: VecDeque<(u64, usize)>,
}

impl Accepted {
    /// Messages so far.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Their payload bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `messages` more, each of `size` bytes.
    pub(crate) fn add(&mut self, messages: u64, size: usize) {
        self.messages += messages;
        self.bytes += messages * size as u64;
        match self.latest.back_mut() {
            Some((count, same)) if *same == size => *count += messages,
            _ => self.latest.push_back((messages, size)),
        }
        if self.latest.len() > REMEMBERED {
            self.latest.pop_front();
        }
    }

    /// The latest message did not leave after all; its size. `None` when none is left.
    pub(crate) fn take_back(&mut self) -> Option<usize> {
        let (count, size) = self.latest.back_mut().filter(|(count, _)| *count > 0)?;
        let size = *size;
        *count -= 1;
        if *count == 0 {
            self.latest.pop_back();
        }
        self.messages -= 1;
        self.bytes -= size as u64;
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_latest_are_given_back_first() {
        let mut accepted = Accepted::default();
        accepted.add(2, 100);
        accepted.add(1, 100);
        accepted.add(1, 64);
        assert_eq!((accepted.messages(), accepted.bytes()), (4, 364));
        let back: Vec<_> = std::iter::from_fn(|| accepted.take_back()).collect();
        assert_eq!(back, [64, 100, 100, 100]);
        assert_eq!((accepted.messages(), accepted.bytes()), (0, 0));
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_enough(sizes in proptest::collection::vec(16_usize..40, 300..3_000)) {
            let mut accepted = Accepted::default();
            sizes.iter().for_each(|size| accepted.add(1, *size));
            prop_assert!(accepted.latest.len() <= REMEMBERED);
            let back: Vec<_> = (0..256).map(|_| accepted.take_back().unwrap()).collect();
            prop_assert!(back.iter().eq(sizes.iter().rev().take(256)));
            prop_assert_eq!(accepted.messages(), sizes.len() as u64 - 256);
        }
    }
}
