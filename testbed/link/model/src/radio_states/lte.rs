// SPDX-License-Identifier: Apache-2.0
//! How does a phone's LTE radio save power? It is IDLE but for paging, is promoted for a packet, receives all the
//! time (CR) while packets come, and then less and less: short cycles (SHORT_DRX), long ones (LONG_DRX), IDLE.
//!
//! The model of Huang et al. (MobiSys 2012), as AT&T's ARO has it (attdevsupport/VideoOptimizer@d164529, lte.conf).
//! Readings of ours:
//!
//! - an up packet that finds down packets waiting for an on time ends the cycles, and they pass before it at that
//!   moment;
//! - timers run on while a down packet waits; if SHORT_DRX ends first it passes then, for LONG_DRX begins with an on
//!   time, and if LONG_DRX ends first it is a packet in IDLE;
//! - paging costs power alone: a down packet in IDLE begins the promotion at once.

use serde::{Deserialize, Serialize};

use super::meter::{Phase, Power};
use super::packet::{Direction, Packet};
use super::quantity::{Seconds, Watts};
use super::radio::{Offer, Radio};
use crate::range::{within, ParameterError};

/// Parameters of a phone in a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LteParams {
    /// Power in IDLE between pagings.
    pub idle_w: Watts,
    /// In IDLE once in so long ...
    pub paging_cycle_s: Seconds,
    /// ... for so long at the start of the cycle ...
    pub paging_on_s: Seconds,
    /// ... it has this power.
    pub paging_w: Watts,
    /// From IDLE to CR.
    pub promotion_s: Seconds,
    /// Power meanwhile.
    pub promotion_w: Watts,
    /// Power in CR, without what packets take.
    pub base_w: Watts,
    /// What a packet up takes, for each 1e6 bit.
    pub up_j_per_mbit: f64,
    /// What a packet down takes, for each 1e6 bit.
    pub down_j_per_mbit: f64,
    /// Without a packet for so long CR ends.
    pub inactivity_s: Seconds,
    /// Length of SHORT_DRX.
    pub short_drx_s: Seconds,
    /// Its cycle.
    pub short_cycle_s: Seconds,
    /// Length of LONG_DRX.
    pub long_drx_s: Seconds,
    /// Its cycle.
    pub long_cycle_s: Seconds,
    /// On time at the start of each cycle of both.
    pub on_s: Seconds,
    /// Power in it.
    pub on_w: Watts,
    /// Power in the rest of a cycle.
    pub drx_w: Watts,
}

impl LteParams {
    pub(super) fn check(&self) -> Result<(), ParameterError> {
        within("up_j_per_mbit", self.up_j_per_mbit, 0.0..=100.0)?;
        within("down_j_per_mbit", self.down_j_per_mbit, 0.0..=100.0)?;
        let cycles = [
            ("paging_on_s", self.paging_on_s, "paging_cycle_s", self.paging_cycle_s),
            ("on_s", self.on_s, "short_cycle_s", self.short_cycle_s),
            ("on_s", self.on_s, "long_cycle_s", self.long_cycle_s),
        ];
        for (on_name, on, cycle_name, cycle) in cycles {
            within(cycle_name, f64::from(cycle), 1e-6..=86_400.0)?;
            if on.ns() > cycle.ns() {
                let (on_s, cycle_s) = (f64::from(on), f64::from(cycle));
                return Err(ParameterError(format!(
                    "{on_name} is {on_s}; it must be at most {cycle_name}, {cycle_s}"
                )));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Promotion,
    Cr,
    ShortDrx,
    LongDrx,
}

/// A phone, IDLE at the start.
#[derive(Clone, Debug)]
pub(super) struct Lte {
    params: LteParams,
    state: State,
    since_ns: u64,
    /// When the state ends if nothing comes; IDLE does not.
    until_ns: u64,
}

impl Lte {
    pub(super) fn new(params: LteParams, start_ns: u64) -> Self {
        Self { params, state: State::Idle, since_ns: start_ns, until_ns: start_ns }
    }

    fn enter(&mut self, at_ns: u64, state: State) {
        let length = match state {
            State::Idle => Seconds(0.0),
            State::Promotion => self.params.promotion_s,
            State::Cr => self.params.inactivity_s,
            State::ShortDrx => self.params.short_drx_s,
            State::LongDrx => self.params.long_drx_s,
        };
        if self.state != state {
            (self.state, self.since_ns) = (state, at_ns);
        }
        self.until_ns = at_ns + length.ns();
    }

    /// Until when a down packet waits that comes now, unless another state begins before: it is then asked again.
    fn listens_ns(&self, now_ns: u64) -> u64 {
        let cycle = match self.state {
            State::ShortDrx => self.params.short_cycle_s,
            State::LongDrx => self.params.long_cycle_s,
            State::Promotion => return self.until_ns,
            State::Idle | State::Cr => return now_ns,
        };
        let in_cycle_ns = (now_ns - self.since_ns) % cycle.ns();
        if in_cycle_ns < self.params.on_s.ns() {
            return now_ns;
        }
        now_ns + cycle.ns() - in_cycle_ns
    }

    fn drx_power(&self, cycle: Seconds) -> Power {
        pulsed(cycle, self.params.on_s, self.params.on_w, self.params.drx_w)
    }
}

fn pulsed(cycle: Seconds, on: Seconds, on_w: Watts, off_w: Watts) -> Power {
    Power::Pulsed { cycle_ns: cycle.ns(), on_ns: on.ns(), on_w: on_w.into(), off_w: off_w.into() }
}

impl Radio for Lte {
    fn phase(&self) -> Phase {
        let params = &self.params;
        let (state, power) = match self.state {
            State::Idle => {
                ("IDLE", pulsed(params.paging_cycle_s, params.paging_on_s, params.paging_w, params.idle_w))
            }
            State::Promotion => ("PROMOTION", Power::Steady(params.promotion_w.into())),
            State::Cr => ("CR", Power::Steady(params.base_w.into())),
            State::ShortDrx => ("SHORT_DRX", self.drx_power(params.short_cycle_s)),
            State::LongDrx => ("LONG_DRX", self.drx_power(params.long_cycle_s)),
        };
        Phase { state, since_ns: self.since_ns, power }
    }

    fn is_lowest(&self) -> bool {
        self.state == State::Idle
    }

    fn next_change_ns(&self) -> Option<u64> {
        (self.state != State::Idle).then_some(self.until_ns)
    }

    fn change(&mut self, at_ns: u64) {
        let next = match self.state {
            State::Promotion => State::Cr,
            State::Cr => State::ShortDrx,
            State::ShortDrx => State::LongDrx,
            State::LongDrx | State::Idle => State::Idle,
        };
        self.enter(at_ns, next);
    }

    fn offer(&mut self, now_ns: u64, _packet: Packet, is_awake: bool) -> Offer {
        if self.state == State::Idle {
            self.enter(now_ns, State::Promotion);
        }
        let sleeps = matches!(self.state, State::ShortDrx | State::LongDrx);
        let until_ns = self.listens_ns(now_ns);
        if until_ns > now_ns && !(sleeps && is_awake) {
            return Offer::Waits { until_ns };
        }
        self.enter(now_ns, State::Cr);
        Offer::Passes
    }

    fn packet_j(&self, packet: Packet) -> f64 {
        let j_per_mbit = match packet.direction {
            Direction::Up => self.params.up_j_per_mbit,
            Direction::Down => self.params.down_j_per_mbit,
        };
        j_per_mbit * f64::from(packet.ip_bytes) * 8.0 / 1e6
    }

    fn copy(&self) -> Box<dyn Radio> {
        Box::new(self.clone())
    }
}
