// SPDX-License-Identifier: Apache-2.0
//! How many bytes of a message fit one unfragmented packet?
//!
//! Pure arithmetic; the numbers are those of RFC 9000 section 17.3.1 (short header), RFC 9001 section 5.3
//! (16-byte AEAD tag), RFC 9221 section 4 (DATAGRAM frame) and of quiche, which reserves the longest packet
//! number (4 bytes) and always writes a 2-byte length.

use netjoule_sockets::datagram::UDP_HEADER_BYTES;

/// Bytes of connection id that a netjoule end asks its peer to put in each packet.
pub const CONNECTION_ID_BYTES: usize = 8;

/// quiche never goes below RFC 9000's smallest datagram, so neither may the MTU.
pub const MIN_UDP_PAYLOAD_BYTES: usize = 1200;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const SHORT_HEADER_FIRST_BYTE: usize = 1;
const MAX_PACKET_NUMBER_BYTES: usize = 4;
const AEAD_TAG_BYTES: usize = 16;
const DATAGRAM_FRAME_HEADER_BYTES: usize = 1 + 2;

/// Largest UDP payload in bytes that `mtu_bytes` carries unfragmented: 1472 on IPv4 and 1452 on IPv6 at 1500.
/// `None` when the MTU cannot carry QUIC at all (less than 1200 bytes are left).
pub fn udp_payload_bytes(is_ipv6: bool, mtu_bytes: usize) -> Option<usize> {
    let ip_header_bytes = if is_ipv6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES };
    let udp_bytes = mtu_bytes.checked_sub(ip_header_bytes + UDP_HEADER_BYTES)?;
    (udp_bytes >= MIN_UDP_PAYLOAD_BYTES).then_some(udp_bytes)
}

/// Largest message in bytes that fits one DATAGRAM frame of a packet with `udp_payload_bytes`, with
/// connection ids of 8 bytes: 1440 of 1472 (IPv4, MTU 1500), 1420 of 1452 (IPv6).
pub fn datagram_message_bytes(udp_payload_bytes: usize) -> usize {
    udp_payload_bytes.saturating_sub(
        SHORT_HEADER_FIRST_BYTE
            + CONNECTION_ID_BYTES
            + MAX_PACKET_NUMBER_BYTES
            + AEAD_TAG_BYTES
            + DATAGRAM_FRAME_HEADER_BYTES,
    )
}

/// Whether a packet with `udp_payload_bytes` can hold the header of a message (16 bytes): one that cannot only
/// acknowledges. An acknowledgement of one range is at least 7 bytes shorter than this border.
pub(crate) fn holds_a_message(udp_payload_bytes: usize, connection_id_bytes: usize) -> bool {
    const LEAST_PACKET_NUMBER_BYTES: usize = 1;
    const LEAST_STREAM_FRAME_HEADER_BYTES: usize = 1 + 1 + 2;
    udp_payload_bytes
        >= SHORT_HEADER_FIRST_BYTE
            + connection_id_bytes
            + LEAST_PACKET_NUMBER_BYTES
            + LEAST_STREAM_FRAME_HEADER_BYTES.min(DATAGRAM_FRAME_HEADER_BYTES)
            + netjoule_transport::message::HEADER_BYTES
            + AEAD_TAG_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_mtu_carries_1440_bytes_on_ipv4_and_1420_on_ipv6() {
        assert_eq!(udp_payload_bytes(false, 1500), Some(1472));
        assert_eq!(udp_payload_bytes(true, 1500), Some(1452));
        assert_eq!(datagram_message_bytes(1472), 1440);
        assert_eq!(datagram_message_bytes(1452), 1420);
    }

    #[test]
    fn an_mtu_below_quics_least_is_refused() {
        assert_eq!(udp_payload_bytes(false, 1228), Some(1200));
        assert_eq!(udp_payload_bytes(false, 1227), None);
        assert_eq!(udp_payload_bytes(true, 1247), None);
        assert_eq!(udp_payload_bytes(true, 10), None);
    }
}
