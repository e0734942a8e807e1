// SPDX-License-Identifier: Apache-2.0
//! What did each station send and receive in each interval?
//!
//! Air time is split exactly at interval borders; counts belong to the interval of their event.
//! All directions are the station's: `tx` = station to access point.

use serde::{Serialize, Serializer};

use crate::access::AccessStep;
use crate::mcs::Phy;

/// Direction as the station sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Station to access point.
    Tx,
    /// Access point to station.
    Rx,
}

impl Direction {
    /// The other direction, in which answers travel.
    pub fn back(self) -> Self {
        match self {
            Self::Tx => Self::Rx,
            Self::Rx => Self::Tx,
        }
    }
}

/// Counts of one station over some time, and what of them is told of an interval (link_stats.schema.json).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Air time of what the station sends: data PPDUs, and the acknowledgements it answers with.
    #[serde(rename = "airtime_tx_s", serialize_with = "seconds")]
    pub airtime_tx_ns: u64,
    /// Air time of what it receives: data PPDUs sent to it, and acknowledgements of its own.
    #[serde(rename = "airtime_rx_s", serialize_with = "seconds")]
    pub airtime_rx_ns: u64,
    /// MPDUs sent, retransmissions included.
    pub frames_tx: u64,
    /// MPDUs that arrived at the station.
    pub frames_rx: u64,
    /// Data PPDUs sent.
    pub ppdus_tx: u64,
    /// Data PPDUs to the station that did not collide.
    pub ppdus_rx: u64,
    /// MPDUs the station sent again.
    #[serde(rename = "retries")]
    pub retries_tx: u64,
    /// MPDUs the access point sent again to it.
    pub retries_rx: u64,
    /// Packets dropped on the way up: queue full or retry limit.
    #[serde(rename = "drops")]
    pub drops_tx: u64,
    /// Packets dropped on the way down.
    pub drops_rx: u64,
    /// Packets delivered to the access point.
    #[serde(skip)]
    pub packets_tx: u64,
    /// Packets delivered to the station.
    #[serde(skip)]
    pub packets_rx: u64,
}

fn seconds<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*ns as f64 / 1e9)
}

impl Counters {
    /// The air time counter of a direction.
    pub fn airtime_ns(&mut self, direction: Direction) -> &mut u64 {
        match direction {
            Direction::Tx => &mut self.airtime_tx_ns,
            Direction::Rx => &mut self.airtime_rx_ns,
        }
    }

    /// The drop counter of a direction.
    pub fn drops(&mut self, direction: Direction) -> &mut u64 {
        match direction {
            Direction::Tx => &mut self.drops_tx,
            Direction::Rx => &mut self.drops_rx,
        }
    }

    fn add(&mut self, other: &Self) {
        self.airtime_tx_ns += other.airtime_tx_ns;
        self.airtime_rx_ns += other.airtime_rx_ns;
        self.frames_tx += other.frames_tx;
        self.frames_rx += other.frames_rx;
        self.ppdus_tx += other.ppdus_tx;
        self.ppdus_rx += other.ppdus_rx;
        self.retries_tx += other.retries_tx;
        self.retries_rx += other.retries_rx;
        self.drops_tx += other.drops_tx;
        self.drops_rx += other.drops_rx;
        self.packets_tx += other.packets_tx;
        self.packets_rx += other.packets_rx;
    }
}

/// Counters of one station: the running interval, what already reaches into the next, and totals.
#[derive(Clone, Debug, Default)]
pub struct StationBook {
    end_ns: u64,
    current: Counters,
    next: Counters,
    closed: Counters,
}

impl StationBook {
    /// A book whose first interval ends at `end_ns`.
    pub fn new(end_ns: u64) -> Self {
        Self { end_ns, ..Self::default() }
    }

    /// The counters an event at `at_ns` belongs to.
    pub fn at(&mut self, at_ns: u64) -> &mut Counters {
        if at_ns < self.end_ns {
            &mut self.current
        } else {
            &mut self.next
        }
    }

    /// Adds the air time of `[start_ns, end_ns)`, split at the border.
    pub fn air(&mut self, direction: Direction, start_ns: u64, end_ns: u64) {
        let border_ns = self.end_ns.clamp(start_ns, end_ns);
        *self.current.airtime_ns(direction) += border_ns - start_ns;
        *self.next.airtime_ns(direction) += end_ns - border_ns;
    }

    /// Closes the running interval; the next one ends at `end_ns`.
    pub fn close(&mut self, end_ns: u64) -> Counters {
        let closed = std::mem::take(&mut self.current);
        self.current = std::mem::take(&mut self.next);
        self.closed.add(&closed);
        self.end_ns = end_ns;
        closed
    }

    /// Counts since the start, the running interval included.
    pub fn total(&self) -> Counters {
        let mut total = self.closed;
        total.add(&self.current);
        total.add(&self.next);
        total
    }
}

/// One statistics line, link_stats.schema.json.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationLine {
    /// Version of the contract.
    pub schema_version: u32,
    /// Always `station`.
    pub kind: &'static str,
    /// Name of the station.
    pub station: String,
    /// Start of the interval, CLOCK_MONOTONIC.
    pub t_start_ns: u64,
    /// End of the interval.
    pub t_end_ns: u64,
    /// What happened in it.
    #[serde(flatten)]
    pub counters: Counters,
    /// Packets waiting in the station at the end of the interval.
    pub queue_packets: usize,
    /// Packets waiting for the station in the access point.
    pub queue_packets_rx: usize,
    /// PHY rate, Mb/s.
    pub phy_rate_mbps: f64,
    /// MCS index as `iw` prints it.
    pub mcs: u8,
    /// Spatial streams.
    pub streams: u8,
    /// Channel width, MHz.
    pub width_mhz: u16,
    /// Guard interval, ns.
    pub guard_interval_ns: u16,
    /// What its access network did, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessStep>,
}

impl StationLine {
    /// Puts a closed interval together. `queues`: packets waiting in the station, and for it.
    pub fn new(
        station: &str,
        span_ns: (u64, u64),
        counters: Counters,
        queues: (usize, usize),
        phy: &Phy,
    ) -> Self {
        Self {
            schema_version: 1,
            kind: "station",
            station: station.to_owned(),
            t_start_ns: span_ns.0,
            t_end_ns: span_ns.1,
            counters,
            queue_packets: queues.0,
            queue_packets_rx: queues.1,
            phy_rate_mbps: phy.rate_mbps(),
            mcs: phy.mcs(),
            streams: phy.streams(),
            width_mhz: phy.width_mhz(),
            guard_interval_ns: phy.guard_interval_ns(),
            access: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn air_time_is_split_at_the_border() {
        let mut book = StationBook::new(100);
        book.air(Direction::Tx, 90, 130);
        book.air(Direction::Rx, 110, 120);
        book.at(99).frames_tx += 1;
        book.at(100).frames_tx += 2;
        let first = book.close(200);
        assert_eq!((first.airtime_tx_ns, first.airtime_rx_ns, first.frames_tx), (10, 0, 1));
        let second = book.close(300);
        assert_eq!((second.airtime_tx_ns, second.airtime_rx_ns, second.frames_tx), (30, 10, 2));
        assert_eq!(book.total().airtime_tx_ns, 40);
    }
}
