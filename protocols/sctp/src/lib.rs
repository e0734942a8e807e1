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

use netjoule_transport::options::complete;
use netjoule_transport::{
    Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, Protocol, Result, Values,
};

use crate::end::End;
use crate::options::{Choice, OPTIONS};

/// SCTP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Sctp;

impl Protocol for Sctp {
    fn description(&self) -> &Description {
        const {
            &Description {
                is_congestion_controlled: true,
                options: &OPTIONS,
                trial: Some(|| kernel::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map(drop)),
                ..Description::new("sctp", "SCTP", Kind::Stream)
            }
        }
    }

    fn options(&self, chosen: &Values) -> Result<Values> {
        let values = complete(self.name(), &OPTIONS, chosen)?;
        Choice::of(&values)?;
        Ok(values)
    }

    fn ip_protocol(&self, _options: &Values) -> u8 {
        132
    }

    fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32, _options: &Values) -> Limits {
        Limits {
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
    ) -> NewTransport {
        Ok(Box::new(End::connect(local, remote, flow)?))
    }

    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport {
        Ok(Box::new(End::listen(local, allowed_peer, flow)?))
    }
}
