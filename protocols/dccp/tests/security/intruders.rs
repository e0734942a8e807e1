// SPDX-License-Identifier: Apache-2.0
//! Who does not know the numbers of a connection, or only some, neither ends, feeds nor slows it.

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::State;
use netjoule_dccp::packet::{Packet, WireSeq};
use netjoule_dccp::PacketType;

use crate::pair::{kind_of, Forgery, Pair, Random, Side, MS, SECOND};
use crate::{forgery, tempting_options, BOTH, FAR, JUDGED, SIDES};

#[test]
fn sequence_invalid_packets_change_nothing_and_cause_at_most_eight_syncs_a_second() {
    let options = tempting_options();
    for (ccid, side) in BOTH.into_iter().flat_map(|ccid| SIDES.map(|side| (ccid, side))) {
        for kind in JUDGED {
            let mut pair = Pair::open(ccid);
            let before = pair.fingerprint(side);
            let mut sync_times = Vec::new();
            for number in 0..3_000 {
                let (seq, ack) = [(FAR[0], 0), (FAR[1], 0), (1, 1), (1, FAR[1])][number % 4];
                let mut forged = forgery(kind, seq, ack);
                if kind == PacketType::Data && seq == 1 {
                    continue; // it has no acknowledgement number to be wrong
                }
                if kind != PacketType::Data {
                    forged.options = &options;
                }
                let packet = pair.forge(side, &forged);
                let (delivered, answers) = pair.attack(side, &packet);
                assert_eq!(delivered, None, "{kind:?} delivers");
                for answer in answers {
                    assert_eq!(kind_of(&answer), PacketType::Sync, "answer to an invalid {kind:?}");
                    sync_times.push(pair.now);
                }
                pair.now += MS;
            }
            assert!(!sync_times.is_empty(), "an invalid {kind:?} must elicit a Sync");
            for (index, start) in sync_times.iter().enumerate() {
                let within = sync_times[index..].iter().take_while(|time| **time < start + SECOND).count();
                assert!(within <= 8, "{within} Syncs in one second");
            }
            assert_eq!(pair.fingerprint(side), before, "{ccid:?} {side:?} after invalid {kind:?} packets");
        }
    }
}

#[test]
fn the_sync_says_which_packet_was_wrong() {
    for side in SIDES {
        for kind in JUDGED {
            let mut pair = Pair::open(Ccid::Tfrc);
            let packet = pair.forge(side, &forgery(kind, FAR[0], 0));
            let WireSeq::Long(forged_seq) = Packet::parse(&packet).expect("parses").seq else { panic!() };
            let (_, answers) = pair.attack(side, &packet);
            let sync = Packet::parse(answers.first().expect("a Sync")).expect("parses");
            // RFC 4340 section 7.5.4: a Reset is answered with GSR, all others with their own number.
            let expected = if kind == PacketType::Reset { forged_seq.sub(FAR[0] as u64) } else { forged_seq };
            assert_eq!((sync.kind, sync.ack), (PacketType::Sync, Some(WireSeq::Long(expected))), "{kind:?}");
        }
    }
}

#[test]
fn invalid_syncs_cause_nothing() {
    let options = tempting_options();
    for (ccid, side) in BOTH.into_iter().flat_map(|ccid| SIDES.map(|side| (ccid, side))) {
        for kind in [PacketType::Sync, PacketType::SyncAck] {
            let mut pair = Pair::open(ccid);
            let before = pair.fingerprint(side);
            for (seq, ack) in [(FAR[0], FAR[0]), (FAR[1], 0), (1, 1), (1, FAR[1]), (FAR[0], 5)] {
                let packet = pair.forge(side, &Forgery { options: &options, ..forgery(kind, seq, ack) });
                for _ in 0..20 {
                    let answer = pair.attack(side, &packet);
                    assert_eq!(answer, (None, vec![]), "{kind:?} with {seq}, {ack}");
                }
            }
            assert_eq!(pair.fingerprint(side), before);
            pair.assert_alive();
        }
    }
}

#[test]
fn packet_types_out_of_place_do_not_disturb_an_open_connection() {
    for side in SIDES {
        let wrong: &[PacketType] = match side {
            Side::Client => &[PacketType::Request, PacketType::CloseReq, PacketType::Listen],
            Side::Server => &[PacketType::Response, PacketType::CloseReq, PacketType::Listen],
        };
        for kind in wrong.iter().copied() {
            if side == Side::Client && kind == PacketType::CloseReq {
                continue; // that is the server's right
            }
            let mut pair = Pair::open(Ccid::Tfrc);
            for _ in 0..20 {
                let packet = pair.forge(side, &forgery(kind, 1, 0));
                let (delivered, answers) = pair.attack(side, &packet);
                assert_eq!(delivered, None, "{kind:?} at the {side:?}");
                assert!(answers.iter().all(|answer| kind_of(answer) == PacketType::Sync), "{kind:?}");
            }
            assert_eq!(pair.end(side).state(), State::Open, "{kind:?} at the {side:?}");
        }
    }
}

#[test]
fn blind_packets_neither_end_nor_feed_a_connection() {
    let mut random = Random(99);
    for side in SIDES {
        let mut pair = Pair::open(Ccid::Tfrc);
        let before = pair.fingerprint(side);
        for _ in 0..20_000 {
            let kind = JUDGED[(random.next() % 6) as usize];
            let guess = |random: &mut Random| (random.next() >> 16) as i64;
            let (seq, ack) = (guess(&mut random), guess(&mut random));
            let packet = pair.forge(side, &forgery(kind, seq, ack));
            let (delivered, answers) = pair.attack(side, &packet);
            assert_eq!(delivered, None);
            assert!(answers.iter().all(|answer| kind_of(answer) == PacketType::Sync));
            pair.now += MS / 10;
        }
        assert_eq!(pair.fingerprint(side), before);
        pair.assert_alive();
    }
}
