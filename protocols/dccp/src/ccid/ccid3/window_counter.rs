// SPDX-License-Identifier: Apache-2.0
//! CCVal: the window counter that rises every quarter of a round trip (RFC 4342 section 8.1).

use super::NS_PER_S;

/// Most that the counter may rise between two data packets.
const MAX_STEP: u64 = 5;
/// A packet that acknowledges counter n lets the next be at least n + 4.
const ROUND_TRIP: u64 = 4;

/// The counter, counted on past 15.
#[derive(Debug, Default)]
pub(super) struct WindowCounter {
    sent: u64,
    next: u64,
    since_ns: Option<i64>,
}

impl WindowCounter {
    /// Counter of a packet that leaves now. `rtt_ns` may be unknown.
    pub(super) fn advance(&mut self, now_ns: i64, rtt_ns: Option<f64>) -> u64 {
        //= rfc4342#8.1
        //# Therefore, the sender SHOULD use the following
        //# algorithm for setting CCVal.
        // Without an estimate one second, so that a receiver answers each packet of a sender at its initial rate.
        let quarter_ns = rtt_ns.unwrap_or(NS_PER_S) / 4.0;
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let quarters = (now_ns.saturating_sub(since_ns).max(0) as f64 / quarter_ns) as u64;
        if quarters > 0 {
            self.next += quarters.min(MAX_STEP);
            self.since_ns = Some(now_ns);
        }
        //= rfc4342#8.1
        //# The sender MUST avoid wrapping CCVal on
        //# adjacent packets, as might happen, for example, if two data-carrying
        //# packets were sent 4 round-trip times apart with no packets
        //# intervening.
        self.next = self.next.min(self.sent + MAX_STEP);
        self.next
    }

    /// A data packet left with the counter that [`Self::advance`] gave.
    pub(super) fn on_sent(&mut self) {
        self.sent = self.next;
    }

    /// Counter of the last data packet.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// A packet that was sent with `counter` is acknowledged.
    pub(super) fn on_acknowledged(&mut self, now_ns: i64, counter: u64) {
        //= rfc4342#8.1
        //# In particular, after receiving an acknowledgement for a packet sent
        //# with window counter WC, the sender SHOULD increase its window
        //# counter, if necessary, so that subsequent packets have window counter
        //# value at least (WC + 4) mod 16.
        if self.next < counter + ROUND_TRIP {
            self.next = counter + ROUND_TRIP;
            self.since_ns = Some(now_ns);
        }
    }
}
