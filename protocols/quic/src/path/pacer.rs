// SPDX-License-Identifier: Apache-2.0
//! When may a packet leave? Not before the time that congestion control gave it (quiche's `SendInfo::at`).
//!
//! quiche writes one packet at a time and the next only when asked, so at most one packet waits. Pure: `now` is an
//! argument.

use std::time::{Duration, Instant};

/// A packet to put on the wire; its bytes are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmit {
    /// Length in bytes.
    pub(crate) len: usize,
    /// Not to be sent before this time; `None` where congestion control gives no times.
    pub(crate) at: Option<Instant>,
}

/// What became of packets' times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Packets whose time had not come when they were written.
    pub(crate) held: u64,
    /// How late the latest of those left.
    pub(crate) latest: Duration,
}

/// Keeps a packet until its time has come.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    held: Option<(Transmit, Instant)>,
    waits: Waits,
}

impl Pacer {
    /// `packet` was written: it may leave now, or is kept until its time. Only while none is kept. `now` is read for a
    /// packet with a time only.
    pub(crate) fn admit(&mut self, packet: Transmit, now: impl FnOnce() -> Instant) -> Option<Transmit> {
        debug_assert!(self.held.is_none());
        let Some(at) = packet.at.filter(|at| *at > now()) else { return Some(packet) };
        self.waits.held += 1;
        self.held = Some((packet, at));
        None
    }

    /// The packet that was kept, when its time has come.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Transmit> {
        let (packet, at) = self.held.take_if(|(_, at)| *at <= now)?;
        self.waits.latest = self.waits.latest.max(now.saturating_duration_since(at));
        Some(packet)
    }

    /// When the kept packet may leave; `None` when none is kept.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.held.map(|(_, at)| at)
    }

    pub(crate) fn waits(&self) -> Waits {
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// On a clock that is only an argument: whatever times packets get and whenever the caller looks, none leaves before
        /// its time, each leaves at the first look after it, in order, and the wake-up asked for is the one needed.
        #[test]
        fn no_packet_leaves_before_its_time(
            times_us in proptest::collection::vec(0_u64..5_000, 1..60),
            steps_us in proptest::collection::vec(0_u64..400, 1..40),
        ) {
            let start = Instant::now();
            let at = |us: u64| start + Duration::from_micros(us);
            let mut pacer = Pacer::default();
            let mut packets = times_us.iter().enumerate().map(|(len, us)| Transmit { len, at: Some(at(*us)) });
            let mut left = Vec::new();
            let mut waited = 0;
            for (look, step_us) in steps_us.iter().cycle().enumerate() {
                let now = at(steps_us.iter().cycle().take(look).sum::<u64>() + look as u64 + step_us);
                if let Some(due) = pacer.at().filter(|due| *due > now) {
                    prop_assert_eq!(pacer.release(now), None);
                    prop_assert_eq!(pacer.at(), Some(due));
                    continue;
                }
                left.extend(pacer.release(now).map(|packet| (packet, now)));
                // As an endpoint does: write until one has to wait or there is no more.
                let mut is_done = false;
                while pacer.at().is_none() {
                    let Some(packet) = packets.next() else { is_done = true; break };
                    waited += u64::from(packet.at > Some(now));
                    left.extend(pacer.admit(packet, || now).map(|packet| (packet, now)));
                }
                if is_done {
                    break;
                }
            }
            prop_assert!(left.iter().all(|(packet, now)| packet.at <= Some(*now)));
            let order: Vec<_> = left.iter().map(|(packet, _)| packet.len).collect();
            prop_assert_eq!(order, (0..times_us.len()).collect::<Vec<_>>());
            prop_assert_eq!(pacer.waits().held, waited);
        }
    }

    #[test]
    fn a_packet_without_a_time_leaves_without_a_look_at_the_clock() {
        let packet = Transmit { len: 1, at: None };
        let left = Pacer::default().admit(packet, || panic!("the clock was read"));
        assert_eq!(left, Some(packet));
    }

    #[test]
    fn how_late_a_kept_packet_left_is_known() {
        let start = Instant::now();
        let mut pacer = Pacer::default();
        let packet = Transmit { len: 1, at: Some(start + Duration::from_micros(50)) };
        assert_eq!(pacer.admit(packet, || start), None);
        assert_eq!(pacer.release(start + Duration::from_micros(49)), None);
        assert_eq!(pacer.release(start + Duration::from_micros(57)), Some(packet));
        assert_eq!(pacer.waits(), Waits { held: 1, latest: Duration::from_micros(7) });
    }
}
