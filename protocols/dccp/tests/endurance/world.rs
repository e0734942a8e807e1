// SPDX-License-Identifier: Apache-2.0
//! A client and a server on a path whose delay, rate and loss change, driven by events. After every look at an end it is held
//! to its word: who has nothing to send must not want to be called again at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::listener::Verdict;
use netjoule_dccp::{Carriage, Config, Connection, Listener, Packet, PacketType, State};

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const S: i64 = 1_000 * MS;
const SERVICE: u32 = 0x4e4a_4f55;
const IP_UDP_BYTES: usize = 28;

/// What the path does now; may be changed at any time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// One way.
    pub(crate) delay_ns: i64,
    pub(crate) loss: f64,
    /// Bits per second of each direction, with a queue of `queue_ns`.
    pub(crate) rate_bps: Option<f64>,
    pub(crate) queue_ns: i64,
}

impl Path {
    pub(crate) const fn clean(delay_ns: i64) -> Self {
        Self { delay_ns, loss: 0.0, rate_bps: None, queue_ns: 100 * MS }
    }
}

/// What an application does: a message of `bytes` each `gap_ns` from `from_ns` to `until_ns`, or, with a gap of 0, as many as
/// are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct App {
    pub(crate) bytes: usize,
    pub(crate) gap_ns: i64,
    pub(crate) next_ns: i64,
    pub(crate) until_ns: i64,
}

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) connection: Connection,
    pub(crate) app: Option<App>,
    /// Calls for the end's own sake: neither a packet nor a message came.
    pub(crate) wakeups: u64,
    /// Calls of `poll_transmit`.
    pub(crate) polls: u64,
    pub(crate) data_sent: u64,
    pub(crate) others_sent: u64,
    /// Bytes that arrived.
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
    free_ns: i64,
}

impl End {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            app: None,
            wakeups: 0,
            polls: 0,
            data_sent: 0,
            others_sent: 0,
            bytes: 0,
            refused: 0,
            free_ns: i64::MIN,
        }
    }

    fn offer(&mut self, now_ns: i64) -> bool {
        let Some(app) = &mut self.app else { return false };
        if app.until_ns <= now_ns {
            self.app = None;
            return false;
        }
        if self.connection.state() != State::Open || app.next_ns > now_ns {
            return false;
        }
        let message = vec![7; app.bytes];
        if app.gap_ns == 0 {
            while self.connection.queued() < 16 && self.connection.send(now_ns, &message).is_ok() {}
        } else {
            while app.next_ns <= now_ns {
                app.next_ns += app.gap_ns;
                self.refused += u64::from(self.connection.send(now_ns, &message).is_err());
            }
        }
        true
    }

    fn app_ns(&self) -> Option<i64> {
        let app = self.app.as_ref()?;
        (self.connection.state() == State::Open && app.gap_ns > 0 && app.next_ns < app.until_ns)
            .then_some(app.next_ns)
    }
}

type Flight = (i64, u64, bool, Vec<u8>);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now_ns: i64,
    pub(crate) path: Path,
    /// Client, server.
    pub(crate) ends: Vec<End>,
    listener: Listener,
    flights: BinaryHeap<Reverse<Flight>>,
    serial: u64,
    random: u64,
    /// Packets of both ends.
    pub(crate) sent: u64,
}

impl World {
    /// `iss`: initial sequence number of both ends; `start_ns`: what the clock shows.
    pub(crate) fn new(config: &Config, path: Path, seed: u64, iss: u64, start_ns: i64) -> Self {
        let carriage = Carriage::Udp { ip_version: 4 };
        let config = Config { carriage, service_code: SERVICE, ..config.clone() };
        let client = Config { local_port: 40_000, remote_port: 5_000, ..config.clone() };
        let server = Config { local_port: 5_000, ..config };
        Self {
            now_ns: start_ns,
            path,
            ends: vec![End::new(Connection::connect(client, start_ns, &mut || iss))],
            listener: Listener::new(server, vec![SERVICE], 8, [3; 16]),
            flights: BinaryHeap::new(),
            serial: iss,
            random: seed,
            sent: 0,
        }
    }

    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn chance(&mut self, probability: f64) -> bool {
        ((self.random() >> 11) as f64 / (1_u64 << 53) as f64) < probability
    }

    fn carry(&mut self, from: usize, bytes: Vec<u8>) {
        self.sent += 1;
        if let Some(end) = self.ends.get_mut(from) {
            let kind = Packet::parse(&bytes).expect("what is sent can be read").kind;
            let is_data = matches!(kind, PacketType::Data | PacketType::DataAck);
            *(if is_data { &mut end.data_sent } else { &mut end.others_sent }) += 1;
        }
        if self.chance(self.path.loss) {
            return;
        }
        let mut leaves_ns = self.now_ns;
        if let (Some(rate_bps), Some(end)) = (self.path.rate_bps, self.ends.get_mut(from)) {
            let begins_ns = end.free_ns.max(self.now_ns);
            if begins_ns - self.now_ns > self.path.queue_ns {
                return;
            }
            leaves_ns = begins_ns + ((bytes.len() + IP_UDP_BYTES) as f64 * 8e9 / rate_bps) as i64;
            end.free_ns = leaves_ns;
        }
        self.serial = self.serial.wrapping_add(1);
        self.flights.push(Reverse((leaves_ns + self.path.delay_ns, self.serial, from == 0, bytes)));
    }

    /// Everything that an end has to say now.
    pub(crate) fn poll(&mut self, index: usize) {
        for turn in 0.. {
            assert!(turn < 100_000, "poll_transmit never ends");
            let now_ns = self.now_ns;
            let Some(end) = self.ends.get_mut(index) else { return };
            end.offer(now_ns);
            end.polls += 1;
            let mut out = Vec::new();
            if end.connection.poll_transmit(now_ns, &mut out).is_none() {
                let wakeup_ns = end.connection.next_wakeup_ns();
                assert!(
                    wakeup_ns.is_none_or(|wakeup_ns| wakeup_ns > now_ns),
                    "nothing to send at {now_ns}, but to be called at {wakeup_ns:?}: {:?}",
                    end.connection
                );
                return;
            }
            self.carry(index, out);
        }
    }

    fn deliver(&mut self, to_server: bool, bytes: &[u8]) {
        let now_ns = self.now_ns;
        let index = usize::from(to_server);
        if let Some(end) = self.ends.get_mut(index) {
            if let Some(payload) = end.connection.handle(now_ns, Ecn::NotEct, bytes) {
                end.bytes += payload.len() as u64;
            }
            return self.poll(index);
        }
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_000);
        let iss = self.serial;
        match self.listener.handle(now_ns, Ecn::NotEct, peer, bytes, &mut || iss) {
            Verdict::Ignore => {}
            Verdict::Reply(bytes) => self.carry(1, bytes),
            Verdict::Accept { connection, payload } => {
                self.ends.push(End::new(*connection));
                self.ends[1].bytes += payload.map_or(0, |payload| payload.len() as u64);
                self.poll(1);
            }
        }
    }

    pub(crate) fn run_for(&mut self, duration_ns: i64) {
        let until_ns = self.now_ns + duration_ns;
        let mut standing = 0;
        (0..self.ends.len()).for_each(|index| self.poll(index));
        loop {
            let flight = self.flights.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let own: Vec<_> = self.ends.iter().map(|end| end.connection.next_wakeup_ns()).collect();
            let apps = self.ends.iter().map(End::app_ns);
            let next = own.iter().copied().chain(apps).chain([flight]).flatten().min();
            let Some(next_ns) = next.filter(|next_ns| *next_ns <= until_ns) else {
                self.now_ns = until_ns;
                return;
            };
            standing = if next_ns <= self.now_ns { standing + 1 } else { 0 };
            assert!(standing < 100_000, "time stands still at {next_ns}");
            self.now_ns = self.now_ns.max(next_ns);
            while self.flights.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns) {
                let Some(Reverse((_, _, to_server, bytes))) = self.flights.pop() else { break };
                self.deliver(to_server, &bytes);
            }
            for index in 0..self.ends.len() {
                let now_ns = self.now_ns;
                let end = &mut self.ends[index];
                let app = end.app_ns().is_some_and(|at_ns| at_ns <= now_ns);
                let due = end.connection.next_wakeup_ns().is_some_and(|at_ns| at_ns <= now_ns);
                end.wakeups += u64::from(due && !app);
                if app || due {
                    self.poll(index);
                }
            }
        }
    }

    /// Until both ends are open.
    pub(crate) fn connect(&mut self) {
        for _ in 0..200_000 {
            if self.ends.len() == 2 && self.ends.iter().all(|end| end.connection.state() == State::Open) {
                return;
            }
            self.run_for(MS);
        }
        panic!("no connection: {:?}", self.ends);
    }

    /// Bytes that arrive at the server in so much time.
    pub(crate) fn goodput(&mut self, duration_ns: i64) -> f64 {
        let before = self.ends[1].bytes;
        self.run_for(duration_ns);
        (self.ends[1].bytes - before) as f64 * 8e9 / duration_ns as f64
    }
}
