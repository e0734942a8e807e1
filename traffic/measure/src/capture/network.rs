// SPDX-License-Identifier: Apache-2.0
//! From a frame to the contents of its IP packet, through whatever stands in between.

use std::net::IpAddr;

use etherparse::{EtherType, Ipv6ExtensionSlice, LaxIpPayloadSlice, LaxNetSlice, LaxSlicedPacket};

use super::frames::Frame;

/// IP protocol numbers.
pub const DCCP: u8 = 33;
/// UDP's.
pub const UDP: u8 = 17;

/// Contents of an IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transported<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol of the contents, behind any IPv6 extension headers.
    pub protocol: u8,
    /// The contents as far as they were captured.
    pub bytes: &'a [u8],
    /// Length of the contents before they were cut off by the capture.
    pub whole_bytes: usize,
    /// Which part of a fragmented packet this is.
    pub fragment: Fragment,
}

/// Which part of a packet a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    Whole,
    /// The beginning.
    First,
    /// Another part, which has no transport header.
    Later,
}

/// Why there is no IP packet to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotIp {
    /// Something else, or damaged before the IP header ends.
    #[error("not IP")]
    Other,
    /// It cannot be known.
    #[error("link type {0} is not known ({name})", name = link_name(*.0))]
    LinkType(u16),
}

/// Link types that captures may well have, and that hold no IP packets, or not as they are read here (tcpdump.org/linktypes).
fn link_name(link_type: u16) -> &'static str {
    match link_type {
        104 => "Cisco HDLC",
        105 | 119 | 127 | 163 => "802.11 monitor mode",
        147..=162 => "a private one",
        187 | 201 | 251..=256 => "Bluetooth",
        189 | 220 => "USB",
        195 | 215 | 230 => "IEEE 802.15.4",
        _ => "see tcpdump.org/linktypes",
    }
}

impl Transported<'_> {
    /// Ports of a UDP header, if they are there.
    pub fn udp_ports(&self) -> Option<(u16, u16)> {
        let ports = self.bytes.get(..4).filter(|_| self.fragment != Fragment::Later)?;
        Some((u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])))
    }
}

/// The IP packet in a frame.
pub fn find<'a>(frame: &Frame<'a>) -> Result<Transported<'a>, NotIp> {
    let bytes = frame.bytes;
    let ether_type = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let sliced = match frame.link_type {
        // Null (byte order of the capturing machine) and loopback (big endian).
        0 | 108 => bytes.get(4..).and_then(from_ip),
        1 => match within_pppoe(bytes) {
            Some(inside) => from_ppp(inside),
            None => LaxSlicedPacket::from_ethernet(bytes).ok(),
        },
        // PPP: with or without its framing's address and control, Cisco's kind apart; over Ethernet; as pppd has it, where
        // the direction stands for the address.
        9 | 50 | 166 => from_ppp(match bytes {
            [0xff | 0 | 1, 0x03, rest @ ..] => rest,
            all => all,
        }),
        51 => within_session(bytes).and_then(from_ppp),
        // Raw IP; 12 and 14 are how some systems number it.
        12 | 14 | 101 | 228 | 229 => from_ip(bytes),
        // Linux cooked, versions 1 and 2.
        113 => ether_type(14).and_then(|kind| from_ether_type(kind, bytes.get(16..)?)),
        276 => ether_type(0).and_then(|kind| from_ether_type(kind, bytes.get(20..)?)),
        other => return Err(NotIp::LinkType(other)),
    };
    sliced.and_then(|sliced| transported(&sliced)).ok_or(NotIp::Other)
}

/// The PPP frame in an Ethernet frame of a PPPoE session (RFC 2516), be it in VLANs.
fn within_pppoe(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    loop {
        match u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?) {
            0x8100 | 0x88a8 => at += 4,
            0x8864 => return within_session(bytes.get(at + 2..)?),
            _ => return None,
        }
    }
}

/// What is behind a PPPoE header: version and type, code 0 of session data, session, length.
fn within_session(bytes: &[u8]) -> Option<&[u8]> {
    let (header, rest) = bytes.split_at_checked(6)?;
    (header[0] == 0x11 && header[1] == 0).then_some(rest)
}

/// The IP packet behind PPP's protocol number (RFC 1661), which may be compressed to a byte.
fn from_ppp(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    match bytes {
        [0x00, 0x21 | 0x57, packet @ ..] | [0x21 | 0x57, packet @ ..] => from_ip(packet),
        _ => None,
    }
}

fn from_ip(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    LaxSlicedPacket::from_ip(bytes).ok()
}

fn from_ether_type(kind: u16, bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    Some(LaxSlicedPacket::from_ether_type(EtherType(kind), bytes))
}

fn transported<'a>(sliced: &LaxSlicedPacket<'a>) -> Option<Transported<'a>> {
    match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let announced = usize::from(header.total_len()).saturating_sub(header.slice().len());
            let offset = header.fragments_offset().value();
            let fragment = Fragment::of(offset, header.more_fragments());
            // An authentication header is part of what was announced.
            let auth = ip.extensions().auth.map_or(0, |auth| auth.slice().len());
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            Some(Transported::new(addresses, ip.payload(), announced.saturating_sub(auth), fragment))
        }
        LaxNetSlice::Ipv6(ip) => {
            let extensions = ip.extensions();
            let announced =
                usize::from(ip.header().payload_length()).saturating_sub(extensions.slice().len());
            let fragment = extensions.clone().into_iter().find_map(|extension| match extension {
                Ipv6ExtensionSlice::Fragment(header) => {
                    Some(Fragment::of(header.fragment_offset().value(), header.more_fragments()))
                }
                _ => None,
            });
            let addresses = (ip.header().source_addr().into(), ip.header().destination_addr().into());
            Some(Transported::new(addresses, ip.payload(), announced, fragment.unwrap_or(Fragment::Whole)))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

impl<'a> Transported<'a> {
    fn new(
        (source, destination): (IpAddr, IpAddr),
        payload: &LaxIpPayloadSlice<'a>,
        announced_bytes: usize,
        fragment: Fragment,
    ) -> Self {
        Self {
            source,
            destination,
            protocol: payload.ip_number.0,
            bytes: payload.payload,
            whole_bytes: if payload.incomplete { announced_bytes } else { 0 }.max(payload.payload.len()),
            fragment,
        }
    }
}

impl Fragment {
    const fn of(offset: u16, more: bool) -> Self {
        match (offset, more) {
            (0, false) => Self::Whole,
            (0, true) => Self::First,
            _ => Self::Later,
        }
    }
}
