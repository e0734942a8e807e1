// SPDX-License-Identifier: Apache-2.0
//! How often the peer should acknowledge: Ack Ratio (RFC 4341 section 6.1), from the losses and marks of its
//! acknowledgements.

use crate::seqno::Seq48;

/// Later packets that make a missing one a lost one.
const NUMDUPACK: u32 = 3;
/// Acknowledgements per window that are enough to clock data out. A larger window gets a larger Ack Ratio, so that the cost
/// of acknowledgements does not grow with the rate.
const ENOUGH_PER_WINDOW: u64 = 32;

/// From this window on, in packets, every acknowledgement stands for two packets at least.
const PAIRED_FROM: u64 = 10;

/// Numbers of the peer's packets, to see which never came.
#[derive(Debug, Default)]
struct Arrivals {
    newest: Option<Seq48>,
    /// Bit i: packet `newest - i` arrived.
    seen: u128,
}

impl Arrivals {
    /// Note a packet; gives back whether a packet older than the last three that arrived is now known to be lost.
    fn insert(&mut self, seq: Seq48) -> bool {
        let Some(newest) = self.newest else {
            self.newest = Some(seq);
            self.seen = u128::MAX;
            return false;
        };
        let ahead = newest.distance_to(seq);
        if ahead == 1 && self.seen == u128::MAX {
            self.newest = Some(seq);
            return false;
        }
        let mut known = self.lost();
        if ahead <= 0 {
            let back = ahead.unsigned_abs();
            if back < 128 {
                self.seen |= 1 << back;
            }
        } else {
            self.newest = Some(seq);
            // What is shifted out has been judged, or it is a hole of more than 127 packets.
            let shift =
                |bits: u128| u32::try_from(ahead).ok().and_then(|by| bits.checked_shl(by)).unwrap_or(0);
            self.seen = shift(self.seen) | 1;
            known = shift(known);
        }
        self.lost() & !known != 0
    }

    /// Note packets with the numbers behind `seq`, which was the last.
    fn insert_followers(&mut self, seq: Seq48, packets: u64) -> bool {
        if self.newest == Some(seq) && self.seen == u128::MAX {
            self.newest = Some(seq.add(packets));
            return false;
        }
        let mut lost = false;
        for step in 1..=packets {
            lost |= self.insert(seq.add(step));
        }
        lost
    }

    /// Missing packets with three or more later ones present, as bits like [`Self::seen`].
    fn lost(&self) -> u128 {
        let mut later = self.seen;
        for _ in 1..NUMDUPACK {
            later &= later.wrapping_sub(1);
        }
        if later == 0 {
            return 0;
        }
        !self.seen & (!0 << later.trailing_zeros())
    }
}

/// The ratio that the peer should use.
#[derive(Debug)]
pub struct AckRatio {
    arrivals: Arrivals,
    ratio: u64,
    /// Congestion of acknowledgements in the present window of data.
    congested: bool,
    clean_windows: u64,
    /// The present window of data ends with this packet.
    window_end: Seq48,
    /// Acknowledgements lost or marked, events.
    events: u64,
}

impl AckRatio {
    /// New connections start with 2; the first data packet is `first`.
    pub fn new(first: Seq48) -> Self {
        Self {
            arrivals: Arrivals::default(),
            ratio: 2,
            congested: false,
            clean_windows: 0,
            window_end: first,
            events: 0,
        }
    }

    /// The ratio.
    pub const fn ratio(&self) -> u64 {
        self.ratio
    }

    /// Windows of data with lost or marked acknowledgements so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A packet of the peer arrived. Lost ones are taken for packets without data (section 6.1.1).
    pub fn on_packet(&mut self, seq: Seq48, marked_non_data: bool) {
        let lost = self.arrivals.insert(seq);
        self.congested |= lost || marked_non_data;
    }

    /// `packets` data packets of the peer arrived behind packet `seq`.
    pub fn on_followers(&mut self, seq: Seq48, packets: u64) {
        self.congested |= self.arrivals.insert_followers(seq, packets);
    }

    /// Data up to `ack` was acknowledged and `newest_sent` has left: at the end of a window of data, change the ratio.
    pub fn on_acknowledged(&mut self, ack: Seq48, newest_sent: Seq48, cwnd: u64) {
        if ack.is_before(self.window_end) {
            return;
        }
        self.window_end = newest_sent;
        //= rfc4341#6.1.2
        //# For each congestion window of data with lost or marked DCCP-Ack packets, Ack Ratio is doubled; and for each
        //# cwnd/(R^2 - R) consecutive congestion windows of data with no lost or marked DCCP-Ack packets, Ack Ratio is decreased by 1.
        if std::mem::take(&mut self.congested) {
            self.ratio *= 2;
            self.clean_windows = 0;
            self.events += 1;
        } else {
            self.clean_windows += 1;
            let square = self.ratio * (self.ratio - 1);
            if square > 0 && self.clean_windows >= cwnd / square {
                self.clean_windows = 0;
                self.ratio -= 1;
            }
        }
        self.constrain(cwnd);
    }

    /// Keep the ratio within its constraints when the window changed.
    ///
    /// Constraint (3) of the section, "two or more for a congestion window of four or more packets", holds only from
    /// [`PAIRED_FROM`] on: Linux's receiver has no timer for delayed acknowledgements, so that in a small window an odd last
    /// packet would wait a round trip for its pair. (Linux's own sender stays at 1 there.)
    pub fn constrain(&mut self, cwnd: u64) {
        //= rfc4341#6.1.2
        //# (2) Ack Ratio does not exceed cwnd/2, rounded up, except that Ack Ratio 2 is always acceptable.
        let (least, most) = match cwnd {
            0..PAIRED_FROM => (1, 1),
            _ => (least_for(cwnd), cwnd.div_ceil(2).min(u64::from(u16::MAX))),
        };
        self.ratio = self.ratio.clamp(least, most);
    }
}

/// The ratio that leaves [`ENOUGH_PER_WINDOW`], rounded to a power of two so that it is not renegotiated all the time.
fn least_for(cwnd: u64) -> u64 {
    let ratio = (cwnd / ENOUGH_PER_WINDOW).clamp(2, 1 << 14);
    1 << ratio.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_after(numbers: &[u64]) -> Vec<bool> {
        let mut arrivals = Arrivals::default();
        numbers.iter().map(|seq| arrivals.insert(Seq48::new(*seq))).collect()
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        assert_eq!(lost_after(&[1, 2, 4, 5, 6, 7]), [false, false, false, false, true, false]);
        assert_eq!(lost_after(&[1, 2, 4, 5, 3, 6]), [false; 6]);
        assert_eq!(lost_after(&[1, 300, 301, 302]), [false, false, false, true]);
        assert_eq!(lost_after(&[1, 1, 1, 1]), [false; 4]);
        assert_eq!(lost_after(&[1 << 40, 7, 8, 9]), [false; 4]);
    }

    struct Rig {
        ratio: AckRatio,
        seq: u64,
        ack: u64,
    }

    impl Rig {
        fn new() -> Self {
            Self { ratio: AckRatio::new(Seq48::new(0)), seq: 0, ack: 0 }
        }

        /// One window of data, with or without a lost acknowledgement.
        fn window(&mut self, cwnd: u64, lost: bool) -> u64 {
            self.seq += u64::from(lost);
            for _ in 0..4 {
                self.seq += 1;
                self.ratio.on_packet(Seq48::new(self.seq), false);
            }
            self.ack += 1;
            self.ratio.on_acknowledged(Seq48::new(self.ack), Seq48::new(self.ack + 1), cwnd);
            self.ratio.ratio()
        }
    }

    #[test]
    fn windows_with_lost_acknowledgements_double_the_ratio_up_to_half_the_window() {
        let mut rig = Rig::new();
        rig.window(40, false);
        assert_eq!([true; 5].map(|lost| rig.window(40, lost)), [4, 8, 16, 20, 20]);
        assert_eq!(rig.window(10, false), 5);
    }

    #[test]
    fn clean_windows_lower_it_by_one_each_k() {
        let mut rig = Rig::new();
        rig.window(48, false);
        for lost in [true, true] {
            rig.window(48, lost);
        }
        assert_eq!(rig.ratio.ratio(), 8);
        // 48 / 56 < 1 and 48 / 42 = 1: one window each for 8 and 7, then 48 / 30 = 1, 48 / 20 = 2, 48 / 12 = 4, 48 / 6 = 8.
        let seen: Vec<u64> = (0..17).map(|_| rig.window(48, false)).collect();
        assert_eq!(seen, [7, 6, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 2]);
        assert!((0..100).all(|_| rig.window(48, false) == 2));
    }

    #[test]
    fn a_large_window_needs_no_more_acknowledgements_than_a_middling_one() {
        let mut rig = Rig::new();
        assert_eq!([64, 127, 128, 1000, 5000].map(|cwnd| rig.window(cwnd, false)), [2, 2, 4, 16, 128]);
    }

    #[test]
    fn packets_of_a_small_window_are_acknowledged_singly() {
        let mut rig = Rig::new();
        assert_eq!([2, 3, 4, 9, 10].map(|cwnd| rig.window(cwnd, false)), [1, 1, 1, 1, 2]);
        assert_eq!([9, 5, 1].map(|cwnd| rig.window(cwnd, true)), [1, 1, 1]);
    }
}
