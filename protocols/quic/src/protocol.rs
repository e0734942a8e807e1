// SPDX-License-Identifier: Apache-2.0
//! What does the engine's registry hold, and which message sizes does it allow?

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::options::{complete, OptionSpec};
use netjoule_transport::{message, FlowSpec, IpVersion, Kind, Limits, Protocol, Result, Transport, Values};

use crate::config::MAX_MTU_BYTES;
use crate::end::End;
use crate::options::{Choice, OPTIONS};
use crate::path::packet_size::{datagram_message_bytes, udp_payload_bytes, CONNECTION_ID_BYTES};

/// A stream cuts messages anywhere; this only keeps a slip of the pen from being sent.
const LARGEST_STREAM_MESSAGE_BYTES: usize = 1 << 20;

/// QUIC's reliable stream as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Quic;

/// QUIC's DATAGRAM frames (RFC 9221) as a [`Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct QuicDatagram;

fn limits(kind: Kind, ip_version: IpVersion, mtu_bytes: u32) -> Limits {
    let used_mtu_bytes = (mtu_bytes as usize).min(MAX_MTU_BYTES);
    match (udp_payload_bytes(ip_version == IpVersion::V6, used_mtu_bytes), kind) {
        (None, _) => mtu_too_small(ip_version, mtu_bytes),
        (Some(_), Kind::Stream) => Limits {
            min_message_bytes: message::HEADER_BYTES,
            max_message_bytes: LARGEST_STREAM_MESSAGE_BYTES,
            reason: "a stream cuts messages as it likes; 1 MiB is netjoule's own bound".to_owned(),
        },
        (Some(udp_bytes), Kind::Datagram) => datagram_limits(ip_version, used_mtu_bytes, udp_bytes),
    }
}

/// The two differ only in how messages travel.
macro_rules! protocol {
    ($protocol:ty, $name:literal, $label:literal, $kind:expr) => {
        impl Protocol for $protocol {
            fn name(&self) -> &'static str {
                $name
            }

            fn kind(&self) -> Kind {
                $kind
            }

            fn label(&self) -> &'static str {
                $label
            }

            fn is_congestion_controlled(&self) -> bool {
                true
            }

            fn keeps_event_log(&self) -> bool {
                true
            }

            fn option_specs(&self) -> &'static [OptionSpec] {
                &OPTIONS
            }

            fn options(&self, chosen: &Values) -> Result<Values> {
                Choice::of(&complete($name, &OPTIONS, chosen)?).map(Choice::values)
            }

            fn limits(&self, ip_version: IpVersion, mtu_bytes: u32) -> Limits {
                limits($kind, ip_version, mtu_bytes)
            }

            fn connect(
                &self,
                local: Option<IpAddr>,
                remote: SocketAddr,
                flow: &FlowSpec,
                offer: &Values,
                now_ns: i64,
            ) -> Result<Box<dyn Transport>> {
                Ok(Box::new(End::connect($kind, local, remote, flow, offer, now_ns)?))
            }

            fn listen(
                &self,
                local: SocketAddr,
                allowed_peer: Option<IpAddr>,
                flow: &FlowSpec,
            ) -> Result<Box<dyn Transport>> {
                Ok(Box::new(End::listen($kind, local, allowed_peer, flow)?))
            }
        }
    };
}

protocol!(Quic, "quic", "QUIC", Kind::Stream);
protocol!(QuicDatagram, "quic-datagram", "QUIC datagram", Kind::Datagram);

fn datagram_limits(ip_version: IpVersion, mtu_bytes: usize, udp_bytes: usize) -> Limits {
    let max_message_bytes = datagram_message_bytes(udp_bytes);
    Limits {
        min_message_bytes: message::HEADER_BYTES,
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
        min_message_bytes: message::HEADER_BYTES,
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
            let limits = QuicDatagram.limits(ip_version, mtu_bytes);
            assert_eq!(limits.max_message_bytes, expected, "{ip_version:?} {mtu_bytes}: {}", limits.reason);
        }
        assert!(QuicDatagram.limits(IpVersion::V4, 1500).reason.contains("MTU 1500 - 60 bytes of IPv4"));
    }

    #[test]
    fn a_stream_takes_any_size_where_quic_works_at_all() {
        assert!(Quic.limits(IpVersion::V6, 1280).max_message_bytes >= 65_536);
        let limits = Quic.limits(IpVersion::V6, 1200);
        assert_eq!(limits.max_message_bytes, 0);
        assert!(limits.reason.contains("1200 bytes"), "{}", limits.reason);
    }

    #[test]
    fn the_names_are_those_of_the_command_line() {
        assert_eq!((Quic.name(), Quic.kind()), ("quic", Kind::Stream));
        assert_eq!((QuicDatagram.name(), QuicDatagram.kind()), ("quic-datagram", Kind::Datagram));
    }
}
