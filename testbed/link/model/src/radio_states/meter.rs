// SPDX-License-Identifier: Apache-2.0
//! What has a radio spent? Exact integrals over its phases: nothing is sampled, so when the meter is asked changes
//! nothing.

use std::collections::BTreeMap;

/// How much power a radio takes from the start of a phase on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Power {
    /// Always as much, W.
    Steady(f64),
    /// In cycles, each of which begins with the on time; that is no longer than a cycle.
    Pulsed { cycle_ns: u64, on_ns: u64, on_w: f64, off_w: f64 },
    /// One power, then another.
    Stepped { first_ns: u64, first_w: f64, then_w: f64 },
}

impl Power {
    /// The energy of so long from the start of the phase on, J.
    fn energy_j(&self, span_ns: u64) -> f64 {
        let of_two = |first_ns: u64, first_w: f64, then_w: f64| {
            (first_w * first_ns as f64 + then_w * (span_ns - first_ns) as f64) / 1e9
        };
        match *self {
            Self::Steady(power_w) => of_two(span_ns, power_w, 0.0),
            Self::Stepped { first_ns, first_w, then_w } => of_two(span_ns.min(first_ns), first_w, then_w),
            Self::Pulsed { cycle_ns, on_ns, on_w, off_w } => {
                let (cycles, rest_ns) = (span_ns / cycle_ns, span_ns % cycle_ns);
                of_two(cycles * on_ns + rest_ns.min(on_ns), on_w, off_w)
            }
        }
    }
}

/// A state and its power, from a moment on. A state whose power begins anew (with a packet) has several phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) state: &'static str,
    pub(super) since_ns: u64,
    pub(super) power: Power,
}

impl Phase {
    fn spent(&self, until_ns: u64) -> Spent {
        let span_ns = until_ns.saturating_sub(self.since_ns);
        Spent { time_ns: span_ns, energy_j: self.power.energy_j(span_ns) }
    }
}

/// Time and energy of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Time in it, ns.
    pub time_ns: u64,
    /// Energy of it, J.
    pub energy_j: f64,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.time_ns += other.time_ns;
        self.energy_j += other.energy_j;
    }
}

/// Time and energy by state, with the phase that is not over.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    phase: Phase,
    states: BTreeMap<&'static str, Spent>,
}

impl Meter {
    pub(super) fn new(phase: Phase) -> Self {
        Self { phase, states: BTreeMap::from([(phase.state, Spent::default())]) }
    }

    /// The radio is in this phase from its begin on; it may be the one that it was in.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.add(self.phase.spent(phase.since_ns));
        self.phase = phase;
    }

    /// Energy of a packet that passes in the present state, J.
    pub(super) fn add_packet(&mut self, energy_j: f64) {
        self.add(Spent { time_ns: 0, energy_j });
    }

    fn add(&mut self, spent: Spent) {
        self.states.entry(self.phase.state).or_default().add(spent);
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// By state, until `now_ns`; states in which no time was spent are not there.
    pub(super) fn spent(&self, now_ns: u64) -> BTreeMap<&'static str, Spent> {
        let mut states = self.states.clone();
        states.entry(self.phase.state).or_default().add(self.phase.spent(now_ns));
        states.retain(|_, spent| spent.time_ns > 0 || spent.energy_j > 0.0);
        states
    }

    /// Of all states, until `now_ns`, J.
    pub(super) fn energy_j(&self, now_ns: u64) -> f64 {
        let closed_j: f64 = self.states.values().map(|spent| spent.energy_j).sum();
        closed_j + self.phase.spent(now_ns).energy_j
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn powers_have_their_integrals_also_over_cycles_that_are_cut() {
        let pulsed = Power::Pulsed { cycle_ns: 40 * MS, on_ns: 2 * MS, on_w: 2.0, off_w: 1.0 };
        let stepped = Power::Stepped { first_ns: 100 * MS, first_w: 2.0, then_w: 1.0 };
        for (power, span_ms, expected_j) in [
            (Power::Steady(0.5), 3_000, 1.5),
            (pulsed, 0, 0.0),
            (pulsed, 1, 0.002),
            (pulsed, 40, 0.042),
            (pulsed, 81, 0.086),
            (pulsed, 400, 0.42),
            (stepped, 50, 0.1),
            (stepped, 100, 0.2),
            (stepped, 300, 0.4),
        ] {
            let energy_j = power.energy_j(span_ms * MS);
            assert!((energy_j - expected_j).abs() < 1e-12, "{power:?} over {span_ms} ms: {energy_j}");
        }
    }

    #[test]
    fn a_meter_tells_the_open_phase_with_those_that_are_over() {
        let phase = |state, since_ns, power_w| Phase { state, since_ns, power: Power::Steady(power_w) };
        let mut meter = Meter::new(phase("IDLE", 0, 0.1));
        meter.enter(phase("IDLE", 0, 0.1));
        meter.enter(phase("CR", 2_000 * MS, 1.0));
        meter.add_packet(0.25);
        let spent = meter.spent(5_000 * MS);
        assert_eq!(spent["IDLE"], Spent { time_ns: 2_000 * MS, energy_j: 0.2 });
        assert_eq!(spent["CR"], Spent { time_ns: 3_000 * MS, energy_j: 3.25 });
        assert!((meter.energy_j(5_000 * MS) - 3.45).abs() < 1e-12);
    }
}
