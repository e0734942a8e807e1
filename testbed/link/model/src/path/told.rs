// SPDX-License-Identifier: Apache-2.0
//! What is told of the routers on a path? Where they are, how they scale, and what they did in a step of time.

use serde::Serialize;

use super::config::ElementConfig;
use super::Acts;
use crate::scaling::Record;

/// An element whose rate may change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterTold {
    /// Its place in the path as it is described, from 1.
    pub element: usize,
    /// The kind of its `scaling`, or `varying`.
    pub kind: String,
}

impl RouterTold {
    /// Those of a path, towards its far end and back, in the order in which a packet meets them.
    pub fn ways(elements: &[ElementConfig]) -> [Vec<Self>; 2] {
        [Acts::Up, Acts::Down].map(|way| {
            let mut found = Self::one_way(elements, way);
            if way == Acts::Down {
                found.reverse();
            }
            found
        })
    }

    fn one_way(elements: &[ElementConfig], way: Acts) -> Vec<Self> {
        let of = |(index, element): (usize, &ElementConfig)| {
            let kind = match (&element.scaling, &element.varying) {
                (Some(scaling), _) => scaling.kind(),
                (None, Some(_)) => "varying",
                (None, None) => return None,
            };
            let acts = element.direction.unwrap_or_default();
            (acts == way || acts == Acts::Both).then(|| Self { element: index + 1, kind: kind.to_owned() })
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
    /// How late it was asked what to do; only on a real clock.
    #[serde(flatten)]
    pub ticks: Option<TicksTold>,
}

/// Ticks of a router: when it is asked for its rate, or wakes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TicksTold {
    /// How many.
    pub ticks: u64,
    /// How late they were in the mean.
    pub tick_late_mean_us: f64,
    /// The latest one.
    pub tick_late_max_us: f64,
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
            ticks: (record.ticks.count > 0).then(|| TicksTold {
                ticks: record.ticks.count,
                tick_late_mean_us: record.ticks.mean_us(),
                tick_late_max_us: record.ticks.max_us(),
            }),
        }
    }
}
