// SPDX-License-Identifier: Apache-2.0
//! How does a Wi-Fi station save power? It sleeps (PSM) between beacons, and stays awake (CAM) until nothing has come
//! for a while; with much to do its power is higher (CAMH).
//!
//! The states of EnergyBox (rtslab/EnergyBox@150320e, config/) and the tail of AT&T's ARO
//! (attdevsupport/VideoOptimizer@d164529, WiFi.conf). Readings of ours:
//!
//! - an up packet that finds down packets waiting for a beacon wakes the station, and they pass before it at that
//!   moment;
//! - a down packet that comes exactly at a beacon passes at once; beacons count from the machine's start, which is one.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::meter::{Phase, Power};
use super::packet::Packet;
use super::quantity::{Seconds, Watts};
use super::radio::{Offer, Radio};
use crate::range::{within, ParameterError};

/// Parameters of a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiParams {
    /// Power in power-save mode.
    pub psm_w: Watts,
    /// Power awake.
    pub cam_w: Watts,
    /// Power awake with much to do.
    pub camh_w: Watts,
    /// Without a packet for so long it falls asleep.
    pub tail_s: Seconds,
    /// CAMH while in the last so long ...
    pub window_s: Seconds,
    /// ... more than so many IP bytes passed.
    pub window_bytes: u32,
    /// Beacons for which it wakes; without them the access point keeps nothing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacons: Option<Beacons>,
}

/// When a sleeping station listens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beacons {
    /// From a beacon to the next.
    pub interval_s: Seconds,
    /// Of so many beacons it listens to one.
    pub listen_interval: u32,
}

impl Beacons {
    fn period_ns(&self) -> u64 {
        self.interval_s.ns() * u64::from(self.listen_interval)
    }
}

impl WifiParams {
    pub(super) fn check(&self) -> Result<(), ParameterError> {
        if let Some(beacons) = &self.beacons {
            within("beacons.interval_s", f64::from(beacons.interval_s), 0.001..=10.0)?;
            within("beacons.listen_interval", beacons.listen_interval, 1..=1_000)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Psm,
    Cam,
    Camh,
}

/// A station, asleep at the start.
#[derive(Clone, Debug)]
pub(super) struct Wifi {
    params: WifiParams,
    start_ns: u64,
    state: State,
    since_ns: u64,
    /// When the last packet passed.
    last_ns: u64,
    window: Window,
}

impl Wifi {
    pub(super) fn new(params: WifiParams, start_ns: u64) -> Self {
        let window = Window::new(params.window_s.ns(), params.window_bytes.into());
        Self { params, start_ns, state: State::Psm, since_ns: start_ns, last_ns: start_ns, window }
    }

    fn enter(&mut self, at_ns: u64, state: State) {
        if self.state != state {
            (self.state, self.since_ns) = (state, at_ns);
        }
    }

    fn tail_end_ns(&self) -> u64 {
        self.last_ns + self.params.tail_s.ns()
    }

    /// The first beacon from `now_ns` on that it listens to.
    fn listens_ns(&self, now_ns: u64) -> u64 {
        let period_ns = self.params.beacons.map_or(1, |beacons| beacons.period_ns());
        self.start_ns + (now_ns - self.start_ns).next_multiple_of(period_ns)
    }
}

impl Radio for Wifi {
    fn phase(&self) -> Phase {
        let (state, power) = match self.state {
            State::Psm => ("PSM", self.params.psm_w),
            State::Cam => ("CAM", self.params.cam_w),
            State::Camh => ("CAMH", self.params.camh_w),
        };
        Phase { state, since_ns: self.since_ns, power: Power::Steady(power.into()) }
    }

    fn is_lowest(&self) -> bool {
        self.state == State::Psm
    }

    fn next_change_ns(&self) -> Option<u64> {
        match self.state {
            State::Psm => None,
            State::Cam => Some(self.tail_end_ns()),
            State::Camh => self.window.full_until_ns(),
        }
    }

    fn change(&mut self, at_ns: u64) {
        let state = if at_ns < self.tail_end_ns() { State::Cam } else { State::Psm };
        self.enter(at_ns, state);
    }

    fn offer(&mut self, now_ns: u64, packet: Packet, is_awake: bool) -> Offer {
        if self.state == State::Psm && !is_awake {
            let until_ns = self.listens_ns(now_ns);
            if until_ns > now_ns {
                return Offer::Waits { until_ns };
            }
        }
        self.last_ns = now_ns;
        self.window.add(now_ns, packet.ip_bytes.into());
        let state = if self.window.full_until_ns().is_some() { State::Camh } else { State::Cam };
        self.enter(now_ns, state);
        Offer::Passes
    }

    fn copy(&self) -> Box<dyn Radio> {
        Box::new(self.clone())
    }
}

/// What passed of late: only as much of it as decides whether it is more than the limit.
#[derive(Clone, Debug)]
struct Window {
    length_ns: u64,
    limit_bytes: u64,
    /// When each packet passed, and its bytes.
    packets: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Window {
    fn new(length_ns: u64, limit_bytes: u64) -> Self {
        Self { length_ns, limit_bytes, packets: VecDeque::new(), bytes: 0 }
    }

    /// Drops from the old end what has left by `now_ns`, and what those behind it outweigh: with or without it they
    /// are more than the limit until after it has left.
    fn add(&mut self, now_ns: u64, bytes: u64) {
        self.packets.push_back((now_ns, bytes));
        self.bytes += bytes;
        while let Some((at_ns, old_bytes)) = self.packets.front().copied() {
            let has_left = at_ns + self.length_ns <= now_ns;
            if !has_left && self.bytes - old_bytes <= self.limit_bytes {
                break;
            }
            self.bytes -= old_bytes;
            self.packets.pop_front();
        }
    }

    /// Until when the bytes are more than the limit if nothing comes; `None` where they are not, as of the last packet.
    fn full_until_ns(&self) -> Option<u64> {
        let (at_ns, _) = self.packets.front()?;
        (self.bytes > self.limit_bytes).then_some(at_ns + self.length_ns)
    }
}
