// SPDX-License-Identifier: Apache-2.0
//! What flows got while all of them were on. Pure.
//!
//! A flow's own goodput is over its own time: one that drains late has the path for itself by then, so that such goodputs can
//! add up to more than the path carries. What is compared and added up must be of one time.

use crate::intervals::End;
use crate::report::{goodput_mbps, Direction, FlowReport};

/// A flow that has its report; of the series only what is needed here: 64 flows of an hour have millions of intervals.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Without intervals and congestion samples.
    pub(crate) report: FlowReport,
    /// What arrived, interval by interval, receiving end's clock.
    arrived: Vec<Arrived>,
}

#[derive(Debug, Clone, Copy)]
struct Arrived {
    start_ns: i64,
    end_ns: i64,
    bytes: u64,
}

impl Finished {
    /// Of a whole report.
    pub(crate) fn of(report: FlowReport) -> Self {
        let received = report.intervals.iter().filter(|interval| interval.end == End::Receiver);
        let arrived = received
            .map(|interval| Arrived {
                start_ns: interval.start_ns,
                end_ns: interval.end_ns,
                bytes: interval.bytes,
            })
            .collect();
        Self { report: FlowReport { intervals: Vec::new(), congestion: None, ..report }, arrived }
    }

    /// A time of the sending end by the client's clock; with direction down the server's tells it.
    pub(crate) fn sent_at_ns(&self, ns: i64) -> i64 {
        match self.report.direction {
            Direction::Up => ns,
            Direction::Down => ns.saturating_sub(self.report.clock_offset.offset_ns),
        }
    }

    /// A time of the client by the receiving end's clock.
    fn received_at_ns(&self, ns: i64) -> i64 {
        match self.report.direction {
            Direction::Up => ns.saturating_add(self.report.clock_offset.offset_ns),
            Direction::Down => ns,
        }
    }

    /// Goodput over the whole intervals inside `window`, of the client's clock; `None` without a receiver or an interval.
    pub(crate) fn goodput_mbps(&self, window: (i64, i64)) -> Option<f64> {
        self.report.receiver.as_ref()?;
        let (from_ns, to_ns) = (self.received_at_ns(window.0), self.received_at_ns(window.1));
        let inside = |one: &&Arrived| one.start_ns >= from_ns && one.end_ns <= to_ns;
        let (bytes, covered_ns) =
            self.arrived.iter().filter(inside).fold((0, 0), |(bytes, covered_ns), one| {
                (bytes + one.bytes, covered_ns + one.end_ns - one.start_ns)
            });
        (covered_ns > 0).then(|| goodput_mbps(bytes, covered_ns))
    }
}

/// The time when all flows were on, client's clock: from the last that began to the first whose schedule ended. `None` when
/// there is none.
pub(crate) fn window_ns<'a>(flows: impl Iterator<Item = &'a Finished> + Clone) -> Option<(i64, i64)> {
    let from_ns = flows.clone().map(|flow| flow.sent_at_ns(flow.report.sender.start_ns)).max()?;
    let ends = flows.map(|flow| {
        let sender = &flow.report.sender;
        let scheduled_ns = sender.start_ns.saturating_add((flow.report.duration_s * 1e9).round() as i64);
        flow.sent_at_ns(scheduled_ns.min(sender.end_ns))
    });
    ends.min().filter(|to_ns| *to_ns > from_ns).map(|to_ns| (from_ns, to_ns))
}
