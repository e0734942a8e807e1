// SPDX-License-Identifier: Apache-2.0
//! When may a node send? Its back-off counter, by the slot boundaries since the medium fell idle.
//!
//! DCF/EDCA with one access category (IEEE 802.11-2016 10.22.2): a back-off is drawn after each own
//! transmission and when a packet comes while the medium is busy; it stands still while others send.

use crate::airtime::{AIFS_NS, CW_MIN, SLOT_NS};
use crate::rng::Rng;

/// The back-off state of one node.
#[derive(Debug)]
pub struct Contender {
    backoff_slots: u32,
    window: u32,
    window_max: u32,
    rng: Rng,
}

impl Contender {
    /// A node that has just come up: its first packet on an idle medium goes at once.
    pub fn new(window_max: u32, rng: Rng) -> Self {
        Self { backoff_slots: 0, window: CW_MIN, window_max, rng }
    }

    /// When this node sends if nobody else does before.
    ///
    /// `idle_since_ns`: end of the last exchange; `eligible_ns`: when its packet is there.
    pub fn access_ns(&self, idle_since_ns: u64, eligible_ns: u64) -> u64 {
        let first_boundary_ns = idle_since_ns + AIFS_NS;
        let expiry_ns = first_boundary_ns + u64::from(self.backoff_slots) * SLOT_NS;
        let late_ns = eligible_ns.saturating_sub(expiry_ns);
        // EDCA decides at slot boundaries only.
        expiry_ns + late_ns.next_multiple_of(SLOT_NS)
    }

    /// Someone else started to send at `now_ns`: keeps what is left of the back-off.
    pub fn freeze(&mut self, idle_since_ns: u64, now_ns: u64) {
        let passed = now_ns.saturating_sub(idle_since_ns + AIFS_NS) / SLOT_NS;
        self.backoff_slots = self.backoff_slots.saturating_sub(passed.min(u64::from(u32::MAX)) as u32);
    }

    /// The medium fell idle again; a packet came meanwhile and no back-off was pending.
    pub fn join(&mut self) {
        if self.backoff_slots == 0 {
            self.draw();
        }
    }

    /// Own transmission ended and something was acknowledged (or given up): window back to least.
    pub fn succeeded(&mut self) {
        self.window = CW_MIN;
        self.draw();
    }

    /// Own transmission ended without any acknowledgement: window doubled.
    pub fn failed(&mut self) {
        self.window = (2 * self.window + 1).min(self.window_max);
        self.draw();
    }

    fn draw(&mut self) {
        self.backoff_slots = self.rng.up_to(self.window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(backoff_slots: u32) -> Contender {
        Contender { backoff_slots, window: CW_MIN, window_max: 1023, rng: Rng::new(1, 1) }
    }

    #[test]
    fn access_is_aifs_plus_backoff_or_the_next_boundary_after_the_packet() {
        assert_eq!(contender(5).access_ns(1_000, 0), 1_000 + 43_000 + 45_000);
        assert_eq!(contender(0).access_ns(0, 43_001), 43_000 + 9_000);
        assert_eq!(contender(0).access_ns(0, 52_000), 52_000);
    }

    #[test]
    fn a_frozen_backoff_keeps_its_rest() {
        let mut node = contender(5);
        node.freeze(0, 43_000 + 3 * 9_000);
        assert_eq!(node.access_ns(0, 0), 43_000 + 2 * 9_000);
        node.freeze(0, 1_000_000_000);
        assert_eq!(node.backoff_slots, 0);
    }

    #[test]
    fn the_window_doubles_to_its_limit_and_falls_back() {
        let mut node = Contender::new(63, Rng::new(1, 1));
        let windows: Vec<u32> = (0..4)
            .map(|_| {
                node.failed();
                node.window
            })
            .collect();
        assert_eq!(windows, [31, 63, 63, 63]);
        node.succeeded();
        assert_eq!(node.window, 15);
    }
}
