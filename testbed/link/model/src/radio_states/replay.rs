// SPDX-License-Identifier: Apache-2.0
//! What does a trace of packets come to? Intervals of states, the delay of each packet, and energies.

use std::collections::BTreeMap;

use super::packet::Packet;
use super::params::MachineParams;
use super::{Machine, Spent};
use crate::range::ParameterError;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes.
    pub at_ns: u64,
    /// The packet.
    pub packet: Packet,
}

/// Time in a state without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// The name of the state.
    pub state: &'static str,
}

/// What came of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The end; it begins at 0.
    pub end_ns: u64,
    /// In order of time; none is of no length.
    pub intervals: Vec<Interval>,
    /// Of those that passed, in order.
    pub delays_ns: Vec<u64>,
    /// By state.
    pub spent: BTreeMap<&'static str, Spent>,
    /// J.
    pub energy_j: f64,
    /// From the moment on at which the last packet passed, J; `None` where none did.
    pub tail_j: Option<f64>,
}

/// Plays a trace, in order of time, until `until_ns`, which is not before its last packet; or until the machine is at
/// rest.
///
/// # Errors
/// [`ParameterError`] names the parameters that do not fit together.
pub fn replay(
    params: &MachineParams,
    trace: &[Arrival],
    until_ns: Option<u64>,
) -> Result<Replay, ParameterError> {
    let mut player = Player::new(Machine::new(params, 0)?, trace);
    for Arrival { at_ns, packet } in trace {
        player.run_until(*at_ns);
        player.machine.arrive(*at_ns, packet.direction, packet.ip_bytes);
        player.note();
    }
    match until_ns {
        Some(until_ns) => player.run_until(until_ns),
        None => player.run_to_rest(),
    }
    Ok(player.close())
}

#[derive(Debug)]
struct Player<'a> {
    machine: Machine,
    trace: &'a [Arrival],
    now_ns: u64,
    state: &'static str,
    since_ns: u64,
    intervals: Vec<Interval>,
    delays_ns: Vec<u64>,
    /// Energy when the last packet had passed.
    passed_j: Option<f64>,
}

impl<'a> Player<'a> {
    fn new(machine: Machine, trace: &'a [Arrival]) -> Self {
        Self {
            state: machine.state(),
            machine,
            trace,
            now_ns: 0,
            since_ns: 0,
            intervals: Vec::new(),
            delays_ns: Vec::new(),
            passed_j: None,
        }
    }

    fn run_until(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.machine.next_change_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.run_to(at_ns);
        }
        self.run_to(until_ns);
    }

    fn run_to_rest(&mut self) {
        while let Some(at_ns) = self.machine.next_change_ns().filter(|_| !self.machine.is_at_rest()) {
            self.run_to(at_ns);
        }
    }

    fn run_to(&mut self, at_ns: u64) {
        self.machine.advance(at_ns);
        self.now_ns = at_ns;
        self.note();
    }

    /// What is new after the machine has done something.
    fn note(&mut self) {
        while let Some(passed_ns) = self.machine.poll() {
            self.delays_ns.push(passed_ns - self.trace[self.delays_ns.len()].at_ns);
            self.passed_j = Some(self.machine.energy_j());
        }
        if self.machine.state() != self.state {
            self.end_interval();
            self.state = self.machine.state();
        }
    }

    fn end_interval(&mut self) {
        let interval = Interval { start_ns: self.since_ns, end_ns: self.now_ns, state: self.state };
        if interval.end_ns > interval.start_ns {
            self.intervals.push(interval);
        }
        self.since_ns = self.now_ns;
    }

    fn close(mut self) -> Replay {
        self.end_interval();
        let energy_j = self.machine.energy_j();
        Replay {
            end_ns: self.now_ns,
            intervals: self.intervals,
            delays_ns: self.delays_ns,
            spent: self.machine.spent(),
            energy_j,
            tail_j: self.passed_j.map(|passed_j| energy_j - passed_j),
        }
    }
}
