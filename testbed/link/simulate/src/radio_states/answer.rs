// SPDX-License-Identifier: Apache-2.0
//! What came of a trace under a machine, as it is told.

use std::collections::BTreeMap;

use netjoule_link_model::radio_states::params::MachineDocument;
use netjoule_link_model::radio_states::replay::{replay, Arrival, Replay};
use netjoule_link_model::range::{within, ParameterError};
use serde::Serialize;

use super::trace::MAX_S;

/// The answer to a trace; every figure is of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// As it was asked for.
    pub machine: String,
    /// Its parameters and where they come from; as a file it is the same machine.
    pub document: MachineDocument,
    /// Of this program.
    pub version: &'static str,
    /// The end, s; the trace begins at 0.
    pub t_end_s: f64,
    /// Of the trace.
    pub packets: usize,
    /// Of them; those that still waited at the end did not.
    pub packets_passed: usize,
    /// J.
    pub energy_j: f64,
    /// J by state.
    pub energy_by_state_j: BTreeMap<&'static str, f64>,
    /// Time by state, s.
    pub time_by_state_s: BTreeMap<&'static str, f64>,
    /// Start and end in s, and the state.
    pub intervals: Vec<(f64, f64, &'static str)>,
    /// Of the packets that passed; nothing where none did.
    pub delays_s: Option<Delays>,
    /// Energy after the last packet had passed, J; nothing where none did.
    pub tail_j: Option<f64>,
}

/// How long packets waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// In the mean, s.
    pub mean: f64,
    /// The longest, s.
    pub max: f64,
}

/// Plays the trace until `until_s`, or until the machine is at rest.
///
/// # Errors
/// [`ParameterError`] names the value that cannot be.
pub fn answer(
    machine: &str,
    document: MachineDocument,
    trace: &[Arrival],
    until_s: Option<f64>,
) -> Result<Answer, ParameterError> {
    let last_s = trace.last().map_or(0.0, |last| s(last.at_ns));
    let until_s = until_s.map(|until_s| {
        let error = |error| ParameterError(format!("{error}, from the last packet of the trace on"));
        within("--until-s", until_s, last_s..=MAX_S).map_err(error)
    });
    let until_ns = until_s.transpose()?.map(|until_s| (until_s * 1e9).round() as u64);
    let played = replay(&document.machine, trace, until_ns)
        .map_err(|error| ParameterError(format!("{machine}: {error}")))?;
    Ok(told(machine, document, trace.len(), &played))
}

fn told(machine: &str, document: MachineDocument, packets: usize, played: &Replay) -> Answer {
    let spent = || played.spent.iter();
    let intervals = played.intervals.iter();
    Answer {
        machine: machine.to_owned(),
        document,
        version: env!("CARGO_PKG_VERSION"),
        t_end_s: s(played.end_ns),
        packets,
        packets_passed: played.delays_ns.len(),
        energy_j: played.energy_j,
        energy_by_state_j: spent().map(|(state, spent)| (*state, spent.energy_j)).collect(),
        time_by_state_s: spent().map(|(state, spent)| (*state, s(spent.time_ns))).collect(),
        intervals: intervals.map(|each| (s(each.start_ns), s(each.end_ns), each.state)).collect(),
        delays_s: Delays::of(&played.delays_ns),
        tail_j: played.tail_j,
    }
}

impl Delays {
    fn of(delays_ns: &[u64]) -> Option<Self> {
        let max_ns = delays_ns.iter().max()?;
        let sum_ns: f64 = delays_ns.iter().map(|delay_ns| *delay_ns as f64).sum();
        Some(Self { mean: sum_ns / 1e9 / delays_ns.len() as f64, max: s(*max_ns) })
    }
}

fn s(ns: u64) -> f64 {
    ns as f64 / 1e9
}
