// SPDX-License-Identifier: Apache-2.0
//! Which packets of one queue go into the next PPDU, and what becomes of them?
//!
//! A drop-tail queue counted in packets. Its front is the block-acknowledgement window: MPDUs that
//! arrived stay there until all before them are settled, so packets leave in order (the receiver's
//! reorder buffer); lost ones are sent again until the retry limit.

use std::collections::VecDeque;

use crate::airtime::{Framing, BLOCK_ACK_WINDOW};

/// Limits of one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLimits {
    /// Packets waiting or in the air; one more is dropped.
    pub packets: usize,
    /// Least distance between packets that the host hands to the radio, ns; 0 = no cap.
    pub packet_gap_ns: u64,
    /// Retransmissions of one MPDU before it is given up.
    pub retry_limit: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Arrived,
    GivenUp,
}

#[derive(Debug)]
struct Slot<P> {
    packet: P,
    ip_bytes: u32,
    eligible_ns: u64,
    attempts: u32,
    state: State,
}

/// A chosen PPDU: bit i stands for slot i of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Slots that are sent.
    pub mask: u64,
    /// MPDUs in the PPDU.
    pub mpdus: usize,
    /// MPDUs among them that were sent before.
    pub retries: usize,
    /// PSDU size.
    pub psdu_bytes: u32,
}

/// What settled when a PPDU ended.
#[derive(Debug)]
pub struct Settled<P> {
    /// Packets that leave the receiver now, in order.
    pub released: Vec<P>,
    /// MPDUs that arrived with this PPDU.
    pub arrived: usize,
    /// Packets given up at the retry limit.
    pub given_up: usize,
}

/// A drop-tail queue with its block-acknowledgement window.
#[derive(Debug)]
pub struct TxQueue<P> {
    limits: QueueLimits,
    slots: VecDeque<Slot<P>>,
    waiting: usize,
    next_eligible_ns: u64,
}

impl<P> TxQueue<P> {
    /// An empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, slots: VecDeque::new(), waiting: 0, next_eligible_ns: 0 }
    }

    /// Appends a packet, or gives it back when the queue is full.
    ///
    /// # Errors
    /// The packet itself, dropped at the tail.
    pub fn push(&mut self, now_ns: u64, packet: P, ip_bytes: u32) -> Result<(), P> {
        if self.waiting >= self.limits.packets {
            return Err(packet);
        }
        let eligible_ns = now_ns.max(self.next_eligible_ns);
        self.next_eligible_ns = eligible_ns + self.limits.packet_gap_ns;
        self.slots.push_back(Slot { packet, ip_bytes, eligible_ns, attempts: 0, state: State::Waiting });
        self.waiting += 1;
        Ok(())
    }

    /// Packets not settled yet.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Packets that can be added before the tail is dropped.
    pub fn room(&self) -> usize {
        self.limits.packets - self.waiting
    }

    /// Packets inside, those that arrived but wait for an earlier one included.
    pub fn held(&self) -> usize {
        self.slots.len()
    }

    /// When the first packet may be sent; `None` when nothing waits.
    pub fn first_eligible_ns(&self) -> Option<u64> {
        // The front always waits: settled slots are removed from there.
        self.slots.front().map(|slot| slot.eligible_ns)
    }

    /// Chooses the MPDUs of the next PPDU among those eligible by `horizon_ns`.
    pub fn compose(&self, horizon_ns: u64, framing: &Framing) -> Option<Burst> {
        let mut burst = Burst { mask: 0, mpdus: 0, retries: 0, psdu_bytes: 0 };
        let (mut subframes_bytes, mut first_ip_bytes) = (0, 0);
        for (index, slot) in self.slots.iter().take(BLOCK_ACK_WINDOW).enumerate() {
            if slot.state != State::Waiting {
                continue;
            }
            let subframe = framing.subframe_bytes(slot.ip_bytes);
            let fits = burst.mpdus == 0
                || (burst.mpdus < framing.subframe_limit()
                    && subframes_bytes + subframe <= framing.psdu_limit_bytes());
            if slot.eligible_ns > horizon_ns || !fits {
                break;
            }
            if burst.mpdus == 0 {
                first_ip_bytes = slot.ip_bytes;
            }
            subframes_bytes += subframe;
            burst.mask |= 1 << index;
            burst.mpdus += 1;
            burst.retries += usize::from(slot.attempts > 0);
        }
        burst.psdu_bytes = framing.psdu_bytes(burst.mpdus, subframes_bytes, first_ip_bytes);
        (burst.mpdus > 0).then_some(burst)
    }

    /// Ends a PPDU: the slots of `sent` were on the air, those of `lost` did not arrive.
    pub fn settle(&mut self, sent: u64, lost: u64) -> Settled<P> {
        let mut settled = Settled { released: Vec::new(), arrived: 0, given_up: 0 };
        for (index, slot) in self.slots.iter_mut().take(BLOCK_ACK_WINDOW).enumerate() {
            if sent & (1 << index) == 0 {
                continue;
            }
            slot.attempts += 1;
            if lost & (1 << index) == 0 {
                slot.state = State::Arrived;
                settled.arrived += 1;
            } else if slot.attempts > self.limits.retry_limit {
                slot.state = State::GivenUp;
                settled.given_up += 1;
            }
        }
        self.waiting -= settled.arrived + settled.given_up;
        while self.slots.front().is_some_and(|slot| slot.state != State::Waiting) {
            if let Some(Slot { packet, state: State::Arrived, .. }) = self.slots.pop_front() {
                settled.released.push(packet);
            }
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcs::{Phy, Standard};

    const LIMITS: QueueLimits = QueueLimits { packets: 100, packet_gap_ns: 0, retry_limit: 7 };

    fn framing(subframe_limit: usize) -> Framing {
        Framing::new(Phy::new(Standard::Ht, 13, None, 40, 800).unwrap(), subframe_limit, 8_000)
    }

    fn filled(limits: QueueLimits, packets: u32, ip_bytes: u32) -> TxQueue<u32> {
        let mut queue = TxQueue::new(limits);
        (0..packets).for_each(|packet| {
            let _ = queue.push(0, packet, ip_bytes);
        });
        queue
    }

    #[test]
    fn the_tail_is_dropped() {
        let queue = filled(LIMITS, 130, 92);
        assert_eq!((queue.waiting(), queue.held()), (100, 100));
    }

    #[test]
    fn each_limit_ends_a_burst() {
        let burst = |limit, ip_bytes| filled(LIMITS, 100, ip_bytes).compose(0, &framing(limit)).unwrap();
        assert_eq!(burst(1, 92).mpdus, 1);
        assert_eq!(burst(32, 92).mpdus, 32);
        assert_eq!(burst(64, 92), Burst { mask: u64::MAX, mpdus: 64, retries: 0, psdu_bytes: 64 * 216 });
        assert_eq!(burst(64, 1498).mpdus, 42);
        assert_eq!(filled(LIMITS, 0, 92).compose(0, &framing(64)), None);
    }

    #[test]
    fn arrivals_wait_for_the_lost_one_before_them() {
        let mut queue = filled(LIMITS, 3, 92);
        let settled = queue.settle(0b111, 0b001);
        assert_eq!((settled.released, settled.arrived, queue.waiting()), (vec![], 2, 1));
        let burst = queue.compose(0, &framing(64)).unwrap();
        assert_eq!((burst.mask, burst.mpdus, burst.retries), (0b001, 1, 1));
        assert_eq!(queue.settle(0b001, 0).released, vec![0, 1, 2]);
        assert_eq!(queue.held(), 0);
    }

    #[test]
    fn the_window_does_not_run_ahead_of_a_lost_frame() {
        let mut queue = filled(LIMITS, 100, 92);
        queue.settle(u64::MAX, 1);
        let burst = queue.compose(0, &framing(64)).unwrap();
        assert_eq!((burst.mask, burst.mpdus), (1, 1));
    }

    #[test]
    fn the_retry_limit_gives_up_and_lets_the_rest_go() {
        let mut queue = filled(QueueLimits { retry_limit: 2, ..LIMITS }, 2, 92);
        assert_eq!(queue.settle(0b11, 0b01).released, Vec::<u32>::new());
        assert_eq!(queue.settle(0b01, 0b01).given_up, 0);
        let settled = queue.settle(0b01, 0b01);
        assert_eq!((settled.released, settled.given_up, queue.waiting()), (vec![1], 1, 0));
    }

    #[test]
    fn the_cap_spaces_packets_out() {
        let mut queue = filled(QueueLimits { packet_gap_ns: 1_000, ..LIMITS }, 10, 92);
        assert_eq!(queue.compose(2_500, &framing(64)).unwrap().mpdus, 3);
        queue.settle(0b111, 0);
        assert_eq!(queue.first_eligible_ns(), Some(3_000));
        assert_eq!(queue.compose(2_999, &framing(64)), None);
    }
}
