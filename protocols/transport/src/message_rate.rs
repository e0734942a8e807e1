// SPDX-License-Identifier: Apache-2.0
//! Does a sending end have so many messages that calls are shared?
//!
//! One rule for every transport that puts each message into a datagram by itself (UDP, DCCP), so that none is cheaper by it.
//! Of a flow of one size its rate tells. Of one of several sizes the rate only tells how many of the largest there would
//! be, so those that pass are counted as well. Pure.

use crate::FlowSpec;

/// From this many messages a second on.
pub const MANY_PPS: u64 = 100_000;
/// Messages are counted over this time, ns: a sender that catches up is not a fast flow.
const COUNTED_NS: i64 = 100_000_000;

/// The message rate of one flow.
#[derive(Debug, Clone, Default)]
pub struct MessageRate {
    is_fast: bool,
    largest_bytes: usize,
    /// A message of another size was seen.
    is_mixed: bool,
    since_ns: Option<i64>,
    messages: u64,
}

impl MessageRate {
    /// As far as the flow's rate tells.
    pub fn of(flow: &FlowSpec) -> Self {
        let is_fast = flow.rate_bps / (8 * flow.payload_bytes.max(1) as u64) >= MANY_PPS;
        Self { is_fast, largest_bytes: flow.payload_bytes, ..Self::default() }
    }

    /// Whether calls are shared.
    pub fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// Messages of `payload_bytes` pass at `now_ns`.
    pub fn count(&mut self, messages: usize, payload_bytes: usize, now_ns: i64) {
        self.is_mixed |= payload_bytes != self.largest_bytes;
        if self.is_fast || !self.is_mixed {
            return;
        }
        let passed_ns = now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns));
        if passed_ns >= COUNTED_NS {
            self.is_fast =
                u128::from(self.messages) * 1_000_000_000 >= u128::from(MANY_PPS) * passed_ns as u128;
            (self.since_ns, self.messages) = (Some(now_ns), 0);
        }
        self.messages += messages as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Values};

    fn flow(payload_bytes: usize, rate_bps: u64) -> FlowSpec {
        FlowSpec {
            payload_bytes,
            role: Role::Sender,
            token: [0; 16],
            gso: false,
            seed: 0,
            rate_bps,
            options: Values::new(),
            event_log: None,
        }
    }

    /// Whether a flow is found fast whose messages have these sizes in turn, `gap_ns` apart.
    fn found_fast(sizes: &[usize], gap_ns: i64) -> bool {
        let mut pace = MessageRate::of(&flow(1440, 1));
        for (index, size) in (0..100_000_i64).zip(sizes.iter().cycle()) {
            pace.count(1, *size, index * gap_ns);
        }
        pace.is_fast()
    }

    #[test]
    fn the_rate_of_a_flow_of_one_size_tells() {
        assert!(!MessageRate::of(&flow(64, 51_199_999)).is_fast());
        assert!(MessageRate::of(&flow(64, 51_200_000)).is_fast());
    }

    #[test]
    fn messages_of_several_sizes_are_counted() {
        assert!(found_fast(&[64, 1440], 10_000));
        assert!(found_fast(&[64], 5_000));
        assert!(!found_fast(&[64, 1440], 10_200));
        // Its rate has said what it is; a moment of catching up says nothing else.
        assert!(!found_fast(&[1440], 5_000));
    }

    #[test]
    fn catching_up_is_not_fast() {
        let mut pace = MessageRate::of(&flow(1440, 1));
        pace.count(1, 64, 0);
        for _ in 0..5_000 {
            pace.count(1, 64, 50_000_000);
        }
        pace.count(1, 64, COUNTED_NS);
        assert!(!pace.is_fast());
    }
}
