// SPDX-License-Identifier: Apache-2.0
//! Headers of every type and form: where each field stands, what does not parse, and that emitting is stable.

use netjoule_dccp::packet::{header_bytes, ParseError, WireSeq};
use netjoule_dccp::{Packet, PacketType, ResetCode, Seq48};
use proptest::prelude::*;

use crate::arbitrary;

const ALL: [PacketType; 11] = [
    PacketType::Request,
    PacketType::Response,
    PacketType::Data,
    PacketType::Ack,
    PacketType::DataAck,
    PacketType::CloseReq,
    PacketType::Close,
    PacketType::Reset,
    PacketType::Sync,
    PacketType::SyncAck,
    PacketType::Listen,
];

fn emitted(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(packet.emit(&mut bytes), "{packet:?} was refused");
    bytes
}

/// A header of `kind` whose fields all differ.
fn sample(kind: PacketType, short: bool) -> Packet<'static> {
    let (seq, ack) = if short {
        (WireSeq::Short(0x0a_0b0c), WireSeq::Short(0x1a_1b1c))
    } else {
        (WireSeq::Long(Seq48::new(0x0102_0304_0506)), WireSeq::Long(Seq48::new(0x1112_1314_1516)))
    };
    Packet {
        source_port: 0x2122,
        destination_port: 0x3132,
        ccval: 4,
        checksum_coverage: 0,
        checksum: 0x4142,
        kind,
        seq,
        ack: kind.has_ack().then_some(ack),
        service_code: kind.has_service_code().then_some(0x5152_5354),
        reset: (kind == PacketType::Reset).then_some((ResetCode::OptionError, [0x61, 0x62, 0x63])),
        option_bytes: &[],
        payload: b"xyz",
    }
}

#[test]
fn long_headers_have_the_rfcs_layout() {
    let generic = |kind: u8, words: u8| {
        let mut bytes = vec![0x21, 0x22, 0x31, 0x32, words, 0x40, 0x41, 0x42, kind << 1 | 1, 0];
        bytes.extend([1, 2, 3, 4, 5, 6]);
        bytes
    };
    let ack: &[u8] = &[0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16];
    let service: &[u8] = &[0x51, 0x52, 0x53, 0x54];
    let reset: &[u8] = &[5, 0x61, 0x62, 0x63];
    let tails: [(PacketType, Vec<u8>); 11] = [
        (PacketType::Request, service.to_vec()),
        (PacketType::Response, [ack, service].concat()),
        (PacketType::Data, vec![]),
        (PacketType::Ack, ack.to_vec()),
        (PacketType::DataAck, ack.to_vec()),
        (PacketType::CloseReq, ack.to_vec()),
        (PacketType::Close, ack.to_vec()),
        (PacketType::Reset, [ack, reset].concat()),
        (PacketType::Sync, ack.to_vec()),
        (PacketType::SyncAck, ack.to_vec()),
        (PacketType::Listen, service.to_vec()),
    ];
    for (kind, tail) in tails {
        let words = (16 + tail.len()) / 4;
        assert_eq!(header_bytes(kind, false), words * 4, "{kind:?}");
        let wanted = [generic(kind as u8, words as u8), tail, b"xyz".to_vec()].concat();
        assert_eq!(emitted(&sample(kind, false)), wanted, "{kind:?}");
        assert_eq!(Packet::parse(&wanted), Ok(sample(kind, false)));
    }
}

#[test]
fn short_headers_have_the_rfcs_layout() {
    let generic = |kind: u8, words: u8| {
        vec![0x21, 0x22, 0x31, 0x32, words, 0x40, 0x41, 0x42, kind << 1, 0x0a, 0x0b, 0x0c]
    };
    let ack = [0, 0x1a, 0x1b, 0x1c].as_slice();
    for (kind, tail) in [(PacketType::Data, &[][..]), (PacketType::Ack, ack), (PacketType::DataAck, ack)] {
        let words = (12 + tail.len()) as u8 / 4;
        let wanted = [&generic(kind as u8, words), tail, b"xyz"].concat();
        assert_eq!(emitted(&sample(kind, true)), wanted, "{kind:?}");
        assert_eq!(Packet::parse(&wanted), Ok(sample(kind, true)));
    }
}

#[test]
fn only_data_ack_and_dataack_may_be_short() {
    for kind in ALL {
        let mut bytes = emitted(&sample(kind, false));
        bytes[8] &= !1;
        let parsed = Packet::parse(&bytes);
        if matches!(kind, PacketType::Data | PacketType::Ack | PacketType::DataAck) {
            assert!(parsed.is_ok(), "{kind:?}");
        } else {
            assert_eq!(parsed, Err(ParseError::ShortForm(kind)));
            let mut out = Vec::new();
            assert!(!sample(kind, true).emit(&mut out) && out.is_empty(), "{kind:?}");
        }
    }
}

#[test]
fn reserved_types_do_not_parse() {
    let mut bytes = emitted(&sample(PacketType::Ack, false));
    for reserved in 11..16 {
        bytes[8] = reserved << 1 | 1;
        assert_eq!(Packet::parse(&bytes), Err(ParseError::ReservedType(reserved)));
    }
}

#[test]
fn reserved_bits_are_ignored_and_sent_as_zero() {
    for kind in ALL {
        let wanted = emitted(&sample(kind, false));
        let mut bytes = wanted.clone();
        bytes[8] |= 0xe0;
        bytes[9] = 0xff;
        if kind.has_ack() {
            bytes[16..18].fill(0xff);
        }
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet, sample(kind, false));
        assert_eq!(emitted(&packet), wanted, "{kind:?}");
    }
}

#[test]
fn data_offset_must_hold_the_header_and_lie_in_the_packet() {
    for kind in ALL {
        let bytes = emitted(&sample(kind, false));
        let words = bytes[4];
        for wrong in [0, 2, words - 1, words + 1, 255] {
            let mut bytes = bytes.clone();
            bytes[4] = wrong;
            let error = Packet::parse(&bytes);
            assert!(matches!(error, Err(ParseError::DataOffset { .. })), "{kind:?} {wrong}: {error:?}");
        }
    }
}

#[test]
fn short_bytes_do_not_parse() {
    for length in 0..12 {
        assert_eq!(Packet::parse(&[0xff; 12][..length]), Err(ParseError::TooShort(length)));
    }
}

#[test]
fn coverage_must_not_reach_past_the_data() {
    let mut packet = Packet { payload: &[0; 8], ..sample(PacketType::Data, false) };
    for coverage in 0..=3 {
        packet.checksum_coverage = coverage;
        let bytes = emitted(&packet);
        assert_eq!(Packet::parse(&bytes), Ok(packet));
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(Packet::parse(cut).is_err(), coverage == 3, "{coverage}");
    }
    packet.checksum_coverage = 4;
    assert!(!packet.emit(&mut Vec::new()));
}

#[test]
fn contradictory_packets_are_not_emitted() {
    let ack = sample(PacketType::Ack, false);
    let wrong = [
        Packet { ack: None, ..ack },
        Packet { ack: Some(WireSeq::Short(1)), ..ack },
        Packet { seq: WireSeq::Short(1), ..ack },
        Packet { service_code: Some(1), ..ack },
        Packet { reset: Some((ResetCode::Closed, [0; 3])), ..ack },
        Packet { ccval: 16, ..ack },
        Packet { checksum_coverage: 16, payload: &[0; 100], ..ack },
        Packet { service_code: None, ..sample(PacketType::Request, false) },
        Packet { reset: None, ..sample(PacketType::Reset, false) },
        Packet { ack: ack.ack, ..sample(PacketType::Data, false) },
        Packet { option_bytes: &[0; 997], ..ack },
    ];
    for packet in wrong {
        let mut out = vec![7];
        assert!(!packet.emit(&mut out), "{packet:?}");
        assert_eq!(out, [7]);
    }
    let full = Packet { option_bytes: &[0; 996], ..ack };
    assert_eq!(Packet::parse(&emitted(&full)), Ok(full));
}

#[test]
fn options_are_padded_to_a_whole_word() {
    for length in 0..=8 {
        let options = &[2; 8][..length];
        let packet = Packet { option_bytes: options, ..sample(PacketType::Ack, false) };
        let bytes = emitted(&packet);
        let parsed = Packet::parse(&bytes).unwrap();
        assert_eq!(&parsed.option_bytes[..length], options);
        assert!(parsed.option_bytes.len().is_multiple_of(4) && parsed.option_bytes.len() < length + 4);
        assert!(parsed.option_bytes[length..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn types_and_reset_codes_survive_their_numbers() {
    for kind in ALL {
        assert_eq!(PacketType::from_number(kind.number()), Some(kind));
    }
    for number in 0..=255 {
        assert_eq!(ResetCode::from_number(number).number(), number);
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_emit_of_parse_is_stable(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            arbitrary::plausible_bytes(),
        ],
    ) {
        crate::fuzz_body::wire(&bytes);
    }

    #[test]
    fn packets_survive_the_wire(owned in arbitrary::packet()) {
        let packet = owned.packet();
        let bytes = emitted(&packet);
        let parsed = Packet::parse(&bytes).unwrap();
        let (options, padding) = parsed.option_bytes.split_at(packet.option_bytes.len());
        prop_assert_eq!(options, packet.option_bytes);
        prop_assert!(padding.len() < 4 && padding.iter().all(|byte| *byte == 0));
        prop_assert_eq!(Packet { option_bytes: packet.option_bytes, ..parsed }, packet);
        prop_assert_eq!(emitted(&parsed), bytes);
    }
}
