// SPDX-License-Identifier: Apache-2.0
//! A link in simulated time: given parameters, when driven, then departures and lines.
#![allow(dead_code)]

use netjoule_link_model::airtime::Framing;
use netjoule_link_model::mcs::{Phy, Standard};
use netjoule_link_model::model::{Departure, Model};
use netjoule_link_model::path::ElementParams;
use netjoule_link_model::port::Port;
use netjoule_link_model::queue::QueueLimits;
use netjoule_link_model::saturation::UDP_IPV4_HEADER_BYTES;
use netjoule_link_model::station::StationParams;
use netjoule_link_model::stats::StationLine;

pub(crate) const S_NS: u64 = 1_000_000_000;
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

/// Parameters of a simulated link; the default is 216 Mb/s with up to 64 subframes.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) stations: usize,
    pub(crate) phy: Phy,
    pub(crate) subframe_limit: usize,
    pub(crate) spacing_ns: u64,
    pub(crate) cap_gap_ns: u64,
    pub(crate) queue_packets: usize,
    pub(crate) retry_limit: u32,
    pub(crate) mpdu_error_ratio: f64,
    pub(crate) paths: Vec<Vec<ElementParams>>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            stations: 1,
            phy: Phy::new(Standard::Ht, 13, None, 40, 800).unwrap(),
            subframe_limit: 64,
            spacing_ns: 8_000,
            cap_gap_ns: 0,
            queue_packets: 512,
            retry_limit: 7,
            mpdu_error_ratio: 0.0,
            paths: vec![Vec::new()],
        }
    }
}

impl Link {
    pub(crate) fn framing(&self) -> Framing {
        Framing::new(self.phy, self.subframe_limit, self.spacing_ns)
    }

    pub(crate) fn limits(&self) -> QueueLimits {
        QueueLimits {
            packets: self.queue_packets,
            packet_gap_ns: self.cap_gap_ns,
            retry_limit: self.retry_limit,
        }
    }

    pub(crate) fn model(&self, seed: u64) -> Model<u64> {
        let station = |index| StationParams {
            name: format!("s{index}"),
            framing: self.framing(),
            limits: self.limits(),
            mpdu_error_ratio: self.mpdu_error_ratio,
        };
        Model::new(seed, (0..self.stations).map(station).collect(), &self.paths, 0, INTERVAL_NS)
    }
}

/// An element that takes so long and does nothing else.
pub(crate) fn delayed(delay_ms: u64) -> ElementParams {
    ElementParams { delay_ns: delay_ms * 1_000_000, ..ElementParams::default() }
}

/// What came of a constant load.
pub(crate) struct Offered {
    pub(crate) offered: u64,
    pub(crate) delivered_pps: f64,
    pub(crate) drops: u64,
}

/// A model and everything it gave.
pub(crate) struct Rig {
    pub(crate) model: Model<u64>,
    pub(crate) delivered: Vec<Departure<u64>>,
    pub(crate) lines: Vec<StationLine>,
    pub(crate) sent: u64,
    stations: usize,
    queue_packets: usize,
    interval_end_ns: u64,
}

impl Rig {
    pub(crate) fn new(link: &Link, seed: u64) -> Self {
        Self {
            model: link.model(seed),
            delivered: Vec::new(),
            lines: Vec::new(),
            sent: 0,
            stations: link.stations,
            queue_packets: link.queue_packets,
            interval_end_ns: INTERVAL_NS,
        }
    }

    pub(crate) fn send(&mut self, now_ns: u64, from: Port, to: Port, ip_bytes: u32) {
        self.model.enqueue(now_ns, from, to, ip_bytes, self.sent);
        self.sent += 1;
    }

    /// Moves to `now_ns`, closing statistics intervals on the way.
    pub(crate) fn run_until(&mut self, now_ns: u64) {
        while self.interval_end_ns <= now_ns {
            let end_ns = self.interval_end_ns;
            self.model.advance(end_ns);
            self.interval_end_ns += INTERVAL_NS;
            self.lines.extend(self.model.close_interval(end_ns, self.interval_end_ns));
        }
        self.model.advance(now_ns);
        self.delivered.extend(std::iter::from_fn(|| self.model.poll_departure()));
    }

    pub(crate) fn saturate_up(&mut self, payload_bytes: u32, until_ns: u64) -> f64 {
        self.saturate(Port::Station(0), Port::Wired(0), payload_bytes, until_ns)
    }

    /// Keeps one queue full; gives back packets per second delivered.
    pub(crate) fn saturate(&mut self, from: Port, to: Port, payload_bytes: u32, until_ns: u64) -> f64 {
        self.keep_full(&[(from, to)], payload_bytes, until_ns);
        self.delivered.len() as f64 * S_NS as f64 / until_ns as f64
    }

    /// Keeps all stations' queues full.
    pub(crate) fn saturate_all(&mut self, payload_bytes: u32, until_ns: u64) {
        let flows: Vec<_> = (0..self.stations).map(|index| (Port::Station(index), Port::Wired(0))).collect();
        self.keep_full(&flows, payload_bytes, until_ns);
    }

    fn keep_full(&mut self, flows: &[(Port, Port)], payload_bytes: u32, until_ns: u64) {
        let ip_bytes = payload_bytes + UDP_IPV4_HEADER_BYTES;
        let mut inside = vec![0; flows.len()];
        let (mut seen, mut owners) = (0, Vec::new());
        let mut now_ns = 0;
        while now_ns < until_ns {
            for (flow, (from, to)) in flows.iter().enumerate() {
                while inside[flow] < self.queue_packets.min(128) {
                    self.send(now_ns, *from, *to, ip_bytes);
                    owners.push(flow);
                    inside[flow] += 1;
                }
            }
            now_ns = self.model.next_event_ns().unwrap_or(until_ns).min(until_ns);
            self.run_until(now_ns);
            for departure in &self.delivered[seen..] {
                inside[owners[departure.packet as usize]] -= 1;
            }
            seen = self.delivered.len();
        }
    }

    /// A constant load of IP packets from station 0 upwards.
    pub(crate) fn offer_up(&mut self, ip_bytes: u32, pps: f64, for_ns: u64) -> Offered {
        let count = (pps * for_ns as f64 / S_NS as f64) as u64;
        for index in 0..count {
            let now_ns = (index as f64 * S_NS as f64 / pps) as u64;
            self.run_until(now_ns);
            self.send(now_ns, Port::Station(0), Port::Wired(0), ip_bytes);
        }
        self.run_until(for_ns + S_NS);
        Offered {
            offered: count,
            delivered_pps: self.delivered.len() as f64 * S_NS as f64 / for_ns as f64,
            drops: self.model.totals(0).drops_tx,
        }
    }

    /// A window-limited stream up with a 52-byte acknowledgement down per two packets.
    pub(crate) fn stream_up(&mut self, payload_bytes: u32, window: usize, until_ns: u64) -> f64 {
        let ip_bytes = payload_bytes + 52;
        let (mut outstanding, mut seen, mut up, mut now_ns) = (0, 0, 0u64, 0);
        while now_ns < until_ns {
            while outstanding < window {
                self.send(now_ns, Port::Station(0), Port::Wired(0), ip_bytes);
                outstanding += 1;
            }
            now_ns = self.model.next_event_ns().unwrap_or(until_ns).min(until_ns);
            self.run_until(now_ns);
            for index in seen..self.delivered.len() {
                match self.delivered[index].to {
                    Port::Wired(_) => {
                        up += 1;
                        if up % 2 == 0 {
                            self.send(now_ns, Port::Wired(0), Port::Station(0), 52);
                        }
                    }
                    Port::Station(_) => outstanding -= 2,
                }
            }
            seen = self.delivered.len();
        }
        up as f64 * S_NS as f64 / until_ns as f64
    }
}
