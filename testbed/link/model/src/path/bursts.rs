// SPDX-License-Identifier: Apache-2.0
//! What else is on the path? Bursts of a source of its own: one each cycle, of exponential length, packets at a constant rate.
//!
//! The background traffic of Panarello et al. (AJEEE 13:1, 2016), Table I. A burst ends with its cycle at the latest.

use std::collections::VecDeque;

use super::element::{tally, Dropped, Element, Parcel};
use crate::rng::Rng;
use crate::tally::Tally;

/// Parameters of the bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstParams {
    /// Mean length of a burst, ns.
    pub mean_burst_ns: u64,
    /// From the start of one burst to that of the next, ns.
    pub cycle_ns: u64,
    /// Rate during a burst, Mb/s of IP bytes.
    pub rate_mbps: f64,
    /// Size of its packets.
    pub ip_bytes: u32,
}

/// The source: it adds its packets to those that pass.
#[derive(Debug)]
pub struct Bursts<P> {
    params: BurstParams,
    rng: Rng,
    cycle_start_ns: u64,
    burst_end_ns: u64,
    next_packet_ns: u64,
    sent: Tally,
    ready: VecDeque<Parcel<P>>,
}

impl<P> Bursts<P> {
    /// A source whose first cycle begins within one cycle of `start_ns`, by chance.
    pub fn new(params: BurstParams, mut rng: Rng, start_ns: u64) -> Self {
        let phase_ns = rng.uniform(0.0, params.cycle_ns as f64) as u64;
        let mut source = Self {
            params,
            rng,
            cycle_start_ns: start_ns + phase_ns,
            burst_end_ns: 0,
            next_packet_ns: 0,
            sent: Tally::default(),
            ready: VecDeque::new(),
        };
        source.draw();
        source
    }

    /// The burst of the cycle that begins at `cycle_start_ns`; after its last packet the next cycle's.
    fn draw(&mut self) {
        let length_ns = self.rng.exponential(self.params.mean_burst_ns as f64);
        self.burst_end_ns = self.cycle_start_ns + (length_ns as u64).min(self.params.cycle_ns);
        self.next_packet_ns = self.cycle_start_ns + self.gap_ns();
    }

    /// A packet is there when its last bit is.
    fn gap_ns(&self) -> u64 {
        (f64::from(self.params.ip_bytes) * 8e3 / self.params.rate_mbps).round().max(1.0) as u64
    }

    fn next_own_ns(&self) -> u64 {
        if self.is_over() {
            self.cycle_start_ns + self.params.cycle_ns
        } else {
            self.next_packet_ns
        }
    }

    fn is_over(&self) -> bool {
        self.next_packet_ns > self.burst_end_ns
    }
}

impl<P> Element<P> for Bursts<P> {
    fn enqueue(&mut self, _now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        self.ready.push_back(parcel);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        Some(self.next_own_ns())
    }

    fn advance(&mut self, now_ns: u64) {
        while self.next_own_ns() <= now_ns {
            if self.is_over() {
                self.cycle_start_ns += self.params.cycle_ns;
                self.draw();
            } else {
                self.sent.add(self.params.ip_bytes);
                self.ready.push_back(Parcel { packet: None, ip_bytes: self.params.ip_bytes });
                self.next_packet_ns += self.gap_ns();
            }
        }
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        self.ready.pop_front()
    }

    fn held(&self) -> Tally {
        tally(&self.ready)
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.ready.drain(..).collect()
    }

    fn sent(&self) -> Tally {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_their_mean_length_and_rate() {
        let params = BurstParams {
            mean_burst_ns: 100_000_000,
            cycle_ns: 1_000_000_000,
            rate_mbps: 12.0,
            ip_bytes: 1500,
        };
        let mut source: Bursts<()> = Bursts::new(params, Rng::new(1, 1), 0);
        let until_ns = 2_000 * params.cycle_ns;
        source.advance(until_ns);
        let packets = std::iter::from_fn(|| source.poll()).count() as f64;
        // A burst of 100 ms has 100 packets of 1 ms, less the half one that its end cuts off. Standard deviation of the
        // mean of 2,000 exponential lengths: 2.2 %.
        let mean = packets / 2_000.0;
        assert!((mean - 99.5).abs() < 7.0, "{mean}");
    }
}
