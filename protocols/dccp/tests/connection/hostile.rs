// SPDX-License-Identifier: Apache-2.0
//! Floods, forgeries and rubbish.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::checksum;
use netjoule_dccp::connection::{Carriage, Config};
use netjoule_dccp::listener::Verdict;
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{Connection, Listener, Packet, PacketType, ResetCode, Seq48, State};

use crate::world::{
    client_config, server_config, Path, Random, Way, World, MS, SECOND, SERVER_PORT, SERVICE,
};

fn udp(config: Config) -> Config {
    Config { carriage: Carriage::Udp { ip_version: 4 }, ..config }
}

fn request(source_port: u16, seq: u64, service_code: u32, options: &[u8]) -> Vec<u8> {
    let packet = Packet {
        source_port,
        destination_port: SERVER_PORT,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind: PacketType::Request,
        seq: WireSeq::Long(Seq48::new(seq)),
        ack: None,
        service_code: Some(service_code),
        reset: None,
        option_bytes: options,
        payload: &[],
    };
    let mut out = Vec::new();
    assert!(packet.emit(&mut out));
    out
}

fn peer(number: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + number)), 4_000)
}

#[test]
fn a_flood_of_requests_costs_bounded_memory_and_no_amplification() {
    let mut random = Random::new(1);
    let mut listener = Listener::new(udp(server_config()), vec![SERVICE], 64, [9; 16]);
    for number in 0..100_000 {
        let options: &[u8] = if number % 2 == 0 { &[] } else { &[32, 4, 1, 3] };
        let bytes = request(7, u64::from(number) * 977, SERVICE, options);
        let now = SECOND + i64::from(number);
        let verdict = listener.handle(now, Ecn::NotEct, peer(number), &bytes, &mut || random.next());
        let Verdict::Reply(reply) = verdict else {
            panic!("a Request gets a Response: {verdict:?}");
        };
        assert!(reply.len() <= 3 * bytes.len(), "{number}: {}", reply.len());
        assert_eq!(Packet::parse(&reply).expect("ours").kind, PacketType::Response);
        assert!(listener.half_open() <= 64);
    }
    // After eight minutes the table is empty again.
    let mut out = Vec::new();
    while listener.poll_transmit(500 * SECOND, &mut out).is_some() {}
    assert_eq!(listener.half_open(), 0);
    assert_eq!(listener.next_wakeup_ns(), None);
}

/// With a full table the handshake works over the Init Cookie, and data flows.
#[test]
fn init_cookies_connect() {
    for ecn in [false, true] {
        let configure = |config| Config { ecn, ..config };
        let mut world = World::with_backlog(
            configure(client_config()),
            configure(server_config()),
            Path::default(),
            2,
            0,
        );
        world.connect();
        assert_eq!(world.listener.half_open(), 0);
        assert_eq!(world.server().ccids(), world.client.ccids());
        world.client_sends(50, 1_000, 60 * SECOND);
        world.run_for(SECOND);
        assert_eq!(world.to_server.len(), 50);
    }
}

#[test]
fn init_cookies_survive_loss() {
    for seed in 0..20 {
        let path = Path { loss: 0.2, reorder: 0.2, ..Path::default() };
        let mut world = World::with_backlog(client_config(), server_config(), path, seed, 0);
        world.connect();
    }
}

#[test]
fn strangers_are_refused() {
    let mut listener = Listener::new(udp(server_config()), vec![SERVICE], 4, [9; 16]);
    let mut ask = |bytes: &[u8]| match listener.handle(SECOND, Ecn::NotEct, peer(1), bytes, &mut || 5) {
        Verdict::Ignore => None,
        Verdict::Reply(reply) => {
            let packet = Packet::parse(&reply).expect("ours");
            let (code, _) = packet.reset.expect("a Reset");
            Some((code, packet.seq, packet.ack))
        }
        Verdict::Accept { .. } => panic!("accepted"),
    };
    let long = |number| WireSeq::Long(Seq48::new(number));
    for code in [2, u32::MAX] {
        assert_eq!(
            ask(&request(7, 41, code, &[])),
            Some((ResetCode::BadServiceCode, long(0), Some(long(41))))
        );
    }
    let request = request(7, 41, SERVICE, &[]);
    let mut stray = Packet::parse(&request).map(|packet| (packet, Vec::new())).expect("ours");
    for kind in
        [PacketType::Ack, PacketType::DataAck, PacketType::Close, PacketType::Sync, PacketType::Response]
    {
        stray.0.kind = kind;
        stray.0.service_code = (kind == PacketType::Response).then_some(SERVICE);
        stray.0.ack = Some(long(99));
        stray.1.clear();
        stray.0.emit(&mut stray.1);
        assert_eq!(ask(&stray.1), Some((ResetCode::NoConnection, long(100), Some(long(41)))), "{kind:?}");
    }
    stray.0.kind = PacketType::Reset;
    stray.0.service_code = None;
    stray.0.reset = Some((ResetCode::Closed, [0; 3]));
    stray.1.clear();
    stray.0.emit(&mut stray.1);
    assert_eq!(ask(&stray.1), None, "never a Reset for a Reset");
    // A cookie that is not ours.
    stray.0.kind = PacketType::Ack;
    stray.0.reset = None;
    let cookie = [36, 4, 1, 2];
    stray.0.option_bytes = &cookie;
    stray.1.clear();
    stray.0.emit(&mut stray.1);
    assert_eq!(ask(&stray.1).map(|reset| reset.0), Some(ResetCode::BadInitCookie));
}

/// State that an attacker must not be able to change.
fn outside(connection: &Connection) -> (State, usize, Option<(String, String)>) {
    (
        connection.state(),
        connection.queued(),
        connection.ccids().map(|(a, b)| (format!("{a:?}"), format!("{b:?}"))),
    )
}

fn forged(random: &mut Random, kind: PacketType) -> Vec<u8> {
    let number = |random: &mut Random| WireSeq::Long(Seq48::new(random.next()));
    let payload = [7; 20];
    let options: &[u8] = match random.below(4) {
        0 => &[],
        1 => &[1, 99, 2, 0],
        2 => &[32, 4, 1, 2],
        _ => &[36, 4, 1, 2],
    };
    let packet = Packet {
        source_port: SERVER_PORT,
        destination_port: crate::world::CLIENT_PORT,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind,
        seq: number(random),
        ack: kind.has_ack().then(|| number(random)),
        service_code: matches!(kind, PacketType::Request | PacketType::Response | PacketType::Listen)
            .then_some(SERVICE),
        reset: (kind == PacketType::Reset).then_some((ResetCode::Aborted, [0; 3])),
        option_bytes: options,
        payload: if kind.is_data() { &payload } else { &[] },
    };
    let mut out = Vec::new();
    assert!(packet.emit(&mut out));
    let (local, remote) = (crate::world::client_address(), crate::world::server_address());
    let sum = checksum::header_checksum(remote, local, &out).expect("whole packet");
    out[6..8].copy_from_slice(&sum.to_be_bytes());
    out
}

/// A blind attacker knows addresses and ports, but no numbers.
#[test]
fn blind_forgeries_change_nothing_and_cause_eight_syncs_a_second() {
    let kinds = [
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
    let mut world = World::new(client_config(), server_config(), Path::default(), 3);
    world.connect();
    world.run_for(60 * SECOND);
    let before = outside(&world.client);
    let syncs = world.count(Way::ToServer, PacketType::Sync);
    let mut random = Random::new(4);
    for second in 0..10 {
        for step in 0..1_000 {
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            let bytes = forged(&mut random, kind);
            world.deliver(Way::ToClient, &bytes);
            assert_eq!(outside(&world.client), before, "{kind:?} {second} {step}");
            world.run_for(MS);
        }
    }
    let caused = world.count(Way::ToServer, PacketType::Sync) - syncs;
    assert!((70..=81).contains(&caused), "{caused} Syncs in 10 s");
    assert!(world.to_client.is_empty(), "forged data was delivered");
    assert_eq!(world.count(Way::ToServer, PacketType::Reset), 0);
    // The connection still works.
    world.client_sends(20, 100, 60 * SECOND);
    world.run_for(SECOND);
    assert_eq!(world.to_server.len(), 20);
}

/// Invalid Syncs cause nothing at all.
#[test]
fn invalid_syncs_are_ignored() {
    let mut world = World::new(client_config(), server_config(), Path::default(), 5);
    world.connect();
    world.run_for(10 * SECOND);
    let before = world.seen.len();
    let mut random = Random::new(6);
    for _ in 0..1_000 {
        for kind in [PacketType::Sync, PacketType::SyncAck] {
            let bytes = forged(&mut random, kind);
            world.deliver(Way::ToClient, &bytes);
        }
        world.run_for(MS);
    }
    assert_eq!(world.seen.len(), before);
}

/// Packets of a real connection, with bytes changed: nothing panics, memory and time stay bounded.
#[test]
fn mangled_packets_never_panic() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut world = World::new(udp(client_config()), udp(server_config()), Path::default(), seed);
        world.run_for(30 * MS);
        let _ = world.run_until_true(SECOND, World::connected);
        let now = world.now_ns;
        let _ = world.client.send(now, &[1; 100]);
        world.run_for(50 * MS);
        let packets: Vec<_> = world.seen.clone();
        for _ in 0..50 {
            let seen = &packets[random.below(packets.len() as u64) as usize];
            let mut bytes = seen.bytes.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] = random.next() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 * 2) as usize);
            world.deliver(seen.way, &bytes);
            world.run_for(MS);
        }
    }
}
