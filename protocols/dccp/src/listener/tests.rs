// SPDX-License-Identifier: Apache-2.0
//! A listener, packet by packet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Listener, Verdict};
use crate::ccid::Ecn;
use crate::connection::{Carriage, Config, Connection, State};
use crate::packet::{Packet, PacketType};
use crate::reset::ResetCode;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4000);

fn config() -> Config {
    Config { carriage: Carriage::Udp { ip_version: 4 }, local_port: 6, ..Config::default() }
}

fn client(service_code: u32, port: u16) -> Connection {
    let config = Config { local_port: port, remote_port: 6, service_code, ..config() };
    Connection::connect(config, 0, &mut || 500)
}

fn sent(connection: &mut Connection, now_ns: i64) -> Vec<u8> {
    let mut out = Vec::new();
    connection.poll_transmit(now_ns, &mut out).expect("a packet");
    out
}

fn kind(bytes: &[u8]) -> PacketType {
    Packet::parse(bytes).expect("ours").kind
}

#[test]
fn every_request_gets_one_response_and_nothing_is_repeated() {
    let mut listener = Listener::new(config(), vec![3], 4, [1; 16]);
    let mut client = client(3, 5);
    for at_s in [0, 1, 3, 7] {
        let request = sent(&mut client, at_s * SECOND);
        let verdict = listener.handle(at_s * SECOND, Ecn::NotEct, PEER, &request, &mut || 900);
        let Verdict::Reply(response) = verdict else { panic!("{verdict:?}") };
        assert_eq!(kind(&response), PacketType::Response);
        assert!(response.len() <= 3 * request.len());
        assert!(listener.poll_transmit(at_s * SECOND, &mut Vec::new()).is_none());
    }
    assert_eq!(listener.half_open(), 1);
}

#[test]
fn several_service_codes_are_served_and_the_connection_knows_its_own() {
    let mut listener = Listener::new(config(), vec![3, 4], 4, [1; 16]);
    for (code, port) in [(3, 10), (4, 11)] {
        let mut client = client(code, port);
        let request = sent(&mut client, 0);
        let Verdict::Reply(response) = listener.handle(0, Ecn::NotEct, PEER, &request, &mut || 900) else {
            panic!("no Response");
        };
        client.handle(MS, Ecn::NotEct, &response);
        let ack = sent(&mut client, MS);
        let Verdict::Accept { connection, payload } =
            listener.handle(2 * MS, Ecn::NotEct, PEER, &ack, &mut || 900)
        else {
            panic!("not accepted");
        };
        assert_eq!((connection.service_code(), connection.state(), payload), (code, State::Open, None));
    }
    assert_eq!(listener.half_open(), 0);
}

#[test]
fn a_handshake_that_is_never_completed_ends_after_eight_minutes_with_a_reset() {
    let mut listener = Listener::new(config(), vec![3], 4, [1; 16]);
    let request = sent(&mut client(3, 5), 0);
    listener.handle(0, Ecn::NotEct, PEER, &request, &mut || 900);
    assert_eq!(listener.next_wakeup_ns(), Some(480 * SECOND));
    let mut out = Vec::new();
    assert!(listener.poll_transmit(479 * SECOND, &mut out).is_none());
    let (peer, transmit) = listener.poll_transmit(480 * SECOND, &mut out).expect("a Reset");
    assert_eq!((peer, transmit.bytes), (PEER, out.len()));
    let reset = Packet::parse(&out).expect("ours").reset;
    assert_eq!(reset.map(|(code, _)| code), Some(ResetCode::Aborted));
    assert_eq!(listener.half_open(), 0);
}

#[test]
fn handshakes_that_are_over_leave_nothing_behind() {
    let mut listener = Listener::new(config(), vec![3], 4, [1; 16]);
    let stays = sent(&mut client(3, 5), 0);
    listener.handle(0, Ecn::NotEct, PEER, &stays, &mut || 900);
    for round in 0..1_000_u32 {
        let mut iss = || u64::from(round) * 1_000;
        let mut client = client(3, 7);
        let request = sent(&mut client, 0);
        let Verdict::Reply(response) =
            listener.handle(i64::from(round), Ecn::NotEct, PEER, &request, &mut iss)
        else {
            panic!("no Response");
        };
        client.handle(MS, Ecn::NotEct, &response);
        client.abort(MS);
        let reset = sent(&mut client, MS);
        assert_eq!(kind(&reset), PacketType::Reset);
        listener.handle(i64::from(round), Ecn::NotEct, PEER, &reset, &mut iss);
        assert_eq!(listener.half_open(), 1);
        assert!(listener.expiries.len() <= 2 * 4 + 17, "{}", listener.expiries.len());
    }
}

#[test]
fn resets_are_limited_to_1024_a_second() {
    let mut listener = Listener::new(config(), vec![3], 4, [1; 16]);
    let request = sent(&mut client(99, 5), 0);
    let mut resets = 0;
    for step in 0..4_000 {
        let now_ns = step * SECOND / 4_000;
        let verdict = listener.handle(now_ns, Ecn::NotEct, PEER, &request, &mut || 900);
        resets += usize::from(matches!(verdict, Verdict::Reply(_)));
    }
    assert_eq!(resets, 1024);
    let verdict = listener.handle(SECOND, Ecn::NotEct, PEER, &request, &mut || 900);
    assert!(matches!(verdict, Verdict::Reply(_)));
}

/// RFC 5596: three Listens 200 ms apart, then only waiting; a Request ends the invitation.
#[test]
fn an_invitation_is_said_three_times() {
    let mut listener = Listener::new(config(), vec![3], 4, [1; 16]);
    listener.invite(0, PEER, 5, 99);
    assert_eq!(listener.next_wakeup_ns(), None, "not a service of this listener");
    listener.invite(0, PEER, 5, 3);
    let mut times = Vec::new();
    while let Some(at_ns) = listener.next_wakeup_ns() {
        let mut out = Vec::new();
        if let Some((peer, transmit)) = listener.poll_transmit(at_ns, &mut out) {
            let listen = Packet::parse(&out).expect("ours");
            assert_eq!((peer, transmit.bytes), (PEER, 20));
            assert_eq!((listen.kind, listen.service_code), (PacketType::Listen, Some(3)));
            assert_eq!((listen.source_port, listen.destination_port), (6, 5));
            times.push(at_ns / MS);
        }
    }
    assert_eq!(times, [0, 200, 400]);
    let request = sent(&mut client(3, 5), 0);
    listener.invite(SECOND, PEER, 5, 3);
    let verdict = listener.handle(SECOND, Ecn::NotEct, PEER, &request, &mut || 900);
    assert!(matches!(verdict, Verdict::Reply(_)));
    assert!(listener.poll_transmit(SECOND, &mut Vec::new()).is_none());
}
