// SPDX-License-Identifier: Apache-2.0
//! netjoule over TCP and MPTCP: messages back to back in one connection, Nagle's algorithm off unless told otherwise.
//!
//! `options` (what a user may choose) with `congestion`; `flavour` (TCP or MPTCP); `opening` (who may connect, until the
//! flow is open); `writer` with `zerocopy`, `deframer` (messages into and out of the stream); `tcp_info`; `end`: the whole.

mod congestion;
mod end;
mod flavour;
mod opening;
mod options;
mod tcp_info;
mod writer;
mod zerocopy;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_transport::options::OptionSpec;
use netjoule_transport::{message, FlowSpec, IpVersion, Kind, Limits, Protocol, Result, Transport, Values};

use crate::end::End;
use crate::flavour::Flavour;
use crate::options::{MPTCP_OPTIONS, TCP_OPTIONS};

/// Largest message in bytes; a stream has no limit of its own, this one bounds memory.
const LARGEST_MESSAGE_BYTES: usize = 1 << 20;

/// TCP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Tcp;

/// MPTCP (RFC 8684) as a [`Protocol`]. Where the peer or the path has none, the kernel falls back to TCP; the flow's report
/// says so.
#[derive(Debug, Clone, Copy)]
pub struct Mptcp;

fn limits() -> Limits {
    Limits {
        min_message_bytes: message::HEADER_BYTES,
        max_message_bytes: LARGEST_MESSAGE_BYTES,
        reason: "1 MiB, the largest message of a stream".into(),
    }
}

fn missing(flavour: Flavour) -> Option<String> {
    flavour.open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).err().map(|error| error.to_string())
}

macro_rules! protocol {
    ($protocol:ty, $name:literal, $label:literal, $flavour:expr, $options:expr) => {
        impl Protocol for $protocol {
            fn name(&self) -> &'static str {
                $name
            }

            fn kind(&self) -> Kind {
                Kind::Stream
            }

            fn label(&self) -> &'static str {
                $label
            }

            fn is_congestion_controlled(&self) -> bool {
                true
            }

            fn option_specs(&self) -> &'static [OptionSpec] {
                &$options
            }

            fn ip_protocol(&self, _options: &Values) -> u8 {
                6
            }

            fn is_host_dependent(&self) -> bool {
                $flavour == Flavour::Mptcp
            }

            fn missing(&self) -> Option<String> {
                missing($flavour)
            }

            fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32) -> Limits {
                limits()
            }

            fn connect(
                &self,
                local: Option<IpAddr>,
                remote: SocketAddr,
                flow: &FlowSpec,
                _offer: &Values,
                _now_ns: i64,
            ) -> Result<Box<dyn Transport>> {
                Ok(Box::new(End::connect($flavour, local, remote, flow)?))
            }

            fn listen(
                &self,
                local: SocketAddr,
                allowed_peer: Option<IpAddr>,
                flow: &FlowSpec,
            ) -> Result<Box<dyn Transport>> {
                Ok(Box::new(End::listen($flavour, local, allowed_peer, flow)?))
            }
        }
    };
}

protocol!(Tcp, "tcp", "TCP", Flavour::Tcp, TCP_OPTIONS);
protocol!(Mptcp, "mptcp", "MPTCP", Flavour::Mptcp, MPTCP_OPTIONS);
