// SPDX-License-Identifier: Apache-2.0
//! Where a captured packet's headers end. Pure.

use netjoule_sockets::datagram::UDP_HEADER_BYTES;

use crate::capture::frames::Frame;
use crate::capture::network::{self, Fragment, NotIp, DCCP, UDP};

const TCP: u8 = 6;
const SCTP: u8 = 132;

/// Longest headers in front of the transport's: Ethernet with two VLAN tags, IPv4 with all options.
const FRONT_BYTES: u32 = 22 + 60;
/// Longest DCCP header (RFC 4340 section 5.1: Data Offset is one byte of words).
const DCCP_HEADER_BYTES: u32 = 1_020;
/// Longer than any other transport's, with some of IPv6's extension headers.
const OTHER_BYTES: u32 = 174;

/// Whether the headers of this link type are understood.
pub(super) fn knows(link_type: u16) -> bool {
    !matches!(network::find(&frame(link_type, &[])), Err(NotIp::LinkType(_)))
}

/// Bytes to capture of each packet so that no header is cut.
pub(super) fn snap_bytes(ip_protocol: u8) -> u32 {
    FRONT_BYTES + if ip_protocol == DCCP { DCCP_HEADER_BYTES } else { OTHER_BYTES }
}

/// Length of everything up to the end of the transport header; 0 of what is no IP packet.
pub(super) fn header_bytes(link_type: u16, packet: &[u8]) -> usize {
    let Ok(found) = network::find(&frame(link_type, packet)) else { return 0 };
    // The contents are a part of the packet; where there are none, all of it is headers.
    let front = (found.bytes.as_ptr() as usize).wrapping_sub(packet.as_ptr() as usize);
    if found.bytes.is_empty() || front > packet.len() {
        return packet.len();
    }
    let transport = match found.fragment {
        Fragment::Later => 0,
        Fragment::Whole | Fragment::First => transport_bytes(found.protocol, found.bytes),
    };
    (front + transport).min(packet.len())
}

fn frame(link_type: u16, bytes: &[u8]) -> Frame<'_> {
    Frame { number: 1, time_ns: None, link_type, bytes }
}

fn transport_bytes(protocol: u8, transport: &[u8]) -> usize {
    match protocol {
        UDP => UDP_HEADER_BYTES,
        // The common header; chunks follow (RFC 9260 section 3).
        SCTP => 12,
        // Data offset in words of 32 bits (RFC 9293 section 3.1, RFC 4340 section 5.1).
        TCP => transport.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4),
        DCCP => transport.get(4).map_or(0, |words| usize::from(*words) * 4),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ETHERNET: u16 = 1;
    const RAW: u16 = 101;
    const LINUX_COOKED: u16 = 113;
    const LINUX_COOKED_2: u16 = 276;

    /// The last fifty bytes are payload.
    fn packet(link: &[u8], mut ip: Vec<u8>, transport: &[u8]) -> Vec<u8> {
        let total = |more: usize| u16::try_from(more + transport.len() + 50).unwrap().to_be_bytes();
        if ip[0] >> 4 == 4 {
            let length = total(ip.len());
            ip[2..4].copy_from_slice(&length);
        } else {
            let length = total(ip.len() - 40);
            ip[4..6].copy_from_slice(&length);
        }
        [link, &ip, transport, &[0xab; 50]].concat()
    }

    fn ipv4(words: u8, protocol: u8) -> Vec<u8> {
        let mut header = vec![0; usize::from(words) * 4];
        (header[0], header[9]) = (0x40 | words, protocol);
        header
    }

    fn ipv6(next: u8, extension: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 40];
        (header[0], header[6]) = (0x60, next);
        [&header, extension].concat()
    }

    fn ethernet(tags: usize) -> Vec<u8> {
        [&[2; 12][..], &[0x81, 0x00, 0, 7].repeat(tags), &[0x08, 0x00]].concat()
    }

    /// The header of a cooked capture, which tells of IPv6 at its end or at its beginning.
    fn cooked(version: usize) -> Vec<u8> {
        match version {
            1 => [&[0; 14][..], &[0x86, 0xdd]].concat(),
            _ => [&[0x86, 0xdd][..], &[0; 18]].concat(),
        }
    }

    #[test]
    fn headers_end_where_the_payload_begins() {
        let mut tcp = [0; 32];
        tcp[12] = 8 << 4;
        let mut dccp = [0; 1_020];
        dccp[4] = 255;
        // Destination options of 8 bytes, then UDP.
        let options = [17, 0, 0, 0, 0, 0, 0, 0];
        for (link_type, link, ip, transport) in [
            (ETHERNET, ethernet(0), ipv4(5, 17), &[0; 8][..]),
            (ETHERNET, ethernet(2), ipv4(6, 6), &tcp[..]),
            (ETHERNET, ethernet(0), ipv4(5, 132), &[0; 12][..]),
            (RAW, Vec::new(), ipv4(5, 33), &dccp[..]),
            (RAW, Vec::new(), ipv6(60, &options), &[0; 8][..]),
            (LINUX_COOKED, cooked(1), ipv6(17, &[]), &[0; 8][..]),
            (LINUX_COOKED_2, cooked(2), ipv6(17, &[]), &[0; 8][..]),
        ] {
            let protocol = if link_type == RAW { DCCP } else { UDP };
            let bytes = packet(&link, ip, transport);
            assert_eq!(header_bytes(link_type, &bytes), bytes.len() - 50, "link type {link_type}");
            // So much is captured of it.
            assert!(bytes.len() - 50 <= snap_bytes(protocol) as usize);
            let cut = &bytes[..bytes.len().min(snap_bytes(protocol) as usize)];
            assert_eq!(header_bytes(link_type, cut), bytes.len() - 50);
        }
        assert!([ETHERNET, RAW, LINUX_COOKED, LINUX_COOKED_2].into_iter().all(knows) && !knows(147));
    }

    #[test]
    fn a_later_part_of_a_packet_has_no_transport_header() {
        let mut ip = ipv4(5, 17);
        ip[7] = 1;
        let bytes = packet(&ethernet(0), ip, &[0; 8]);
        assert_eq!(header_bytes(ETHERNET, &bytes), 14 + 20);
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_end(link_type in 0_u16..300, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(header_bytes(link_type, &bytes) <= bytes.len());
        }
    }
}
