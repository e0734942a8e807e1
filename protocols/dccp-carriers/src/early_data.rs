// SPDX-License-Identifier: Apache-2.0
//! Messages that arrived while the receiving end still waited for its cue, kept until it asks for them.

use netjoule_transport::Arrival;

/// Bytes kept at most; what comes on top is lost, counts as lost, and the sender is told (Data Dropped).
const MOST_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct EarlyData {
    bytes: Vec<u8>,
    /// End of each message in `bytes`, and its arrival.
    messages: Vec<(usize, i64)>,
}

impl EarlyData {
    /// Keep a message; false when there is no room for it.
    pub(crate) fn keep(&mut self, arrival: Arrival<'_>) -> bool {
        let fits = self.bytes.len() + arrival.bytes.len() <= MOST_BYTES;
        if fits {
            self.bytes.extend_from_slice(arrival.bytes);
            self.messages.push((self.bytes.len(), arrival.arrived_ns));
        }
        fits
    }

    /// Hand everything to `sink`; how many messages it was.
    pub(crate) fn give(self, sink: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let mut start = 0;
        for (end, arrived_ns) in &self.messages {
            sink(Arrival { bytes: &self.bytes[start..*end], arrived_ns: *arrived_ns });
            start = *end;
        }
        self.messages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_early_comes_out_in_order_within_bounds() {
        let mut early = EarlyData::default();
        assert!(early.keep(Arrival { bytes: b"one", arrived_ns: 1 }));
        assert!(!early.keep(Arrival { bytes: &vec![0; MOST_BYTES], arrived_ns: 2 }));
        assert!(early.keep(Arrival { bytes: b"three", arrived_ns: 3 }));
        let mut seen = Vec::new();
        let count = early.give(&mut |arrival| seen.push((arrival.bytes.to_vec(), arrival.arrived_ns)));
        assert_eq!((count, seen), (2, vec![(b"one".to_vec(), 1), (b"three".to_vec(), 3)]));
    }
}
