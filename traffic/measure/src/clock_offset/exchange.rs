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
pub(super) mod tests;
