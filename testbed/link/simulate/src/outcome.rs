// SPDX-License-Identifier: Apache-2.0
//! What came of a simulation, as it is told.

use netjoule_link_model::path::told::{RouterStep, RouterTold};
use serde::Serialize;

use crate::ends::FlowTotals;

/// The answer to a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Of the document.
    pub id: u64,
    /// Of this program.
    pub version: &'static str,
    /// Simulated time begins here.
    pub start_ns: u64,
    /// And ends here.
    pub end_ns: u64,
    /// Elements whose rate may change, in their order from the senders.
    pub routers: Vec<RouterTold>,
    /// In order of time.
    pub steps: Vec<Step>,
    /// Since the start, by flow.
    pub flows: Vec<FlowTotals>,
}

/// One step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its end; it begins where the one before ends.
    pub t_end_ns: u64,
    /// What `acked_packets` of the totals grew by in it, by flow.
    pub acked_packets: Vec<u64>,
    /// Congestion windows at its end, by flow, packets.
    pub window_packets: Vec<f64>,
    /// What each of the routers did.
    pub routers: Vec<RouterStep>,
}
