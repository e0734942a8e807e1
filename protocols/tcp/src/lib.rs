// SPDX-License-Identifier: Apache-2.0
//! netjoule over TCP: messages back to back in one connection, Nagle's algorithm off.

mod cutter;
mod end;
mod listener;
mod preface;
mod tcp_info;

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::{message, FlowSpec, IpVersion, Kind, Limits, Protocol, Result, Transport, Values};

use crate::end::End;

/// Largest message in bytes; a stream has no limit of its own, this one bounds memory.
const LARGEST_MESSAGE_BYTES: usize = 1 << 20;

/// TCP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Tcp;

impl Protocol for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn kind(&self) -> Kind {
        Kind::Stream
    }

    fn ip_protocol(&self, _options: &Values) -> u8 {
        6
    }

    fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32) -> Limits {
        Limits {
            min_message_bytes: message::HEADER_BYTES,
            max_message_bytes: LARGEST_MESSAGE_BYTES,
            reason: "1 MiB, the largest message of a stream".into(),
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
        _now_ns: i64,
    ) -> Result<Box<dyn Transport>> {
        Ok(Box::new(End::listen(local, allowed_peer, flow)?))
    }
}
