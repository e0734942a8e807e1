// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::packet::{PacketType, WireSeq};

const MS: i64 = 1_000_000;

fn packet(kind: PacketType) -> Packet<'static> {
    Packet {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind,
        seq: WireSeq::Short(0),
        ack: None,
        service_code: None,
        reset: None,
        option_bytes: &[],
        payload: b"data",
    }
}

fn arrive(receiver: &mut Receiver, at_ns: i64, seq: u64, ecn: Ecn, kind: PacketType) {
    let packet = packet(kind);
    let incoming = Incoming { arrived_ns: at_ns, seq: Seq48::new(seq), ack: None, ecn, packet: &packet };
    receiver.on_incoming(&incoming).unwrap();
}

fn data(receiver: &mut Receiver, at_ns: i64, seq: u64) {
    arrive(receiver, at_ns, seq, Ecn::NotEct, PacketType::Data);
}

fn acknowledge(receiver: &mut Receiver, now_ns: i64, ack: u64) -> Vec<String> {
    let mut options = Vec::new();
    receiver.ack_options(now_ns, Seq48::new(1), Seq48::new(ack), 100, &mut |option| {
        options.push(format!("{option:?}"))
    });
    options
}

#[test]
fn every_second_data_packet_is_acknowledged_at_once() {
    let mut receiver = Receiver::new(0);
    data(&mut receiver, 5 * MS, 1);
    assert_eq!(receiver.ack_due_ns(), Some(205 * MS));
    data(&mut receiver, 6 * MS, 2);
    assert_eq!(receiver.ack_due_ns(), Some(6 * MS));
    assert_eq!(acknowledge(&mut receiver, 6 * MS, 2), ["AckVector { nonce: false, vector: [1] }"]);
    assert_eq!(receiver.ack_due_ns(), None);
}

#[test]
fn a_single_packet_is_acknowledged_after_a_delay_that_is_told() {
    let mut receiver = Receiver::new(0);
    data(&mut receiver, 5 * MS, 1);
    let options = acknowledge(&mut receiver, 205 * MS, 1);
    assert_eq!(options, ["ElapsedTime(20000)", "AckVector { nonce: false, vector: [0] }"]);
}

#[test]
fn the_ack_ratio_says_how_many_packets_share_an_acknowledgement() {
    let mut receiver = Receiver::new(0);
    receiver.set_ack_ratio(4);
    (1..=3).for_each(|seq| data(&mut receiver, MS, seq));
    assert_eq!(receiver.ack_due_ns(), Some(201 * MS));
    receiver.set_ack_ratio(3);
    assert_eq!(receiver.ack_due_ns(), Some(MS));
    acknowledge(&mut receiver, MS, 3);
    receiver.set_ack_ratio(1);
    data(&mut receiver, 2 * MS, 4);
    assert_eq!(receiver.ack_due_ns(), Some(2 * MS));
}

#[test]
fn packets_without_data_ask_for_no_acknowledgement_but_are_reported() {
    let mut receiver = Receiver::new(0);
    data(&mut receiver, 0, 1);
    acknowledge(&mut receiver, 0, 1);
    arrive(&mut receiver, 0, 2, Ecn::NotEct, PacketType::Ack);
    arrive(&mut receiver, 0, 4, Ecn::NotEct, PacketType::Ack);
    assert_eq!(receiver.ack_due_ns(), None);
    assert_eq!(acknowledge(&mut receiver, 0, 4), ["AckVector { nonce: false, vector: [0, 192, 1] }"]);
}

#[test]
fn packets_without_data_alone_fill_no_record() {
    let mut receiver = Receiver::new(0);
    (1..5000).for_each(|index| arrive(&mut receiver, 0, 2 * index, Ecn::NotEct, PacketType::Ack));
    assert_eq!(acknowledge(&mut receiver, 0, 9998), ["AckVector { nonce: false, vector: [0] }"]);
}

#[test]
fn gaps_late_packets_and_marks_are_reported_at_once() {
    let mut receiver = Receiver::new(0);
    receiver.set_ack_ratio(100);
    data(&mut receiver, 0, 1);
    data(&mut receiver, MS, 3);
    assert_eq!(receiver.ack_due_ns(), Some(MS));
    acknowledge(&mut receiver, MS, 3);
    data(&mut receiver, 2 * MS, 2);
    assert_eq!(receiver.ack_due_ns(), Some(2 * MS));
    acknowledge(&mut receiver, 2 * MS, 3);
    arrive(&mut receiver, 3 * MS, 4, Ecn::Ce, PacketType::Data);
    assert_eq!(receiver.ack_due_ns(), Some(3 * MS));
    assert_eq!(acknowledge(&mut receiver, 3 * MS, 4), ["AckVector { nonce: false, vector: [64, 2] }"]);
    // The next mark within a round trip can wait.
    arrive(&mut receiver, 4 * MS, 5, Ecn::Ce, PacketType::Data);
    assert_eq!(receiver.ack_due_ns(), Some(204 * MS));
    // A duplicate is not data.
    acknowledge(&mut receiver, 4 * MS, 5);
    data(&mut receiver, 5 * MS, 5);
    assert_eq!(receiver.ack_due_ns(), None);
}

#[test]
fn a_sync_that_names_another_packet_carries_no_vector() {
    let mut receiver = Receiver::new(0);
    data(&mut receiver, 0, 1);
    assert!(acknowledge(&mut receiver, 0, 7).is_empty());
}
