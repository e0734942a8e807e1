// SPDX-License-Identifier: Apache-2.0
//! The two transports as [`Protocol`]s: `dccp` on the user-space stack, `dccp-kernel` on the kernel's socket. Each
//! serves the other where the peer's carrier says so.

use std::net::{IpAddr, SocketAddr};

use netjoule_dccp::ccid::Ccid;
use netjoule_transport::{
    Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, Protocol, Result, Values,
};

use crate::end::End;
use crate::kernel::KernelEnd;
use crate::kernel_socket;
use crate::options::{self, CarrierKind, Choice};
use crate::raw::{self, RawCarrier};
use crate::udp::UdpCarrier;

/// Header of a Data packet (RFC 4340 section 5.1).
const DATA_HEADER_BYTES: usize = 16;
/// Most that IP's and UDP's length fields leave.
const LARGEST_DATAGRAM_BYTES: usize = 65_535;

impl CarrierKind {
    /// Header between IP and DCCP, and what is kept free for DCCP's options, in bytes.
    ///
    /// The kernel's own limit keeps 24 bytes free. With CCID 2 its packets also carry an Ack Vector and, until the other
    /// end has answered, Sequence Window and Ack Ratio; those that then do not fit it drops without a word, for ever.
    fn overhead_bytes(self, ccid: Ccid) -> (usize, usize) {
        match (self, ccid) {
            (Self::Udp, _) => (8, 16),
            (Self::Raw, _) => (0, 16),
            (Self::Kernel, Ccid::Tfrc) => (0, 24),
            (Self::Kernel, Ccid::TcpLike) => (0, 64),
        }
    }

    fn limits(self, ccid: Ccid, ip_version: IpVersion, mtu_bytes: u32) -> Limits {
        let (carrier_bytes, option_bytes) = self.overhead_bytes(ccid);
        let ip_bytes = ip_version.header_bytes();
        let headers = ip_bytes + carrier_bytes + DATA_HEADER_BYTES + option_bytes;
        let udp = if carrier_bytes == 0 { "" } else { "UDP, " };
        Limits {
            max_message_bytes: (mtu_bytes as usize).min(LARGEST_DATAGRAM_BYTES).saturating_sub(headers),
            reason: format!(
                "MTU {mtu_bytes} - {headers} bytes of IPv{}, {udp}DCCP Data header and room for options",
                ip_version.number()
            ),
        }
    }
}

fn limits(choice: Choice, ip_version: IpVersion, mtu_bytes: u32) -> Limits {
    let own = choice.carrier.limits(choice.ccid, ip_version, mtu_bytes);
    let other = choice.peer_carrier.limits(choice.ccid, ip_version, mtu_bytes);
    if other.max_message_bytes < own.max_message_bytes {
        other
    } else {
        own
    }
}

/// DCCP as a [`Protocol`], by who runs it at the client.
#[derive(Debug, Clone, Copy)]
pub struct DccpProtocol {
    description: Description,
    /// What the client's packets may travel over; the first where nothing is chosen.
    carriers: &'static [CarrierKind],
}

/// DCCP on the user-space stack.
pub const DCCP: DccpProtocol = DccpProtocol {
    description: Description {
        is_congestion_controlled: true,
        options: &options::USER_SPACE,
        ..Description::new("dccp", "DCCP", Kind::Datagram)
    },
    carriers: &[CarrierKind::Udp, CarrierKind::Raw],
};

/// DCCP on the kernel's socket (Linux up to 6.15).
pub const DCCP_KERNEL: DccpProtocol = DccpProtocol {
    description: Description {
        is_congestion_controlled: true,
        options: &options::KERNEL,
        trial: Some(kernel_socket::available),
        ..Description::new("dccp-kernel", "DCCP (kernel)", Kind::Datagram)
    },
    carriers: &[CarrierKind::Kernel],
};

impl DccpProtocol {
    fn choice(&self, values: &Values) -> Result<Choice> {
        Choice::of(self.name(), values, self.carriers)
    }
}

impl Protocol for DccpProtocol {
    fn description(&self) -> &Description {
        &self.description
    }

    fn options(&self, chosen: &Values) -> Result<Values> {
        self.choice(chosen).map(Choice::values)
    }

    fn ip_protocol(&self, options: &Values) -> u8 {
        match self.choice(options) {
            Ok(Choice { carrier: CarrierKind::Udp, .. }) => 17,
            _ => raw::PROTOCOL as u8,
        }
    }

    fn limits(&self, ip_version: IpVersion, mtu_bytes: u32, options: &Values) -> Limits {
        match self.choice(options) {
            Ok(choice) => limits(choice, ip_version, mtu_bytes),
            Err(_) => self.carriers[0].limits(Ccid::Tfrc, ip_version, mtu_bytes),
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
        let choice = self.choice(&flow.options)?;
        Ok(match choice.carrier {
            CarrierKind::Udp => {
                Box::new(End::connect(UdpCarrier::connect(local, remote)?, remote, flow, choice, now_ns)?)
            }
            CarrierKind::Raw => {
                Box::new(End::connect(RawCarrier::connect(local, remote)?, remote, flow, choice, now_ns)?)
            }
            CarrierKind::Kernel => Box::new(KernelEnd::connect(local, remote, flow, choice, now_ns)?),
        })
    }

    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport {
        let choice = self.choice(&flow.options)?;
        Ok(match choice.peer_carrier {
            CarrierKind::Udp => {
                Box::new(End::listen(UdpCarrier::listen(local)?, allowed_peer, flow, choice)?)
            }
            CarrierKind::Raw => {
                Box::new(End::listen(RawCarrier::listen(local)?, allowed_peer, flow, choice)?)
            }
            CarrierKind::Kernel => Box::new(KernelEnd::listen(local, allowed_peer, flow, choice)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn most(protocol: &dyn Protocol, version: IpVersion, options: Value) -> usize {
        let Value::Object(options) = options else { panic!("not an object") };
        protocol.limits(version, 1500, &options).max_message_bytes
    }

    #[test]
    fn the_carrier_says_what_stands_in_the_ip_header() {
        let number = |protocol: &dyn Protocol, options: Value| {
            let Value::Object(options) = options else { panic!("not an object") };
            protocol.ip_protocol(&options)
        };
        assert_eq!(number(&DCCP, json!({})), 17);
        assert_eq!(number(&DCCP, json!({ "carrier": "raw" })), 33);
        assert_eq!(number(&DCCP_KERNEL, json!({})), 33);
    }

    #[test]
    fn limits_follow_the_carriers_of_both_ends() {
        let (v4, v6) = (IpVersion::V4, IpVersion::V6);
        assert_eq!((most(&DCCP, v4, json!({})), most(&DCCP, v6, json!({}))), (1440, 1420));
        let raw = json!({ "carrier": "raw" });
        assert_eq!((most(&DCCP, v4, raw.clone()), most(&DCCP, v6, raw)), (1448, 1428));
        assert_eq!(most(&DCCP, v4, json!({ "carrier": "raw", "peer_carrier": "kernel" })), 1440);
        assert_eq!((most(&DCCP_KERNEL, v4, json!({})), most(&DCCP_KERNEL, v6, json!({}))), (1440, 1420));
        let tcp_like = json!({ "ccid": 2 });
        assert_eq!(
            (most(&DCCP_KERNEL, v4, tcp_like.clone()), most(&DCCP_KERNEL, v6, tcp_like.clone())),
            (1400, 1380)
        );
        assert_eq!(most(&DCCP, v4, tcp_like), 1440);
        let reason = DCCP.limits(v4, 1500, &Values::new()).reason;
        assert!(reason.contains("MTU 1500 - 60 bytes of IPv4, UDP"), "{reason}");
        assert_eq!(DCCP.limits(v4, 65_536, &Values::new()).max_message_bytes, 65_475);
    }
}
