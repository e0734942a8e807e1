// SPDX-License-Identifier: Apache-2.0
//! What a listener does for strangers: one answer each, small, and no memory.

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::connection::Connection;
use netjoule_dccp::listener::{Listener, Verdict};
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::packet::{Packet, WireSeq};
use netjoule_dccp::{PacketType, ResetCode, Seq48};

use crate::pair::{
    client_config, kind_of, listener, option_bytes, peer, server_config, transmit, Pair, Random, Side, MS,
    SECOND, SERVICE,
};
use crate::{forgery, memory, JUDGED};

fn request(number: u64, options: &[u8]) -> Vec<u8> {
    let packet = Packet {
        source_port: 1000 + (number % 60_000) as u16,
        destination_port: server_config(Ccid::Tfrc).local_port,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind: PacketType::Request,
        seq: WireSeq::Long(Seq48::new(number.wrapping_mul(0x1234_5678_9abc))),
        ack: None,
        service_code: Some(SERVICE),
        reset: None,
        option_bytes: options,
        payload: &[],
    };
    let mut bytes = Vec::new();
    assert!(packet.emit(&mut bytes));
    bytes
}

/// Reply to a packet, at most three times its size.
fn reply(listener: &mut Listener, now: i64, from: u32, packet: &[u8]) -> Option<Vec<u8>> {
    let mut random = Random(u64::from(from) + 1);
    match listener.handle(now, Ecn::NotEct, peer(from), packet, &mut || random.next()) {
        Verdict::Ignore => None,
        Verdict::Reply(bytes) => {
            assert!(bytes.len() <= 3 * packet.len(), "{} bytes answered with {}", packet.len(), bytes.len());
            Some(bytes)
        }
        Verdict::Accept { .. } => panic!("accepted without proof of the address"),
    }
}

#[test]
fn a_request_gets_one_response_of_at_most_three_times_its_bytes() {
    let change = option_bytes(&[DccpOption::ChangeL { feature: 1, value: &[2, 3] }]);
    let unknown: Vec<u8> = (0..80).flat_map(|feature| [32, 4, 128 + feature, 1]).collect();
    for backlog in [0, 1, 8] {
        for options in [&[][..], &change, &unknown] {
            let mut listener = listener(Ccid::Tfrc, backlog);
            for number in 0..20 {
                let bytes = request(u64::from(number), options);
                let answer = reply(&mut listener, SECOND, number, &bytes).expect("a Response");
                assert_eq!(kind_of(&answer), PacketType::Response);
            }
        }
    }
}

#[test]
fn each_repeated_request_gets_one_response_with_the_next_number() {
    let mut listener = listener(Ccid::Tfrc, 8);
    let config = client_config(Ccid::Tfrc);
    let mut random = Random(3);
    let mut client = Connection::connect(config, 0, &mut || random.next());
    let mut now = 0;
    let mut last: Option<Seq48> = None;
    for _ in 0..4 {
        let sent = transmit(&mut client, now);
        assert_eq!(sent.len(), 1, "one Request at a time");
        let answer = reply(&mut listener, now, 5, &sent[0]).expect("a Response");
        let WireSeq::Long(seq) = Packet::parse(&answer).expect("parses").seq else { panic!() };
        if let Some(before) = last {
            assert_eq!(before.distance_to(seq), 1, "RFC 4340 section 8.1.3");
        }
        last = Some(seq);
        now = client.next_wakeup_ns().expect("the client repeats its Request");
    }
}

#[test]
fn a_server_sends_nothing_again_by_itself() {
    let opening = request(1, &[]);
    let mut listener = listener(Ccid::Tfrc, 8);
    let response = reply(&mut listener, 0, 1, &opening).expect("a Response");
    let mut later = Vec::new();
    // RFC 4340 section 8.1.3: RESPOND may be left after 8 minutes, with a Reset.
    for second in 0..600 {
        let mut bytes = Vec::new();
        while let Some((to, transmit)) = listener.poll_transmit(second * SECOND, &mut bytes) {
            assert_eq!((to, transmit.bytes), (peer(1), bytes.len()));
            later.push((second, std::mem::take(&mut bytes)));
        }
    }
    assert!(later.len() <= 1, "{} packets after the Response", later.len());
    for (second, bytes) in later {
        assert!(second >= 480);
        assert_eq!(kind_of(&bytes), PacketType::Reset);
        assert!(response.len() + bytes.len() <= 3 * opening.len());
    }
}

#[test]
fn a_listener_is_no_amplifier_for_any_packet() {
    let mut listener = listener(Ccid::Tfrc, 8);
    let mut pair = Pair::open(Ccid::Tfrc);
    for kind in [JUDGED.as_slice(), &[PacketType::Sync, PacketType::SyncAck, PacketType::Listen]].concat() {
        let packet = pair.forge(Side::Server, &forgery(kind, 1, 0));
        let answer = reply(&mut listener, SECOND, 1, &packet);
        if kind == PacketType::Reset {
            assert_eq!(answer, None, "a Reset must not be answered");
        }
        if let Some(answer) = answer {
            assert_eq!(kind_of(&answer), PacketType::Reset, "answer to {kind:?}");
        }
    }
    let mut random = Random(5);
    for length in 0..2_000 {
        let bytes: Vec<u8> = (0..length % 200).map(|_| random.next() as u8).collect();
        let _ = reply(&mut listener, SECOND, 2, &bytes);
    }
    pair.assert_alive();
}

#[test]
fn a_flood_of_requests_costs_bounded_memory_and_a_client_still_gets_in() {
    let mut listener = listener(Ccid::Tfrc, 64);
    let flood = |listener: &mut Listener, from: u32, count: u32| {
        for number in from..from + count {
            let _ = reply(listener, SECOND, number, &request(u64::from(number), &[]));
        }
    };
    flood(&mut listener, 0, 1_000);
    let before = memory::live_bytes();
    flood(&mut listener, 1_000, 100_000);
    let grown = memory::live_bytes() - before;
    assert!(grown < 16_384, "100,000 Requests left {grown} bytes");

    let mut random = Random(11);
    let mut client = Connection::connect(client_config(Ccid::Tfrc), SECOND, &mut || random.next());
    let packet = transmit(&mut client, SECOND).remove(0);
    let response = reply(&mut listener, SECOND, 7_000_000, &packet).expect("an answer during the flood");
    assert_eq!(client.handle(SECOND + MS, Ecn::NotEct, &response), None);
    let proof = transmit(&mut client, SECOND + 300 * MS).remove(0);
    let verdict =
        listener.handle(SECOND + 301 * MS, Ecn::NotEct, peer(7_000_000), &proof, &mut || random.next());
    assert!(matches!(verdict, Verdict::Accept { .. }), "{verdict:?}");
}

#[test]
fn a_guessed_acknowledgement_does_not_open_a_connection() {
    for backlog in [0, 8] {
        let mut listener = listener(Ccid::Tfrc, backlog);
        let opening = request(1, &[]);
        let _ = reply(&mut listener, SECOND, 1, &opening);
        let mut random = Random(13);
        for _ in 0..10_000 {
            let packet = Packet {
                kind: PacketType::Ack,
                service_code: None,
                seq: WireSeq::Long(Seq48::new(0x1234_5678_9abd)),
                ack: Some(WireSeq::Long(Seq48::new(random.next()))),
                ..Packet::parse(&opening).expect("parses")
            };
            let mut bytes = Vec::new();
            assert!(packet.emit(&mut bytes));
            let _ = reply(&mut listener, SECOND, 1, &bytes);
        }
    }
}

#[test]
fn handshakes_begun_and_reset_in_a_loop_cost_bounded_memory() {
    let mut listener = listener(Ccid::Tfrc, 8);
    // One that stays half-open, so that nothing behind it grows old.
    let _ = reply(&mut listener, SECOND, 1, &request(1, &[]));
    let mut loops = |count: u64| {
        for number in 0..count {
            let opening = request(number, &[]);
            let response = reply(&mut listener, SECOND, 2, &opening).expect("a Response");
            let numbers = |bytes: &[u8]| match Packet::parse(bytes).expect("parses").seq {
                WireSeq::Long(seq) => seq,
                WireSeq::Short(_) => panic!("a short number"),
            };
            let reset = Packet {
                kind: PacketType::Reset,
                service_code: None,
                reset: Some((ResetCode::Aborted, [0; 3])),
                seq: WireSeq::Long(numbers(&opening).add(1)),
                ack: Some(WireSeq::Long(numbers(&response))),
                ..Packet::parse(&opening).expect("parses")
            };
            let mut bytes = Vec::new();
            assert!(reset.emit(&mut bytes));
            assert_eq!(reply(&mut listener, SECOND, 2, &bytes), None);
        }
        memory::live_bytes()
    };
    let before = loops(1_000);
    let grown = loops(20_000) - before;
    assert!(grown < 16_384, "20,000 handshakes left {grown} bytes");
}
