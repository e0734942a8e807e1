// SPDX-License-Identifier: Apache-2.0
//! Flows (a client, a server, what their applications send) over one shared path: a chain of the link model's elements for each
//! direction.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::listener::{Listener, Verdict};
use netjoule_dccp::{Carriage, Config, Connection, State};
use netjoule_link_model::path::chain::Chain;
use netjoule_link_model::path::serialiser::QueueLimit;
use netjoule_link_model::path::{ElementParams, Service};
use netjoule_link_model::rng::Rng;

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const S: i64 = 1_000_000_000;
pub(crate) const MESSAGE_BYTES: usize = 1440;
const IP_UDP_BYTES: usize = 28;
const SERVICE_CODE: u32 = 0x4e4a_4f55;
/// Messages that a saturating application keeps queued.
const QUEUED: usize = 32;

/// The path, the same delay both ways.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) rtt_ns: i64,
    /// Rate towards the servers in Mb/s.
    pub(crate) rate_mbps: Option<f64>,
    pub(crate) queue_packets: usize,
    /// Loss towards the servers.
    pub(crate) loss: f64,
    /// Loss towards the clients.
    pub(crate) loss_back: f64,
    /// Packets towards the clients start up to so much later, as hosts take unequal time; without it two flows over one
    /// queue keep in step forever and the same one loses each time.
    pub(crate) jitter_ns: u32,
}

impl Path {
    pub(crate) const fn clean(rtt_ms: i64) -> Self {
        Self {
            rtt_ns: rtt_ms * MS,
            rate_mbps: None,
            queue_packets: 1_000_000,
            loss: 0.0,
            loss_back: 0.0,
            jitter_ns: 0,
        }
    }

    fn direction(self, rate_mbps: Option<f64>, loss_ratio: f64) -> ElementParams {
        ElementParams {
            delay_ns: (self.rtt_ns / 2) as u64,
            service: rate_mbps.map_or(Service::Unlimited, Service::Fixed),
            loss_ratio,
            queue: QueueLimit::packets(self.queue_packets),
            ..ElementParams::default()
        }
    }
}

/// One direction of the path. Packets may enter in the near future (jitter), so what is through has to wait for its time.
#[derive(Debug)]
struct Way {
    chain: Chain<Parcel>,
    through: VecDeque<(u64, Parcel)>,
}

impl Way {
    fn new(params: &ElementParams, seed: u64, stream: u64) -> Self {
        Self { chain: Chain::new(params.elements(seed, stream, 0)), through: VecDeque::new() }
    }

    fn push(&mut self, at_ns: u64, parcel: Parcel) {
        let ip_bytes = (parcel.bytes.len() + IP_UDP_BYTES) as u32;
        self.chain.enqueue(at_ns, parcel, ip_bytes);
        self.through.extend(std::iter::from_fn(|| self.chain.poll()));
    }

    fn next_ns(&self) -> Option<i64> {
        let through_ns = self.through.front().map(|(at_ns, _)| *at_ns);
        through_ns.or(self.chain.next_event_ns()).map(|at_ns| at_ns as i64)
    }

    /// The next packet that is there by `now_ns`.
    fn pop(&mut self, now_ns: i64) -> Option<Parcel> {
        self.chain.advance(now_ns as u64);
        self.through.extend(std::iter::from_fn(|| self.chain.poll()));
        let (at_ns, _) = self.through.front()?;
        if *at_ns as i64 > now_ns {
            return None;
        }
        self.through.pop_front().map(|(_, parcel)| parcel)
    }
}

/// What an application sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum App {
    Silent,
    /// As fast as congestion control lets it.
    Saturating,
    /// One message each so many nanoseconds.
    Every(i64),
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) connection: Option<Connection>,
    pub(crate) app: App,
    next_message_ns: i64,
    /// Messages delivered to the application here, bytes of them.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Messages that the connection did not take.
    pub(crate) refused: u64,
}

impl End {
    fn new(connection: Option<Connection>, app: App) -> Self {
        Self { connection, app, next_message_ns: 0, messages: 0, bytes: 0, refused: 0 }
    }

    pub(crate) fn figure(&self, name: &str) -> f64 {
        let figures = self.connection.as_ref().expect("connected").figures();
        figures.iter().find(|(figure, _)| *figure == name).unwrap_or_else(|| panic!("no figure {name}")).1
    }

    /// Let the application hand over what it has.
    fn offer(&mut self, now_ns: i64) {
        const MESSAGE: [u8; MESSAGE_BYTES] = [7; MESSAGE_BYTES];
        let Some(connection) = &mut self.connection else { return };
        if connection.state() != State::Open {
            self.next_message_ns = now_ns;
            return;
        }
        match self.app {
            App::Silent => {}
            App::Saturating => {
                while connection.queued() < QUEUED && connection.send(now_ns, &MESSAGE).is_ok() {}
            }
            App::Every(gap_ns) => {
                while self.next_message_ns <= now_ns {
                    self.next_message_ns += gap_ns;
                    self.refused += u64::from(connection.send(now_ns, &MESSAGE).is_err());
                }
            }
        }
    }

    fn next_ns(&self) -> Option<i64> {
        let connection = self.connection.as_ref()?;
        let message_ns = match self.app {
            App::Every(_) if connection.state() == State::Open => Some(self.next_message_ns),
            _ => None,
        };
        [connection.next_wakeup_ns(), message_ns].into_iter().flatten().min()
    }

    fn handle(&mut self, now_ns: i64, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        if let Some(payload) = connection.handle(now_ns, Ecn::NotEct, bytes) {
            self.messages += 1;
            self.bytes += payload.len() as u64;
        }
    }
}

/// Client first, server second.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) client: End,
    pub(crate) server: End,
    listener: Listener,
}

#[derive(Debug)]
struct Parcel {
    flow: usize,
    bytes: Vec<u8>,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now_ns: i64,
    pub(crate) flows: Vec<Flow>,
    forward: Way,
    back: Way,
    /// Nothing passes in either direction during this time.
    pub(crate) outage_ns: Range<i64>,
    /// Servers read their receive buffer this often; 0: each packet when it comes.
    pub(crate) read_every_ns: i64,
    /// So many packets at most.
    pub(crate) read_packets: usize,
    /// Packets that find room in that buffer.
    pub(crate) buffer_packets: usize,
    /// Those that found none.
    pub(crate) overflows: u64,
    /// What waits in it since when.
    unread: VecDeque<(i64, Parcel)>,
    next_read_ns: i64,
    path: Path,
    jitter: Rng,
    spare: Vec<Vec<u8>>,
    random: u64,
    /// Packets offered to the path towards the clients.
    pub(crate) packets_back: u64,
}

impl World {
    pub(crate) fn new(seed: u64, path: Path) -> Self {
        Self {
            now_ns: 0,
            flows: Vec::new(),
            forward: Way::new(&path.direction(path.rate_mbps, path.loss), seed, 1),
            back: Way::new(&path.direction(None, path.loss_back), seed, 2),
            outage_ns: 0..0,
            read_every_ns: 0,
            read_packets: usize::MAX,
            buffer_packets: usize::MAX,
            overflows: 0,
            unread: VecDeque::new(),
            next_read_ns: 0,
            path,
            jitter: Rng::new(seed, 3),
            spare: Vec::new(),
            random: seed,
            packets_back: 0,
        }
    }

    /// A flow that begins now; gives back its index.
    pub(crate) fn add_flow(&mut self, ccid: Ccid, client: App, server: App) -> usize {
        let config = Config {
            carriage: Carriage::Udp { ip_version: 4 },
            local_port: 40_000 + self.flows.len() as u16,
            remote_port: 5_000,
            service_code: SERVICE_CODE,
            ccids: vec![ccid],
            ..Config::default()
        };
        let mut random = splitmix(&mut self.random);
        let connection = Connection::connect(config.clone(), self.now_ns, &mut random);
        let served = Config { local_port: 5_000, ..config };
        self.flows.push(Flow {
            client: End::new(Some(connection), client),
            server: End::new(None, server),
            listener: Listener::new(served, vec![SERVICE_CODE], 8, [3; 16]),
        });
        self.flows.len() - 1
    }

    /// One saturating flow from client to server.
    pub(crate) fn saturated(seed: u64, path: Path, ccid: Ccid) -> Self {
        let mut world = Self::new(seed, path);
        world.add_flow(ccid, App::Saturating, App::Silent);
        world
    }

    pub(crate) fn client(&self) -> &End {
        &self.flows[0].client
    }

    pub(crate) fn server(&self) -> &End {
        &self.flows[0].server
    }

    pub(crate) fn run_for(&mut self, span_ns: i64) {
        self.run_until(self.now_ns + span_ns);
    }

    pub(crate) fn run_until(&mut self, until_ns: i64) {
        let mut standing = 0;
        loop {
            (0..self.flows.len()).for_each(|flow| self.transmit(flow));
            let next_ns = self.next_ns().unwrap_or(until_ns).max(self.now_ns);
            if next_ns >= until_ns {
                self.now_ns = until_ns;
                return;
            }
            standing = if next_ns == self.now_ns { standing + 1 } else { 0 };
            assert!(standing < 10_000, "time stands still at {next_ns}");
            self.now_ns = next_ns;
            self.deliver();
        }
    }

    fn next_ns(&self) -> Option<i64> {
        let paths = [self.forward.next_ns(), self.back.next_ns()].into_iter().flatten();
        let ends = self.flows.iter().flat_map(|flow| [flow.client.next_ns(), flow.server.next_ns()]);
        let read_ns = (!self.unread.is_empty()).then_some(self.next_read_ns);
        paths.chain(ends.flatten()).chain(read_ns).min()
    }

    /// Deliver what is due, packet by packet: an end may answer each one.
    fn deliver(&mut self) {
        let now_ns = self.now_ns;
        while let Some(parcel) = self.forward.pop(now_ns) {
            if self.read_every_ns > 0 && self.flows[parcel.flow].server.connection.is_some() {
                if self.unread.len() < self.buffer_packets {
                    self.unread.push_back((now_ns, parcel));
                } else {
                    self.overflows += 1;
                    self.spare.push(parcel.bytes);
                }
                continue;
            }
            self.arrive_at_server(&parcel);
            self.transmit(parcel.flow);
            self.spare.push(parcel.bytes);
        }
        self.read(now_ns);
        while let Some(parcel) = self.back.pop(now_ns) {
            self.flows[parcel.flow].client.handle(now_ns, &parcel.bytes);
            self.transmit(parcel.flow);
            self.spare.push(parcel.bytes);
        }
    }

    /// Servers whose time has come read what waits; each packet has the time at which it came.
    fn read(&mut self, now_ns: i64) {
        if self.unread.is_empty() || now_ns < self.next_read_ns {
            return;
        }
        self.next_read_ns = now_ns + self.read_every_ns;
        for _ in 0..self.read_packets {
            let Some((arrived_ns, parcel)) = self.unread.pop_front() else { break };
            let server = &mut self.flows[parcel.flow].server;
            if let Some(connection) = &mut server.connection {
                connection.on_receive_buffer(now_ns, now_ns - arrived_ns, self.overflows);
            }
            server.handle(arrived_ns, &parcel.bytes);
            self.transmit(parcel.flow);
            self.spare.push(parcel.bytes);
        }
    }

    fn arrive_at_server(&mut self, parcel: &Parcel) {
        let now_ns = self.now_ns;
        let Flow { server, listener, .. } = &mut self.flows[parcel.flow];
        if server.connection.is_some() {
            server.handle(now_ns, &parcel.bytes);
            return;
        }
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_000 + parcel.flow as u16);
        let verdict =
            listener.handle(now_ns, Ecn::NotEct, peer, &parcel.bytes, &mut splitmix(&mut self.random));
        match verdict {
            Verdict::Ignore => {}
            Verdict::Reply(bytes) => self.push_back(Parcel { flow: parcel.flow, bytes }),
            Verdict::Accept { connection, payload } => {
                server.messages += u64::from(payload.is_some());
                server.bytes += payload.map_or(0, |payload| payload.len() as u64);
                server.connection = Some(*connection);
            }
        }
    }

    fn transmit(&mut self, flow: usize) {
        let now_ns = self.now_ns;
        loop {
            self.flows[flow].client.offer(now_ns);
            let Some(bytes) = self.poll(flow, true) else { break };
            self.push_forward(Parcel { flow, bytes });
        }
        loop {
            self.flows[flow].server.offer(now_ns);
            let Some(bytes) = self.poll(flow, false) else { break };
            self.push_back(Parcel { flow, bytes });
        }
    }

    fn poll(&mut self, flow: usize, client: bool) -> Option<Vec<u8>> {
        let end = if client { &mut self.flows[flow].client } else { &mut self.flows[flow].server };
        let connection = end.connection.as_mut()?;
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        if connection.poll_transmit(self.now_ns, &mut bytes).is_some() {
            return Some(bytes);
        }
        self.spare.push(bytes);
        None
    }

    fn push_forward(&mut self, parcel: Parcel) {
        if !self.outage_ns.contains(&self.now_ns) {
            self.forward.push(self.now_ns as u64, parcel);
        }
    }

    fn push_back(&mut self, parcel: Parcel) {
        self.packets_back += 1;
        if !self.outage_ns.contains(&self.now_ns) {
            let later_ns = self.now_ns as u64 + u64::from(self.jitter.up_to(self.path.jitter_ns));
            self.back.push(later_ns, parcel);
        }
    }
}

/// SplitMix64 over `state`.
fn splitmix(state: &mut u64) -> impl FnMut() -> u64 + '_ {
    move || {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
