// SPDX-License-Identifier: Apache-2.0
//! What does a radio that sleeps between packets cost, in joules and in time? A machine of states, driven by packets.
//!
//! [`Machine`] takes packets with their times, holds them while the radio is promoted or asleep, and meters the
//! states: [`wifi`], [`lte`] or [`umts`], with the parameters of a document ([`params`]) or of a preset
//! ([`presets`]). [`replay`] plays a whole trace. Every radio keeps these rules: it begins in its lowest state;
//! packets pass in the order in which they came; timers and windows count from when packets pass; a timer that ends
//! when a packet comes acts first.

pub mod lte;
mod meter;
pub mod packet;
pub mod params;
pub mod presets;
pub mod quantity;
mod radio;
pub mod replay;
pub mod umts;
pub mod wifi;

use std::collections::{BTreeMap, VecDeque};

use meter::Meter;
pub use meter::Spent;
use packet::{Direction, Packet};
use params::MachineParams;
use radio::{Offer, Radio};

use crate::path::element::earlier;
use crate::range::ParameterError;

/// A radio and the packets that wait for it. Time is an argument and never goes back: who holds a machine calls
/// [`Self::advance`] at each [`Self::next_change_ns`] and takes with [`Self::poll`] what has passed.
#[derive(Debug)]
pub struct Machine {
    radio: Box<dyn Radio>,
    meter: Meter,
    now_ns: u64,
    waiting: VecDeque<Packet>,
    /// Of those that wait.
    waiting_up: usize,
    /// When the first of them is offered again.
    offer_ns: Option<u64>,
    /// What is expected of those that wait, if any do. It holds: an up packet that ends a sleep lets all pass.
    outlook: Option<Outlook>,
    /// When packets passed, those that were not taken yet.
    passed: VecDeque<u64>,
}

impl Machine {
    /// A machine in its lowest state at `start_ns`.
    ///
    /// # Errors
    /// [`ParameterError`] names the parameters that do not fit together.
    pub fn new(params: &MachineParams, start_ns: u64) -> Result<Self, ParameterError> {
        let radio = params.radio(start_ns)?;
        Ok(Self {
            meter: Meter::new(radio.phase()),
            radio,
            now_ns: start_ns,
            waiting: VecDeque::new(),
            waiting_up: 0,
            offer_ns: None,
            outlook: None,
            passed: VecDeque::new(),
        })
    }

    /// A packet comes at `now_ns`. Gives back when it will pass as things stand; only an up packet that comes while
    /// it waits can bring that forward.
    pub fn arrive(&mut self, now_ns: u64, direction: Direction, ip_bytes: u32) -> u64 {
        self.advance(now_ns);
        let packet = Packet { direction, ip_bytes };
        self.waiting.push_back(packet);
        self.waiting_up += usize::from(direction == Direction::Up);
        self.serve(self.now_ns);
        self.advance(self.now_ns);
        if self.waiting.is_empty() {
            self.now_ns
        } else {
            self.foresee(packet)
        }
    }

    /// When a packet passed, each once, in the order in which they came.
    pub fn poll(&mut self) -> Option<u64> {
        self.passed.pop_front()
    }

    /// When it changes next if nothing comes, or offers what waits anew; `None` while nothing will.
    pub fn next_change_ns(&self) -> Option<u64> {
        earlier(self.radio.next_change_ns(), self.offer_ns)
    }

    /// Does what is due by `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_change_ns().filter(|at_ns| *at_ns <= now_ns) {
            if self.radio.next_change_ns().is_some_and(|change_ns| change_ns <= at_ns) {
                self.radio.change(at_ns);
                self.meter.enter(self.radio.phase());
            }
            self.serve(at_ns);
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Lets pass what can at `at_ns`.
    fn serve(&mut self, at_ns: u64) {
        self.offer_ns = None;
        while let Some(packet) = self.waiting.front().copied() {
            let offer = self.radio.offer(at_ns, packet, self.waiting_up > 0);
            self.meter.enter(self.radio.phase());
            if let Offer::Waits { until_ns } = offer {
                self.offer_ns = Some(until_ns);
                return;
            }
            self.meter.add_packet(self.radio.packet_j(packet));
            self.waiting_up -= usize::from(packet.direction == Direction::Up);
            self.waiting.pop_front();
            self.passed.push_back(at_ns);
        }
        self.outlook = None;
    }

    /// When the packet passes that came last, which waits.
    fn foresee(&mut self, packet: Packet) -> u64 {
        let outlook = self.outlook.take();
        let outlook = outlook.unwrap_or_else(|| Outlook { radio: self.radio.copy(), at_ns: self.now_ns });
        self.outlook.insert(outlook.after(packet, self.waiting_up > 0)).at_ns
    }

    /// The name of the state.
    pub fn state(&self) -> &'static str {
        self.meter.phase().state
    }

    /// True in the lowest state while nothing waits: nothing changes any more until a packet comes.
    pub fn is_at_rest(&self) -> bool {
        self.radio.is_lowest() && self.waiting.is_empty()
    }

    /// Energy since the start, J.
    pub fn energy_j(&self) -> f64 {
        self.meter.energy_j(self.now_ns)
    }

    /// Time and energy since the start by state.
    pub fn spent(&self) -> BTreeMap<&'static str, Spent> {
        self.meter.spent(self.now_ns)
    }
}

/// The radio as it will be when the last of those that wait has passed.
#[derive(Debug)]
struct Outlook {
    radio: Box<dyn Radio>,
    at_ns: u64,
}

impl Outlook {
    /// With one more packet.
    fn after(mut self, packet: Packet, is_awake: bool) -> Self {
        while let Offer::Waits { until_ns } = self.radio.offer(self.at_ns, packet, is_awake) {
            let change_ns = self.radio.next_change_ns().filter(|change_ns| *change_ns <= until_ns);
            if let Some(change_ns) = change_ns {
                self.radio.change(change_ns);
            }
            self.at_ns = change_ns.unwrap_or(until_ns);
        }
        self
    }
}
