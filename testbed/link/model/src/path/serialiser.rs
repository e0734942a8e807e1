// SPDX-License-Identifier: Apache-2.0
//! When is a packet through a link of limited rate? It waits in a drop-tail queue, then takes its size over the rate.

use std::collections::VecDeque;

use super::element::{tally, Dropped, Element, Parcel};
use crate::tally::Tally;

const NEVER: u64 = u64::MAX;

/// What a queue holds at most, the packet in service counted in; the tighter limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// Packets of any size.
    pub packets: usize,
    /// Bytes.
    pub bytes: u64,
}

impl QueueLimit {
    /// A queue that is counted in packets alone.
    pub fn packets(packets: usize) -> Self {
        Self { packets, bytes: u64::MAX }
    }
}

/// A queue and what serves it. A packet's service time is fixed when its service starts, so that a new rate counts from the
/// next packet on.
#[derive(Debug)]
pub struct Serialiser<P> {
    rate_mbps: f64,
    limit: QueueLimit,
    waiting: VecDeque<Parcel<P>>,
    waiting_bits: u64,
    in_service: Option<(u64, Parcel<P>)>,
    stalled_until_ns: u64,
    ready: VecDeque<Parcel<P>>,
}

impl<P> Serialiser<P> {
    /// An empty queue before a link of `rate_mbps`, above 0.
    pub fn new(rate_mbps: f64, limit: QueueLimit) -> Self {
        Self {
            rate_mbps,
            limit,
            waiting: VecDeque::new(),
            waiting_bits: 0,
            in_service: None,
            stalled_until_ns: 0,
            ready: VecDeque::new(),
        }
    }

    /// Serves at another rate from the next packet on, which is not sent before `stall_ns` have passed. What is being sent
    /// goes on as it began.
    pub fn switch(&mut self, now_ns: u64, rate_mbps: f64, stall_ns: u64) {
        self.rate_mbps = rate_mbps;
        self.stalled_until_ns = self.stalled_until_ns.max(now_ns + stall_ns);
    }

    /// Sends nothing more until [`Self::release`]; what is being sent goes on.
    pub fn hold(&mut self) {
        self.stalled_until_ns = NEVER;
    }

    /// Sends again from `now_ns` on.
    pub fn release(&mut self, now_ns: u64) {
        self.stalled_until_ns = now_ns;
        if self.in_service.is_none() {
            self.start(now_ns);
        }
    }

    /// True while nothing waits and nothing is being sent.
    pub fn is_idle(&self) -> bool {
        self.in_service.is_none() && self.waiting.is_empty()
    }

    /// Packets that wait, without the one in service.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Bits that wait, without the packet in service.
    pub fn waiting_bits(&self) -> u64 {
        self.waiting_bits
    }

    fn has_room(&self, ip_bytes: u32) -> bool {
        let served = self.in_service.as_ref().map(|(_, parcel)| parcel);
        let held_bits = self.waiting_bits + served.map_or(0, Parcel::bits);
        self.waiting.len() + usize::from(served.is_some()) < self.limit.packets
            && held_bits / 8 + u64::from(ip_bytes) <= self.limit.bytes
    }

    fn start(&mut self, at_ns: u64) {
        if let Some(parcel) = self.waiting.pop_front() {
            self.waiting_bits -= parcel.bits();
            let service_ns = (parcel.bits() as f64 * 1e3 / self.rate_mbps).round() as u64;
            self.in_service = Some((at_ns + service_ns, parcel));
        }
    }
}

impl<P> Element<P> for Serialiser<P> {
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        if !self.has_room(parcel.ip_bytes) {
            return Err(Dropped::Full);
        }
        self.waiting_bits += parcel.bits();
        self.waiting.push_back(parcel);
        if self.in_service.is_none() && now_ns >= self.stalled_until_ns {
            self.start(now_ns);
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        match &self.in_service {
            Some((end_ns, _)) => Some(*end_ns),
            None if self.waiting.is_empty() || self.stalled_until_ns == NEVER => None,
            None => Some(self.stalled_until_ns),
        }
    }

    fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            self.ready.extend(self.in_service.take().map(|(_, parcel)| parcel));
            if at_ns >= self.stalled_until_ns {
                self.start(at_ns);
            }
        }
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        self.ready.pop_front()
    }

    fn held(&self) -> Tally {
        let served = self.in_service.iter().map(|(_, parcel)| parcel);
        tally(self.ready.iter().chain(served).chain(&self.waiting))
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.waiting_bits = 0;
        let served = self.in_service.take().map(|(_, parcel)| parcel);
        self.ready.drain(..).chain(served).chain(self.waiting.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn filled(limit: QueueLimit, packets: u32) -> (Serialiser<u32>, usize) {
        let mut link = Serialiser::new(8.0, limit);
        let taken = (0..packets)
            .filter(|packet| link.enqueue(0, Parcel { packet: Some(*packet), ip_bytes: 1000 }).is_ok())
            .count();
        (link, taken)
    }

    /// When each packet leaves.
    fn times(link: &mut Serialiser<u32>) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at_ns) = link.next_event_ns() {
            link.advance(at_ns);
            times.extend(link.poll().map(|_| at_ns));
        }
        times
    }

    #[test]
    fn a_packet_takes_its_size_over_the_rate() {
        assert_eq!(times(&mut filled(QueueLimit::packets(9), 3).0), [MS, 2 * MS, 3 * MS]);
    }

    #[test]
    fn the_packet_in_service_counts_until_it_has_left() {
        for limit in [QueueLimit::packets(3), QueueLimit { packets: 9, bytes: 3000 }] {
            let (mut link, taken) = filled(limit, 5);
            assert_eq!((taken, link.waiting(), link.waiting_bits()), (3, 2, 16_000));
            link.advance(MS);
            assert_eq!(link.enqueue(MS, Parcel { packet: Some(9), ip_bytes: 1000 }), Ok(()));
            assert_eq!(link.enqueue(MS, Parcel { packet: Some(9), ip_bytes: 1000 }), Err(Dropped::Full));
        }
    }

    #[test]
    fn a_new_rate_counts_from_the_next_packet_on_and_after_the_stall() {
        let (mut link, _) = filled(QueueLimit::packets(9), 3);
        link.switch(MS / 2, 4.0, MS);
        // The first ends as it began; the second starts a millisecond after the switch and takes two.
        assert_eq!(times(&mut link), [MS, 3 * MS + MS / 2, 5 * MS + MS / 2]);
        link.switch(6 * MS, 8.0, MS);
        link.enqueue(6 * MS, Parcel { packet: Some(9), ip_bytes: 1000 }).unwrap();
        assert_eq!(times(&mut link), [8 * MS]);
    }

    #[test]
    fn all_is_taken_out_in_its_order() {
        let (mut link, _) = filled(QueueLimit::packets(9), 3);
        link.advance(MS);
        let packets: Vec<_> = link.drain().into_iter().filter_map(|parcel| parcel.packet).collect();
        assert_eq!((packets, link.held(), link.next_event_ns()), (vec![0, 1, 2], Tally::default(), None));
    }
}
