// SPDX-License-Identifier: Apache-2.0
//! Messages that wait for congestion control: a ring in one piece of memory.

/// A bounded queue of messages. Memory is taken once, when the first message comes.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    slots: Vec<u8>,
    lengths: Vec<u32>,
    slot_bytes: usize,
    capacity: usize,
    head: usize,
    count: usize,
}

impl SendQueue {
    /// For at most `capacity` messages of mostly at most `slot_bytes`.
    pub(crate) fn new(capacity: usize, slot_bytes: usize) -> Self {
        Self { slots: Vec::new(), lengths: Vec::new(), slot_bytes, capacity, head: 0, count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Take a copy of a message; false when full.
    pub(crate) fn push(&mut self, message: &[u8]) -> bool {
        if self.count >= self.capacity {
            return false;
        }
        if message.len() > self.slot_bytes || self.slots.is_empty() {
            self.grow(message.len());
        }
        let place = (self.head + self.count) % self.capacity;
        let start = place * self.slot_bytes;
        self.slots[start..start + message.len()].copy_from_slice(message);
        self.lengths[place] = message.len() as u32;
        self.count += 1;
        true
    }

    /// The oldest message.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        if self.count == 0 {
            return None;
        }
        let start = self.head * self.slot_bytes;
        Some(&self.slots[start..start + self.lengths[self.head] as usize])
    }

    /// Forget the oldest message.
    pub(crate) fn pop(&mut self) {
        if self.count > 0 {
            self.head = (self.head + 1) % self.capacity;
            self.count -= 1;
        }
    }

    /// Forget all messages; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.count)
    }

    /// Forget messages longer than `limit` bytes; how many there were.
    pub(crate) fn discard_longer_than(&mut self, limit: usize) -> usize {
        let before = self.count;
        for _ in 0..before {
            let start = self.head * self.slot_bytes;
            let bytes = self.lengths[self.head] as usize;
            let message = self.slots[start..start + bytes].to_vec();
            self.pop();
            if bytes <= limit {
                self.push(&message);
            }
        }
        before - self.count
    }

    /// First use, or a larger MTU than before: lay the slots out anew.
    fn grow(&mut self, payload_bytes: usize) {
        let slot_bytes = self.slot_bytes.max(payload_bytes).max(1);
        let mut slots = vec![0; slot_bytes * self.capacity];
        let mut lengths = vec![0; self.capacity];
        for (index, length) in lengths.iter_mut().enumerate().take(self.count) {
            let place = (self.head + index) % self.capacity;
            let (old, new) = (place * self.slot_bytes, index * slot_bytes);
            let bytes = self.lengths[place] as usize;
            slots[new..new + bytes].copy_from_slice(&self.slots[old..old + bytes]);
            *length = self.lengths[place];
        }
        self.slots = slots;
        self.lengths = lengths;
        self.slot_bytes = slot_bytes;
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_around_the_ring_and_across_growth() {
        let mut queue = SendQueue::new(3, 4);
        assert!(queue.front().is_none());
        assert!(queue.push(b"a") && queue.push(b"") && queue.push(b"ccc"));
        assert!(!queue.push(b"d"));
        queue.pop();
        assert_eq!(queue.front(), Some(&b""[..]));
        assert!(queue.push(b"longer than a slot"));
        queue.pop();
        assert_eq!(queue.front(), Some(&b"ccc"[..]));
        queue.pop();
        assert_eq!(queue.front(), Some(&b"longer than a slot"[..]));
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.clear(), 1);
        assert!(queue.is_empty());
    }

    #[test]
    fn without_room_nothing_is_taken() {
        assert!(!SendQueue::new(0, 4).push(b"a"));
    }
}
