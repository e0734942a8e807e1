// SPDX-License-Identifier: Apache-2.0
//! When does the receiving end of a fast flow look into its socket again?
//!
//! Not with every packet: a receiver that each packet wakes takes few at a time, and the waking is work of the core that
//! delivers packets (over loopback and veth the sender's). So after it has emptied the socket it leaves what arrives
//! with the kernel for a moment. The kernel stamps every arrival, so no figure depends on when a message is read. No other
//! transport can: its receiver has to answer what arrives. Pure.

use netjoule_transport::FlowSpec;

/// From this many messages a second on a receiver rests.
const FROM_PPS: u64 = 10_000;
/// A rest is as long as this many messages take to come ...
const MESSAGES: u64 = 32;
/// ... but short against what the receive buffer holds, and against an interval, ns ...
const LONGEST_NS: i64 = 500_000;
/// ... and long enough to be worth a timer where the rate is as high as it gets, ns.
const SHORTEST_NS: i64 = 100_000;

/// The rests of one receiving end.
#[derive(Debug, Default)]
pub(crate) struct ReceiveCoalescing {
    /// How long a rest is; `None` in a flow in which every message is read when it arrives.
    length_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl ReceiveCoalescing {
    /// The rests of the end that receives `flow`.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        let pps = flow.rate_bps / (8 * flow.payload_bytes.max(1) as u64);
        Self {
            length_ns: (pps >= FROM_PPS)
                .then(|| ((MESSAGES * 1_000_000_000 / pps) as i64).clamp(SHORTEST_NS, LONGEST_NS)),
            until_ns: None,
        }
    }

    /// How long a rest is in us; 0 where every message is read when it arrives.
    pub(crate) fn length_us(&self) -> f64 {
        self.length_ns.unwrap_or(0) as f64 * 1e-3
    }

    /// End of the rest, if this is one.
    pub(crate) fn until_ns(&self) -> Option<i64> {
        self.until_ns
    }

    /// Whether it lasts at `now_ns`. Its end is noticed here.
    pub(crate) fn lasts(&mut self, now_ns: i64) -> bool {
        self.until_ns = self.until_ns.filter(|until_ns| now_ns < *until_ns);
        self.until_ns.is_some()
    }

    /// The socket was read at `now_ns` and is empty. One that had nothing to give wakes its reader by itself.
    pub(crate) fn emptied(&mut self, had_any: bool, now_ns: i64) {
        self.until_ns = self.length_ns.filter(|_| had_any).map(|length_ns| now_ns.saturating_add(length_ns));
    }
}

#[cfg(test)]
mod tests {
    use netjoule_transport::{Role, Values};

    use super::*;

    fn rests_at(pps: u64) -> ReceiveCoalescing {
        ReceiveCoalescing::of(&FlowSpec {
            payload_bytes: 64,
            role: Role::Receiver,
            token: [0; 16],
            gso: false,
            seed: 0,
            rate_bps: pps * 64 * 8,
            options: Values::new(),
            event_log: None,
        })
    }

    #[test]
    fn a_fast_flow_rests_after_what_was_read_and_an_idle_one_waits_for_the_socket() {
        let mut rest = rests_at(100_000);
        assert!(!rest.lasts(0));
        rest.emptied(true, 50);
        assert_eq!(rest.until_ns(), Some(50 + 320_000));
        assert!(rest.lasts(49 + 320_000));
        assert!(!rest.lasts(50 + 320_000));
        assert_eq!(rest.until_ns(), None);
        rest.emptied(false, 60);
        assert_eq!(rest.until_ns(), None);
    }

    #[test]
    fn a_rest_gathers_some_messages_and_is_never_long() {
        for (pps, length_ns) in [(10_000, LONGEST_NS), (200_000, 160_000), (5_000_000, SHORTEST_NS)] {
            let mut rest = rests_at(pps);
            rest.emptied(true, 0);
            assert_eq!(rest.until_ns(), Some(length_ns), "{pps}");
            assert_eq!((rest.length_us() * 1e3).round() as i64, length_ns);
        }
    }

    #[test]
    fn a_slow_flow_never_rests() {
        let mut rest = rests_at(FROM_PPS - 1);
        rest.emptied(true, 50);
        assert!(!rest.lasts(50) && rest.until_ns().is_none());
        assert_eq!(rest.length_us(), 0.0);
    }
}
