// SPDX-License-Identifier: Apache-2.0
//! Where a captured packet's headers end. Pure.

/// LINKTYPE_ values (the registry of the pcap formats): how many bytes stand in front of the IP header.
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
const LINUX_COOKED: u16 = 113;
const LINUX_COOKED_2: u16 = 276;

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;

/// Whether the headers of this link type are understood.
pub(super) fn knows(link_type: u16) -> bool {
    matches!(link_type, ETHERNET | RAW | LINUX_COOKED | LINUX_COOKED_2)
}

/// Length of everything up to the end of the transport header; of a packet that is not understood, up to where it is.
pub(super) fn header_bytes(link_type: u16, packet: &[u8]) -> usize {
    let link = match link_type {
        ETHERNET => ethernet_bytes(packet),
        LINUX_COOKED => 16,
        LINUX_COOKED_2 => 20,
        _ => 0,
    };
    let Some(ip) = packet.get(link..) else { return packet.len() };
    let (network, protocol) = match ip.first().map(|first| first >> 4) {
        Some(4) if ip.len() >= 20 => (usize::from(ip[0] & 0xf) * 4, ip[9]),
        Some(6) if ip.len() >= 40 => (40, ip[6]),
        _ => return link,
    };
    let transport = ip.get(network..).unwrap_or_default();
    link + network + transport_bytes(protocol, transport)
}

fn ethernet_bytes(packet: &[u8]) -> usize {
    let mut bytes = 14;
    // VLAN tags (IEEE 802.1Q and 802.1ad) stand before the type.
    while matches!(packet.get(bytes - 2..bytes), Some([0x81, 0x00] | [0x88, 0xa8])) {
        bytes += 4;
    }
    bytes
}

fn transport_bytes(protocol: u8, transport: &[u8]) -> usize {
    match protocol {
        UDP => 8,
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

    fn packet(link: &[u8], ip: &[u8], transport: &[u8]) -> Vec<u8> {
        [link, ip, transport, &[0xab; 50]].concat()
    }

    fn ipv4(words: u8, protocol: u8) -> Vec<u8> {
        let mut header = vec![0; usize::from(words) * 4];
        (header[0], header[9]) = (0x40 | words, protocol);
        header
    }

    fn ethernet(tags: usize) -> Vec<u8> {
        [&[2; 12][..], &[0x81, 0x00, 0, 7].repeat(tags), &[0x08, 0x00]].concat()
    }

    #[test]
    fn headers_end_where_the_payload_begins() {
        let mut tcp = [0; 32];
        tcp[12] = 8 << 4;
        let mut dccp = [0; 24];
        dccp[4] = 6;
        let mut ipv6 = [0; 40];
        (ipv6[0], ipv6[6]) = (0x60, 17);
        for (link_type, link, ip, transport) in [
            (ETHERNET, ethernet(0), ipv4(5, 17), &[0; 8][..]),
            (ETHERNET, ethernet(2), ipv4(6, 6), &tcp[..]),
            (RAW, Vec::new(), ipv4(5, 33), &dccp[..]),
            (LINUX_COOKED, vec![0; 16], ipv6.to_vec(), &[0; 8][..]),
            (LINUX_COOKED_2, vec![0; 20], ipv6.to_vec(), &[0; 8][..]),
        ] {
            let bytes = packet(&link, &ip, transport);
            assert_eq!(header_bytes(link_type, &bytes), bytes.len() - 50, "link type {link_type}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_end(link_type in 0_u16..300, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(header_bytes(link_type, &bytes) <= bytes.len() + 14 + 60 + 1_020 + bytes.len());
        }
    }
}
