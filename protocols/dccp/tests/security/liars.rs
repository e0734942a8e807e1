// SPDX-License-Identifier: Apache-2.0
//! What a peer who knows all numbers can do with absurd options and acknowledgements.

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{Connection, State};
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::PacketType;

use crate::pair::{kind_of, option_bytes, Forgery, Pair, Random, MS, SECOND};
use crate::{forgery, memory, tempting_options, BOTH, JUDGED, SIDES};

/// Option areas as large and as silly as a header allows.
fn option_bombs() -> Vec<Vec<u8>> {
    const ROOM: usize = 992;
    let repeat = |option: &[u8]| -> Vec<u8> {
        let mut bytes: Vec<u8> =
            option.iter().copied().cycle().take(ROOM / option.len() * option.len()).collect();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let mut random = Random(17);
    let mut noise = || (0..ROOM).map(|_| random.next() as u8).collect::<Vec<u8>>();
    let mut loss_intervals = vec![193, 255, 0];
    loss_intervals.resize(255, 0xff);
    vec![
        repeat(&[0]),                                              // Padding
        repeat(&[2]),                                              // Slow Receiver
        repeat(&[32, 4, 77, 1]),                                   // Change L of an unknown feature
        repeat(&[34, 4, 77, 1]),                                   // Change R of an unknown feature
        repeat(&[32, 9, 3, 0, 0, 0, 0, 0, 100]),                   // Change L(Sequence Window)
        repeat(&[34, 5, 1, 3, 2]),                                 // Change R(CCID)
        repeat(&[33, 3, 77]),                                      // empty Confirm
        repeat(&[38, 255]),                                        // Ack Vectors that cover millions
        repeat(&[&[38, 255][..], &[0x3f; 253]].concat()),          // all received
        repeat(&[&[39, 255][..], &[0xff; 253]].concat()),          // none received
        repeat(&[&[40, 255][..], &[0xff; 253]].concat()),          // Data Dropped
        repeat(&loss_intervals),                                   // intervals of 2^24 packets
        repeat(&[&[193, 30, 255][..], &[0; 27]].concat()),         // intervals of nothing, all skipped
        repeat(&[192, 6, 0, 0, 0, 0]),                             // loss event rate 0
        repeat(&[194, 6, 255, 255, 255, 255]),                     // receive rate of 34 Gb/s
        repeat(&[43, 6, 255, 255, 255, 255]),                      // elapsed: for ever
        repeat(&[42, 10, 255, 255, 255, 255, 255, 255, 255, 255]), // timestamp echo never sent
        repeat(&[128, 5, 0, 0, 0]),                                // no RTT estimate
        repeat(&[37, 8, 255, 255, 255, 255, 255, 255]),            // NDP Count
        repeat(&[44, 6, 1, 2, 3, 4]),                              // Data Checksum
        repeat(&[99, 1]),                                          // a length that cannot be
        noise(),
        noise(),
    ]
}

#[test]
fn option_bombs_are_survived_and_cost_bounded_work_and_memory() {
    for (ccid, side) in BOTH.into_iter().flat_map(|ccid| SIDES.map(|side| (ccid, side))) {
        for (index, bomb) in option_bombs().iter().enumerate() {
            for kind in [PacketType::Ack, PacketType::DataAck, PacketType::Data, PacketType::SyncAck] {
                let mut pair = Pair::open(ccid);
                let mut before = 0;
                for number in 0..300 {
                    if number == 100 {
                        before = memory::live_bytes();
                    }
                    let packet = pair.forge(side, &Forgery { options: bomb, ..forgery(kind, 1 + number, 0) });
                    let (_, answers) = pair.attack(side, &packet);
                    let sent: usize = answers.iter().map(Vec::len).sum();
                    assert!(sent <= 3 * packet.len(), "bomb {index} in {kind:?} answered with {sent} bytes");
                    pair.now += MS;
                }
                let grown = memory::live_bytes() - before;
                assert!(grown < 65_536, "bomb {index} in {kind:?}: {grown} bytes more");
            }
        }
    }
}

#[test]
fn options_that_must_be_ignored_on_data_are_ignored() {
    let options = tempting_options();
    for side in SIDES {
        let mut pair = Pair::open(Ccid::Tfrc);
        let packet = pair.forge(side, &Forgery { options: &options, ..forgery(PacketType::Data, 1, 0) });
        let (delivered, answers) = pair.attack(side, &packet);
        assert_eq!(delivered.as_deref(), Some(&b"forged"[..]));
        assert!(answers.iter().all(|answer| kind_of(answer) != PacketType::Reset));
        assert_eq!(pair.end(side).state(), State::Open);
    }
}

/// Figures by name that say how fast a sender may go.
fn speed(connection: &Connection) -> Vec<(&'static str, f64)> {
    let about_speed = ["cwnd_packets", "allowed_rate_bytes_per_s"];
    connection.figures().into_iter().filter(|(name, _)| about_speed.contains(name)).collect()
}

#[test]
fn acknowledging_what_was_never_sent_speeds_nobody_up() {
    for ccid in BOTH {
        for side in SIDES {
            let mut pair = Pair::open(ccid);
            pair.end(side).send(SECOND, &[0; 500]).expect("taken");
            pair.run(100 * MS);
            let before = speed(pair.end(side));
            assert!(!before.is_empty(), "{ccid:?} reports how fast it may send");
            let everything = option_bytes(&[
                DccpOption::AckVector { nonce: false, vector: &[0x3f; 250] },
                DccpOption::ReceiveRate(u32::MAX),
                DccpOption::LossEventRate(u32::MAX),
                DccpOption::ElapsedTime(0),
            ]);
            for ahead in 1..500 {
                let forged = Forgery { options: &everything, ..forgery(PacketType::Ack, 1, ahead) };
                let packet = pair.forge(side, &forged);
                let (_, answers) = pair.attack(side, &packet);
                assert!(answers.iter().all(|answer| kind_of(answer) == PacketType::Sync));
                pair.now += MS / 10;
            }
            for ((name, then), (_, now)) in before.into_iter().zip(speed(pair.end(side))) {
                assert!(now <= then, "{ccid:?} {name} rose from {then} to {now}");
            }
        }
    }
}

#[test]
fn acknowledging_the_same_packet_again_and_again_opens_no_window() {
    for side in SIDES {
        let mut pair = Pair::open(Ccid::TcpLike);
        pair.end(side).send(SECOND, &[0; 500]).expect("taken");
        pair.run(100 * MS);
        let before = speed(pair.end(side));
        let vector = option_bytes(&[DccpOption::AckVector { nonce: false, vector: &[0x3f; 250] }]);
        for number in 1..500 {
            let forged = Forgery { options: &vector, ..forgery(PacketType::Ack, number, 0) };
            let packet = pair.forge(side, &forged);
            let _ = pair.attack(side, &packet);
            pair.now += MS / 10;
        }
        for ((name, then), (_, now)) in before.into_iter().zip(speed(pair.end(side))) {
            assert!(now <= then + 1.0, "{name} rose from {then} to {now}");
        }
    }
}

#[test]
fn random_bytes_and_flipped_bits_are_survived_in_every_state() {
    let mut random = Random(23);
    for ccid in BOTH {
        for round in 0..30 {
            let mut pair = Pair::open(ccid);
            match round % 3 {
                1 => pair.client.close(pair.now),
                2 => pair.server.close(pair.now),
                _ => {}
            }
            for number in 1..200 {
                let kind = JUDGED[(random.next() % 6) as usize];
                let bomb: Vec<u8> = (0..random.next() % 200 / 4 * 4).map(|_| random.next() as u8).collect();
                let side = SIDES[number as usize % 2];
                let forged = Forgery { options: &bomb, ..forgery(kind, number, 0) };
                let mut packet = pair.forge(side, &forged);
                for _ in 0..random.next() % 4 {
                    let at = random.next() as usize % packet.len();
                    packet[at] ^= 1 << (random.next() % 8);
                }
                packet.truncate(packet.len() - random.next() as usize % 9);
                let _ = pair.attack(side, &packet);
                pair.now += (random.next() % 2_000) as i64 * MS / 10;
            }
        }
    }
}
