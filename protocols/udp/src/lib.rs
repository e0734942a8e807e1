// SPDX-License-Identifier: Apache-2.0
//! netjoule over UDP: one message, one datagram, never fragmented.
//!
//! A device that is slower than the load fills the socket's buffer. iperf3 waits in the call then, and sends late what was
//! due; here a message that finds no room is not sent, and what is due when there is room again is. That is no defect of
//! the sender: it counts as held back by the transport.
//!
//! `options` (what a user may choose), `handshake` and `opening` (who the peer is), `send_method` (in how many calls messages leave), `backpressure` (a full
//! socket), `receive_coalescing` (when the receiver looks again), `end` (the whole, as the traffic engine sees it).

#![forbid(unsafe_code)]

mod backpressure;
mod end;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod opening;
mod options;
mod receive_coalescing;
mod send_method;

use std::net::{IpAddr, SocketAddr};

use netjoule_sockets::datagram::UDP_HEADER_BYTES;
use netjoule_transport::{Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, Protocol, Values};

use crate::end::End;
use crate::options::OPTIONS;

/// Most that the UDP length field leaves for a payload over IPv4 (65,535 - 20 - 8).
const LARGEST_PAYLOAD_BYTES: usize = 65_507;

/// UDP as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Udp;

impl Protocol for Udp {
    fn description(&self) -> &Description {
        const {
            &Description {
                options: &OPTIONS,
                takes_launch_times: true,
                ..Description::new("udp", "UDP", Kind::Datagram)
            }
        }
    }

    fn limits(&self, ip_version: IpVersion, mtu_bytes: u32, _options: &Values) -> Limits {
        let headers = ip_version.header_bytes() + UDP_HEADER_BYTES;
        let fits = (mtu_bytes as usize).saturating_sub(headers).min(LARGEST_PAYLOAD_BYTES);
        Limits {
            max_message_bytes: fits,
            reason: format!("MTU {mtu_bytes} - {headers} bytes of IPv{} and UDP header", ip_version.number()),
        }
    }

    fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        _offer: &Values,
        now_ns: i64,
    ) -> NewTransport {
        Ok(Box::new(End::connect(local, remote, flow, now_ns)?))
    }

    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport {
        Ok(Box::new(End::listen(local, allowed_peer, flow)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TX_TIMESTAMPS;

    #[test]
    fn the_one_option_is_a_yes_or_no() {
        let chosen = |name: &str, value: serde_json::Value| Values::from_iter([(name.to_owned(), value)]);
        let asked = chosen(TX_TIMESTAMPS, true.into());
        assert_eq!(Udp.options(&asked).unwrap(), asked);
        assert_eq!(Udp.options(&Values::new()).unwrap(), Values::new());
        assert!(Udp.options(&chosen(TX_TIMESTAMPS, 1.into())).is_err());
        assert!(Udp.options(&chosen("ccid", 3.into())).is_err());
    }

    #[test]
    fn limits_follow_the_mtu_and_the_ip_version() {
        assert_eq!(Udp.limits(IpVersion::V4, 1500, &Values::new()).max_message_bytes, 1472);
        assert_eq!(Udp.limits(IpVersion::V6, 1500, &Values::new()).max_message_bytes, 1452);
        assert_eq!(Udp.limits(IpVersion::V4, 65_536, &Values::new()).max_message_bytes, 65_507);
        assert!(Udp.limits(IpVersion::V6, 1500, &Values::new()).reason.contains("MTU 1500 - 48"));
    }
}
