// SPDX-License-Identifier: Apache-2.0
//! Every option in every width, what is malformed, and the insides of the structured ones.

use netjoule_dccp::feature::{table, Feature};
use netjoule_dccp::options::ack_vector::{cells, packets, AckState, Cell};
use netjoule_dccp::options::data_dropped::{blocks, Block, DropCode};
use netjoule_dccp::options::loss_intervals::{self, LossInterval, LossIntervals};
use netjoule_dccp::options::{DccpOption, OptionIter};
use netjoule_dccp::PacketType;
use proptest::prelude::*;

use crate::arbitrary;

fn all(bytes: &[u8]) -> Vec<DccpOption<'_>> {
    OptionIter::new(bytes).collect()
}

fn emitted(option: &DccpOption<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    option.emit(&mut bytes);
    bytes
}

/// Both directions of one form.
fn holds(option: DccpOption<'_>, wire: &[u8]) {
    assert_eq!(all(wire), [option]);
    assert_eq!(emitted(&option), wire, "{option:?}");
    assert_eq!(option.wire_bytes(), wire.len());
    assert_eq!(option.kind(), wire[0]);
}

#[test]
fn options_of_one_byte() {
    holds(DccpOption::Padding, &[0]);
    holds(DccpOption::Mandatory, &[1]);
    holds(DccpOption::SlowReceiver, &[2]);
    for kind in 3..32 {
        holds(DccpOption::Unknown { kind, contents: &[] }, &[kind]);
    }
}

#[test]
fn feature_negotiation() {
    holds(DccpOption::ChangeL { feature: 1, value: &[2, 3] }, &[32, 5, 1, 2, 3]);
    holds(DccpOption::ConfirmL { feature: 1, value: &[2, 2, 3] }, &[33, 6, 1, 2, 2, 3]);
    holds(DccpOption::ChangeR { feature: 6, value: &[1] }, &[34, 4, 6, 1]);
    holds(DccpOption::ConfirmR { feature: 126, value: &[] }, &[35, 3, 126]);
    for kind in 32..36 {
        holds(DccpOption::Unknown { kind, contents: &[] }, &[kind, 2]);
    }
}

#[test]
fn ndp_count_takes_as_few_bytes_as_it_needs() {
    let forms: [(u64, &[u8]); 7] = [
        (0, &[37, 3, 0]),
        (0xff, &[37, 3, 0xff]),
        (0x100, &[37, 4, 1, 0]),
        (0x1_0000, &[37, 5, 1, 0, 0]),
        (0x100_0000, &[37, 6, 1, 0, 0, 0]),
        (0x1_0000_0000, &[37, 7, 1, 0, 0, 0, 0]),
        (0x100_0000_0000, &[37, 8, 1, 0, 0, 0, 0, 0]),
    ];
    for (count, wire) in forms {
        holds(DccpOption::NdpCount(count), wire);
    }
    assert_eq!(all(&[37, 5, 0, 0, 7]), [DccpOption::NdpCount(7)]);
    assert_eq!(emitted(&DccpOption::NdpCount(u64::MAX)), [37, 8, 255, 255, 255, 255, 255, 255]);
    holds(DccpOption::Unknown { kind: 37, contents: &[] }, &[37, 2]);
    holds(DccpOption::Unknown { kind: 37, contents: &[1; 7] }, &[37, 9, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn timing_options() {
    holds(DccpOption::Timestamp(0x0102_0304), &[41, 6, 1, 2, 3, 4]);
    let echo = |elapsed| DccpOption::TimestampEcho { echo: 0x0102_0304, elapsed };
    holds(echo(0), &[42, 6, 1, 2, 3, 4]);
    holds(echo(1), &[42, 8, 1, 2, 3, 4, 0, 1]);
    holds(echo(0xffff), &[42, 8, 1, 2, 3, 4, 255, 255]);
    holds(echo(0x1_0000), &[42, 10, 1, 2, 3, 4, 0, 1, 0, 0]);
    holds(echo(u32::MAX), &[42, 10, 1, 2, 3, 4, 255, 255, 255, 255]);
    assert_eq!(all(&[42, 10, 1, 2, 3, 4, 0, 0, 0, 9]), [echo(9)]);
    holds(DccpOption::ElapsedTime(0), &[43, 4, 0, 0]);
    holds(DccpOption::ElapsedTime(0xffff), &[43, 4, 255, 255]);
    holds(DccpOption::ElapsedTime(0x1_0000), &[43, 6, 0, 1, 0, 0]);
    for (kind, lengths) in [(41, vec![6]), (42, vec![6, 8, 10]), (43, vec![4, 6])] {
        for length in (2..14_u8).filter(|length| !lengths.contains(length)) {
            let wire = [vec![kind, length], vec![0; usize::from(length) - 2]].concat();
            holds(DccpOption::Unknown { kind, contents: &wire[2..] }, &wire);
        }
    }
}

#[test]
fn rtt_estimate_takes_one_to_three_bytes() {
    holds(DccpOption::RttEstimate(0), &[128, 3, 0]);
    holds(DccpOption::RttEstimate(0xff), &[128, 3, 0xff]);
    holds(DccpOption::RttEstimate(0x100), &[128, 4, 1, 0]);
    holds(DccpOption::RttEstimate(0xff_fffe), &[128, 5, 255, 255, 254]);
    assert_eq!(emitted(&DccpOption::RttEstimate(16_800_000)), [128, 5, 255, 255, 255]);
    holds(DccpOption::Unknown { kind: 128, contents: &[] }, &[128, 2]);
    holds(DccpOption::Unknown { kind: 128, contents: &[0; 4] }, &[128, 6, 0, 0, 0, 0]);
}

#[test]
fn four_byte_options_take_nothing_else() {
    holds(DccpOption::DataChecksum(0x0102_0304), &[44, 6, 1, 2, 3, 4]);
    holds(DccpOption::LossEventRate(u32::MAX), &[192, 6, 255, 255, 255, 255]);
    holds(DccpOption::ReceiveRate(0), &[194, 6, 0, 0, 0, 0]);
    for kind in [41, 44, 192, 194] {
        holds(DccpOption::Unknown { kind, contents: &[1, 2] }, &[kind, 4, 1, 2]);
    }
}

#[test]
fn options_with_bytes_of_their_own() {
    holds(DccpOption::InitCookie(&[9, 8]), &[36, 4, 9, 8]);
    holds(DccpOption::AckVector { nonce: false, vector: &[0, 192] }, &[38, 4, 0, 192]);
    holds(DccpOption::AckVector { nonce: true, vector: &[] }, &[39, 2]);
    holds(DccpOption::DataDropped(&[0x7f]), &[40, 3, 0x7f]);
    holds(DccpOption::Unknown { kind: 255, contents: &[1] }, &[255, 3, 1]);
    let longest = [5; 253];
    assert_eq!(emitted(&DccpOption::InitCookie(&longest))[..2], [36, 255]);
    let too_long = [5; 254];
    let option = DccpOption::InitCookie(&too_long);
    assert_eq!((emitted(&option).len(), option.wire_bytes()), (0, 0));
    let option = DccpOption::ChangeL { feature: 1, value: &too_long[1..] };
    assert_eq!((emitted(&option).len(), option.wire_bytes()), (0, 0));
}

#[test]
fn a_nonsensical_length_ends_the_options() {
    let malformed: [&[u8]; 6] =
        [&[37, 0, 1], &[37, 1], &[32], &[44, 6, 1, 2, 3], &[255, 255, 0, 0], &[200, 3]];
    for tail in malformed {
        let bytes = [&[2, 41, 6, 0, 0, 0, 7], tail].concat();
        let mut iter = OptionIter::new(&bytes);
        let before: Vec<_> = iter.by_ref().collect();
        assert_eq!(before, [DccpOption::SlowReceiver, DccpOption::Timestamp(7)]);
        assert_eq!(iter.rest(), tail);
        assert!(iter.next().is_none());
    }
}

#[test]
fn padding_may_stand_anywhere() {
    let bytes = [0, 0, 41, 6, 0, 0, 0, 1, 0, 2, 1, 0];
    let wanted = [
        DccpOption::Padding,
        DccpOption::Padding,
        DccpOption::Timestamp(1),
        DccpOption::Padding,
        DccpOption::SlowReceiver,
        DccpOption::Mandatory,
        DccpOption::Padding,
    ];
    assert_eq!(all(&bytes), wanted);
}

#[test]
fn ack_vector_of_the_rfc() {
    // RFC 4340 section 11.4, acknowledgement number 100.
    let seen: Vec<_> = cells(&[0, 192, 3, 64, 5]).map(|cell| (cell.state, cell.packets)).collect();
    let wanted = [
        (AckState::Received, 1),
        (AckState::NotYetReceived, 1),
        (AckState::Received, 4),
        (AckState::ReceivedEcnMarked, 1),
        (AckState::Received, 6),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(packets(&[0, 192, 3, 64, 5]), 13);
    assert_eq!(packets(&[63; 253]), 16_192, "the most that one option can acknowledge");
    assert_eq!(Cell { state: AckState::Received, packets: 200 }.byte(), 63);
    assert_eq!(Cell { state: AckState::NotYetReceived, packets: 0 }.byte(), 192);
}

#[test]
fn data_dropped_blocks() {
    let seen: Vec<_> = blocks(&[0, 0x7f, 0x80, 0x9f, 0xa1, 0xb2, 0xc0, 0xff]).collect();
    let wanted = [
        (None, 1),
        (None, 128),
        (Some(DropCode::ProtocolConstraints), 1),
        (Some(DropCode::ApplicationNotListening), 16),
        (Some(DropCode::ReceiveBuffer), 2),
        (Some(DropCode::Corrupt), 3),
        (Some(DropCode::Reserved(4)), 1),
        (Some(DropCode::DeliveredCorrupt), 16),
    ];
    assert_eq!(seen, wanted.map(|(dropped, packets)| Block { dropped, packets }));
    assert_eq!(Block { dropped: None, packets: 255 }.byte(), 0x7f);
    assert_eq!(Block { dropped: Some(DropCode::Corrupt), packets: 17 }.byte(), 0xbf);
}

#[test]
fn loss_intervals_of_the_rfc() {
    // RFC 4342 section 8.6.2.
    let wire = [
        193, 39, 2, 0, 0, 10, 128, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 10, 0, 0, 8, 0, 0, 1, 0, 0, 8, 0,
        0, 10, 128, 0, 0, 0, 0, 15,
    ];
    let interval = |lossless_length, loss_length, nonce_echo, data_length| LossInterval {
        lossless_length,
        loss_length,
        nonce_echo,
        data_length,
    };
    let wanted = [
        interval(10, 1, true, 10),
        interval(8, 5, false, 10),
        interval(8, 1, false, 8),
        interval(10, 0, true, 15),
    ];
    let [DccpOption::LossIntervals(contents)] = all(&wire)[..] else {
        panic!("not one Loss Intervals option")
    };
    let parsed = LossIntervals::parse(contents).unwrap();
    assert_eq!(parsed.skip, 2);
    assert_eq!(parsed.iter().collect::<Vec<_>>(), wanted);
    assert_eq!(parsed.iter().map(|one| one.sequence_length()).sum::<u32>(), 43);
    let mut written = Vec::new();
    loss_intervals::write(2, wanted, &mut written);
    holds(DccpOption::LossIntervals(&written), &wire);
}

#[test]
fn loss_intervals_need_a_sound_length_and_skip() {
    for bytes in (0..253).filter(|bytes| *bytes == 1 || (bytes + 8) % 9 != 0) {
        let contents = vec![0; bytes];
        let wire = [vec![193, bytes as u8 + 2], contents.clone()].concat();
        assert_eq!(all(&wire), [DccpOption::Unknown { kind: 193, contents: &contents }], "{bytes}");
        assert!(LossIntervals::parse(&contents).is_none());
    }
    let mut contents = vec![0; 1 + 28 * 9];
    for (skip, valid) in [(0, true), (3, true), (4, false), (255, false)] {
        contents[0] = skip;
        assert_eq!(LossIntervals::parse(&contents).is_some(), valid, "{skip}");
    }
    let mut written = Vec::new();
    loss_intervals::write(9, [LossInterval::default(); 40], &mut written);
    assert_eq!((written[0], written.len()), (3, 253));
    let huge = LossInterval {
        lossless_length: u32::MAX,
        loss_length: u32::MAX,
        nonce_echo: false,
        data_length: u32::MAX,
    };
    assert_eq!(huge.to_bytes(), [255, 255, 255, 127, 255, 255, 255, 255, 255]);
}

#[test]
fn feature_values_have_their_widths() {
    let written = |feature: Feature, value| {
        let mut bytes = Vec::new();
        feature.write_number(value, &mut bytes);
        bytes
    };
    assert_eq!(written(Feature::SequenceWindow, 1024), [0, 0, 0, 0, 4, 0]);
    assert_eq!(written(Feature::SequenceWindow, u64::MAX), [255; 6]);
    assert_eq!(written(Feature::AckRatio, 2), [0, 2]);
    assert_eq!(written(Feature::AckRatio, 70_000), [255, 255]);
    assert_eq!(written(Feature::Ccid, 3), [3]);
    assert_eq!(Feature::SequenceWindow.read_number(&[0, 0, 0, 0, 4, 0]), Some(1024));
    assert_eq!(Feature::SequenceWindow.read_number(&[4, 0]), None);
    assert_eq!(Feature::AckRatio.read_number(&[0, 2, 0, 3]), None);
    assert_eq!(Feature::AckRatio.read_number(&[]), None);
    let values: Vec<_> = table::values(Feature::Ccid.number(), &[2, 3]).unwrap().collect();
    assert_eq!(values, [2, 3]);
}

#[test]
fn options_stand_only_where_the_rfcs_let_them() {
    let on_data = [0, 2, 37, 41, 42, 44, 128];
    for kind in 0..=255 {
        let option = DccpOption::Unknown { kind, contents: &[] };
        assert_eq!(option.allowed_on(PacketType::Data), on_data.contains(&kind), "{kind}");
        assert_eq!(option.allowed_on_data(), on_data.contains(&kind), "{kind}");
        let not_on_request = [36, 38, 39, 40, 43, 193].contains(&kind);
        assert_eq!(option.allowed_on(PacketType::Request), !not_on_request, "{kind}");
        assert!(option.allowed_on(PacketType::Ack) && !option.allowed_on(PacketType::Listen));
    }
}

proptest! {
    #[test]
    fn options_survive_the_wire(
        choices in proptest::collection::vec((any::<u8>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..=253)), 0..12),
    ) {
        let options: Vec<_> =
            choices.iter().map(|(selector, number, contents)| arbitrary::option(*selector, *number, contents)).collect();
        let mut bytes = Vec::new();
        for option in &options {
            let before = bytes.len();
            option.emit(&mut bytes);
            prop_assert_eq!(bytes.len() - before, option.wire_bytes());
        }
        prop_assert_eq!(all(&bytes), options);
    }

    #[test]
    fn every_byte_is_a_cell_and_a_block(byte in any::<u8>()) {
        prop_assert_eq!(Cell::from_byte(byte).byte(), byte);
        prop_assert_eq!(Block::from_byte(byte).byte(), byte);
    }

    #[test]
    fn loss_intervals_survive_the_wire(
        skip in 0_u8..4,
        lengths in proptest::collection::vec((0_u32..1 << 24, 0_u32..1 << 23, any::<bool>(), 0_u32..1 << 24), 1..=28),
    ) {
        let intervals: Vec<_> = lengths
            .into_iter()
            .map(|(lossless_length, loss_length, nonce_echo, data_length)| {
                LossInterval { lossless_length, loss_length, nonce_echo, data_length }
            })
            .collect();
        let mut contents = Vec::new();
        loss_intervals::write(skip, intervals.iter().copied(), &mut contents);
        let parsed = LossIntervals::parse(&contents).unwrap();
        prop_assert_eq!(parsed.skip, skip);
        prop_assert_eq!(parsed.iter().collect::<Vec<_>>(), intervals);
    }
}
