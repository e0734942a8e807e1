// SPDX-License-Identifier: Apache-2.0
//! What is asked for? Files, an algorithm, connections, a device, and the path.

use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::Service;
use netjoule_link_model::range::{within, ParameterError};
use netjoule_scheduler::settings::Settings;
use serde::Deserialize;

use super::connection::ConnectionParams;
use crate::config::{params_of, PathParams};
use crate::tcp::choice::ControlName;
use crate::tcp::sender::SenderParams;

/// A document that asks for a transfer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Comes back in the answer.
    pub id: u64,
    /// Of all chance.
    pub seed: u64,
    /// What came is told in steps of so long, s.
    pub interval_s: f64,
    /// A transfer that is not done by then is told as it is, s.
    pub limit_s: f64,
    /// The path, in order from the client.
    pub elements: Vec<ElementConfig>,
    /// What is to be transferred, and how.
    pub transfer: Transfer,
}

/// Files and how they are moved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Size and number of files of that size, in order.
    pub files: Vec<(u64, u32)>,
    /// Algorithm and limits; `streams` is 1.
    pub settings: Settings,
    /// Of HTTP and TCP.
    #[serde(default)]
    pub connection: ConnectionConfig,
    /// What the client draws above idle.
    pub power: Power,
}

/// Dynamic power of a client: `base_w (1 + share_per_rate r + share_per_connection n)`, with r in Mb/s of file bytes and n
/// connections that have a request.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// W.
    pub base_w: f64,
    /// 1 / (Mb/s).
    pub share_per_rate: f64,
    /// 1 / connection.
    pub share_per_connection: f64,
}

/// A connection.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionConfig {
    /// What makes its window grow.
    pub congestion_control: ControlName,
    /// Window at the start, segments (RFC 6928).
    pub initial_window: f64,
    /// Least retransmission timeout, s.
    pub min_rto_s: f64,
    /// What the client's kernel gives to a connection's receive window, bytes.
    pub receive_window_bytes: u64,
    /// Size of a data packet with its headers.
    pub packet_bytes: u32,
    /// Of these the headers of TCP and IP.
    pub header_bytes: u32,
    /// HTTP headers of a response.
    pub response_header_bytes: u32,
    /// A request with all headers.
    pub request_bytes: u32,
    /// Whether a round trip of TLS 1.3 comes before the first request.
    pub tls: bool,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            congestion_control: ControlName::Cubic,
            initial_window: 10.0,
            min_rto_s: 0.2,
            receive_window_bytes: 1 << 20,
            packet_bytes: 1500,
            header_bytes: 52,
            response_header_bytes: 300,
            request_bytes: 200,
            tls: false,
        }
    }
}

impl ConnectionConfig {
    fn params(&self) -> Result<ConnectionParams, ParameterError> {
        let packet_bytes = within("packet_bytes", self.packet_bytes, 100..=9_000)?;
        let header_bytes = within("header_bytes", self.header_bytes, 40..=90)?;
        let segment_bytes = u64::from(packet_bytes - header_bytes);
        let window = within("receive_window_bytes", self.receive_window_bytes, segment_bytes..=1 << 40)?;
        Ok(ConnectionParams {
            sender: SenderParams {
                initial_window: within("initial_window", self.initial_window, 1.0..=1_000.0)?,
                min_rto_ns: crate::config::ns(within("min_rto_s", self.min_rto_s, 0.001..=60.0)?),
                control: self.congestion_control,
                sack: true,
                receive_window: (window / segment_bytes) as f64,
            },
            packet_bytes,
            header_bytes,
            response_header_bytes: within("response_header_bytes", self.response_header_bytes, 1..=100_000)?,
            request_bytes: within("request_bytes", self.request_bytes, 16..=1_400)?,
            has_tls: self.tls,
        })
    }
}

impl Asked {
    /// Parameters of the path and of a connection; all that could not be is refused.
    ///
    /// # Errors
    /// [`ParameterError`] names the value, with its place.
    pub fn checked(&self) -> Result<(PathParams, ConnectionParams), ParameterError> {
        within("interval_s", self.interval_s, 0.001..=1e6)?;
        within("limit_s", self.limit_s, self.interval_s..=1e6)?;
        within("number of elements", self.elements.len(), 1..=32)?;
        let files: u64 = self.transfer.files.iter().map(|(_, count)| u64::from(*count)).sum();
        within("number of files", files, 1..=10_000_000)?;
        let power = self.transfer.power;
        for (name, value) in [
            ("base_w", power.base_w),
            ("share_per_rate", power.share_per_rate),
            ("share_per_connection", power.share_per_connection),
        ] {
            within(name, value, 0.0..=1e6)?;
        }
        let settings = &self.transfer.settings;
        settings.check().map_err(|error| ParameterError(format!("settings: {error}")))?;
        if settings.streams != 1 {
            let sentence = "settings: streams must be 1: connections are of HTTP/1.1";
            return Err(ParameterError(sentence.to_owned()));
        }
        let shared = params_of("elements", &self.elements)?;
        if shared.iter().all(|element| element.service == Service::Unlimited) {
            return Err(ParameterError("no element has a rate; give one of them rate_mbps".to_owned()));
        }
        Ok((PathParams { access: Vec::new(), shared }, self.transfer.connection.params()?))
    }

    /// Sizes of the files, in order.
    pub fn sizes(&self) -> Vec<u64> {
        let each = self.transfer.files.iter();
        each.flat_map(|(size, count)| std::iter::repeat_n(*size, *count as usize)).collect()
    }
}
