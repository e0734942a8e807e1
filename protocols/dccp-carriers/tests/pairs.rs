// SPDX-License-Identifier: Apache-2.0
//! Both ends of flows over loopback in one thread: opening, messages in order, strangers, wrong tokens, closing.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::connection::Carriage;
use netjoule_dccp::{Config, Connection, State as Stage};
use netjoule_dccp_carriers::{carriers, DCCP, SERVICE_CODE};
use netjoule_sockets::timestamps::now_ns;
use netjoule_transport::candidates::CANDIDATES;
use netjoule_transport::message::Header;
use netjoule_transport::{FlowSpec, Protocol, Role, State, Stop, Transport, TransportError, Values};
use serde_json::json;

const SIZE: usize = 100;
const TOKEN: [u8; 16] = [3; 16];
/// Rounds of a loop that ends much sooner; only a test that hangs meets it.
const PATIENCE: usize = 2_000_000;

fn flow(role: Role, token: [u8; 16], gso: bool, ccid: u8, carrier: &str) -> FlowSpec {
    let chosen = json!({ "ccid": ccid, "carrier": carrier });
    let options = DCCP.options(chosen.as_object().unwrap()).unwrap();
    FlowSpec {
        payload_bytes: SIZE,
        role,
        token,
        gso,
        seed: 0,
        rate_bps: 10_000_000_000,
        options,
        event_log: None,
    }
}

fn listen(any_port: &str, flow: &FlowSpec) -> Box<dyn Transport> {
    DCCP.listen(any_port.parse().unwrap(), None, flow).unwrap()
}

fn connect(server: &dyn Transport, flow: &FlowSpec) -> Box<dyn Transport> {
    let address = server.local_address().unwrap();
    DCCP.connect(None, address, flow, &Values::new(), now_ns()).unwrap()
}

/// Service both until both are in `wanted`.
fn run_until(one: &mut dyn Transport, other: &mut dyn Transport, wanted: State) {
    for _ in 0..PATIENCE {
        let states = (one.service(now_ns()).unwrap(), other.service(now_ns()).unwrap());
        if states == (wanted, wanted) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("never {wanted:?}");
}

fn open_pair(any_port: &str, gso: bool, ccid: u8, carrier: &str) -> (Box<dyn Transport>, Box<dyn Transport>) {
    let mut server = listen(any_port, &flow(Role::Receiver, TOKEN, gso, ccid, carrier));
    let mut client = connect(&*server, &flow(Role::Sender, TOKEN, gso, ccid, carrier));
    run_until(&mut *client, &mut *server, State::Open);
    (client, server)
}

fn sequences(end: &mut dyn Transport, seen: &mut Vec<u64>) {
    end.receive(now_ns(), &mut |arrival| {
        assert_eq!(arrival.bytes.len(), SIZE);
        seen.push(Header::read(arrival.bytes).unwrap().sequence);
    })
    .unwrap();
}

/// Send `count` messages as congestion control lets them go; what arrived.
fn transfer(client: &mut dyn Transport, server: &mut dyn Transport, count: u64) -> Vec<u64> {
    let (mut sent, mut seen) = (0, Vec::new());
    for _ in 0..PATIENCE {
        let headroom = client.headroom_bytes();
        let mut batch = vec![0; (headroom + SIZE) * (count - sent).min(40) as usize];
        for (sequence, message) in (sent..).zip(batch.chunks_exact_mut(headroom + SIZE)) {
            Header { sequence, sent_ns: 1 }.write(&mut message[headroom..]);
        }
        let outcome = client.send_batch(&mut batch, SIZE, now_ns()).unwrap();
        assert!(outcome.stop == Stop::None || outcome.stop == Stop::QueueFull);
        sent += outcome.sent as u64;
        client.service(now_ns()).unwrap();
        server.service(now_ns()).unwrap();
        sequences(server, &mut seen);
        if sent == count && client.drained() && seen.len() as u64 == count {
            return seen;
        }
    }
    panic!("only {} of {count} arrived", seen.len());
}

/// A receiving end reads its socket in `receive`, to the end.
fn assert_hears_the_end(server: &mut dyn Transport) {
    let closed = (0..PATIENCE).any(|_| {
        server.receive(now_ns(), &mut |_| panic!("a message after the last")).unwrap();
        server.service(now_ns()).unwrap() == State::Closed
    });
    assert!(closed);
}

fn has_raw() -> bool {
    carriers().iter().any(|status| status.name == "raw" && status.missing.is_none())
}

#[test]
fn messages_cross_in_order_over_every_carrier() {
    for any_port in ["127.0.0.1:0", "[::1]:0"] {
        for carrier in ["udp", "raw"] {
            if carrier == "raw" && !has_raw() {
                continue;
            }
            for (gso, ccid) in [(false, 2), (false, 3), (true, 2), (true, 3)] {
                let (mut client, mut server) = open_pair(any_port, gso, ccid, carrier);
                let seen = transfer(&mut *client, &mut *server, 500);
                assert_eq!(seen, (0..500).collect::<Vec<_>>(), "{any_port} {carrier} {gso} {ccid}");
                let call = if gso && carrier == "udp" { "gso" } else { "sendmmsg" };
                assert_eq!(client.path_statistics()["send_call"], call, "{any_port} {carrier}");
                let packets = client.packetisation(500);
                let headers_bytes = packets.mean_ip_packet_bytes.unwrap() - SIZE as f64;
                let least_bytes = if any_port.starts_with('[') { 56.0 } else { 36.0 };
                assert!(headers_bytes >= least_bytes, "{headers_bytes}");
                client.close(now_ns());
                assert_hears_the_end(&mut *server);
                assert!((0..PATIENCE).any(|_| {
                    assert_eq!(client.service(now_ns()).unwrap(), State::Closed);
                    client.parted()
                }));
            }
        }
    }
}

#[test]
fn figures_are_told_by_both_ends() {
    let (mut client, mut server) = open_pair("127.0.0.1:0", false, 3, "udp");
    transfer(&mut *client, &mut *server, 50);
    assert_eq!(client.path_statistics()["ccid"], 3.0);
    assert!(server.path_statistics()["acks_sent"].as_f64().unwrap() > 0.0);
    assert!(client.path_mtu_bytes().unwrap() >= 1280);
    assert_eq!(client.path_statistics()["send_call"], "sendmmsg");
    assert!(server.path_statistics().get("send_call").is_none());
}

/// Send messages of `bytes` each that the receiving end does not ask for, until `is_over` of the sender's figures.
fn send_unheard(
    client: &mut dyn Transport,
    server: &mut dyn Transport,
    bytes: usize,
    is_over: impl Fn(&Values) -> bool,
) {
    let spacing = client.headroom_bytes() + bytes;
    for _ in 0..PATIENCE {
        client.send_batch(&mut vec![0; spacing * 40], bytes, now_ns()).unwrap();
        client.service(now_ns()).unwrap();
        server.service(now_ns()).unwrap();
        if is_over(&client.path_statistics()) {
            return;
        }
    }
    panic!("never over: {:?}", client.path_statistics());
}

#[test]
fn what_finds_no_room_before_the_receiver_asks_is_named_to_the_sender() {
    let reports = |figures: &Values| figures["data_drops_reported"].as_f64().unwrap();
    for ccid in [2, 3] {
        let wide = |role| FlowSpec { payload_bytes: 1400, ..flow(role, TOKEN, true, ccid, "udp") };
        let mut server = listen("127.0.0.1:0", &wide(Role::Receiver));
        let mut client = connect(&*server, &wide(Role::Sender));
        run_until(&mut *client, &mut *server, State::Open);
        send_unheard(&mut *client, &mut *server, 1400, |figures| reports(figures) > 3.0);
        let dropped = server.path_statistics()["data_not_taken"].as_f64().unwrap();
        let kept = server.receive(now_ns(), &mut |_| {}).unwrap();
        assert!(dropped > 0.0 && kept >= (4 << 20) / 1400, "CCID {ccid}: {dropped} {kept}");
    }
}

#[test]
fn each_message_of_a_flow_that_is_not_fast_leaves_by_a_call_of_its_own() {
    let thin = |role| FlowSpec { rate_bps: 1_000_000, ..flow(role, TOKEN, false, 3, "udp") };
    let mut server = listen("127.0.0.1:0", &thin(Role::Receiver));
    let mut client = connect(&*server, &thin(Role::Sender));
    run_until(&mut *client, &mut *server, State::Open);
    assert_eq!(transfer(&mut *client, &mut *server, 200), (0..200).collect::<Vec<_>>());
    assert_eq!(client.path_statistics()["send_call"], "send");
}

#[test]
fn a_wrong_token_is_reset_and_the_right_one_still_served() {
    let mut server = listen("127.0.0.1:0", &flow(Role::Receiver, TOKEN, false, 3, "udp"));
    let mut thief = connect(&*server, &flow(Role::Sender, [9; 16], false, 3, "udp"));
    let refused = (0..PATIENCE).find_map(|_| {
        assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
        thief.service(now_ns()).err()
    });
    assert!(matches!(refused, Some(TransportError::Refused(_))), "{refused:?}");
    let mut client = connect(&*server, &flow(Role::Sender, TOKEN, false, 3, "udp"));
    run_until(&mut *client, &mut *server, State::Open);
    assert_eq!(transfer(&mut *client, &mut *server, 20).len(), 20);
}

/// A client that finishes DCCP's handshake and then says nothing.
struct Silent {
    socket: UdpSocket,
    connection: Connection,
}

impl Silent {
    fn connect(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).unwrap();
        socket.set_nonblocking(true).unwrap();
        let config = Config {
            carriage: Carriage::Udp { ip_version: 4 },
            local_port: socket.local_addr().unwrap().port(),
            remote_port: server.port(),
            service_code: SERVICE_CODE,
            ..Config::default()
        };
        Self { socket, connection: Connection::connect(config, 0, &mut || 7) }
    }

    /// Does what is due; the connection's state.
    fn serve(&mut self, now_ns: i64) -> Stage {
        let mut bytes = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.connection.handle(now_ns, Ecn::NotEct, &bytes[..length]);
        }
        let mut packet = Vec::new();
        while self.connection.poll_transmit(now_ns, &mut packet).is_some() {
            self.socket.send(&std::mem::take(&mut packet)).unwrap();
        }
        self.connection.state()
    }
}

#[test]
fn silent_connections_make_room_for_the_client_the_oldest_first() {
    let mut server = listen("127.0.0.1:0", &flow(Role::Receiver, TOKEN, false, 3, "udp"));
    let address = server.local_address().unwrap();
    let start_ns = now_ns();
    // Only a told clock: as long as it is, nobody is silent for too long.
    let mut serve = |round: usize| server.service(start_ns + round as i64 * 1_000).unwrap();
    let mut all: Vec<Silent> = Vec::new();
    for _ in 0..CANDIDATES + 2 {
        let mut silent = Silent::connect(address);
        let opened = (0..PATIENCE).any(|round| {
            serve(round);
            silent.serve(round as i64 * 1_000) == Stage::Open
        });
        assert!(opened, "number {} was not let in", all.len());
        all.push(silent);
    }
    for round in 0..1_000 {
        serve(round);
        for silent in &mut all {
            silent.serve(round as i64 * 1_000);
        }
    }
    let states: Vec<_> = all.iter().map(|silent| silent.connection.state() == Stage::Open).collect();
    assert_eq!(states, [&[false; 2][..], &[true; CANDIDATES]].concat());
    let mut client = connect(&*server, &flow(Role::Sender, TOKEN, false, 3, "udp"));
    run_until(&mut *client, &mut *server, State::Open);
}

#[test]
fn strangers_are_neither_heard_nor_answered_after_opening() {
    let (mut client, mut server) = open_pair("127.0.0.1:0", false, 3, "udp");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    stranger.send_to(&[0; 60], server.local_address().unwrap()).unwrap();
    assert_eq!(transfer(&mut *client, &mut *server, 20).len(), 20);
    assert!(stranger.recv(&mut [0; 100]).is_err());
}

#[test]
fn only_the_allowed_peer_is_heard() {
    let elsewhere: IpAddr = "127.0.0.9".parse().unwrap();
    let spec = flow(Role::Receiver, TOKEN, false, 3, "udp");
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = DCCP.listen(any, Some(elsewhere), &spec).unwrap();
    let client_spec = flow(Role::Sender, TOKEN, false, 3, "udp");
    let mut stranger = connect(&*server, &client_spec);
    for _ in 0..100 {
        assert_eq!(stranger.service(now_ns()).unwrap(), State::Connecting);
        assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
    }
    let address = server.local_address().unwrap();
    let mut client = DCCP.connect(Some(elsewhere), address, &client_spec, &Values::new(), now_ns()).unwrap();
    run_until(&mut *client, &mut *server, State::Open);
}

#[test]
fn a_message_that_does_not_fit_is_an_error_that_names_the_limit() {
    let (mut client, _server) = open_pair("127.0.0.1:0", false, 3, "udp");
    let error = client.send(&vec![0; 65_530], now_ns()).unwrap_err();
    assert!(matches!(&error, TransportError::Unsupported(text) if text.contains("limit is 65")), "{error}");
}
