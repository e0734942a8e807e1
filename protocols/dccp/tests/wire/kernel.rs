// SPDX-License-Identifier: Apache-2.0
//! Captures of Debian's 6.1 kernel: every packet parses, its checksum is right, it comes out as it went in.

use std::net::IpAddr;
use std::path::Path;

use netjoule_dccp::options::DccpOption;
use netjoule_dccp::{checksum, Packet, PacketType, ResetCode};

/// A DCCP packet of a capture and who sent it to whom.
struct Captured {
    from: IpAddr,
    to: IpAddr,
    bytes: Vec<u8>,
}

/// The DCCP packets of a classic little-endian capture of Ethernet frames, as tcpdump writes it.
fn read(file: &[u8]) -> Vec<Captured> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_c3d4, 1), "not a capture of Ethernet frames");
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let length = word(at + 8) as usize;
        assert_eq!(word(at + 12) as usize, length, "a frame was cut off");
        packets.push(packet(&file[at + 16..at + 16 + length]));
        at += 16 + length;
    }
    packets
}

fn packet(frame: &[u8]) -> Captured {
    let ip = &frame[14..];
    if ip[0] >> 4 == 4 {
        assert_eq!((ip[0], ip[9]), (0x45, 33));
        let end = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap());
        Captured { from: address(12), to: address(16), bytes: ip[20..end].to_vec() }
    } else {
        assert_eq!((ip[0] >> 4, ip[6]), (6, 33));
        let end = 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        let address = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).unwrap());
        Captured { from: address(8), to: address(24), bytes: ip[40..end].to_vec() }
    }
}

fn captures() -> Vec<(String, Vec<Captured>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/kernel-6.1");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), read(&std::fs::read(path).unwrap()))).collect()
}

#[test]
fn every_packet_parses_has_a_right_checksum_and_is_emitted_unchanged() {
    let captures = captures();
    assert!(!captures.is_empty());
    for (name, packets) in captures {
        assert!(packets.len() > 60, "{name} holds {} packets", packets.len());
        for (index, captured) in packets.iter().enumerate() {
            let place = format!("{name}, packet {}", index + 1);
            assert!(checksum::verify(captured.from, captured.to, &captured.bytes), "{place}");
            let packet = Packet::parse(&captured.bytes).unwrap_or_else(|error| panic!("{place}: {error}"));
            let mut options = packet.options();
            let unknown = options.by_ref().find(|option| matches!(option, DccpOption::Unknown { .. }));
            assert_eq!((unknown, options.rest()), (None, &[][..]), "{place}");
            let mut emitted = Vec::new();
            assert!(Packet { checksum: 0, ..packet }.emit(&mut emitted));
            assert!(checksum::fill(captured.from, captured.to, &mut emitted));
            assert_eq!(emitted, captured.bytes, "{place}");
        }
    }
}

#[test]
fn connections_begin_carry_data_and_end() {
    for (name, packets) in captures() {
        let packets: Vec<_> =
            packets.iter().map(|captured| Packet::parse(&captured.bytes).unwrap()).collect();
        let count = |kind: PacketType| packets.iter().filter(|packet| packet.kind == kind).count();
        assert_eq!(packets[0].kind, PacketType::Request, "{name}");
        assert_eq!(packets[0].service_code, Some(0x4e4a_4f55), "{name}");
        let endings = count(PacketType::Close) + count(PacketType::CloseReq);
        assert!(count(PacketType::Response) >= 1 && endings >= 1, "{name}");
        let data =
            packets.iter().filter(|packet| packet.kind.is_data() && packet.payload.len() == 100).count();
        assert!(data >= 50, "{name}: {data}");
        let has = |wanted: fn(&DccpOption<'_>) -> bool| {
            packets.iter().any(|packet| packet.options().any(|one| wanted(&one)))
        };
        if name.ends_with("ccid2") {
            let not_received = |option: &DccpOption<'_>| matches!(option, DccpOption::AckVector { vector, .. } if vector.iter().any(|cell| cell >> 6 == 3));
            assert!(has(not_received), "{name}: no acknowledgement tells of a loss");
        } else {
            assert!(has(|option| matches!(option, DccpOption::ReceiveRate(1..))), "{name}");
            assert!(has(|option| matches!(option, DccpOption::LossEventRate(..=0xffff_fffe))), "{name}");
            assert!(
                packets.iter().any(|packet| packet.ccval != 0),
                "{name}: the window counter stands still"
            );
        }
        let resets = packets.iter().filter_map(|packet| packet.reset);
        assert!(resets.into_iter().all(|(code, _)| code == ResetCode::Closed), "{name}");
    }
}
