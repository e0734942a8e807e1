// SPDX-License-Identifier: Apache-2.0
//! netjoule over the kernel's SCTP (RFC 9260), one-to-one style (RFC 6458 section 4): one message is one SCTP message on
//! stream 0 of one association between one address at each end.
//!
//! `options` (what a user may choose), `kernel` (socket options and counters), `reader` (messages and their arrivals), `end`
//! (the whole, as the traffic engine sees it).

#![forbid(unsafe_code)]

mod end;
mod kernel;
mod options;
mod reader;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_transport::options::OptionSpec;
use netjoule_transport::{message, FlowSpec, IpVersion, Kind, Limits, Protocol, Result, Transport, Values};

use crate::end::End;
use crate::options::{Choice, OPTIONS};

/// SCTP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Sctp;

impl Protocol for Sctp {
    fn name(&self) -> &'static str {
        "sctp"
    }

    fn kind(&self) -> Kind {
        Kind::Stream
    }

    fn label(&self) -> &'static str {
        "SCTP"
    }

    fn is_congestion_controlled(&self) -> bool {
        true
    }

    fn option_specs(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn options(&self, chosen: &Values) -> Result<Values> {
        let values = netjoule_transport::options::complete(self.name(), self.option_specs(), chosen)?;
        Choice::of(&values)?;
        Ok(values)
    }

    fn ip_protocol(&self, _options: &Values) -> u8 {
        132
    }

    fn is_host_dependent(&self) -> bool {
        true
    }

    fn missing(&self) -> Option<String> {
        kernel::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).err().map(|error| error.to_string())
    }

    fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32) -> Limits {
        Limits {
            min_message_bytes: message::HEADER_BYTES,
            max_message_bytes: kernel::LARGEST_MESSAGE_BYTES,
            reason:
                "64 KiB, so that the kernel's send buffer holds a message whole; SCTP splits it into packets"
                    .into(),
        }
    }

    fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        _offer: &Values,
        _now_ns: i64,
    ) -> Result<Box<dyn Transport>> {
        Ok(Box::new(End::connect(local, remote, flow)?))
    }

    fn listen(
        &self,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
    ) -> Result<Box<dyn Transport>> {
        Ok(Box::new(End::listen(local, allowed_peer, flow)?))
    }
}
