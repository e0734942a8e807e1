// SPDX-License-Identifier: Apache-2.0
//! What is asked for? Elements of a path, flows over it, a length and a seed.

use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::{ElementParams, Service};
use netjoule_link_model::range::{within, ParameterError};
use serde::Deserialize;

use crate::tcp::choice::ControlName;
use crate::tcp::sender::SenderParams;

/// A document that asks for a simulation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Comes back in the answer.
    pub id: u64,
    /// Of all chance.
    pub seed: u64,
    /// Simulated time, s.
    pub duration_s: f64,
    /// What is told of it is told in steps of so long, s.
    pub interval_s: f64,
    /// The path, in order from the senders.
    pub elements: Vec<ElementConfig>,
    /// The flows.
    pub flows: Vec<FlowConfig>,
}

/// A flow of TCP that always has something to send.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowConfig {
    /// What makes its window grow.
    pub congestion_control: ControlName,
    /// Selective acknowledgements; with CUBIC unless told, as without them a loss of many segments takes it a timeout.
    pub sack: Option<bool>,
    /// When it begins, s.
    pub start_s: f64,
    /// True: every second segment is acknowledged.
    pub delayed_acks: bool,
    /// Window at the start, segments.
    pub initial_window: f64,
    /// Least retransmission timeout, s.
    pub min_rto_s: f64,
    /// Size of a data packet with its headers.
    pub packet_bytes: u32,
    /// Size of an acknowledgement with its headers.
    pub ack_bytes: u32,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            congestion_control: ControlName::default(),
            sack: None,
            start_s: 0.0,
            delayed_acks: true,
            initial_window: 2.0,
            min_rto_s: 0.2,
            packet_bytes: 1500,
            ack_bytes: 40,
        }
    }
}

impl FlowConfig {
    /// The sender's parameters.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that is out of its range.
    pub fn sender(&self) -> Result<SenderParams, ParameterError> {
        within("packet_bytes", self.packet_bytes, 40..=9_000)?;
        within("ack_bytes", self.ack_bytes, 40..=1_500)?;
        within("start_s", self.start_s, 0.0..=1e6)?;
        Ok(SenderParams {
            initial_window: within("initial_window", self.initial_window, 1.0..=1_000.0)?,
            min_rto_ns: ns(within("min_rto_s", self.min_rto_s, 0.001..=60.0)?),
            control: self.congestion_control,
            sack: self.sack.unwrap_or(self.congestion_control == ControlName::Cubic),
        })
    }
}

impl Asked {
    /// The parameters of the elements, and the number of steps; all that could not be is refused.
    ///
    /// # Errors
    /// [`ParameterError`] names the value, with its place.
    pub fn checked(&self) -> Result<(Vec<ElementParams>, u64), ParameterError> {
        within("number of elements", self.elements.len(), 0..=32)?;
        within("number of flows", self.flows.len(), 1..=1_000)?;
        within("duration_s", self.duration_s, 0.001..=1e6)?;
        within("interval_s", self.interval_s, 0.001..=self.duration_s)?;
        let steps = (self.duration_s / self.interval_s).round();
        within("number of steps", steps, 1.0..=1e6)?;
        if ns(steps * self.interval_s) != ns(self.duration_s) {
            let sentence = "duration_s must be a whole number of steps of interval_s";
            return Err(ParameterError(sentence.to_owned()));
        }
        let each = self.elements.iter().enumerate();
        let params = each.map(|(index, element)| {
            element.params().map_err(|error| ParameterError(format!("elements[{index}]: {error}")))
        });
        let params: Vec<ElementParams> = params.collect::<Result<_, _>>()?;
        if params.iter().all(|element| element.service == Service::Unlimited) {
            let sentence =
                "no element has a rate, so nothing would slow a flow down; give one of them rate_mbps";
            return Err(ParameterError(sentence.to_owned()));
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.sender().map_err(|error| ParameterError(format!("flows[{index}]: {error}")))?;
        }
        Ok((params, steps as u64))
    }
}

pub(crate) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
