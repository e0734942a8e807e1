// SPDX-License-Identifier: Apache-2.0
//! What does the engine's registry hold, and which message sizes does it allow?

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::options::complete;
use netjoule_transport::{
    Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, Protocol, Result, Values,
};

use crate::config::MAX_MTU_BYTES;
use crate::end::End;
use crate::options::{Choice, OPTIONS};
use crate::path::packet_size::{datagram_message_bytes, udp_payload_bytes, CONNECTION_ID_BYTES};

/// A stream cuts messages anywhere; this only keeps a slip of the pen from being sent.
const LARGEST_STREAM_MESSAGE_BYTES: usize = 1 << 20;

/// QUIC's reliable stream or its DATAGRAM frames (RFC 9221) as a [`Protocol`]: they differ only in how messages travel.
#[derive(Debug, Clone, Copy)]
pub struct QuicProtocol(Description);

/// QUIC's reliable stream.
pub const QUIC: QuicProtocol = QuicProtocol::new("quic", "QUIC", Kind::Stream);
/// QUIC's DATAGRAM frames.
pub const QUIC_DATAGRAM: QuicProtocol = QuicProtocol::new("quic-datagram", "QUIC datagram", Kind::Datagram);

impl QuicProtocol {
    const fn new(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self(Description {
            is_congestion_controlled: true,
            options: &OPTIONS,
            keeps_event_log: true,
            ..Description::new(name, label, kind)
        })
    }
}

impl Protocol for QuicProtocol {
    fn description(&self) -> &Description {
        &self.0
    }

    fn options(&self, chosen: &Values) -> Result<Values> {
        Choice::of(&complete(self.name(), &OPTIONS, chosen)?).map(Choice::values)
    }

    fn limits(&self, ip_version: IpVersion, mtu_bytes: u32, _options: &Values) -> Limits {
        let used_mtu_bytes = (mtu_bytes as usize).min(MAX_MTU_BYTES);
        match (udp_payload_bytes(ip_version == IpVersion::V6, used_mtu_bytes), self.kind()) {
            (None, _) => mtu_too_small(ip_version, mtu_bytes),
            (Some(_), Kind::Stream) => Limits {
                max_message_bytes: LARGEST_STREAM_MESSAGE_BYTES,
                reason: "a stream cuts messages as it likes; 1 MiB is netjoule's own bound".to_owned(),
            },
            (Some(udp_bytes), Kind::Datagram) => datagram_limits(ip_version, used_mtu_bytes, udp_bytes),
        }
    }

    fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        offer: &Values,
        now_ns: i64,
    ) -> NewTransport {
        Ok(Box::new(End::connect(self.kind(), local, remote, flow, offer, now_ns)?))
    }

    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport {
        Ok(Box::new(End::listen(self.kind(), local, allowed_peer, flow)?))
    }
}

fn datagram_limits(ip_version: IpVersion, mtu_bytes: usize, udp_bytes: usize) -> Limits {
    let max_message_bytes = datagram_message_bytes(udp_bytes);
    Limits {
        max_message_bytes,
        reason: format!(
            "MTU {mtu_bytes} - {} bytes of IPv{}, UDP and QUIC headers, {CONNECTION_ID_BYTES}-byte connection id, \
             AEAD tag and DATAGRAM frame",
            mtu_bytes - max_message_bytes,
            ip_version.number()
        ),
    }
}

fn mtu_too_small(ip_version: IpVersion, mtu_bytes: u32) -> Limits {
    Limits {
        max_message_bytes: 0,
        reason: format!(
            "MTU {mtu_bytes} leaves less than the 1200 bytes of UDP payload over IPv{} that QUIC needs",
            ip_version.number()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_holds_what_the_mtu_leaves_and_never_more_than_ethernet_does() {
        for (ip_version, mtu_bytes, expected) in [
            (IpVersion::V4, 1500, 1440),
            (IpVersion::V6, 1500, 1420),
            (IpVersion::V4, 65_536, 1440),
            (IpVersion::V6, 1280, 1200),
            (IpVersion::V4, 1227, 0),
        ] {
            let limits = QUIC_DATAGRAM.limits(ip_version, mtu_bytes, &Values::new());
            assert_eq!(limits.max_message_bytes, expected, "{ip_version:?} {mtu_bytes}: {}", limits.reason);
        }
        assert!(QUIC_DATAGRAM
            .limits(IpVersion::V4, 1500, &Values::new())
            .reason
            .contains("MTU 1500 - 60 bytes of IPv4"));
    }

    #[test]
    fn a_stream_takes_any_size_where_quic_works_at_all() {
        assert!(QUIC.limits(IpVersion::V6, 1280, &Values::new()).max_message_bytes >= 65_536);
        let limits = QUIC.limits(IpVersion::V6, 1200, &Values::new());
        assert_eq!(limits.max_message_bytes, 0);
        assert!(limits.reason.contains("1200 bytes"), "{}", limits.reason);
    }

    #[test]
    fn the_names_are_those_of_the_command_line() {
        assert_eq!((QUIC.name(), QUIC.kind()), ("quic", Kind::Stream));
        assert_eq!((QUIC_DATAGRAM.name(), QUIC_DATAGRAM.kind()), ("quic-datagram", Kind::Datagram));
    }
}
