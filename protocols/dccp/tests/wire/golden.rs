// SPDX-License-Identifier: Apache-2.0
//! Golden vectors: packets of real kernels and the RFCs' own examples, field by field.

use std::collections::HashMap;
use std::net::IpAddr;

use netjoule_dccp::describe::Summary;
use netjoule_dccp::options::{DccpOption, OptionIter};
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{checksum, Packet, PacketType, ResetCode, Seq48};

const PACKETS: &str = include_str!("../vectors/linux-packets.txt");
const OPTIONS: &str = include_str!("../vectors/options.txt");

type Entry<'a> = HashMap<&'a str, &'a str>;

/// Blocks of `field value` lines, divided by empty lines; `#` starts a comment.
fn entries(text: &str) -> Vec<Entry<'_>> {
    text.split("\n\n")
        .map(|block| {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            lines.filter_map(|line| line.split_once(' ')).collect::<Entry<'_>>()
        })
        .filter(|entry| !entry.is_empty())
        .collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn packet_bytes(name: &str) -> Vec<u8> {
    let all = entries(PACKETS);
    let entry = all.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no vector {name}"));
    bytes(entry["packet"])
}

fn long(number: u64) -> WireSeq {
    WireSeq::Long(Seq48::new(number))
}

#[test]
fn kernels_packets_have_right_checksums_words_and_come_out_as_they_went_in() {
    let all = entries(PACKETS);
    assert_eq!(all.len(), 8);
    for entry in all {
        let name = entry["name"];
        let bytes = bytes(entry["packet"]);
        let (from, to): (IpAddr, IpAddr) = (entry["from"].parse().unwrap(), entry["to"].parse().unwrap());
        assert!(checksum::verify(from, to, &bytes), "{name}");
        let packet = Packet::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(Summary(&packet).to_string(), entry["words"], "{name}");

        let mut emitted = Vec::new();
        assert!(Packet { checksum: 0, ..packet }.emit(&mut emitted));
        assert!(checksum::fill(from, to, &mut emitted));
        assert_eq!(emitted, bytes, "{name}");

        let mut options = Vec::new();
        packet.options().for_each(|option| option.emit(&mut options));
        assert_eq!(options, packet.option_bytes, "{name}");
    }
}

#[test]
fn option_vectors_say_what_their_source_says() {
    let all = entries(OPTIONS);
    assert_eq!(all.len(), 7);
    let ack = packet_bytes("Ack");
    for entry in all {
        let bytes = bytes(entry["options"]);
        let packet = Packet { option_bytes: &bytes, ..Packet::parse(&ack).unwrap() };
        let line = Summary(&packet).to_string();
        assert!(line.ends_with(&format!(" [{}]", entry["words"])), "{}: {line}", entry["name"]);
        let mut emitted = Vec::new();
        OptionIter::new(&bytes).for_each(|option| option.emit(&mut emitted));
        assert_eq!(emitted, bytes, "{}", entry["name"]);
    }
}

#[test]
fn request_field_by_field() {
    let bytes = packet_bytes("Request");
    let packet = Packet::parse(&bytes).unwrap();
    let wanted = Packet {
        source_port: 56_911,
        destination_port: 5001,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0xb12c,
        kind: PacketType::Request,
        seq: long(0x8fb2_3949_cc1f),
        ack: None,
        service_code: Some(0x5045_5246),
        reset: None,
        option_bytes: &bytes[20..],
        payload: &[],
    };
    assert_eq!(packet, wanted);
    let options: Vec<_> = packet.options().collect();
    let wanted = [
        DccpOption::Padding,
        DccpOption::Padding,
        DccpOption::Timestamp(0x64eb_2514),
        DccpOption::ChangeL { feature: 1, value: &[2, 3] },
        DccpOption::ChangeR { feature: 1, value: &[2, 3] },
        DccpOption::Mandatory,
        DccpOption::ChangeL { feature: 2, value: &[0] },
        DccpOption::Mandatory,
        DccpOption::ChangeL { feature: 4, value: &[1] },
    ];
    assert_eq!(options, wanted);
}

#[test]
fn response_field_by_field() {
    let bytes = packet_bytes("Response");
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.kind, packet.seq), (PacketType::Response, long(0xf22c_ed9f_a7c0)));
    assert_eq!((packet.ack, packet.service_code), (Some(long(0x8fb2_3949_cc1f)), Some(0x5045_5246)));
    let options: Vec<_> = packet.options().collect();
    assert_eq!(options.len(), 14);
    assert_eq!(options[0], DccpOption::TimestampEcho { echo: 0x64eb_2514, elapsed: 2 });
    assert_eq!(options[2], DccpOption::ConfirmL { feature: 1, value: &[2, 2, 3] });
    assert_eq!(options[13], DccpOption::ChangeR { feature: 6, value: &[1] });
}

#[test]
fn ending_and_synchronising_packets_field_by_field() {
    let table = [
        ("Close", PacketType::Close, 0x8fb2_3949_e02c, 0xf22c_ed9f_aef8, 0x11),
        ("Reset", PacketType::Reset, 0xf22c_ed9f_af0b, 0x8fb2_3949_e02c, 0x25),
        ("Sync", PacketType::Sync, 0x6bd9_4b20_d6d0, 0x6bd9_951b_8615, 0),
        ("SyncAck", PacketType::SyncAck, 0x6bd9_951b_8616, 0x6bd9_4b20_d6d0, 0),
    ];
    for (name, kind, seq, ack, cell) in table {
        let bytes = packet_bytes(name);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.kind, packet.seq, packet.ack), (kind, long(seq), Some(long(ack))), "{name}");
        let reset = (name == "Reset").then_some((ResetCode::Closed, [0; 3]));
        assert_eq!((packet.reset, packet.payload), (reset, &[][..]), "{name}");
        let options: Vec<_> = packet.options().collect();
        let vector = [cell];
        assert_eq!(
            options,
            [DccpOption::Padding, DccpOption::AckVector { nonce: false, vector: &vector }],
            "{name}"
        );
    }
}
