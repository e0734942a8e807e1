// SPDX-License-Identifier: Apache-2.0
//! A client, a listener and what becomes of it, over a path with delay, loss, reordering and duplication, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::connection::{Carriage, Config, SendError};
use netjoule_dccp::listener::Verdict;
use netjoule_dccp::{Connection, Listener, Packet, PacketType, State};

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MS;
pub(crate) const SERVICE: u32 = 0x4e4a_4f55;
pub(crate) const CLIENT_PORT: u16 = 40_001;
pub(crate) const SERVER_PORT: u16 = 5301;

pub(crate) fn client_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))
}

pub(crate) fn server_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))
}

/// A small generator of our own: tests are the same on every run.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// What the path does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) delay_ns: i64,
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// Share of packets that take up to one delay longer.
    pub(crate) reorder: f64,
}

impl Default for Path {
    fn default() -> Self {
        Self { delay_ns: 10 * MS, loss: 0.0, duplicate: 0.0, reorder: 0.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// One packet seen on the wire, also when it was lost.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) way: Way,
    pub(crate) kind: PacketType,
    pub(crate) bytes: Vec<u8>,
}

/// Time of arrival, serial number, way, bytes.
type Flight = (i64, u64, Way, Vec<u8>);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now_ns: i64,
    pub(crate) path: Path,
    pub(crate) client: Connection,
    pub(crate) listener: Listener,
    pub(crate) server: Option<Connection>,
    pub(crate) to_server: Vec<Vec<u8>>,
    pub(crate) to_client: Vec<Vec<u8>>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) random: Random,
    flights: BinaryHeap<Reverse<Flight>>,
    serial: u64,
    /// Packets of these numbers (counted per way) are lost: deterministic losses.
    pub(crate) lose: Vec<(Way, usize)>,
    sent: [usize; 2],
    polls: u64,
}

pub(crate) fn client_config() -> Config {
    Config {
        carriage: Carriage::Ip { local: client_address(), remote: server_address() },
        local_port: CLIENT_PORT,
        remote_port: SERVER_PORT,
        service_code: SERVICE,
        ..Config::default()
    }
}

pub(crate) fn server_config() -> Config {
    Config {
        carriage: Carriage::Ip { local: server_address(), remote: server_address() },
        local_port: SERVER_PORT,
        ..Config::default()
    }
}

impl World {
    pub(crate) fn new(client: Config, server: Config, path: Path, seed: u64) -> Self {
        Self::with_backlog(client, server, path, seed, 8)
    }

    pub(crate) fn with_backlog(
        client: Config,
        server: Config,
        path: Path,
        seed: u64,
        backlog: usize,
    ) -> Self {
        let mut random = Random::new(seed);
        let now_ns = 1_000 * SECOND;
        let client = Connection::connect(client, now_ns, &mut || random.next());
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&random.next().to_be_bytes());
        Self {
            now_ns,
            path,
            client,
            listener: Listener::new(server, vec![1, SERVICE], backlog, secret),
            server: None,
            to_server: Vec::new(),
            to_client: Vec::new(),
            seen: Vec::new(),
            random,
            flights: BinaryHeap::new(),
            serial: 0,
            lose: Vec::new(),
            sent: [0; 2],
            polls: 0,
        }
    }

    fn carry(&mut self, way: Way, bytes: Vec<u8>) {
        let packet = Packet::parse(&bytes).expect("what is sent can be read");
        self.seen.push(Seen { way, kind: packet.kind, bytes: bytes.clone() });
        let count = &mut self.sent[way as usize];
        *count += 1;
        let chosen = self.lose.contains(&(way, *count));
        if chosen || self.random.chance(self.path.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.path.duplicate));
        for _ in 0..copies {
            let mut delay_ns = self.path.delay_ns;
            if self.random.chance(self.path.reorder) {
                delay_ns += self.random.below(self.path.delay_ns as u64) as i64;
            }
            self.serial += 1;
            let flight = (self.now_ns + delay_ns, self.serial, way, bytes.clone());
            self.flights.push(Reverse(flight));
        }
    }

    fn flush(&mut self) {
        for turn in 0.. {
            assert!(turn < 10_000, "poll_transmit never ends");
            let mut out = Vec::new();
            let Some(transmit) = self.client.poll_transmit(self.now_ns, &mut out) else {
                assert!(out.is_empty());
                break;
            };
            assert_eq!(transmit.bytes, out.len());
            self.carry(Way::ToServer, out);
        }
        if let Some(mut server) = self.server.take() {
            for turn in 0.. {
                assert!(turn < 10_000, "poll_transmit never ends");
                let mut out = Vec::new();
                if server.poll_transmit(self.now_ns, &mut out).is_none() {
                    break;
                }
                self.carry(Way::ToClient, out);
            }
            self.server = Some(server);
        }
        let mut out = Vec::new();
        while self.listener.poll_transmit(self.now_ns, &mut out).is_some() {
            self.carry(Way::ToClient, std::mem::take(&mut out));
        }
    }

    pub(crate) fn deliver(&mut self, way: Way, bytes: &[u8]) {
        match way {
            Way::ToClient => {
                if let Some(data) = self.client.handle(self.now_ns, Ecn::NotEct, bytes) {
                    self.to_client.push(data.to_vec());
                }
            }
            Way::ToServer => self.deliver_to_server(bytes),
        }
    }

    fn deliver_to_server(&mut self, bytes: &[u8]) {
        if let Some(server) = &mut self.server {
            if let Some(data) = server.handle(self.now_ns, Ecn::NotEct, bytes) {
                self.to_server.push(data.to_vec());
            }
            return;
        }
        let peer = SocketAddr::new(client_address(), CLIENT_PORT);
        let random = &mut self.random;
        let verdict = self.listener.handle(self.now_ns, Ecn::NotEct, peer, bytes, &mut || random.next());
        match verdict {
            Verdict::Ignore => {}
            Verdict::Reply(packet) => self.carry(Way::ToClient, packet),
            Verdict::Accept { connection, payload } => {
                assert_eq!(connection.state(), State::Open);
                self.server = Some(*connection);
                self.to_server.extend(payload);
            }
        }
    }

    fn next_event_ns(&self) -> Option<i64> {
        let flight = self.flights.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let client = self.client.next_wakeup_ns();
        let server = self.server.as_ref().and_then(Connection::next_wakeup_ns);
        let listener = self.listener.next_wakeup_ns();
        [flight, client, server, listener].into_iter().flatten().min()
    }

    /// Run until `until_ns`, or until nothing happens any more.
    pub(crate) fn run_until(&mut self, until_ns: i64) {
        let mut stuck = 0;
        loop {
            self.flush();
            let Some(at_ns) = self.next_event_ns() else {
                self.now_ns = until_ns;
                return;
            };
            if at_ns > until_ns {
                self.now_ns = until_ns;
                return;
            }
            stuck = if at_ns <= self.now_ns { stuck + 1 } else { 0 };
            assert!(
                stuck < 5_000,
                "time stands still at {} {:?} {:?} {:?}",
                self.now_ns,
                self.client.next_wakeup_ns(),
                self.client.state(),
                self.server
            );
            self.polls += 1;
            self.now_ns = self.now_ns.max(at_ns);
            while let Some(Reverse((at_ns, ..))) = self.flights.peek() {
                if *at_ns > self.now_ns {
                    break;
                }
                if let Some(Reverse((_, _, way, bytes))) = self.flights.pop() {
                    self.deliver(way, &bytes);
                }
            }
        }
    }

    pub(crate) fn run_for(&mut self, ns: i64) {
        self.run_until(self.now_ns + ns);
    }

    pub(crate) fn run_until_true(&mut self, limit_ns: i64, done: impl Fn(&Self) -> bool) -> bool {
        let until_ns = self.now_ns + limit_ns;
        while self.now_ns < until_ns {
            if done(self) {
                return true;
            }
            self.run_for(MS);
        }
        done(self)
    }

    pub(crate) fn connected(&self) -> bool {
        self.client.state() == State::Open
            && self.server.as_ref().is_some_and(|server| server.state() == State::Open)
    }

    pub(crate) fn connect(&mut self) {
        assert!(self.run_until_true(300 * SECOND, Self::connected), "no connection: {self:?}");
    }

    pub(crate) fn server(&mut self) -> &mut Connection {
        self.server.as_mut().expect("the server's end")
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls
    }

    pub(crate) fn figure(connection: &Connection, name: &str) -> f64 {
        connection
            .figures()
            .into_iter()
            .find(|(other, _)| *other == name)
            .unwrap_or_else(|| panic!("no figure {name}"))
            .1
    }

    /// Kinds of packets seen, in order.
    pub(crate) fn kinds(&self) -> Vec<(Way, PacketType)> {
        self.seen.iter().map(|seen| (seen.way, seen.kind)).collect()
    }

    pub(crate) fn count(&self, way: Way, kind: PacketType) -> usize {
        self.seen.iter().filter(|seen| seen.way == way && seen.kind == kind).count()
    }

    /// Send `count` messages of `bytes` from the client, waiting for room.
    pub(crate) fn client_sends(&mut self, count: u32, bytes: usize, limit_ns: i64) {
        let until_ns = self.now_ns + limit_ns;
        let mut next: u32 = 0;
        while next < count && self.now_ns < until_ns {
            let mut message = vec![0; bytes];
            message[..4].copy_from_slice(&next.to_be_bytes());
            match self.client.send(self.now_ns, &message) {
                Ok(()) => next += 1,
                Err(SendError::QueueFull) => self.run_for(MS),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(next, count, "not all sent in time");
        let drained = self.run_until_true(limit_ns, |world| world.client.queued() == 0);
        assert!(drained, "queue not drained: {:?}", self.client);
    }
}
