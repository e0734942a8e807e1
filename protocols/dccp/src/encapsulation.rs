// SPDX-License-Identifier: Apache-2.0
//! Rules of UDP encapsulation (RFC 6773): a DCCP packet with unchanged header behind a UDP header.
//!
//! An operating system's UDP socket applies the rules about UDP's own fields. This is for who reads UDP headers itself,
//! from captures.

use std::net::IpAddr;

use crate::checksum::{fold, ones_sum, pseudo_header_sum};

/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: usize = 8;
/// UDP header and the shortest DCCP header.
pub const MIN_UDP_LENGTH: usize = UDP_HEADER_BYTES + 12;

const UDP_PROTOCOL: u8 = 17;

/// Why a UDP datagram must be dropped. The text is a clause for a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// Not even a UDP header, or more announced than there is.
    #[error("UDP Length {udp_length} does not fit {present_bytes} bytes of datagram")]
    Length {
        /// Field of the header (0 where there is none).
        udp_length: usize,
        /// From the UDP header to the end of the packet.
        present_bytes: usize,
    },
    /// Shorter than 20.
    #[error("UDP Length {0} is shorter than the 20 bytes of UDP header and generic header")]
    TooShort(usize),
}

/// What the UDP checksum says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Right.
    Valid,
    /// Zero: must not be (RFC 6773 section 3.3).
    Zero,
    /// Only the pseudo header's sum: captured at the sender before its network device finished it.
    Unfinished,
    /// Wrong.
    Wrong,
}

/// The DCCP packet in a UDP datagram, `udp` being the bytes from the UDP header to the end of the IP packet.
/// [`crate::Packet::parse`] then holds the UDP length against the DCCP header. See [`udp_checksum`] for the checksum.
pub fn contents(udp: &[u8]) -> Result<&[u8], DropReason> {
    let field = udp.get(4..6).filter(|_| udp.len() >= UDP_HEADER_BYTES);
    let udp_length = field.map_or(0, |field| usize::from(u16::from_be_bytes([field[0], field[1]])));
    //= rfc6773#3.3
    //# If the UDP Length field of a received packet is less than 20 (the UDP
    //# header length and minimum DCCP-UDP header length), the packet MUST be
    //# dropped.
    if field.is_some() && udp_length < MIN_UDP_LENGTH {
        return Err(DropReason::TooShort(udp_length));
    }
    //= rfc6773#3.3
    //# if the UDP Length field is greater than the length of the packet from
    //# the beginning of the UDP header to the end of the packet, the packet
    //# MUST be dropped.
    udp.get(UDP_HEADER_BYTES..udp_length).ok_or(DropReason::Length { udp_length, present_bytes: udp.len() })
}

/// Judge the checksum of a whole UDP datagram, header first.
pub fn udp_checksum(source: IpAddr, destination: IpAddr, udp: &[u8]) -> UdpChecksum {
    let Some(field) = udp.get(6..8).map(|field| u16::from_be_bytes([field[0], field[1]])) else {
        return UdpChecksum::Wrong;
    };
    let Some(pseudo) = pseudo_header_sum(source, destination, UDP_PROTOCOL, udp.len()) else {
        return UdpChecksum::Wrong;
    };
    if field == 0 {
        UdpChecksum::Zero
    } else if fold(pseudo + ones_sum(udp)) == 0xffff {
        UdpChecksum::Valid
    } else if field == fold(pseudo) {
        UdpChecksum::Unfinished
    } else {
        UdpChecksum::Wrong
    }
}
