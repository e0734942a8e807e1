// SPDX-License-Identifier: Apache-2.0
//! A client and a server on a path of 10 ms each way, and an attacker who may know their sequence numbers.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::connection::{Carriage, Config, Connection, State};
use netjoule_dccp::listener::{Listener, Verdict};
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::packet::{Packet, WireSeq};
use netjoule_dccp::reset::ResetCode;
use netjoule_dccp::{PacketType, Seq48};

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MS;
pub(crate) const SERVICE: u32 = 0x4e4a_4f55;
const ONE_WAY: i64 = 10 * MS;
const CLIENT_PORT: u16 = 40_001;
const SERVER_PORT: u16 = 50_001;

/// A repeatable stream of numbers (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

pub(crate) fn client_config(ccid: Ccid) -> Config {
    Config {
        carriage: Carriage::Udp { ip_version: 4 },
        local_port: CLIENT_PORT,
        remote_port: SERVER_PORT,
        service_code: SERVICE,
        ccids: vec![ccid],
        ..Config::default()
    }
}

pub(crate) fn server_config(ccid: Ccid) -> Config {
    Config { local_port: SERVER_PORT, remote_port: 0, ..client_config(ccid) }
}

pub(crate) fn listener(ccid: Ccid, backlog: usize) -> Listener {
    Listener::new(server_config(ccid), vec![SERVICE], backlog, *b"0123456789abcdef")
}

pub(crate) fn peer(number: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | number >> 16)), (number & 0xffff) as u16 | 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What an attacker writes: numbers relative to the right ones, -1 for "the packet before the last".
#[derive(Clone)]
pub(crate) struct Forgery<'a> {
    pub(crate) kind: PacketType,
    /// Relative to the greatest sequence number that the target has received.
    pub(crate) seq: i64,
    /// Relative to the greatest sequence number that the target has sent.
    pub(crate) ack: i64,
    pub(crate) options: &'a [u8],
    pub(crate) payload: &'a [u8],
}

pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) now: i64,
    /// Greatest sequence number that each side has sent.
    client_seq: Seq48,
    server_seq: Seq48,
    on_the_way: VecDeque<(i64, Side, Vec<u8>)>,
    /// Messages that arrived.
    pub(crate) at_client: Vec<Vec<u8>>,
    pub(crate) at_server: Vec<Vec<u8>>,
}

impl Pair {
    /// Both ends open.
    pub(crate) fn open(ccid: Ccid) -> Self {
        let mut random = Random(7);
        let mut listener = listener(ccid, 8);
        let mut now = SECOND;
        let mut client = Connection::connect(client_config(ccid), now, &mut || random.next());
        let mut replies = Vec::new();
        for _ in 0..200 {
            for packet in transmit(&mut client, now) {
                let verdict =
                    listener.handle(now + ONE_WAY, Ecn::NotEct, peer(9), &packet, &mut || random.next());
                match verdict {
                    Verdict::Ignore => {}
                    Verdict::Reply(reply) => replies.push(reply),
                    Verdict::Accept { connection, payload } => {
                        assert_eq!(payload, None);
                        now += ONE_WAY;
                        return Self::started(client, *connection, now, &packet, &replies);
                    }
                }
            }
            now += 2 * ONE_WAY;
            if let Some(reply) = replies.last() {
                let _ = client.handle(now, Ecn::NotEct, reply);
            }
        }
        panic!("no connection after 4 s, the client is in state {:?}", client.state());
    }

    fn started(
        client: Connection,
        server: Connection,
        now: i64,
        from_client: &[u8],
        replies: &[Vec<u8>],
    ) -> Self {
        let seq = |bytes: &[u8]| match Packet::parse(bytes).expect("own packets parse").seq {
            WireSeq::Long(seq) => seq,
            WireSeq::Short(_) => panic!("a handshake with short sequence numbers"),
        };
        let mut pair = Self {
            client_seq: seq(from_client),
            server_seq: seq(replies.last().expect("there was a Response")),
            client,
            server,
            now,
            on_the_way: VecDeque::new(),
            at_client: Vec::new(),
            at_server: Vec::new(),
        };
        pair.run(200 * MS);
        assert_eq!((pair.client.state(), pair.server.state()), (State::Open, State::Open));
        pair
    }

    /// Let time pass; packets travel.
    pub(crate) fn run(&mut self, duration: i64) {
        let end = self.now + duration;
        while self.now < end {
            self.now += MS;
            self.deliver();
            for side in [Side::Client, Side::Server] {
                for packet in self.take(side) {
                    self.on_the_way.push_back((self.now + ONE_WAY, side, packet));
                }
            }
        }
    }

    fn deliver(&mut self) {
        while self.on_the_way.front().is_some_and(|(due, ..)| *due <= self.now) {
            let Some((at, from, packet)) = self.on_the_way.pop_front() else { return };
            match from {
                Side::Client => {
                    let got = self.server.handle(at, Ecn::NotEct, &packet).map(<[u8]>::to_vec);
                    self.at_server.extend(got);
                }
                Side::Server => {
                    let got = self.client.handle(at, Ecn::NotEct, &packet).map(<[u8]>::to_vec);
                    self.at_client.extend(got);
                }
            }
        }
    }

    /// What this side sends now, noting its numbers.
    pub(crate) fn take(&mut self, side: Side) -> Vec<Vec<u8>> {
        let now = self.now;
        let packets = transmit(self.end(side), now);
        for packet in &packets {
            let Ok(Packet { seq: WireSeq::Long(seq), .. }) = Packet::parse(packet) else {
                panic!("not a packet with a long sequence number: {packet:02x?}");
            };
            match side {
                Side::Client => self.client_seq = self.client_seq.latest(seq),
                Side::Server => self.server_seq = self.server_seq.latest(seq),
            }
        }
        packets
    }

    /// Greatest sequence number that this side has sent.
    pub(crate) fn newest_sent(&self, side: Side) -> Seq48 {
        match side {
            Side::Client => self.client_seq,
            Side::Server => self.server_seq,
        }
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The attacker's packet to `target`, as if its peer had sent it.
    pub(crate) fn forge(&self, target: Side, forgery: &Forgery<'_>) -> Vec<u8> {
        let (received, sent, ports) = match target {
            Side::Client => (self.server_seq, self.client_seq, (SERVER_PORT, CLIENT_PORT)),
            Side::Server => (self.client_seq, self.server_seq, (CLIENT_PORT, SERVER_PORT)),
        };
        let shifted = |base: Seq48, by: i64| WireSeq::Long(base.add(by as u64));
        let kind = forgery.kind;
        let packet = Packet {
            source_port: ports.0,
            destination_port: ports.1,
            ccval: 0,
            checksum_coverage: 0,
            checksum: 0,
            kind,
            seq: shifted(received, forgery.seq),
            ack: kind.has_ack().then(|| shifted(sent, forgery.ack)),
            service_code: kind.has_service_code().then_some(SERVICE),
            reset: (kind == PacketType::Reset).then_some((ResetCode::Aborted, [0; 3])),
            option_bytes: forgery.options,
            payload: forgery.payload,
        };
        let mut bytes = Vec::new();
        assert!(packet.emit(&mut bytes), "the forgery can be written: {packet:?}");
        bytes
    }

    /// Give a packet to `target` at once; what it delivers to its application and what it sends in answer.
    pub(crate) fn attack(&mut self, target: Side, packet: &[u8]) -> (Option<Vec<u8>>, Vec<Vec<u8>>) {
        let now = self.now;
        let delivered = self.end(target).handle(now, Ecn::NotEct, packet).map(<[u8]>::to_vec);
        (delivered, self.take(target))
    }

    /// Twenty messages each way arrive, and nobody has noticed anything.
    pub(crate) fn assert_alive(&mut self) {
        let before = (self.at_client.len(), self.at_server.len());
        for number in 0..20u8 {
            self.client.send(self.now, &[number; 100]).expect("the client sends");
            self.server.send(self.now, &[number; 100]).expect("the server sends");
            self.run(500 * MS);
        }
        self.run(SECOND);
        assert_eq!((self.client.state(), self.server.state()), (State::Open, State::Open));
        let after = (self.at_client.len(), self.at_server.len());
        assert_eq!((after.0 - before.0, after.1 - before.1), (20, 20), "messages that arrived");
    }

    /// All of an end that a report can see, without the counts of what was refused and how.
    pub(crate) fn fingerprint(&mut self, side: Side) -> String {
        let end = self.end(side);
        let about_refusals = ["sync", "invalid", "ignored", "refused", "packets_received", "packets_sent"];
        let figures: Vec<_> = end
            .figures()
            .into_iter()
            .filter(|(name, _)| !about_refusals.iter().any(|word| name.contains(word)))
            .collect();
        let (state, how, ccids, rtt) = (end.state(), end.end(), end.ccids(), end.rtt_ns());
        format!("{state:?} {how:?} {ccids:?} {rtt:?} {} {figures:?}", end.queued())
    }
}

/// All packets due now.
pub(crate) fn transmit(connection: &mut Connection, now: i64) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    loop {
        let mut bytes = Vec::new();
        if connection.poll_transmit(now, &mut bytes).is_none() {
            return packets;
        }
        packets.push(bytes);
        assert!(packets.len() < 1000, "poll_transmit never ends");
    }
}

pub(crate) fn kind_of(packet: &[u8]) -> PacketType {
    Packet::parse(packet).expect("own packets parse").kind
}

/// Options to their bytes, padded to whole words.
pub(crate) fn option_bytes(options: &[DccpOption<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        option.emit(&mut bytes);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
