// SPDX-License-Identifier: Apache-2.0
//! What does one station and the access point's queue for it send, receive and count?

use crate::access::Access;
use crate::airtime::{self, Framing, SIFS_NS};
use crate::port::Port;
use crate::queue::{Burst, QueueLimits, Settled, TxQueue};
use crate::radio_states::packet;
use crate::rng::Rng;
use crate::stats::{Direction, StationBook, StationLine};

/// Parameters of one station and of the access point's queue for it.
#[derive(Clone, Debug, PartialEq)]
pub struct StationParams {
    /// Name in the statistics.
    pub name: String,
    /// Rate and aggregation, both directions.
    pub framing: Framing,
    /// Queue, retry and packet-rate limits, for each direction on its own.
    pub limits: QueueLimits,
    /// Probability that one MPDU does not arrive, 0 to 1, both directions.
    pub mpdu_error_ratio: f64,
}

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Item<P> {
    pub(crate) packet: P,
    pub(crate) to: Port,
    pub(crate) ip_bytes: u32,
}

/// One PPDU of a station or to it.
#[derive(Debug)]
pub(crate) struct Ppdu {
    pub(crate) direction: Direction,
    pub(crate) burst: Burst,
    pub(crate) lost: u64,
    pub(crate) end_ns: u64,
}

/// A station with its queue, the access point's queue for it, and its counts.
#[derive(Debug)]
pub(crate) struct Station<P> {
    pub(crate) params: StationParams,
    pub(crate) up: TxQueue<Item<P>>,
    pub(crate) down: TxQueue<Item<P>>,
    pub(crate) book: StationBook,
    /// Before the air, in both directions.
    pub(crate) access: Option<Access<Item<P>>>,
}

impl<P> Station<P> {
    /// An idle station whose first statistics interval ends at `first_end_ns`.
    pub(crate) fn new(params: StationParams, first_end_ns: u64) -> Self {
        let limits = params.limits;
        let (up, down) = (TxQueue::new(limits), TxQueue::new(limits));
        Self { params, up, down, book: StationBook::new(first_end_ns), access: None }
    }

    /// A packet comes, to be sent or to be sent to the station.
    pub(crate) fn arrive(&mut self, now_ns: u64, direction: Direction, item: Item<P>) {
        let Some(access) = &mut self.access else { return self.push(now_ns, direction, item) };
        let (ip_bytes, way) = (item.ip_bytes, of_radio(direction));
        if access.enqueue(now_ns, way, item, ip_bytes).is_err() {
            *self.book.at(now_ns).drops(direction) += 1;
        }
        self.leave_access();
    }

    /// Does what is due in the access network by `now_ns`.
    pub(crate) fn advance_access(&mut self, now_ns: u64) {
        if let Some(access) = &mut self.access {
            access.advance(now_ns);
        }
        self.leave_access();
    }

    /// What is through the access network goes on the air.
    fn leave_access(&mut self) {
        while let Some((at_ns, way, item)) = self.access.as_mut().and_then(Access::poll) {
            self.push(at_ns, of_air(way), item);
        }
    }

    /// Another access network takes the place of the one that there is; packets inside enter it anew.
    pub(crate) fn change_access(&mut self, now_ns: u64, access: Option<Access<Item<P>>>) {
        self.advance_access(now_ns);
        let inside = self.access.as_mut().map(Access::drain).unwrap_or_default();
        self.access = access;
        inside.into_iter().for_each(|(way, item)| self.arrive(now_ns, of_air(way), item));
    }

    /// Packets that surely find a place in this direction.
    pub(crate) fn room(&self, direction: Direction) -> usize {
        let air = if direction == Direction::Tx { self.up.room() } else { self.down.room() };
        self.access.as_ref().map_or(air, |access| access.room(of_radio(direction)).min(air))
    }

    /// Packets inside.
    pub(crate) fn held(&self) -> usize {
        self.up.held() + self.down.held() + self.access.as_ref().map_or(0, Access::held)
    }

    /// Queues a packet, or drops it at the tail.
    fn push(&mut self, now_ns: u64, direction: Direction, item: Item<P>) {
        let ip_bytes = item.ip_bytes;
        if self.queue(direction).push(now_ns, item, ip_bytes).is_err() {
            *self.book.at(now_ns).drops(direction) += 1;
        }
    }

    /// Puts a PPDU on the air at `at_ns` from what is eligible by `horizon_ns`. `errors` draws the
    /// MPDUs that do not arrive; without it the PPDU collided and none does.
    pub(crate) fn start(
        &mut self,
        direction: Direction,
        at_ns: u64,
        horizon_ns: u64,
        errors: Option<&mut Rng>,
    ) -> Option<Ppdu> {
        let queue = if direction == Direction::Tx { &self.up } else { &self.down };
        let burst = queue.compose(horizon_ns, &self.params.framing)?;
        let end_ns = at_ns + airtime::ppdu_ns(self.params.framing.phy(), burst.psdu_bytes);
        let collided = errors.is_none();
        let lost =
            errors.map_or(burst.mask, |rng| draw_errors(rng, burst.mask, self.params.mpdu_error_ratio));
        let ppdu = Ppdu { direction, burst, lost, end_ns };
        self.count_start(&ppdu, at_ns, collided);
        Some(ppdu)
    }

    /// Settles a PPDU that has ended: what arrived leaves the queue, the rest stays or is given up.
    pub(crate) fn end(&mut self, ppdu: &Ppdu) -> Settled<Item<P>> {
        let settled = self.queue(ppdu.direction).settle(ppdu.burst.mask, ppdu.lost);
        let counters = self.book.at(ppdu.end_ns);
        *counters.drops(ppdu.direction) += settled.given_up as u64;
        match ppdu.direction {
            Direction::Tx => counters.packets_tx += settled.released.len() as u64,
            Direction::Rx => {
                counters.packets_rx += settled.released.len() as u64;
                counters.frames_rx += settled.arrived as u64;
            }
        }
        settled
    }

    /// Closes the statistics interval `span_ns`; the next one ends at `next_end_ns`.
    pub(crate) fn close_interval(&mut self, span_ns: (u64, u64), next_end_ns: u64) -> StationLine {
        let counters = self.book.close(next_end_ns);
        let queues = (self.up.waiting(), self.down.waiting());
        let access = self.access.as_mut().map(|access| access.step(span_ns.1));
        self.leave_access();
        StationLine {
            access,
            ..StationLine::new(&self.params.name, span_ns, counters, queues, self.params.framing.phy())
        }
    }

    fn queue(&mut self, direction: Direction) -> &mut TxQueue<Item<P>> {
        match direction {
            Direction::Tx => &mut self.up,
            Direction::Rx => &mut self.down,
        }
    }

    /// Counts a PPDU and its answer; a station does not hear what collides.
    fn count_start(&mut self, ppdu: &Ppdu, at_ns: u64, collided: bool) {
        let counters = self.book.at(at_ns);
        let (mpdus, retries) = (ppdu.burst.mpdus as u64, ppdu.burst.retries as u64);
        match ppdu.direction {
            Direction::Tx => {
                counters.frames_tx += mpdus;
                counters.ppdus_tx += 1;
                counters.retries_tx += retries;
            }
            Direction::Rx => {
                counters.retries_rx += retries;
                counters.ppdus_rx += u64::from(!collided);
            }
        }
        if ppdu.direction == Direction::Tx || !collided {
            self.book.air(ppdu.direction, at_ns, ppdu.end_ns);
        }
        if ppdu.lost != ppdu.burst.mask {
            let answer_ns = ppdu.end_ns + SIFS_NS;
            let end_ns = answer_ns + airtime::response_ns(ppdu.burst.mpdus);
            self.book.air(ppdu.direction.back(), answer_ns, end_ns);
        }
    }
}

fn of_radio(direction: Direction) -> packet::Direction {
    match direction {
        Direction::Tx => packet::Direction::Up,
        Direction::Rx => packet::Direction::Down,
    }
}

fn of_air(direction: packet::Direction) -> Direction {
    match direction {
        packet::Direction::Up => Direction::Tx,
        packet::Direction::Down => Direction::Rx,
    }
}

/// Which of the MPDUs in `mask` do not arrive.
fn draw_errors(rng: &mut Rng, mask: u64, mpdu_error_ratio: f64) -> u64 {
    if mpdu_error_ratio <= 0.0 {
        return 0;
    }
    let sent = (0..64).map(|index| 1u64 << index).filter(|bit| mask & bit != 0);
    sent.filter(|_| rng.chance(mpdu_error_ratio)).sum()
}
