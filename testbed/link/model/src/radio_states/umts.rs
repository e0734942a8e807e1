// SPDX-License-Identifier: Apache-2.0
//! How does a phone's UMTS radio save power? It has no channel (IDLE, PCH), a shared one (FACH) or one of its own
//! (DCH). What waits in the queues of the radio link control (RLC) takes it up, timers take it down.
//!
//! The states of AT&T's ARO (attdevsupport/VideoOptimizer@d164529, i997.conf, inspire.conf) and of EnergyBox
//! (rtslab/EnergyBox@150320e); PCH as the N9 of the web-proxy study has it. Readings of ours:
//!
//! - a promotion from PCH is as that from IDLE unless it is given;
//! - a large packet that comes during a promotion to FACH does not turn it into one to DCH: it counts in its queue at
//!   the end;
//! - a queue's last packet is the last that was put into it, that which began the promotion included.

use serde::{Deserialize, Serialize};

use super::meter::{Phase, Power};
use super::packet::{Direction, Packet};
use super::quantity::{Seconds, Watts};
use super::radio::{Offer, Radio};
use crate::range::{within, ParameterError};

/// Parameters of a phone in a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UmtsParams {
    /// Power in IDLE.
    pub idle_w: Watts,
    /// Power in FACH.
    pub fach_w: Watts,
    /// Power in DCH.
    pub dch_w: Watts,
    /// A lower power in DCH while nothing passes; without it always `dch_w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dch_tail: Option<DchTail>,
    /// Without a packet for so long DCH ends.
    pub dch_tail_s: Seconds,
    /// Without a packet for so long FACH ends.
    pub fach_tail_s: Seconds,
    /// A state between FACH and IDLE, where the network has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pch: Option<Pch>,
    /// From IDLE up.
    pub idle_rise: Rise,
    /// From FACH to DCH.
    pub fach_to_dch: Promotion,
    /// More in the queue up begins that promotion.
    pub up_threshold_bytes: u32,
    /// More in the queue down begins it.
    pub down_threshold_bytes: u32,
    /// How fast queues empty.
    pub drain: Drain,
}

/// A way up between two states.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// How long it takes.
    pub duration_s: Seconds,
    /// Power meanwhile.
    pub power_w: Watts,
}

/// Where a packet leads that finds no channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Rise {
    /// To FACH.
    Fach(Promotion),
    /// To DCH.
    Dch(Promotion),
    /// A packet of more than `threshold_bytes` to DCH, another to FACH.
    BySize {
        /// The size.
        threshold_bytes: u32,
        /// To FACH.
        fach: Promotion,
        /// To DCH.
        dch: Promotion,
    },
}

impl Rise {
    /// True for a promotion to DCH, and the promotion.
    fn of(&self, packet: Packet) -> (bool, Promotion) {
        match *self {
            Self::Fach(promotion) => (false, promotion),
            Self::Dch(promotion) => (true, promotion),
            Self::BySize { threshold_bytes, dch, .. } if packet.ip_bytes > threshold_bytes => (true, dch),
            Self::BySize { fach, .. } => (false, fach),
        }
    }
}

/// Power in DCH while nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DchTail {
    /// It begins so long after a packet.
    pub active_s: Seconds,
    /// The power.
    pub power_w: Watts,
}

/// A state in which the network knows the phone, without a channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pch {
    /// Power in it.
    pub power_w: Watts,
    /// Without a packet for so long it ends.
    pub tail_s: Seconds,
    /// From it up; as from IDLE unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<Rise>,
}

/// After how long without a packet a queue of q bytes is empty: fixed + q x linear + q^2 x square.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Whatever there is.
    pub fixed_ms: f64,
    /// For each byte.
    #[serde(default)]
    pub ms_per_byte: f64,
    /// For each byte squared.
    #[serde(default)]
    pub ms_per_byte2: f64,
}

impl Drain {
    fn ns(&self, bytes: u64) -> u64 {
        let bytes = bytes as f64;
        let drain_ms = self.fixed_ms + (self.ms_per_byte + self.ms_per_byte2 * bytes) * bytes;
        (drain_ms * 1e6).round() as u64
    }
}

impl UmtsParams {
    pub(super) fn check(&self) -> Result<(), ParameterError> {
        within("drain.fixed_ms", self.drain.fixed_ms, 0.0..=60_000.0)?;
        within("drain.ms_per_byte", self.drain.ms_per_byte, 0.0..=1_000.0)?;
        within("drain.ms_per_byte2", self.drain.ms_per_byte2, 0.0..=1.0).map(|_| ())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Idle,
    Pch,
    Fach,
    Dch,
    Promotion { name: &'static str, to_dch: bool, power_w: Watts },
}

/// What is in an RLC queue, and since when.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    bytes: u64,
    last_ns: u64,
}

/// A phone, IDLE at the start.
#[derive(Clone, Debug)]
pub(super) struct Umts {
    params: UmtsParams,
    state: State,
    since_ns: u64,
    /// When the state ends if nothing comes; IDLE does not.
    until_ns: u64,
    /// When the last packet passed.
    last_ns: u64,
    /// Up, down; of FACH alone.
    queues: [Queue; 2],
}

impl Umts {
    pub(super) fn new(params: UmtsParams, start_ns: u64) -> Self {
        Self {
            params,
            state: State::Idle,
            since_ns: start_ns,
            until_ns: start_ns,
            last_ns: start_ns,
            queues: Default::default(),
        }
    }

    /// Into a state, for so long unless a packet comes; queues are empty in each new one.
    fn enter(&mut self, at_ns: u64, state: State, length: Seconds) {
        (self.state, self.since_ns, self.until_ns) = (state, at_ns, at_ns + length.ns());
        self.queues = Default::default();
    }

    fn promote(&mut self, at_ns: u64, name: &'static str, to_dch: bool, promotion: Promotion) {
        let state = State::Promotion { name, to_dch, power_w: promotion.power_w };
        self.enter(at_ns, state, promotion.duration_s);
    }

    /// From a state without a channel, for a packet; the names are those of a promotion to FACH and to DCH.
    fn connect(&mut self, now_ns: u64, rise: Rise, packet: Packet, names: [&'static str; 2]) {
        let (to_dch, promotion) = rise.of(packet);
        self.promote(now_ns, names[usize::from(to_dch)], to_dch, promotion);
    }

    /// True when the packet makes its queue longer than the threshold.
    fn overflows(&mut self, now_ns: u64, packet: Packet) -> bool {
        let (index, threshold_bytes) = match packet.direction {
            Direction::Up => (0, self.params.up_threshold_bytes),
            Direction::Down => (1, self.params.down_threshold_bytes),
        };
        let queue = &mut self.queues[index];
        if now_ns - queue.last_ns > self.params.drain.ns(queue.bytes) {
            queue.bytes = 0;
        }
        queue.bytes += u64::from(packet.ip_bytes);
        queue.last_ns = now_ns;
        queue.bytes > threshold_bytes.into()
    }

    fn stay(&mut self, now_ns: u64, tail: Seconds) -> Offer {
        self.last_ns = now_ns;
        self.until_ns = now_ns + tail.ns();
        Offer::Passes
    }
}

impl Radio for Umts {
    fn phase(&self) -> Phase {
        let params = &self.params;
        let steady = |state, power_w: Watts| (state, self.since_ns, Power::Steady(power_w.into()));
        let (state, since_ns, power) = match (self.state, params.dch_tail) {
            (State::Idle, _) => steady("IDLE", params.idle_w),
            (State::Pch, _) => steady("PCH", params.pch.map_or(params.idle_w, |pch| pch.power_w)),
            (State::Fach, _) => steady("FACH", params.fach_w),
            (State::Promotion { name, power_w, .. }, _) => steady(name, power_w),
            (State::Dch, None) => steady("DCH", params.dch_w),
            (State::Dch, Some(tail)) => {
                let (first_ns, first_w) = (tail.active_s.ns(), params.dch_w.into());
                let power = Power::Stepped { first_ns, first_w, then_w: tail.power_w.into() };
                ("DCH", self.since_ns.max(self.last_ns), power)
            }
        };
        Phase { state, since_ns, power }
    }

    fn is_lowest(&self) -> bool {
        self.state == State::Idle
    }

    fn next_change_ns(&self) -> Option<u64> {
        (self.state != State::Idle).then_some(self.until_ns)
    }

    fn change(&mut self, at_ns: u64) {
        let params = &self.params;
        let (state, length) = match (self.state, params.pch) {
            (State::Promotion { to_dch: true, .. }, _) => (State::Dch, params.dch_tail_s),
            (State::Promotion { .. }, _) | (State::Dch, _) => (State::Fach, params.fach_tail_s),
            (State::Fach, Some(pch)) => (State::Pch, pch.tail_s),
            (State::Fach | State::Pch | State::Idle, _) => (State::Idle, Seconds(0.0)),
        };
        self.enter(at_ns, state, length);
    }

    fn offer(&mut self, now_ns: u64, packet: Packet, _is_awake: bool) -> Offer {
        let state = self.state;
        match state {
            State::Dch => return self.stay(now_ns, self.params.dch_tail_s),
            State::Fach if !self.overflows(now_ns, packet) => {
                return self.stay(now_ns, self.params.fach_tail_s);
            }
            State::Fach => self.promote(now_ns, "PROMOTION_FACH_DCH", true, self.params.fach_to_dch),
            State::Idle => {
                let names = ["PROMOTION_IDLE_FACH", "PROMOTION_IDLE_DCH"];
                self.connect(now_ns, self.params.idle_rise, packet, names);
            }
            State::Pch => {
                let rise = self.params.pch.and_then(|pch| pch.rise).unwrap_or(self.params.idle_rise);
                self.connect(now_ns, rise, packet, ["PROMOTION_PCH_FACH", "PROMOTION_PCH_DCH"]);
            }
            State::Promotion { .. } => {}
        }
        Offer::Waits { until_ns: self.until_ns }
    }

    fn copy(&self) -> Box<dyn Radio> {
        Box::new(self.clone())
    }
}
