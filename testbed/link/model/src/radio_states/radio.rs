// SPDX-License-Identifier: Apache-2.0
//! What has every radio? A phase, changes by itself, and an answer to a packet that wants to pass.

use super::meter::Phase;
use super::packet::Packet;

/// What becomes of the packet that waits first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// It passes now.
    Passes,
    /// It is to be offered again then; or earlier, after the next change or once an up packet has come.
    Waits { until_ns: u64 },
}

/// States of a radio; pure: time is an argument and never goes back.
pub(super) trait Radio: std::fmt::Debug + Send {
    /// The phase as it is now.
    fn phase(&self) -> Phase;

    /// True in its lowest state, which it leaves for a packet alone.
    fn is_lowest(&self) -> bool;

    /// When it changes next without a packet.
    fn next_change_ns(&self) -> Option<u64>;

    /// Makes the change that is due at `at_ns`, one.
    fn change(&mut self, at_ns: u64);

    /// A packet wants to pass at `now_ns`, after all changes until then. `is_awake`: it goes up, or one behind it
    /// does, so that the device is awake and the network need not wait until it listens.
    fn offer(&mut self, now_ns: u64, packet: Packet, is_awake: bool) -> Offer;

    /// What a packet takes that passes, beside the power of the state, J.
    fn packet_j(&self, _packet: Packet) -> f64 {
        0.0
    }

    /// The same again, to look ahead with.
    fn copy(&self) -> Box<dyn Radio>;
}
