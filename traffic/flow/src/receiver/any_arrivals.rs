// SPDX-License-Identifier: Apache-2.0
//! The books over any arrivals, without a transport: what the fuzz target `payload` drives.

pub use netjoule_transport::message::{is_whole, HEADER_BYTES};

use netjoule_transport::{Arrival, Kind};

use super::{Books, Expectation};
use crate::intervals::Interval;
use crate::metrics::tracker::Counts;
use netjoule_measure::clock_offset::Side;
use netjoule_measure::cpu::costs::Costs;

/// What the arrivals came to.
#[derive(Debug)]
pub struct Booked {
    /// Messages by what became of them.
    pub counts: Counts,
    /// Arrivals that were no messages of the flow.
    pub foreign: u64,
    /// Jitter of RFC 3550, ms.
    pub jitter_ms: Option<f64>,
    /// Intervals up to the last arrival.
    pub intervals: Vec<Interval>,
}

/// Book arrivals (bytes, time in ns, in order) of messages of `message_bytes`. This end's clock is `clock_ahead_ns` ahead
/// of the sender's, which says that it sent `sent` messages.
pub fn book(
    message_bytes: usize,
    interval_ns: i64,
    clock_ahead_ns: i64,
    arrivals: &[(&[u8], i64)],
    sent: u64,
) -> Booked {
    let end_ns = arrivals.last().map_or(0, |(_, at_ns)| *at_ns);
    let expected = Expectation {
        message_bytes,
        duration_ns: end_ns,
        is_counted: false,
        interval_ns,
        omit_ns: 0,
        clock_ahead_ns,
        kind: Kind::Datagram,
        side: Side::Server,
    };
    let costs = Costs::start();
    let usage = costs.at_start();
    let mut books = Books::new(&expected, 0, false, costs);
    for (bytes, arrived_ns) in arrivals {
        books.arrive(Arrival { bytes, arrived_ns: *arrived_ns });
    }
    let jitter_ms = books.jitter.ms();
    books.series.finish(end_ns, jitter_ms, usage);
    Booked {
        counts: books.tracker.finish(Some(sent)),
        foreign: books.foreign,
        jitter_ms,
        intervals: books.series.into_closed(),
    }
}
