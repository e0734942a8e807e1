// SPDX-License-Identifier: Apache-2.0
//! ECN of flows over UDP, through a relay that sees every packet's field and marks some.
//!
//! The relay is on other addresses of the loopback net but on the ports of the two ends: a DCCP port is the UDP port.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use netjoule_dccp::PacketType;
use netjoule_dccp_carriers::DCCP;
use netjoule_sockets::datagram::ReceivedDatagram;
use netjoule_sockets::{datagram, socket};
use netjoule_transport::message::Header;
use netjoule_transport::{FlowSpec, IpVersion, Protocol, Role, State, Transport, Values};
use serde_json::json;
use socket2::Socket;

const SIZE: usize = 100;
/// Rounds of a loop that ends much sooner; only a test that hangs meets it.
const PATIENCE: usize = 2_000_000;
const NOT_ECT: u8 = 0;
const ECT_0: u8 = 2;
const CE: u8 = 3;

fn now_ns() -> i64 {
    datagram::now_ns()
}

fn flow(role: Role, gso: bool, ccid: u8, ecn: bool) -> FlowSpec {
    let chosen = json!({ "ccid": ccid, "ecn": ecn });
    let options = DCCP.options(chosen.as_object().unwrap()).unwrap();
    FlowSpec {
        payload_bytes: SIZE,
        role,
        token: [3; 16],
        gso,
        seed: 0,
        rate_bps: 10_000_000_000,
        options,
        event_log: None,
    }
}

/// A packet as the relay saw it: its type and its ECN field.
type Seen = (PacketType, u8);

struct Relay {
    /// What the client takes for the server, and what the server takes for the client.
    front: Socket,
    back: Socket,
    server: SocketAddr,
    client: Option<SocketAddr>,
    from_client: Vec<Seen>,
    from_server: Vec<Seen>,
    /// Each so manieth message of the client is marked; 0: none.
    mark_each: usize,
    messages: usize,
}

impl Relay {
    fn before(server: SocketAddr, mark_each: usize) -> Self {
        let front = opened(SocketAddr::from(([127, 0, 0, 2], server.port())));
        let back = opened(SocketAddr::from(([127, 0, 0, 3], 0)));
        let (from_client, from_server) = (Vec::new(), Vec::new());
        Self { front, back, server, client: None, from_client, from_server, mark_each, messages: 0 }
    }

    fn address(&self) -> SocketAddr {
        self.front.local_addr().unwrap().as_socket().unwrap()
    }

    /// Pass on what is waiting, both ways.
    fn step(&mut self) {
        let mut buffer = [0; 2048];
        while let Some(ReceivedDatagram { length, from, ecn: field, .. }) =
            datagram::receive_one(self.front.as_raw_fd(), &mut buffer).unwrap()
        {
            if self.client.replace(from).is_none() {
                self.back = opened(SocketAddr::from(([127, 0, 0, 3], from.port())));
            }
            let packet = &buffer[..length];
            self.from_client.push((kind(packet), field));
            let marked = self.is_marked(packet, field);
            forward(&self.back, self.server, packet, if marked { CE } else { field });
        }
        let Some(client) = self.client else { return };
        while let Some(ReceivedDatagram { length, ecn: field, .. }) =
            datagram::receive_one(self.back.as_raw_fd(), &mut buffer).unwrap()
        {
            self.from_server.push((kind(&buffer[..length]), field));
            forward(&self.front, client, &buffer[..length], field);
        }
    }

    /// A queue may mark only packets that say they are capable of it.
    fn is_marked(&mut self, packet: &[u8], field: u8) -> bool {
        let is_message = packet.len() > SIZE && kind(packet).is_data();
        self.messages += usize::from(is_message);
        is_message && field == ECT_0 && self.messages.is_multiple_of(self.mark_each)
    }
}

fn opened(address: SocketAddr) -> Socket {
    let socket = socket::datagram(address).unwrap();
    datagram::enable_rx_ecn(&socket, IpVersion::V4).unwrap();
    socket
}

fn forward(socket: &Socket, to: SocketAddr, packet: &[u8], field: u8) {
    socket::set_ecn(socket.as_raw_fd(), IpVersion::V4, field).unwrap();
    // An end that has closed its socket is no error here.
    let _ = socket.send_to(packet, &to.into());
}

/// The type is in four bits of the ninth byte (RFC 4340 section 5.1).
fn kind(packet: &[u8]) -> PacketType {
    PacketType::from_number((packet[8] >> 1) & 0xf).unwrap()
}

struct Flow {
    client: Box<dyn Transport>,
    server: Box<dyn Transport>,
    relay: Relay,
}

impl Flow {
    fn open(gso: bool, ccid: u8, ecn: bool, mark_each: usize) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = DCCP.listen(any, None, &flow(Role::Receiver, gso, ccid, ecn)).unwrap();
        let relay = Relay::before(server.local_address().unwrap(), mark_each);
        let here = Some("127.0.0.1".parse().unwrap());
        let spec = flow(Role::Sender, gso, ccid, ecn);
        let client = DCCP.connect(here, relay.address(), &spec, &Values::new(), now_ns()).unwrap();
        let mut flow = Self { client, server, relay };
        assert!((0..PATIENCE).any(|_| flow.step() == (State::Open, State::Open)), "never open");
        flow
    }

    fn step(&mut self) -> (State, State) {
        let client = self.client.service(now_ns()).unwrap();
        self.relay.step();
        let server = self.server.service(now_ns()).unwrap();
        self.relay.step();
        (client, server)
    }

    /// Send `count` messages; their numbers as they arrived.
    fn transfer(&mut self, count: u64) -> Vec<u64> {
        let (mut sent, mut arrived) = (0, Vec::new());
        for _ in 0..PATIENCE {
            let headroom = self.client.headroom_bytes();
            let mut batch = vec![0; (headroom + SIZE) * (count - sent).min(40) as usize];
            for (sequence, message) in (sent..).zip(batch.chunks_exact_mut(headroom + SIZE)) {
                Header { sequence, sent_ns: 1 }.write(&mut message[headroom..]);
            }
            sent += self.client.send_batch(&mut batch, SIZE, now_ns()).unwrap().sent as u64;
            self.step();
            let mut sink = |arrival: netjoule_transport::Arrival<'_>| {
                arrived.push(Header::read(arrival.bytes).unwrap().sequence);
            };
            self.server.receive(now_ns(), &mut sink).unwrap();
            // What acknowledgements say about the last messages is still to be heard.
            if sent == count && self.client.drained() && arrived.len() as u64 == count {
                for _ in 0..100 {
                    self.step();
                }
                return arrived;
            }
        }
        panic!("only {} of {count} arrived", arrived.len());
    }

    fn figure(&mut self, name: &str) -> f64 {
        self.client.path_statistics()[name].as_f64().unwrap()
    }

    fn close(&mut self) {
        self.client.close(now_ns());
        let closed = (0..PATIENCE).any(|_| {
            self.server.receive(now_ns(), &mut |_| {}).unwrap();
            self.step() == (State::Closed, State::Closed)
        });
        assert!(closed);
    }
}

/// Types that the packets of an established connection have, in the field that it asks for.
fn is_capable(kind: PacketType) -> bool {
    matches!(kind, PacketType::Data | PacketType::DataAck | PacketType::Ack)
}

#[track_caller]
fn assert_fields(seen: &[Seen]) {
    for (kind, field) in seen {
        assert_eq!(*field, if is_capable(*kind) { ECT_0 } else { NOT_ECT }, "{kind:?}");
    }
    let types = |capable| seen.iter().filter(|(kind, _)| is_capable(*kind) == capable).count();
    assert!(types(true) > 0 && types(false) > 0);
}

#[test]
fn marks_slow_a_sender_down_without_loss() {
    for (gso, ccid) in [(false, 2), (true, 2), (false, 3), (true, 3)] {
        let mut flow = Flow::open(gso, ccid, true, 40);
        assert_eq!(flow.transfer(400), (0..400).collect::<Vec<_>>(), "gso {gso}, CCID {ccid}");
        if ccid == 2 {
            assert!(flow.figure("packets_marked") > 0.0);
            assert!(flow.figure("congestion_events") > 0.0);
            assert_eq!(flow.figure("packets_lost"), 0.0);
        } else {
            assert!(flow.figure("loss_events") > 0.0, "gso {gso}");
        }
        flow.close();
        assert_fields(&flow.relay.from_client);
        assert_fields(&flow.relay.from_server);
    }
}

#[test]
fn without_marks_there_is_no_congestion() {
    for (ccid, events) in [(2, "congestion_events"), (3, "loss_events")] {
        let mut flow = Flow::open(false, ccid, true, 0);
        flow.transfer(400);
        assert_eq!(flow.figure(events), 0.0, "CCID {ccid}");
    }
}

#[test]
fn without_the_option_no_packet_is_capable() {
    for ccid in [2, 3] {
        let mut flow = Flow::open(true, ccid, false, 40);
        assert_eq!(flow.transfer(200).len(), 200);
        flow.close();
        let mut seen = flow.relay.from_client.iter().chain(&flow.relay.from_server);
        assert!(seen.all(|(_, field)| *field == NOT_ECT));
        assert!(
            !flow.client.path_statistics().contains_key("packets_marked")
                || flow.figure("packets_marked") == 0.0
        );
    }
}
