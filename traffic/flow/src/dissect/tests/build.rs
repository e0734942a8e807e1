// SPDX-License-Identifier: Apache-2.0
//! Packets, frames and capture files for tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netjoule_dccp::checksum::{fill, fold, ones_sum, pseudo_header_sum};
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{Packet, PacketType, Seq48};

/// UDP port of encapsulated packets.
pub(super) const PORT: u16 = 6511;

/// Source and destination.
pub(super) type Ends = (IpAddr, IpAddr);
pub(super) const V4: Ends =
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
pub(super) const V6: Ends = (
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
);

/// Time of the first frame, 2026-11-21T17:00:00Z; it is 5 us later, and each further frame a second later.
const START_S: u32 = 1_795_280_400;

fn dccp(ends: Ends, packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(packet.emit(&mut bytes) && fill(ends.0, ends.1, &mut bytes));
    bytes
}

fn blank(kind: PacketType) -> Packet<'static> {
    Packet {
        source_port: 1000,
        destination_port: 2000,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind,
        seq: WireSeq::Long(Seq48::new(7)),
        ack: kind.has_ack().then_some(WireSeq::Long(Seq48::new(9))),
        service_code: None,
        reset: None,
        option_bytes: &[],
        payload: &[],
    }
}

/// A Sync with a Slow Receiver option.
pub(super) fn sync(ends: Ends) -> Vec<u8> {
    dccp(ends, &Packet { option_bytes: &[2], ..blank(PacketType::Sync) })
}

/// A Data packet.
pub(super) fn data(ends: Ends, checksum_coverage: u8, payload: &[u8]) -> Vec<u8> {
    dccp(ends, &Packet { checksum_coverage, payload, ..blank(PacketType::Data) })
}

/// A UDP datagram from port 40000 to [`PORT`].
pub(super) fn udp(ends: Ends, contents: &[u8]) -> Vec<u8> {
    let length = (contents.len() + 8) as u16;
    let mut bytes =
        [&40_000_u16.to_be_bytes()[..], &PORT.to_be_bytes(), &length.to_be_bytes(), &[0, 0]].concat();
    bytes.extend(contents);
    let sum = pseudo_header_sum(ends.0, ends.1, 17, bytes.len()).unwrap() + ones_sum(&bytes);
    bytes[6..8].copy_from_slice(&(!fold(sum)).to_be_bytes());
    bytes
}

/// An IPv4 packet between the ends of [`V4`].
pub(super) fn ipv4(protocol: u8, contents: &[u8]) -> Vec<u8> {
    let length = (20 + contents.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    bytes.extend(contents);
    bytes
}

/// An IPv6 packet between the ends of [`V6`].
pub(super) fn ipv6(next_header: u8, extensions: &[u8], contents: &[u8]) -> Vec<u8> {
    let length = (extensions.len() + contents.len()) as u16;
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([next_header, 64]);
    for end in [V6.0, V6.1] {
        let IpAddr::V6(end) = end else { panic!("not IPv6") };
        bytes.extend(end.octets());
    }
    bytes.extend(extensions);
    bytes.extend(contents);
    bytes
}

/// An Ethernet frame with an IPv4 packet.
pub(super) fn ethernet(ip: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00], ip].concat()
}

/// An Ethernet frame with an IPv6 packet.
pub(super) fn ethernet_six(ip: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd], ip].concat()
}

/// A classic capture file, little endian, microseconds.
pub(super) fn pcap(link_type: u32, frames: &[&[u8]]) -> Vec<u8> {
    classic(false, false, link_type, frames)
}

/// A classic capture file of any kind.
pub(super) fn classic(big_endian: bool, nanoseconds: bool, link_type: u32, frames: &[&[u8]]) -> Vec<u8> {
    let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let mut file = Vec::new();
    file.extend(word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend(if big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    for field in [0, 0, 262_144, link_type] {
        file.extend(word(field));
    }
    for (index, frame) in frames.iter().enumerate() {
        let fraction = if nanoseconds { 5000 } else { 5 };
        let bytes = frame.len() as u32;
        for field in [START_S + index as u32, fraction, bytes, bytes] {
            file.extend(word(field));
        }
        file.extend(*frame);
    }
    file
}

fn block(big_endian: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let padded = body.len().next_multiple_of(4);
    let length = word(padded as u32 + 12);
    [&word(kind), &length, body, &[0; 3][..padded - body.len()], &length].concat()
}

fn section(big_endian: bool, resolution: Option<u8>) -> Vec<u8> {
    let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let half = |half: u16| if big_endian { half.to_be_bytes() } else { half.to_le_bytes() };
    let version = [half(1), half(0)].concat();
    let mut file =
        block(big_endian, 0x0a0d_0d0a, &[&word(0x1a2b_3c4d), version.as_slice(), &[0xff; 8]].concat());
    let mut interface = [&half(1)[..], &half(0), &word(0)].concat();
    if let Some(resolution) = resolution {
        interface.extend([&half(9)[..], &half(1), &[resolution, 0, 0, 0], &[0; 4]].concat());
    }
    file.extend(block(big_endian, 1, &interface));
    file
}

/// A pcapng file with one Ethernet interface whose if_tsresol is `resolution`.
pub(super) fn pcapng(big_endian: bool, resolution: Option<u8>, frames: &[&[u8]]) -> Vec<u8> {
    let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let (units_per_s, fraction) = match resolution {
        None => (1_000_000, 5),
        Some(9) => (1_000_000_000, 5000),
        Some(3) => (1000, 0),
        Some(_) => (1024, 0),
    };
    let mut file = section(big_endian, resolution);
    for (index, frame) in frames.iter().enumerate() {
        let time: u64 = (u64::from(START_S) + index as u64) * units_per_s + fraction;
        let bytes = frame.len() as u32;
        let fields = [0, (time >> 32) as u32, time as u32, bytes, bytes].map(word).concat();
        file.extend(block(big_endian, 6, &[fields.as_slice(), frame].concat()));
    }
    file
}

/// A pcapng file with one Simple Packet Block.
pub(super) fn simple_pcapng(frame: &[u8]) -> Vec<u8> {
    let mut file = section(false, None);
    file.extend(block(false, 3, &[&(frame.len() as u32).to_le_bytes(), frame].concat()));
    file
}
