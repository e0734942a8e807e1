// SPDX-License-Identifier: Apache-2.0
//! What stands between a station and the air? An access network: a queue with a rate in each direction, and one radio
//! for both, whose states hold packets back and cost energy ([`crate::radio_states`]).
//!
//! A packet waits for its rate, then for the radio. While one waits for the radio the queue behind it stands still, so
//! that the radio sees packets as it could carry them. Between packets nothing has to be called: what the radio did
//! meanwhile is told when it is asked.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::path::element::{earlier, Dropped, Element, Parcel};
use crate::path::serialiser::{QueueLimit, Serialiser};
use crate::radio_states::packet::Direction;
use crate::radio_states::presets::{find, NAMES};
use crate::radio_states::{Machine, Spent};
use crate::range::{within, ParameterError};

/// State of a radio that was in its lowest state all the while, whatever that is called.
const IDLE: &str = "idle";

/// An access network as a running link is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Preset of the radio, one of [`NAMES`].
    pub radio_states: String,
    /// Rate of each direction, Mb/s of IP bytes; as fast as the air unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// Packets that wait in each direction, the one that is being sent among them.
    #[serde(default = "default_queue_packets")]
    pub queue_packets: usize,
}

fn default_queue_packets() -> usize {
    1000
}

impl AccessConfig {
    /// The network, empty, with its radio in its lowest state.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that cannot be.
    pub fn open<P>(&self, start_ns: u64) -> Result<Access<P>, ParameterError> {
        let name = &self.radio_states;
        let preset = find(name).ok_or_else(|| {
            ParameterError(format!("radio_states {name:?} is not known; use one of {}", NAMES.join(", ")))
        })?;
        let rate_mbps = self.rate_mbps.map(|mbps| within("rate_mbps", mbps, 0.001..=1e6)).transpose()?;
        let limit = QueueLimit::packets(within("queue_packets", self.queue_packets, 1..=100_000)?);
        Ok(Access {
            radio_states: name.clone(),
            machine: Machine::new(&preset.machine, start_ns)?,
            queues: [(); 2].map(|()| Serialiser::new(rate_mbps.unwrap_or(f64::INFINITY), limit, 0)),
            stopped: [false; 2],
            waiting: VecDeque::new(),
            out: VecDeque::new(),
            now_ns: start_ns,
            counts: Counts::default(),
            told: BTreeMap::new(),
        })
    }
}

/// A packet that is through: when, in which direction, and the packet.
pub type Through<P> = (u64, Direction, P);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: u64,
    held_packets: u64,
    held_ns: u64,
    dropped_packets: u64,
}

#[derive(Debug)]
struct Waiting<P> {
    since_ns: u64,
    direction: Direction,
    parcel: Parcel<P>,
}

/// An access network and the packets inside. Time is an argument: who holds it calls [`Self::advance`] at each
/// [`Self::next_event_ns`] and takes with [`Self::poll`] what is through.
#[derive(Debug)]
pub struct Access<P> {
    radio_states: String,
    machine: Machine,
    /// Up, then down.
    queues: [Serialiser<P>; 2],
    /// Which of them stand still.
    stopped: [bool; 2],
    /// For the radio.
    waiting: VecDeque<Waiting<P>>,
    out: VecDeque<Through<P>>,
    now_ns: u64,
    counts: Counts,
    /// Time and energy by state when it was asked last.
    told: BTreeMap<&'static str, Spent>,
}

impl<P> Access<P> {
    /// Takes a packet in at `now_ns`.
    ///
    /// # Errors
    /// [`Dropped::Full`] where its queue is.
    pub fn enqueue(
        &mut self,
        now_ns: u64,
        direction: Direction,
        packet: P,
        ip_bytes: u32,
    ) -> Result<(), Dropped> {
        self.advance(now_ns);
        let taken = self.queues[way(direction)]
            .enqueue(self.now_ns, Parcel { packet: Some(packet), ip_bytes })
            .inspect_err(|_| self.counts.dropped_packets += 1);
        self.advance(self.now_ns);
        taken
    }

    /// When something happens to a packet inside; `None` while there is none.
    pub fn next_event_ns(&self) -> Option<u64> {
        let [up, down] = &self.queues;
        let radio_ns = self.machine.next_change_ns().filter(|_| !self.waiting.is_empty());
        earlier(radio_ns, earlier(up.next_event_ns(), down.next_event_ns()))
    }

    /// Does what is due by `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            if !self.waiting.is_empty() {
                self.machine.advance(at_ns);
                self.let_through();
            }
            for direction in [Direction::Up, Direction::Down] {
                self.queues[way(direction)].advance(self.now_ns);
                while let Some(parcel) = self.queues[way(direction)].poll() {
                    self.offer(direction, parcel);
                }
            }
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// A packet that has waited for its rate comes to the radio.
    fn offer(&mut self, direction: Direction, parcel: Parcel<P>) {
        self.machine.arrive(self.now_ns, direction, parcel.ip_bytes);
        self.waiting.push_back(Waiting { since_ns: self.now_ns, direction, parcel });
        self.let_through();
        if self.has_waiting(direction) {
            self.queues[way(direction)].hold(self.now_ns);
            self.stopped[way(direction)] = true;
        }
    }

    /// Takes from the radio what has passed it.
    fn let_through(&mut self) {
        while let Some(at_ns) = self.machine.poll() {
            // Each packet that it has was put in line for it.
            let Some(Waiting { since_ns, direction, parcel }) = self.waiting.pop_front() else { return };
            let held_ns = at_ns.saturating_sub(since_ns);
            self.counts.packets += 1;
            self.counts.held_packets += u64::from(held_ns > 0);
            self.counts.held_ns += held_ns;
            self.out.extend(parcel.packet.map(|packet| (at_ns, direction, packet)));
            if self.stopped[way(direction)] && !self.has_waiting(direction) {
                self.queues[way(direction)].release(self.now_ns);
                self.stopped[way(direction)] = false;
            }
        }
    }

    fn has_waiting(&self, direction: Direction) -> bool {
        self.waiting.iter().any(|one| one.direction == direction)
    }

    /// The next packet that is through, in order of time.
    pub fn poll(&mut self) -> Option<Through<P>> {
        self.out.pop_front()
    }

    /// Packets inside.
    pub fn held(&self) -> usize {
        let queued: u64 = self.queues.iter().map(|queue| queue.held().packets).sum();
        queued as usize + self.waiting.len() + self.out.len()
    }

    /// Packets that surely find a place in this direction.
    pub fn room(&self, direction: Direction) -> usize {
        self.queues[way(direction)].room()
    }

    /// Takes everything out, by direction, what came first at the front.
    pub fn drain(&mut self) -> Vec<(Direction, P)> {
        let out =
            std::mem::take(&mut self.out).into_iter().map(|(_, direction, packet)| (direction, Some(packet)));
        let waiting =
            std::mem::take(&mut self.waiting).into_iter().map(|one| (one.direction, one.parcel.packet));
        let mut found: Vec<_> = out.chain(waiting).collect();
        for direction in [Direction::Up, Direction::Down] {
            let queued = self.queues[way(direction)].drain();
            found.extend(queued.into_iter().map(|parcel| (direction, parcel.packet)));
        }
        found.into_iter().filter_map(|(direction, packet)| Some((direction, packet?))).collect()
    }

    /// What it did since it was asked last, until `now_ns` or until the radio had its last packet, if that is later.
    pub fn step(&mut self, now_ns: u64) -> AccessStep {
        self.advance(now_ns);
        self.machine.advance(self.now_ns);
        let spent = self.machine.spent();
        let states = spent.iter().filter_map(|(state, spent)| {
            let before = self.told.get(state).copied().unwrap_or_default();
            let time_ns = spent.time_ns - before.time_ns;
            let energy_j = spent.energy_j - before.energy_j;
            let told = StateStep { time_s: time_ns as f64 / 1e9, energy_j };
            (time_ns > 0 || energy_j > 0.0).then(|| ((*state).to_owned(), told))
        });
        let states: BTreeMap<_, _> = states.collect();
        let counts = std::mem::take(&mut self.counts);
        // One that dozes for less than a step, as between a file's last byte and the answer to its close, is not idle.
        let is_idle =
            self.machine.is_at_rest() && states.values().filter(|told| told.time_s > 0.0).count() <= 1;
        self.told = spent;
        AccessStep {
            radio_states: self.radio_states.clone(),
            state: if is_idle { IDLE.to_owned() } else { self.machine.state().to_lowercase() },
            energy_j: states.values().map(|told| told.energy_j).sum(),
            states,
            packets: counts.packets,
            held_packets: counts.held_packets,
            held_s: counts.held_ns as f64 / 1e9,
            dropped_packets: counts.dropped_packets,
        }
    }
}

fn way(direction: Direction) -> usize {
    match direction {
        Direction::Up => crate::path::UP,
        Direction::Down => crate::path::DOWN,
    }
}

/// What an access network did in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccessStep {
    /// Preset of the radio.
    pub radio_states: String,
    /// Its state at the end: `idle` if it was in the lowest one all the while.
    pub state: String,
    /// Energy of the radio, all states.
    pub energy_j: f64,
    /// By state; those in which it was not are not there.
    pub states: BTreeMap<String, StateStep>,
    /// Packets that passed the radio.
    pub packets: u64,
    /// Of them, those that waited for it.
    pub held_packets: u64,
    /// So long, all together.
    pub held_s: f64,
    /// Packets that found a queue full.
    pub dropped_packets: u64,
}

/// Time in a state, and energy of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StateStep {
    /// Time.
    pub time_s: f64,
    /// Energy.
    pub energy_j: f64,
}
