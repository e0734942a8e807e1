// SPDX-License-Identifier: Apache-2.0
//! A QUIC server says at most three times what came from an address that is not proven (RFC 9000 section 8.1), whoever
//! forges that address, whatever is replayed, and nothing to an Initial that is too short (section 14.1).

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use netjoule_measure::host::now_ns;
use netjoule_traffic::registry;
use netjoule_transport::{FlowSpec, Role, State, Values, TOKEN_BYTES};
use serde_json::json;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::harness::network::in_own_network;
use crate::harness::Server;
use crate::reflection::{welcome, Welcome};

/// Two crowds of so many: as many as a server listens to at once.
const VICTIMS: usize = 4;
/// RFC 9000 section 14.1.
const LEAST_INITIAL_BYTES: usize = 1200;
/// IPv4 and UDP.
const HEADER_BYTES: usize = 28;

/// Sends UDP datagrams whose source address is a lie.
struct Forger(Socket);

impl Forger {
    fn new() -> Self {
        // 255, IPPROTO_RAW: the IP header is the caller's (raw(7)).
        Self(Socket::new(Domain::IPV4, Type::RAW, Some(255.into())).unwrap())
    }

    fn send(&self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let bytes = (HEADER_BYTES + payload.len()) as u16;
        // The kernel fills in the identification and the checksum; UDP's may be absent.
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
        packet[2..4].copy_from_slice(&bytes.to_be_bytes());
        packet.extend([from.ip().octets(), to.ip().octets()].concat());
        for number in [from.port(), to.port(), bytes - 20, 0] {
            packet.extend(number.to_be_bytes());
        }
        packet.extend(payload);
        self.0.send_to(&packet, &SockAddr::from(to)).unwrap();
    }
}

/// A flow that a server waits for.
struct Case {
    name: &'static str,
    options: Values,
    _server: Server,
    welcome: Welcome,
}

impl Case {
    fn new(name: &'static str, early_data: bool) -> Self {
        let server = Server::start("127.0.0.1", &[]);
        let options = Values::from_iter([("early_data".to_owned(), json!(early_data))]);
        let welcome = welcome(&server, &json!({ "transport": name, "options": options }));
        Self { name, options, _server: server, welcome }
    }

    fn early_data(&self) -> bool {
        self.options["early_data"] == json!(true)
    }

    /// A connection to the server that nobody has heard of yet.
    fn connection(&self, local: SocketAddr) -> quiche::Connection {
        let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION).unwrap();
        config.set_application_protos(&[netjoule_quic::ALPN]).unwrap();
        config.verify_peer(false);
        config.set_initial_max_data(1 << 20);
        config.set_initial_max_stream_data_bidi_local(1 << 20);
        if self.early_data() {
            config.enable_early_data();
        }
        let id = quiche::ConnectionId::from_ref(&[7; 8]);
        quiche::connect(None, &id, local, self.welcome.data, &mut config).unwrap()
    }

    /// What a client says before it has heard anything, in datagrams of at most `most_bytes`; with early data the token, too.
    fn first_flight(&self, most_bytes: usize) -> Vec<Vec<u8>> {
        let ticket = self.early_data().then(|| self.ticket());
        let mut quic = self.connection("127.0.0.1:1".parse().unwrap());
        if let Some(ticket) = &ticket {
            quic.set_session(ticket).unwrap();
        }
        let mut flight = said_by(&mut quic, most_bytes);
        if ticket.is_some() {
            assert!(quic.is_in_early_data());
            assert_eq!(quic.stream_send(0, &self.welcome.token, false), Ok(TOKEN_BYTES));
            flight.extend(said_by(&mut quic, most_bytes));
        }
        flight
    }

    /// A session ticket, as a client with early data fetches it.
    fn ticket(&self) -> Vec<u8> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (local, data) = (socket.local_addr().unwrap(), self.welcome.data);
        let mut quic = self.connection(local);
        loop {
            for datagram in said_by(&mut quic, 1472) {
                socket.send_to(&datagram, data).unwrap();
            }
            if let Some(session) = quic.session() {
                return session.to_vec();
            }
            let mut bytes = [0; 2048];
            let length = socket.recv(&mut bytes).expect("a ticket");
            quic.recv(&mut bytes[..length], quiche::RecvInfo { from: data, to: local }).unwrap();
        }
    }
}

fn said_by(quic: &mut quiche::Connection, most_bytes: usize) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; most_bytes];
    std::iter::from_fn(|| quic.send(&mut bytes).ok().map(|(length, _)| bytes[..length].to_vec())).collect()
}

/// Those whose addresses are forged: they never asked, and never answer.
struct Victims(Vec<UdpSocket>);

impl Victims {
    fn new() -> Self {
        Self((0..VICTIMS).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect())
    }

    /// Says all of it in the name of each; bytes and datagrams.
    fn say<'a>(&self, to: SocketAddr, datagrams: impl Iterator<Item = &'a [u8]> + Clone) -> (usize, usize) {
        let version_4 = |address| match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(address) => panic!("{address}"),
        };
        let forger = Forger::new();
        let mut said = (0, 0);
        for socket in &self.0 {
            for datagram in datagrams.clone() {
                forger.send(version_4(socket.local_addr().unwrap()), version_4(to), datagram);
                said = (said.0 + datagram.len(), said.1 + 1);
            }
        }
        said
    }

    /// Bytes and datagrams that have come to them.
    fn heard(&self) -> (usize, usize) {
        let mut heard = (0, 0);
        for socket in &self.0 {
            socket.set_nonblocking(true).unwrap();
            while let Ok(length) = socket.recv(&mut [0; 2048]) {
                heard = (heard.0 + length, heard.1 + 1);
            }
        }
        heard
    }
}

#[test]
fn quic_says_to_forged_addresses_at_most_three_times_what_came_in_their_names() {
    let test = "forged_quic::quic_says_to_forged_addresses_at_most_three_times_what_came_in_their_names";
    in_own_network(test, || {
        let kinds = [("quic", false), ("quic-datagram", false), ("quic", true), ("quic-datagram", true)];
        let cases = kinds.map(|(name, early_data)| Case::new(name, early_data));
        let mut attacks = Vec::new();
        for case in &cases {
            let (flight, short) = (case.first_flight(1472), case.first_flight(600).remove(0));
            assert!(flight[0].len() >= LEAST_INITIAL_BYTES && short.len() < LEAST_INITIAL_BYTES);
            let victims = Victims::new();
            victims.say(case.welcome.data, [&short[..]; 2].into_iter());
            attacks.push((case, flight, short, victims));
        }
        // Whatever there is to answer at once has been answered.
        std::thread::sleep(Duration::from_millis(300));
        let attacks = attacks.into_iter().map(|(case, flight, short, victims)| {
            assert_eq!(victims.heard(), (0, 0), "{}: to Initials of less than 1,200 bytes", case.name);
            // In some names once, in others twice.
            let said = [1, 2].map(|times| {
                let (victims, to) = (Victims::new(), case.welcome.data);
                let repeated = std::iter::repeat_n(&flight, times).flatten();
                let said = victims.say(to, repeated.map(Vec::as_slice));
                // And Initials that are short, which earn nothing.
                victims.say(to, [&short[..]; 4].into_iter());
                (victims, said)
            });
            (case, said)
        });
        let attacks: Vec<_> = attacks.collect();
        // Unanswered packets are sent again after some 1 s and 2 s more.
        std::thread::sleep(Duration::from_millis(3_500));
        for (case, said) in &attacks {
            for (victims, said) in said {
                let heard = victims.heard();
                let times = heard.0 as f64 / said.0 as f64;
                assert!((1.0..=3.0).contains(&times), "{}: {heard:?} for {said:?}, {times} times", case.name);
                let on_the_wire = |(bytes, datagrams)| (bytes + datagrams * HEADER_BYTES) as f64;
                let times = on_the_wire(heard) / on_the_wire(*said);
                assert!(times <= 3.0, "{}: {heard:?} for {said:?}, {times} with headers", case.name);
            }
            opens(case);
        }
    });
}

/// The true client is let in all the same.
fn opens(case: &Case) {
    let protocol = registry::protocol(case.name).unwrap();
    let Welcome { data, token, offer, .. } = &case.welcome;
    let flow = FlowSpec {
        payload_bytes: 100,
        role: Role::Sender,
        token: token[..].try_into().unwrap(),
        gso: false,
        seed: 1,
        rate_bps: 0,
        options: protocol.options(&case.options).unwrap(),
        event_log: None,
    };
    let mut client = protocol.connect(None, *data, &flow, offer, now_ns()).unwrap();
    let opened = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        client.service(now_ns()).unwrap() == State::Open
    });
    assert!(opened, "{}: the true client was not let in", case.name);
}
