// SPDX-License-Identifier: Apache-2.0
//! What happens to a packet behind the access point? One direction of the wired path: loss, a
//! drop-tail serialiser of fixed rate, then a fixed delay.

use std::collections::VecDeque;

use crate::rng::Rng;

/// Parameters of the wired path, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WiredParams {
    /// One-way delay, ns.
    pub delay_ns: u64,
    /// Rate in Mb/s of IP bytes; `None` = not limited.
    pub rate_mbps: Option<f64>,
    /// Share of packets lost, 0 to 1.
    pub loss_ratio: f64,
    /// Packets that wait for the serialiser; one more is dropped.
    pub queue_packets: usize,
}

/// Why a packet did not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WiredDrop {
    /// Random loss.
    Lost,
    /// The serialiser's queue was full.
    Full,
}

/// One direction of the wired path.
#[derive(Debug)]
pub struct WiredPath<P> {
    params: WiredParams,
    rng: Rng,
    free_ns: u64,
    // Times of the end of serialisation, ascending; the packet leaves `delay_ns` later.
    packets: VecDeque<(u64, P)>,
}

impl<P> WiredPath<P> {
    /// An empty path.
    pub fn new(params: WiredParams, rng: Rng) -> Self {
        Self { params, rng, free_ns: 0, packets: VecDeque::new() }
    }

    /// Takes a packet in at `now_ns`.
    ///
    /// # Errors
    /// [`WiredDrop`] says why it is gone.
    pub fn push(&mut self, now_ns: u64, packet: P, ip_bytes: u32) -> Result<(), WiredDrop> {
        if self.rng.chance(self.params.loss_ratio) {
            return Err(WiredDrop::Lost);
        }
        let sent = self.packets.partition_point(|(sent_ns, _)| *sent_ns <= now_ns);
        if self.packets.len() - sent >= self.params.queue_packets {
            return Err(WiredDrop::Full);
        }
        let serial_ns =
            self.params.rate_mbps.map_or(0, |mbps| (f64::from(ip_bytes) * 8e3 / mbps).round() as u64);
        self.free_ns = self.free_ns.max(now_ns) + serial_ns;
        self.packets.push_back((self.free_ns, packet));
        Ok(())
    }

    /// When the next packet leaves.
    pub fn next_ns(&self) -> Option<u64> {
        self.packets.front().map(|(sent_ns, _)| sent_ns + self.params.delay_ns)
    }

    /// The packet that leaves at [`Self::next_ns`].
    pub fn pop(&mut self) -> Option<P> {
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// Packets inside.
    pub fn held(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: WiredParams =
        WiredParams { delay_ns: 2_000_000, rate_mbps: Some(8.0), loss_ratio: 0.0, queue_packets: 3 };

    #[test]
    fn packets_are_serialised_then_delayed() {
        let mut path = WiredPath::new(PARAMS, Rng::new(1, 1));
        path.push(0, 'a', 1000).unwrap();
        path.push(0, 'b', 1000).unwrap();
        assert_eq!(path.next_ns(), Some(3_000_000));
        assert_eq!(path.pop(), Some('a'));
        assert_eq!(path.next_ns(), Some(4_000_000));
    }

    #[test]
    fn the_queue_counts_what_is_not_serialised_yet() {
        let mut path = WiredPath::new(PARAMS, Rng::new(1, 1));
        (0..3).for_each(|_| path.push(0, (), 1000).unwrap());
        assert_eq!(path.push(0, (), 1000), Err(WiredDrop::Full));
        assert_eq!(path.push(1_000_000, (), 1000), Ok(()));
    }

    #[test]
    fn the_loss_ratio_holds() {
        let params = WiredParams { rate_mbps: None, loss_ratio: 0.02, ..PARAMS };
        let mut path = WiredPath::new(params, Rng::new(1, 1));
        let lost = (0..100_000).filter(|i| path.push(*i, (), 100) == Err(WiredDrop::Lost)).count();
        assert!((1_850..2_150).contains(&lost), "{lost}");
    }
}
