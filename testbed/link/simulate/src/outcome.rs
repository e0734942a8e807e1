// SPDX-License-Identifier: Apache-2.0
//! What came of a simulation, as it is told.

use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::Acts;
use netjoule_link_model::scaling::Record;
use serde::Serialize;

use crate::tcp::sender::SenderCounts;

/// The answer to a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Of the document.
    pub id: u64,
    /// Of this program.
    pub version: &'static str,
    /// Simulated time begins here.
    pub start_ns: u64,
    /// And ends here.
    pub end_ns: u64,
    /// Elements whose rate may change, in their order from the senders.
    pub routers: Vec<RouterTold>,
    /// In order of time.
    pub steps: Vec<Step>,
    /// Since the start, by flow.
    pub flows: Vec<FlowTotals>,
}

/// One step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its end; it begins where the one before ends.
    pub t_end_ns: u64,
    /// Packets acknowledged in order in it, by flow.
    pub acked_packets: Vec<u64>,
    /// Congestion windows at its end, by flow, packets.
    pub window_packets: Vec<f64>,
    /// What each of the routers did.
    pub routers: Vec<RouterStep>,
}

/// An element whose rate may change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterTold {
    /// Its place in the path, from 1.
    pub element: usize,
    /// The kind of its `scaling`, or `varying`.
    pub kind: String,
}

impl RouterTold {
    /// Those of a path; what acts towards the senders only is none.
    pub(crate) fn all_of(elements: &[ElementConfig]) -> Vec<Self> {
        let of = |(index, element): (usize, &ElementConfig)| {
            let kind = match (&element.scaling, &element.varying) {
                (Some(scaling), _) => scaling.kind(),
                (None, Some(_)) => "varying",
                (None, None) => return None,
            };
            let acts = element.direction.unwrap_or_default() != Acts::Down;
            acts.then(|| Self { element: index + 1, kind: kind.to_owned() })
        };
        elements.iter().enumerate().filter_map(of).collect()
    }
}

/// What a router did in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterStep {
    /// Service rate at the end.
    pub rate_mbps: f64,
    /// The highest that there is.
    pub max_rate_mbps: f64,
    /// Mean service rate.
    pub mean_rate_mbps: f64,
    /// Mean of (r / r_max)^3.
    pub mean_cubic: f64,
    /// Share of the time asleep.
    pub asleep_share: f64,
    /// Changes of the rate, or between sleep and waking.
    pub switches: u64,
    /// What came, packets.
    pub arrived_packets: u64,
    /// What came, bytes.
    pub arrived_bytes: u64,
    /// Of flows.
    pub flows_arrived_packets: u64,
    /// What found the queue full.
    pub dropped_packets: u64,
    /// Of flows.
    pub flows_dropped_packets: u64,
    /// What waits at the end.
    pub queue_packets: usize,
}

impl From<Record> for RouterStep {
    fn from(record: Record) -> Self {
        Self {
            rate_mbps: record.rate_mbps,
            max_rate_mbps: record.max_rate_mbps,
            mean_rate_mbps: record.mean_rate_mbps,
            mean_cubic: record.mean_cubic,
            asleep_share: record.asleep_share,
            switches: record.switches,
            arrived_packets: record.arrived.packets,
            arrived_bytes: record.arrived.bytes,
            flows_arrived_packets: record.flows_arrived.packets,
            dropped_packets: record.dropped.packets,
            flows_dropped_packets: record.flows_dropped.packets,
            queue_packets: record.queue_packets,
        }
    }
}

/// Totals of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlowTotals {
    /// Packets acknowledged in order.
    pub acked_packets: u64,
    /// Packets sent, those sent again included.
    pub sent_packets: u64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Losses noticed by duplicate acknowledgements.
    pub recoveries: u64,
}

impl FlowTotals {
    pub(crate) fn new(acked_packets: u64, counts: SenderCounts) -> Self {
        Self {
            acked_packets,
            sent_packets: counts.sent,
            resent_packets: counts.resent,
            timeouts: counts.timeouts,
            recoveries: counts.recoveries,
        }
    }
}
