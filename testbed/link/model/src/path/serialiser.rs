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

#[derive(Debug)]
struct Slot<P> {
    start_ns: u64,
    end_ns: u64,
    parcel: Parcel<P>,
}

/// A queue, the link that serves it, and the way behind it. A packet's service time is fixed when its service starts, so that a
/// new rate counts from the next packet on. Until then it is planned: one event a packet, when it is at the end of its way.
#[derive(Debug)]
pub struct Serialiser<P> {
    rate_mbps: f64,
    delay_ns: u64,
    limit: QueueLimit,
    packets: VecDeque<Slot<P>>,
    /// So many of them, from the front, are on their way by `now_ns`.
    ended: usize,
    /// And so many are in service or on their way.
    started: usize,
    /// Of those behind them.
    waiting_bits: u64,
    stalled_until_ns: u64,
    now_ns: u64,
}

impl<P> Serialiser<P> {
    /// An empty queue before a link of `rate_mbps`, above 0, and a way of `delay_ns`.
    pub fn new(rate_mbps: f64, limit: QueueLimit, delay_ns: u64) -> Self {
        Self {
            rate_mbps,
            delay_ns,
            limit,
            packets: VecDeque::new(),
            ended: 0,
            started: 0,
            waiting_bits: 0,
            stalled_until_ns: 0,
            now_ns: 0,
        }
    }

    /// Serves at another rate from the next packet on, which is not sent before `stall_ns` have passed. What is being sent
    /// goes on as it began.
    pub fn switch(&mut self, now_ns: u64, rate_mbps: f64, stall_ns: u64) {
        self.settle(now_ns);
        self.rate_mbps = rate_mbps;
        self.stalled_until_ns = self.stalled_until_ns.max(now_ns + stall_ns);
        self.plan(now_ns);
    }

    /// Sends nothing more until [`Self::release`]; what is being sent goes on.
    pub fn hold(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.stalled_until_ns = NEVER;
        self.plan(now_ns);
    }

    /// Sends again from `now_ns` on.
    pub fn release(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.stalled_until_ns = now_ns;
        self.plan(now_ns);
    }

    /// True while nothing waits and nothing is being sent.
    pub fn is_idle(&self) -> bool {
        self.ended == self.packets.len()
    }

    /// When the last packet that is there will have been sent; `None` while there is none, or nothing is sent.
    pub fn idle_ns(&self) -> Option<u64> {
        let last = self.packets.back()?;
        (!self.is_idle() && last.end_ns != NEVER).then_some(last.end_ns)
    }

    /// Packets that find a place now, as far as they are counted.
    pub fn room(&self) -> usize {
        self.limit.packets.saturating_sub(self.packets.len() - self.ended)
    }

    /// Packets that wait, without the one in service.
    pub fn waiting(&self) -> usize {
        self.packets.len() - self.started
    }

    /// Bits that wait, without the packet in service.
    pub fn waiting_bits(&self) -> u64 {
        self.waiting_bits
    }

    /// Moves to `now_ns`; at one moment a packet ends and the next one starts.
    fn settle(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        while self.packets.get(self.started).is_some_and(|slot| slot.start_ns <= now_ns) {
            self.waiting_bits -= self.packets[self.started].parcel.bits();
            self.started += 1;
        }
        while self.ended < self.started && self.packets[self.ended].end_ns <= now_ns {
            self.ended += 1;
        }
    }

    /// Gives those that have not started their times anew.
    fn plan(&mut self, now_ns: u64) {
        let in_service = self.started.checked_sub(1).map_or(0, |last| self.packets[last].end_ns);
        let mut free_ns = in_service.max(now_ns).max(self.stalled_until_ns);
        for slot in self.packets.range_mut(self.started..) {
            slot.start_ns = free_ns;
            slot.end_ns = free_ns.saturating_add(service_ns(&slot.parcel, self.rate_mbps));
            free_ns = slot.end_ns;
        }
        self.settle(now_ns);
    }

    fn has_room(&self, ip_bytes: u32) -> bool {
        self.room() > 0
            && (self.limit.bytes == u64::MAX
                || self.held_bits() / 8 + u64::from(ip_bytes) <= self.limit.bytes)
    }

    fn held_bits(&self) -> u64 {
        let served = self.packets.range(self.ended..self.started).map(|slot| slot.parcel.bits());
        self.waiting_bits + served.sum::<u64>()
    }
}

fn service_ns<P>(parcel: &Parcel<P>, rate_mbps: f64) -> u64 {
    // Rounded so, for `round` is a call on machines without SSE 4.1.
    (parcel.bits() as f64 * 1e3 / rate_mbps + 0.5) as u64
}

impl<P> Element<P> for Serialiser<P> {
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        self.settle(now_ns);
        if !self.has_room(parcel.ip_bytes) {
            return Err(Dropped::Full);
        }
        let free_ns = self.packets.back().map_or(0, |slot| slot.end_ns);
        let start_ns = free_ns.max(now_ns).max(self.stalled_until_ns);
        let end_ns = start_ns.saturating_add(service_ns(&parcel, self.rate_mbps));
        self.waiting_bits += parcel.bits();
        self.packets.push_back(Slot { start_ns, end_ns, parcel });
        if start_ns <= now_ns {
            self.settle(now_ns);
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let at_ns = self.packets.front()?.end_ns.saturating_add(self.delay_ns);
        (at_ns != NEVER).then_some(at_ns)
    }

    fn advance(&mut self, now_ns: u64) {
        self.settle(now_ns);
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        if self.next_event_ns()? > self.now_ns {
            return None;
        }
        self.ended -= 1;
        self.started -= 1;
        self.packets.pop_front().map(|slot| slot.parcel)
    }

    fn held(&self) -> Tally {
        tally(self.packets.iter().map(|slot| &slot.parcel))
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        (self.ended, self.started, self.waiting_bits) = (0, 0, 0);
        self.packets.drain(..).map(|slot| slot.parcel).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn filled(limit: QueueLimit, packets: u32) -> (Serialiser<u32>, usize) {
        let mut link = Serialiser::new(8.0, limit, 0);
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
    fn the_way_behind_the_link_takes_no_room_in_the_queue() {
        let mut link = Serialiser::new(8.0, QueueLimit::packets(1), 10 * MS);
        for packet in 0..3 {
            link.enqueue(u64::from(packet) * MS, Parcel { packet: Some(packet), ip_bytes: 1000 }).unwrap();
        }
        assert_eq!((link.held().packets, times(&mut link)), (3, vec![11 * MS, 12 * MS, 13 * MS]));
    }

    #[test]
    fn all_is_taken_out_in_its_order() {
        let (mut link, _) = filled(QueueLimit::packets(9), 3);
        link.advance(MS);
        let packets: Vec<_> = link.drain().into_iter().filter_map(|parcel| parcel.packet).collect();
        assert_eq!((packets, link.held(), link.next_event_ns()), (vec![0, 1, 2], Tally::default(), None));
    }
}
