// SPDX-License-Identifier: Apache-2.0
//! Sizes of data packets without headers: s, their average (RFC 5348 section 4.1), the largest, the last.

/// Loss intervals over which the average goes.
const INTERVALS: usize = 4;
/// Packets after which older ones of the same loss interval begin to count less.
const MEMORY_PACKETS: u64 = 4096;
/// Least weight of a packet in the average over the latest packets.
const RECENT_WEIGHT: f64 = 1.0 / 16.0;
/// The long average stays within this factor of the latest packets, so that an application that turns to other sizes for good
/// is not judged by the old ones for thousands of packets.
const MOST_LAG: f64 = 1.5;

/// Bytes and packets of one loss interval.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    bytes: u64,
    packets: u64,
}

/// The average.
#[derive(Debug)]
pub(super) struct SegmentSize {
    counts: [Count; INTERVALS],
    /// While nothing was sent.
    expected_bytes: f64,
    /// Average over the latest packets.
    recent_bytes: f64,
    /// Weight of the next packet in it: the first ones count alike, so that a short greeting is soon outweighed.
    next_weight: f64,
    bytes: f64,
    /// 0 while nothing was sent or waited.
    largest_bytes: f64,
    last_bytes: f64,
}

impl SegmentSize {
    pub(super) fn new(expected_bytes: usize) -> Self {
        let expected_bytes = expected_bytes.max(1) as f64;
        Self {
            counts: [Count::default(); INTERVALS],
            expected_bytes,
            recent_bytes: expected_bytes,
            next_weight: 1.0,
            bytes: expected_bytes,
            largest_bytes: 0.0,
            last_bytes: 1.0,
        }
    }

    /// s, at least 1.
    pub(super) const fn bytes(&self) -> f64 {
        self.bytes
    }

    /// The largest packet that was sent or waited; until then what is expected.
    pub(super) const fn largest_bytes(&self) -> f64 {
        if self.largest_bytes > 0.0 {
            self.largest_bytes
        } else {
            self.expected_bytes
        }
    }

    /// The last packet that left, 1 before.
    pub(super) const fn last_bytes(&self) -> f64 {
        self.last_bytes
    }

    /// A packet waits. While nothing was sent, it says more than what was expected.
    pub(super) fn expect(&mut self, payload_bytes: usize) {
        let payload_bytes = payload_bytes.max(1) as f64;
        self.largest_bytes = self.largest_bytes.max(payload_bytes);
        if self.has_sent_nothing() {
            self.expected_bytes = payload_bytes;
            self.update();
        }
    }

    fn has_sent_nothing(&self) -> bool {
        self.counts.iter().all(|count| count.packets == 0)
    }

    /// A data packet left.
    pub(super) fn on_sent(&mut self, payload_bytes: usize) {
        self.on_all_sent(1, payload_bytes);
    }

    /// `packets` of this size left.
    pub(super) fn on_all_sent(&mut self, packets: u64, payload_bytes: usize) {
        for _ in 0..packets {
            self.count(payload_bytes);
        }
        self.update();
    }

    fn count(&mut self, payload_bytes: usize) {
        self.last_bytes = payload_bytes as f64;
        self.largest_bytes = self.largest_bytes.max(self.last_bytes);
        self.recent_bytes += self.next_weight * (self.last_bytes - self.recent_bytes);
        self.next_weight = (self.next_weight / (1.0 + self.next_weight)).max(RECENT_WEIGHT);
        let current = &mut self.counts[0];
        current.bytes = current.bytes.saturating_add(payload_bytes as u64);
        current.packets += 1;
        if current.packets >= MEMORY_PACKETS {
            current.bytes /= 2;
            current.packets /= 2;
        }
    }

    /// A new loss interval began.
    pub(super) fn on_loss_event(&mut self) {
        //= rfc5348#4.1
        //# For the first class of applications where the segment size varies
        //# depending on the data, the sender SHOULD estimate the segment size,
        //# s, as the average segment size over the last four loss intervals.
        self.counts.rotate_right(1);
        self.counts[0] = Count::default();
    }

    fn update(&mut self) {
        let (bytes, packets) = self.counts.iter().fold((0_u64, 0_u64), |(bytes, packets), count| {
            (bytes.saturating_add(count.bytes), packets + count.packets)
        });
        self.bytes = if packets == 0 {
            self.expected_bytes
        } else {
            let (least, most) = (self.recent_bytes / MOST_LAG, self.recent_bytes * MOST_LAG);
            (bytes as f64 / packets as f64).clamp(least, most).max(1.0)
        };
    }
}
