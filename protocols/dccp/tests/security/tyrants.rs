// SPDX-License-Identifier: Apache-2.0
//! A peer that says valid but absurd things at random for a while, with a clock that jumps: the sender survives, its figures
//! stay numbers, its memory stays small, and once the peer is honest again data flows.

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::options::{loss_intervals, DccpOption};
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{Packet, PacketType, Seq48, State};

use crate::pair::{kind_of, Forgery, Pair, Random, Side, MS};
use crate::{forgery, memory, BOTH};

/// One of the numbers at which things break, or any.
fn number(random: &mut Random) -> u32 {
    let edges = [0, 1, 2, 0xff, 0xffff, 0x1_0000, 0xff_ffff, u32::MAX - 1, u32::MAX];
    match random.next() % 12 {
        edge @ 0..=8 => edges[edge as usize],
        _ => (random.next() as u32) >> (random.next() % 32),
    }
}

fn noise(random: &mut Random) -> Vec<u8> {
    let bytes = (random.next() % 250) as usize;
    let fill = [0x00, 0x3f, 0x40, 0xff, 0xaf, 0xbf][(random.next() % 6) as usize];
    if random.next() & 1 == 0 {
        vec![fill; bytes]
    } else {
        (0..bytes).map(|_| random.next() as u8).collect()
    }
}

/// Options that a peer may send, each well-formed.
fn absurd_options(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.next() % 6 {
        let bytes = noise(random);
        let value = [0, 0, 0x3f, 0xff, 0xff, 0xff];
        let (any, wide) = (number(random), u64::from(number(random)) << (random.next() % 16));
        match random.next() % 14 {
            0 => DccpOption::SlowReceiver.emit(&mut out),
            1 => DccpOption::NdpCount(wide).emit(&mut out),
            2 => DccpOption::AckVector { nonce: any & 1 == 1, vector: &bytes }.emit(&mut out),
            3 => DccpOption::DataDropped(&bytes).emit(&mut out),
            4 => DccpOption::Timestamp(any).emit(&mut out),
            5 => DccpOption::TimestampEcho { echo: any, elapsed: number(random) }.emit(&mut out),
            6 => DccpOption::ElapsedTime(any).emit(&mut out),
            7 => DccpOption::RttEstimate(any & 0xff_ffff).emit(&mut out),
            8 => DccpOption::LossEventRate(any).emit(&mut out),
            9 => DccpOption::ReceiveRate(any).emit(&mut out),
            10 => {
                let mut contents = Vec::new();
                let intervals = (0..1 + random.next() % 28).map(|_| loss_intervals::LossInterval {
                    lossless_length: number(random) & 0xff_ffff,
                    loss_length: number(random) & 0x7f_ffff,
                    nonce_echo: random.next() & 1 == 0,
                    data_length: number(random) & 0xff_ffff,
                });
                let intervals: Vec<_> = intervals.collect();
                loss_intervals::write((any % 4) as u8, intervals, &mut contents);
                DccpOption::LossIntervals(&contents).emit(&mut out);
            }
            11 => DccpOption::ChangeL { feature: 3, value: &value }.emit(&mut out),
            12 => DccpOption::ChangeL { feature: 5, value: &any.to_be_bytes()[2..] }.emit(&mut out),
            _ => {
                let feature = [1, 2, 4, 6, 7, 8, 9, 77, 128, 192][(any % 10) as usize];
                let value = &[0, 1, 2, 3][..1 + (any >> 8) as usize % 4];
                if any & 1 << 20 == 0 {
                    DccpOption::ChangeL { feature, value }.emit(&mut out);
                } else {
                    DccpOption::ChangeR { feature, value }.emit(&mut out);
                }
            }
        }
    }
    out.truncate(960);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn assert_sane(pair: &Pair) {
    for (name, value) in pair.client.figures() {
        assert!(value.is_finite() || name == "ssthresh_packets", "{name} is {value}");
        assert!(value >= 0.0, "{name} is {value}");
    }
}

fn seq_of(packet: &[u8]) -> Seq48 {
    match Packet::parse(packet).expect("own packets parse").seq {
        WireSeq::Long(seq) => seq,
        WireSeq::Short(_) => panic!("a short number"),
    }
}

/// Data packets that the client sends in `duration` ms to a peer that acknowledges each after 20 ms.
fn honest_peer(pair: &mut Pair, mut last: i64, duration: i64) -> usize {
    let (mut sent, mut waiting) = (0, std::collections::VecDeque::<(i64, Seq48)>::new());
    let (mut received, mut intervals) = (0_u32, Vec::new());
    for _ in 0..duration {
        pair.now += MS;
        while pair.client.queued() < 16 && pair.client.send(pair.now, &[1; 500]).is_ok() {}
        for packet in pair.take(Side::Client) {
            if matches!(kind_of(&packet), PacketType::Data | PacketType::DataAck) {
                sent += 1;
                received += 1;
            }
            waiting.push_back((pair.now + 20 * MS, seq_of(&packet)));
        }
        let mut newest = None;
        while waiting.front().is_some_and(|(due, _)| *due <= pair.now) {
            newest = waiting.pop_front().map(|(_, seq)| seq);
        }
        let Some(newest) = newest else { continue };
        intervals.clear();
        loss_intervals::write(
            0,
            [loss_intervals::LossInterval {
                lossless_length: received.max(1),
                loss_length: 0,
                nonce_echo: false,
                data_length: 0,
            }],
            &mut intervals,
        );
        let mut options = Vec::new();
        DccpOption::AckVector { nonce: false, vector: &[0x3f; 20] }.emit(&mut options);
        DccpOption::ElapsedTime(0).emit(&mut options);
        DccpOption::ReceiveRate(1_000_000).emit(&mut options);
        DccpOption::LossIntervals(&intervals).emit(&mut options);
        options.resize(options.len().next_multiple_of(4), 0);
        last += 1;
        let forged = Forgery { options: &options, ..forgery(PacketType::Ack, last, 0) };
        let newest_sent = pair.newest_sent(Side::Client);
        let ack = newest_sent.distance_to(newest);
        let packet = pair.forge(Side::Client, &Forgery { ack, ..forged });
        let now = pair.now;
        let _ = pair.client.handle(now, Ecn::NotEct, &packet);
    }
    sent
}

#[test]
fn absurdity_is_survived_and_forgotten() {
    for ccid in BOTH {
        for seed in 1..9 {
            let mut random = Random(seed * 0x9e37_79b9);
            let mut pair = Pair::open(ccid);
            let before = memory::live_bytes();
            let mut last = 0;
            for _ in 0..400 {
                let options = absurd_options(&mut random);
                let kinds = [PacketType::Ack, PacketType::DataAck, PacketType::Data, PacketType::Sync];
                let kind = kinds[(random.next() % 4) as usize];
                last += 1 + (random.next() % 3) as i64;
                let ack = -((random.next() % 8) as i64);
                let packet =
                    pair.forge(Side::Client, &Forgery { options: &options, ack, ..forgery(kind, last, 0) });
                let jump = [0, 0, 0, -MS, -50 * MS, 10 * MS][(random.next() % 6) as usize];
                let at = pair.now + jump;
                let _ = pair.client.handle(at, Ecn::Ce, &packet);
                let _ = pair.client.send(pair.now, &[3; 400]);
                let _ = pair.take(Side::Client);
                pair.now += (random.next() % 20) as i64 * MS;
                assert_sane(&pair);
            }
            assert!(matches!(pair.client.state(), State::Open | State::Closed), "{:?}", pair.client.state());
            if pair.client.state() == State::Closed {
                continue;
            }
            let grown = memory::live_bytes() - before;
            assert!(grown < 300_000, "{ccid:?} {seed}: {grown} bytes more");
            // A rate of one packet in 64 s is as low as it gets.
            let sent = honest_peer(&mut pair, last, 70_000);
            assert!(sent > 200, "{ccid:?} {seed}: {sent} packets in 70 s {:?}", pair.client.figures());
            let sent = honest_peer(&mut pair, last + 70_000, 10_000);
            assert!(sent > 500, "{ccid:?} {seed}: {sent} packets in 10 s {:?}", pair.client.figures());
        }
    }
}
