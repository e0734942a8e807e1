// SPDX-License-Identifier: Apache-2.0
//! What is asked for? Elements of a path, flows over it, a length and a seed.

use netjoule_dccp::ccid::Ccid;
use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::{ElementParams, Service};
use netjoule_link_model::range::{within, ParameterError};
use netjoule_link_model::rng::Rng;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::dccp::{DccpEnds, DccpParams};
use crate::ends::Ends;
use crate::tcp::choice::ControlName;
use crate::tcp::ends::{TcpEnds, TcpParams};
use crate::tcp::sender::SenderParams;

/// Chance of the ends of DCCP; that of the path is drawn from other streams.
const DCCP_STREAMS: u64 = 1 << 62;

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
    /// What each flow crosses on its own, between its sender and `elements`, there and back; none unless told.
    #[serde(default)]
    pub access: Vec<ElementConfig>,
    /// The flows.
    pub flows: Vec<FlowConfig>,
}

/// Parameters of what flows cross.
#[derive(Clone, Debug)]
pub struct PathParams {
    /// Of what each flow has for itself, or of none.
    pub access: Vec<ElementParams>,
    /// Of what all have together.
    pub shared: Vec<ElementParams>,
}

/// A flow that always has something to send; `transport` in the document says which ends it has, TCP unless told.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct FlowConfig {
    /// When it begins, s.
    pub start_s: f64,
    /// Its ends.
    pub ends: EndsConfig,
}

/// The ends of a flow.
#[derive(Clone, Debug)]
pub enum EndsConfig {
    /// Of TCP.
    Tcp(TcpConfig),
    /// Of DCCP.
    Dccp(DccpConfig),
}

/// TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TcpConfig {
    /// What makes its window grow.
    pub congestion_control: ControlName,
    /// Selective acknowledgements; with CUBIC unless told, as without them a loss of many segments takes it a timeout.
    pub sack: Option<bool>,
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

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            congestion_control: ControlName::default(),
            sack: None,
            delayed_acks: true,
            initial_window: 2.0,
            min_rto_s: 0.2,
            packet_bytes: 1500,
            ack_bytes: 40,
        }
    }
}

/// DCCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DccpConfig {
    /// Congestion control, 2 or 3.
    pub ccid: u8,
    /// Size of a message.
    pub payload_bytes: usize,
    /// 4 or 6.
    pub ip_version: u8,
}

impl Default for DccpConfig {
    fn default() -> Self {
        Self { ccid: 3, payload_bytes: 1440, ip_version: 4 }
    }
}

impl TryFrom<Map<String, Value>> for FlowConfig {
    type Error = serde_json::Error;

    fn try_from(mut document: Map<String, Value>) -> Result<Self, Self::Error> {
        let transport = document.remove("transport");
        let start_s = document.remove("start_s").map_or(Ok(0.0), serde_json::from_value)?;
        let ends = Value::Object(document);
        let ends = match transport.as_ref().map_or(Some("tcp"), Value::as_str) {
            Some("tcp") => EndsConfig::Tcp(serde_json::from_value(ends)?),
            Some("dccp") => EndsConfig::Dccp(serde_json::from_value(ends)?),
            _ => return Err(serde::de::Error::custom("transport of a flow must be tcp or dccp")),
        };
        Ok(Self { start_s, ends })
    }
}

impl EndsConfig {
    /// The ends of the flow with this index.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that is out of its range.
    pub fn ends(&self, seed: u64, index: usize) -> Result<Box<dyn Ends>, ParameterError> {
        Ok(match self {
            Self::Tcp(tcp) => Box::new(TcpEnds::new(tcp.params()?)),
            Self::Dccp(dccp) => {
                let stream = DCCP_STREAMS + index as u64;
                Box::new(DccpEnds::new(dccp.params()?, Rng::new(seed, stream)))
            }
        })
    }
}

impl TcpConfig {
    fn params(&self) -> Result<TcpParams, ParameterError> {
        Ok(TcpParams {
            sender: SenderParams {
                initial_window: within("initial_window", self.initial_window, 1.0..=1_000.0)?,
                min_rto_ns: ns(within("min_rto_s", self.min_rto_s, 0.001..=60.0)?),
                control: self.congestion_control,
                sack: self.sack.unwrap_or(self.congestion_control == ControlName::Cubic),
                receive_window: f64::INFINITY,
            },
            delayed_acks: self.delayed_acks,
            packet_bytes: within("packet_bytes", self.packet_bytes, 40..=9_000)?,
            ack_bytes: within("ack_bytes", self.ack_bytes, 40..=1_500)?,
        })
    }
}

impl DccpConfig {
    fn params(&self) -> Result<DccpParams, ParameterError> {
        let ccid = match within("ccid", self.ccid, 2..=3)? {
            2 => Ccid::TcpLike,
            _ => Ccid::Tfrc,
        };
        if ![4, 6].contains(&self.ip_version) {
            return Err(ParameterError(format!("ip_version must be 4 or 6, not {}", self.ip_version)));
        }
        let params = DccpParams { ccid, payload_bytes: self.payload_bytes, ip_version: self.ip_version };
        within("payload_bytes", self.payload_bytes, 1..=params.greatest_message())?;
        Ok(params)
    }
}

impl Asked {
    /// The parameters of all elements, and the number of steps; all that could not be is refused.
    ///
    /// # Errors
    /// [`ParameterError`] names the value, with its place.
    pub fn checked(&self) -> Result<(PathParams, u64), ParameterError> {
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
        let (flows, access) = (self.flows.len(), self.access.len());
        if access > 0 && access != flows {
            let sentence = format!("access has an element for each flow: {flows}, not {access}");
            return Err(ParameterError(sentence));
        }
        let params = params_of("elements", &self.elements)?;
        let access = params_of("access", &self.access)?;
        if params.iter().all(|element| element.service == Service::Unlimited) {
            let sentence =
                "no element has a rate, so nothing would slow a flow down; give one of them rate_mbps";
            return Err(ParameterError(sentence.to_owned()));
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let start_s = within("start_s", flow.start_s, 0.0..=1e6);
            let fits = start_s.and_then(|_| flow.ends.ends(self.seed, index));
            fits.map_err(|error| ParameterError(format!("flows[{index}]: {error}")))?;
        }
        Ok((PathParams { access, shared: params }, steps as u64))
    }
}

pub(crate) fn params_of(
    field: &str,
    elements: &[ElementConfig],
) -> Result<Vec<ElementParams>, ParameterError> {
    let place = |index: usize, error| ParameterError(format!("{field}[{index}]: {error}"));
    let each = elements.iter().enumerate();
    each.map(|(index, element)| element.params().map_err(|error| place(index, error))).collect()
}

pub(crate) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
