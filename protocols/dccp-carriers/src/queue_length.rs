// SPDX-License-Identifier: Apache-2.0
//! How many messages may wait for congestion control.
//!
//! A queue that holds seconds would turn every overload into delay, one of a few messages would throw away what a
//! burst of acknowledgements lets go a moment later. 10 ms of the offered load is about what a device's queue holds.

use netjoule_sockets::datagram::GSO_SEGMENTS;
use netjoule_transport::FlowSpec;

const QUEUE_NS: u128 = 10_000_000;
const FEWEST: usize = 16;
/// Few trains: what is queued then stays in the processor's cache, and its burst in the peer's receive buffer.
const MOST: usize = 256;
/// One train: what is queued is copied twice and leaves packet by packet, what is offered while packets may leave is written
/// where it leaves from.
const MOST_WITH_GSO: usize = GSO_SEGMENTS;

/// 10 ms of the offered load, 16 messages at least, 256 at most, or with GSO 64.
pub(crate) fn messages(flow: &FlowSpec) -> usize {
    let bits = u128::from(flow.rate_bps) * QUEUE_NS / 1_000_000_000;
    let messages = bits / (8 * flow.payload_bytes.max(1) as u128);
    let most = if flow.gso { MOST_WITH_GSO } else { MOST };
    usize::try_from(messages).unwrap_or(most).clamp(FEWEST, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::{Role, Values};

    #[test]
    fn it_follows_the_offered_load_within_bounds() {
        let of = |gso, rate_bps, payload_bytes| {
            messages(&FlowSpec {
                payload_bytes,
                role: Role::Sender,
                token: [0; 16],
                gso,
                seed: 0,
                rate_bps,
                options: Values::new(),
                event_log: None,
            })
        };
        let messages = |rate_bps, payload_bytes| of(false, rate_bps, payload_bytes);
        assert_eq!(messages(0, 1440), 16);
        assert_eq!(messages(65_000, 300), 16);
        assert_eq!(messages(30_000_000, 1440), 26);
        assert_eq!(messages(10_000_000_000, 64), 256);
        assert_eq!((of(true, 0, 1440), of(true, 10_000_000_000, 64)), (16, 64));
    }
}
