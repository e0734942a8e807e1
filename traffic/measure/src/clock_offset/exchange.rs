// SPDX-License-Identifier: Apache-2.0
//! Time stamps that went to the other end and back, and which of them are kept. Pure.

use serde::{Deserialize, Serialize};

/// Exchanges before a flow, and again after it.
pub const EXCHANGES: usize = 8;
/// Exchanges kept: a long flow keeps the narrowest of neighbours.
const MOST_KEPT: usize = 128;

/// One exchange: sent and received again here, received and answered there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Here, when the question left.
    pub asked_ns: i64,
    /// There, when it arrived.
    pub arrived_ns: i64,
    /// There, when the answer left.
    pub answered_ns: i64,
    /// Here, when the answer arrived.
    pub heard_ns: i64,
}

impl Exchange {
    /// The other clock is ahead by no more, when the question left.
    pub(super) fn most_ns(&self) -> i64 {
        self.arrived_ns.saturating_sub(self.asked_ns)
    }

    /// The other clock is ahead by no less, when the answer arrived.
    pub(super) fn least_ns(&self) -> i64 {
        self.answered_ns.saturating_sub(self.heard_ns)
    }

    /// Time on the way, there and back.
    pub(super) fn round_trip_ns(&self) -> i64 {
        self.most_ns().saturating_sub(self.least_ns())
    }
}

/// Keep `exchange` among the others. Of a long flow's the first and the last [`EXCHANGES`] stay, and of those between
/// the quicker of each two, so that memory is bounded and the span is whole.
pub fn keep(exchanges: &mut Vec<Exchange>, exchange: Exchange) {
    exchanges.push(exchange);
    if exchanges.len() <= MOST_KEPT {
        return;
    }
    let last = exchanges.split_off(exchanges.len() - EXCHANGES);
    let between = exchanges.split_off(EXCHANGES);
    let quicker = between.chunks(2).filter_map(|pair| pair.iter().min_by_key(|one| one.round_trip_ns()));
    exchanges.extend(quicker.copied().chain(last));
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An exchange at `asked_ns` with a server clock that is `ahead(client time)`.
    pub(crate) fn exchange(asked_ns: i64, there: i64, back: i64, ahead: impl Fn(i64) -> i64) -> Exchange {
        let (heard_there, answered_there) = (asked_ns + there, asked_ns + there + 5_000);
        Exchange {
            asked_ns,
            arrived_ns: heard_there + ahead(heard_there),
            answered_ns: answered_there + ahead(answered_there),
            heard_ns: answered_there + back,
        }
    }

    #[test]
    fn a_long_flow_keeps_its_first_its_last_and_the_quickest_between() {
        let mut kept = Vec::new();
        for index in 0..10_000 {
            let delay = if index % 4 == 0 { 1_000 } else { 9_000 };
            keep(&mut kept, exchange(index * 1_000_000_000, delay, delay, |_| 0));
            assert!(kept.len() <= MOST_KEPT);
        }
        assert_eq!(kept[0].asked_ns, 0);
        assert_eq!(kept[EXCHANGES - 1].asked_ns, (EXCHANGES as i64 - 1) * 1_000_000_000);
        assert_eq!(kept.last().unwrap().asked_ns, 9_999_000_000_000);
        assert!(kept.windows(2).all(|pair| pair[0].asked_ns < pair[1].asked_ns));
        let quick = kept.iter().filter(|one| one.round_trip_ns() == 2_000).count();
        assert!(quick > kept.len() / 3, "{quick} of {}", kept.len());
    }
}
