// SPDX-License-Identifier: Apache-2.0
//! netjoule over TCP and MPTCP: messages back to back in one connection, Nagle's algorithm off unless told otherwise.
//!
//! `options` (what a user may choose) with `congestion`; `flavour` (TCP or MPTCP); `writer` with `zerocopy`,
//! `deframer` (messages into and out of the stream); `tcp_info`; `end`: the whole.

mod congestion;
mod end;
mod flavour;
mod options;
mod tcp_info;
mod writer;
mod zerocopy;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_transport::{Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, Protocol, Values};

use crate::end::End;
use crate::flavour::Flavour;
use crate::options::{MPTCP_OPTIONS, TCP_OPTIONS};

/// Largest message in bytes; a stream has no limit of its own, this one bounds memory.
const LARGEST_MESSAGE_BYTES: usize = 1 << 20;

/// TCP or MPTCP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct TcpProtocol {
    description: Description,
    flavour: Flavour,
}

/// TCP.
pub const TCP: TcpProtocol = TcpProtocol {
    description: Description {
        is_congestion_controlled: true,
        options: &TCP_OPTIONS,
        ..Description::new("tcp", "TCP", Kind::Stream)
    },
    flavour: Flavour::Tcp,
};

/// MPTCP (RFC 8684). Where the peer or the path has none, the kernel falls back to TCP; the flow's report says so.
pub const MPTCP: TcpProtocol = TcpProtocol {
    description: Description {
        is_congestion_controlled: true,
        options: &MPTCP_OPTIONS,
        trial: Some(|| Flavour::Mptcp.open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map(drop)),
        ..Description::new("mptcp", "MPTCP", Kind::Stream)
    },
    flavour: Flavour::Mptcp,
};

impl Protocol for TcpProtocol {
    fn description(&self) -> &Description {
        &self.description
    }

    fn ip_protocol(&self, _options: &Values) -> u8 {
        6
    }

    fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32, _options: &Values) -> Limits {
        Limits {
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
    ) -> NewTransport {
        Ok(Box::new(End::connect(self.flavour, local, remote, flow)?))
    }

    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport {
        Ok(Box::new(End::listen(self.flavour, local, allowed_peer, flow)?))
    }
}
