// SPDX-License-Identifier: Apache-2.0
//! Trains are what their packets are one by one: twins of a connection, one of which sends and takes trains.

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::connection::{Carriage, Config, Spacing};
use netjoule_dccp::Connection;

use crate::world::{client_config, server_config, Path, Random, World, MS, SECOND};

const MESSAGE_BYTES: usize = 100;
const OFFERED: usize = 40;
const ROUNDS: u64 = 400;
/// Without wear, so that the rate can rise.
const CLEAN_ROUNDS: u64 = 60;

fn world(ccid: Ccid) -> World {
    let over_udp = |config| Config {
        carriage: Carriage::Udp { ip_version: 4 },
        ccids: vec![ccid],
        ecn: true,
        queue_messages: 1,
        ..config
    };
    let mut world = World::new(over_udp(client_config()), over_udp(server_config()), Path::default(), 7);
    world.connect();
    world.run_for(SECOND);
    world
}

/// Messages behind free bytes, numbered.
fn batch(headroom_bytes: usize) -> Vec<u8> {
    let message = |number| [vec![0xee; headroom_bytes], vec![number as u8; MESSAGE_BYTES]].concat();
    (0..OFFERED).flat_map(message).collect()
}

/// Packets that leave by trains, and the most that one train had.
fn send_trains(client: &mut Connection, now_ns: i64, headroom_bytes: usize) -> (Vec<Vec<u8>>, usize) {
    let spacing = Spacing { headroom_bytes, payload_bytes: MESSAGE_BYTES };
    let (mut messages, mut packets, mut longest) = (batch(headroom_bytes), Vec::new(), 0);
    let mut rest = &mut messages[..];
    loop {
        let mut out = Vec::new();
        let Some(train) = client.send_train(now_ns, rest, spacing, 16, &mut out) else { break };
        assert!(train.packets <= 16 && (train.in_place || train.packets == 1));
        let (taken, behind) = rest.split_at_mut(train.packets * (headroom_bytes + MESSAGE_BYTES));
        let bytes = if train.in_place { &*taken } else { &out };
        assert_eq!((out.is_empty(), bytes.len()), (train.in_place, train.packets * train.first.bytes));
        packets.extend(bytes.chunks(train.first.bytes).map(<[u8]>::to_vec));
        longest = longest.max(train.packets);
        rest = behind;
    }
    (packets, longest)
}

fn send_singly(client: &mut Connection, now_ns: i64) -> Vec<Vec<u8>> {
    let (messages, mut packets) = (batch(0), Vec::new());
    for message in messages.chunks(MESSAGE_BYTES) {
        let mut out = Vec::new();
        if client.send_now(now_ns, message, &mut out).is_none() {
            break;
        }
        packets.push(out);
    }
    packets
}

/// What a path and a hostile neighbour make of packets: losses, copies, another order, other bytes, a shorter end.
fn worn(packets: &[Vec<u8>], random: &mut Random) -> Vec<Vec<u8>> {
    let mut arriving: Vec<Vec<u8>> = Vec::new();
    for packet in packets {
        let mut packet = packet.clone();
        match random.below(60) {
            0 => continue,
            1 => arriving.push(packet.clone()),
            2 => {
                let at = random.below(24) as usize;
                packet[at] ^= 1 << random.below(8);
            }
            3 if arriving.len() > 1 => {
                let last = arriving.len() - 1;
                arriving.swap(last, last - 1);
            }
            4 => packet.truncate(20),
            _ => {}
        }
        arriving.push(packet);
    }
    arriving
}

/// All that a connection says at `now_ns`.
fn said(connection: &mut Connection, now_ns: i64) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    loop {
        let mut out = Vec::new();
        if connection.poll_transmit(now_ns, &mut out).is_none() {
            return packets;
        }
        packets.push(out);
    }
}

/// Hand packets over in trains of equal length, as GRO joins them: a shorter one ends a train.
fn take_trains(server: &mut Connection, now_ns: i64, ecn: Ecn, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut delivered = Vec::new();
    let mut rest = packets;
    while let Some(first) = rest.first() {
        let alike = rest.iter().take_while(|packet| packet.len() == first.len()).count();
        let ends = rest.get(alike).is_some_and(|packet| packet.len() < first.len());
        let (train, behind) = rest.split_at(alike + usize::from(ends));
        let bytes = train.concat();
        server.handle_train(now_ns, ecn, &bytes, first.len(), |data| {
            delivered.push(data.to_vec());
            Ok(())
        });
        rest = behind;
    }
    delivered
}

/// Both ends of both twins through one round; the most packets that a train had.
fn round(one: &mut World, other: &mut World, is_worn: bool, random: &mut Random) -> usize {
    let headroom_bytes = Connection::data_header_bytes(one.client.ccids().expect("open").0);
    one.now_ns += 5 * MS;
    let now_ns = one.now_ns;
    let (packets, longest) = send_trains(&mut one.client, now_ns, headroom_bytes);
    assert_eq!(packets, send_singly(&mut other.client, now_ns));
    let arriving = if is_worn { worn(&packets, random) } else { packets };
    let ecn = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct][random.below(40).min(4) as usize];
    let in_trains = take_trains(one.server(), now_ns, ecn, &arriving);
    let server = other.server();
    let singly: Vec<_> =
        arriving.iter().filter_map(|packet| server.handle(now_ns, ecn, packet).map(<[u8]>::to_vec)).collect();
    assert_eq!(in_trains, singly);
    let answers = said(one.server(), now_ns + MS);
    assert_eq!(answers, said(other.server(), now_ns + MS));
    for world in [one, other] {
        for answer in &answers {
            world.client.handle(now_ns + 2 * MS, Ecn::NotEct, answer);
        }
        // Syncs and repeated features; both ends must say the same here too.
        world.to_client = said(&mut world.client, now_ns + 2 * MS);
        for packet in std::mem::take(&mut world.to_client) {
            world.server().handle(now_ns + 2 * MS, Ecn::NotEct, &packet);
        }
    }
    longest
}

#[test]
fn trains_are_what_their_packets_are_one_by_one() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let (mut one, mut other) = (world(ccid), world(ccid));
        let mut random = Random::new(3);
        let mut longest = 0;
        for number in 0..ROUNDS {
            longest = longest.max(round(&mut one, &mut other, number >= CLEAN_ROUNDS, &mut random));
            assert_eq!(one.client.figures(), other.client.figures(), "{ccid:?} round {number}");
            assert_eq!(one.server().figures(), other.server().figures(), "{ccid:?} round {number}");
            assert_eq!(one.server().next_wakeup_ns(), other.server().next_wakeup_ns(), "{ccid:?} {number}");
        }
        assert!(longest > 4, "{ccid:?}: no train had more than {longest} packets");
    }
}

#[test]
fn without_headroom_for_the_header_one_packet_leaves_beside_the_batch() {
    let mut world = world(Ccid::TcpLike);
    let spacing = Spacing { headroom_bytes: 4, payload_bytes: MESSAGE_BYTES };
    let (mut messages, mut out) = (batch(4), Vec::new());
    let train = world.client.send_train(world.now_ns, &mut messages, spacing, 16, &mut out).expect("room");
    assert_eq!((train.packets, train.in_place, train.first.bytes), (1, false, out.len()));
    assert_eq!(messages, batch(4));
    assert!(out.ends_with(&[0; MESSAGE_BYTES]));
    let end = world.client.send_train(world.now_ns, &mut [], spacing, 16, &mut out);
    assert_eq!((end, out.len()), (None, train.first.bytes));
}
