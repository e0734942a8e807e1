// SPDX-License-Identifier: Apache-2.0
//! When does each packet leave the link, and how much air time does it take?
//!
//! The 802.11n/ac link as a state machine without clock, socket or thread: put packets in with
//! [`Model::enqueue`], ask [`Model::next_event_ns`], move on with [`Model::advance`], take packets
//! out with [`Model::poll_departure`]. Times are nanoseconds on one monotonic clock.
//!
//! One transmission opportunity: AIFS + back-off + PPDU + SIFS + ACK or block ACK. Access point and
//! stations contend with one best-effort queue per direction and station; equal slots collide.
//! Not modelled: lost acknowledgements, capture, hidden nodes, rate control, power save, beacons.

use std::collections::VecDeque;

use crate::access::AccessConfig;
use crate::airtime::{self, SIFS_NS};
use crate::contention::Contender;
use crate::path::chain::Chain;
use crate::path::{ElementParams, Path, DOWN, UP};
use crate::port::Port;
use crate::range::ParameterError;
use crate::rng::Rng;
use crate::scaling::Record;
use crate::station::{Item, Ppdu, Station, StationParams};
use crate::stats::{Counters, Direction, StationLine};

/// A packet that leaves the link.
#[derive(Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// When it leaves.
    pub at_ns: u64,
    /// Where.
    pub to: Port,
    /// The packet.
    pub packet: P,
}

/// Packets dropped by a wired path since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WiredDrops {
    /// Random loss.
    pub lost: u64,
    /// Serialiser queue full.
    pub full: u64,
}

/// A PPDU on the air and whose it is.
#[derive(Debug)]
struct Transmission {
    node: usize,
    station: usize,
    ppdu: Ppdu,
}

#[derive(Debug)]
enum Medium {
    Idle,
    /// Some PPDU has not ended yet.
    Sending(Vec<Transmission>),
    /// All PPDUs ended; the answer, or the time it would take, runs until `idle_since_ns`.
    Answering,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    PpduEnd(usize),
    Idle,
    /// A packet leaves an element of a host's path, in this direction of it.
    Path(usize, usize),
    /// Something happens in the access network of a station.
    Network(usize),
    Access,
}

/// Node index of the access point; station i is node i + 1.
const ACCESS_POINT: usize = 0;

/// The link.
#[derive(Debug)]
pub struct Model<P> {
    stations: Vec<Station<P>>,
    contenders: Vec<Contender>,
    next_down: usize,
    medium: Medium,
    idle_since_ns: u64,
    senders: Vec<usize>,
    errors: Rng,
    paths: Vec<Path<Item<P>>>,
    departures: VecDeque<Departure<P>>,
    collisions: u64,
    interval_start_ns: u64,
}

impl<P: 'static> Model<P> {
    /// An idle link, `paths[i]` the elements between the access point and the host [`Port::Wired`] i, in that order. The
    /// first statistics interval is `[start_ns, first_end_ns)`.
    pub fn new(
        seed: u64,
        stations: Vec<StationParams>,
        paths: &[Vec<ElementParams>],
        start_ns: u64,
        first_end_ns: u64,
    ) -> Self {
        let contender = |node: usize| {
            let window_max =
                if node == ACCESS_POINT { airtime::CW_MAX_ACCESS_POINT } else { airtime::CW_MAX_STATION };
            Contender::new(window_max, Rng::new(seed, 16 + node as u64))
        };
        Self {
            contenders: (0..=stations.len()).map(contender).collect(),
            stations: stations.into_iter().map(|params| Station::new(params, first_end_ns)).collect(),
            next_down: 0,
            medium: Medium::Idle,
            idle_since_ns: start_ns,
            senders: Vec::new(),
            errors: Rng::new(seed, 1),
            paths: paths
                .iter()
                .enumerate()
                .map(|(index, path)| Path::new(seed, index, path, start_ns))
                .collect(),
            departures: VecDeque::new(),
            collisions: 0,
            interval_start_ns: start_ns,
        }
    }

    /// A packet of `ip_bytes` enters at `from` on its way to `to`.
    pub fn enqueue(&mut self, now_ns: u64, from: Port, to: Port, ip_bytes: u32, packet: P) {
        let item = Item { packet, to, ip_bytes };
        match from {
            Port::Station(station) => self.stations[station].arrive(now_ns, Direction::Tx, item),
            Port::Wired(host) => self.push_path(now_ns, host, DOWN, item),
        }
    }

    /// The path of a host consists of other elements from now on; what is on its way enters them anew.
    pub fn change_path(&mut self, now_ns: u64, host: usize, path: &[ElementParams]) {
        self.paths[host].change(now_ns, path);
        [UP, DOWN].into_iter().for_each(|way| self.leave_path(host, way));
    }

    /// The access network of a station is another one from now on, or none; packets inside enter it anew.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that cannot be; nothing has changed then.
    pub fn change_access(
        &mut self,
        now_ns: u64,
        station: usize,
        access: Option<&AccessConfig>,
    ) -> Result<(), ParameterError> {
        let access = access.map(|config| config.open(now_ns)).transpose()?;
        self.stations[station].change_access(now_ns, access);
        Ok(())
    }

    /// When the link next needs [`Self::advance`]; `None` while nothing is in it.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.next_event().map(|(at_ns, _)| at_ns)
    }

    /// Handles everything due by `now_ns`, in order. A PPDU that was due earlier still starts at its
    /// own time (so a late caller loses no throughput) but takes what is queued by `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        while self.next_event_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.step(now_ns);
        }
    }

    /// Handles the next event alone; see [`Self::advance`].
    pub fn step(&mut self, now_ns: u64) {
        let Some((at_ns, event)) = self.next_event() else { return };
        match event {
            Event::PpduEnd(index) => self.end_ppdu(index),
            Event::Idle => self.fall_idle(),
            Event::Path(host, way) => {
                self.paths[host].ways[way].advance(at_ns);
                self.leave_path(host, way);
            }
            Event::Network(station) => self.stations[station].advance_access(at_ns),
            Event::Access => self.start_ppdus(at_ns, now_ns),
        }
    }

    /// Packets from `from` that surely find a place in the queue for the air; for a wired host, where
    /// the station is not known yet, in the fullest one.
    pub fn room(&self, from: Port) -> usize {
        match from {
            Port::Station(station) => self.stations[station].room(Direction::Tx),
            Port::Wired(_) => {
                self.stations.iter().map(|station| station.room(Direction::Rx)).min().unwrap_or(0)
            }
        }
    }

    /// The next packet that left the link, in order of time.
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        self.departures.pop_front()
    }

    /// When a caller that may be late by an answer's length should call [`Self::advance`]: as
    /// [`Self::next_event_ns`], but without waking only because the medium falls idle.
    pub fn next_wake_ns(&self) -> Option<u64> {
        let Medium::Answering = self.medium else { return self.next_event_ns() };
        let others = [self.next_of_paths(), self.next_of_networks()].into_iter().flatten();
        others.map(|(at_ns, _)| at_ns).chain(self.next_access_ns()).min()
    }

    /// True while a packet waits for the air or is on it.
    pub fn has_waiting(&self) -> bool {
        self.stations.iter().any(|station| station.up.waiting() + station.down.waiting() > 0)
    }

    fn is_busy(&self) -> bool {
        !matches!(self.medium, Medium::Idle)
    }

    /// Closes the statistics interval that ends at `end_ns`; the next one ends at `next_end_ns`.
    /// Call [`Self::advance`] with `end_ns` before.
    pub fn close_interval(&mut self, end_ns: u64, next_end_ns: u64) -> Vec<StationLine> {
        let span_ns = (self.interval_start_ns, end_ns);
        self.interval_start_ns = end_ns;
        self.stations.iter_mut().map(|station| station.close_interval(span_ns, next_end_ns)).collect()
    }

    /// Counts of a station since the start.
    pub fn totals(&self, station: usize) -> Counters {
        self.stations[station].book.total()
    }

    /// Packets dropped by the path of a host since the start.
    pub fn wired_drops(&self, host: usize) -> WiredDrops {
        let ways = self.paths[host].ways.iter().map(Chain::flows);
        ways.fold(WiredDrops::default(), |sum, flows| WiredDrops {
            lost: sum.lost + flows.lost.packets,
            full: sum.full + flows.full.packets,
        })
    }

    /// What the routers on the path of a host did since this was asked last: each one's record until `now_ns`, by direction
    /// (`up` first) and by its place among the routers of it.
    pub fn routers(&mut self, host: usize, now_ns: u64) -> [Vec<Record>; 2] {
        let records = self.paths[host].ways.each_mut().map(|chain| chain.records(now_ns));
        [UP, DOWN].into_iter().for_each(|way| self.leave_path(host, way));
        records
    }

    /// It is `now_ns` on a real clock: what was due before is late, which the routers' records tell of their ticks.
    pub fn woke(&mut self, now_ns: u64) {
        self.paths.iter_mut().flat_map(|path| &mut path.ways).for_each(|chain| chain.woke(now_ns));
    }

    /// Exchanges in which two or more nodes sent at once, since the start.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Packets inside the link.
    pub fn held(&self) -> usize {
        let stations: usize = self.stations.iter().map(Station::held).sum();
        let ways = self.paths.iter().flat_map(|path| &path.ways);
        let paths: u64 = ways.map(|chain| chain.held().packets).sum();
        stations + paths as usize + self.departures.len()
    }

    fn next_event(&self) -> Option<(u64, Event)> {
        let medium = match &self.medium {
            Medium::Idle => None,
            Medium::Sending(ppdus) => {
                let ends =
                    ppdus.iter().enumerate().map(|(index, sent)| (sent.ppdu.end_ns, Event::PpduEnd(index)));
                ends.min_by_key(|(end_ns, _)| *end_ns)
            }
            Medium::Answering => Some((self.idle_since_ns, Event::Idle)),
        };
        let access =
            if self.is_busy() { None } else { self.next_access_ns().map(|at_ns| (at_ns, Event::Access)) };
        // Ties: the first of this list, so that a PPDU takes packets that come at its very start.
        [medium, self.next_of_paths(), self.next_of_networks(), access]
            .into_iter()
            .flatten()
            .min_by_key(|(at_ns, _)| *at_ns)
    }

    fn next_of_paths(&self) -> Option<(u64, Event)> {
        let all = [UP, DOWN].into_iter().flat_map(|way| (0..self.paths.len()).map(move |host| (host, way)));
        let due = all.filter_map(|(host, way)| {
            Some((self.paths[host].ways[way].next_event_ns()?, Event::Path(host, way)))
        });
        due.min_by_key(|(at_ns, _)| *at_ns)
    }

    fn next_of_networks(&self) -> Option<(u64, Event)> {
        let due = self.stations.iter().enumerate().filter_map(|(index, station)| {
            Some((station.access.as_ref()?.next_event_ns()?, Event::Network(index)))
        });
        due.min_by_key(|(at_ns, _)| *at_ns)
    }

    fn next_access_ns(&self) -> Option<u64> {
        (0..self.contenders.len()).filter_map(|node| self.access_ns(node)).min()
    }

    fn access_ns(&self, node: usize) -> Option<u64> {
        let eligible_ns = self.eligible_ns(node)?;
        Some(self.contenders[node].access_ns(self.idle_since_ns, eligible_ns))
    }

    fn eligible_ns(&self, node: usize) -> Option<u64> {
        match node {
            ACCESS_POINT => self.stations.iter().filter_map(|station| station.down.first_eligible_ns()).min(),
            _ => self.stations[node - 1].up.first_eligible_ns(),
        }
    }

    fn start_ppdus(&mut self, at_ns: u64, horizon_ns: u64) {
        let nodes: Vec<usize> =
            (0..self.contenders.len()).filter(|node| self.access_ns(*node) == Some(at_ns)).collect();
        let collided = nodes.len() > 1;
        self.collisions += u64::from(collided);
        let ppdus: Vec<Transmission> =
            nodes.iter().filter_map(|node| self.start_ppdu(*node, at_ns, horizon_ns, collided)).collect();
        for node in (0..self.contenders.len()).filter(|node| !nodes.contains(node)) {
            self.contenders[node].freeze(self.idle_since_ns, at_ns);
        }
        self.senders = nodes;
        // A missing answer costs the others as long as a real one (EIFS), the sender its time-out.
        let idle_ns =
            |sent: &Transmission| sent.ppdu.end_ns + SIFS_NS + airtime::response_ns(sent.ppdu.burst.mpdus);
        self.idle_since_ns = ppdus.iter().map(idle_ns).max().unwrap_or(at_ns);
        self.medium = if ppdus.is_empty() { Medium::Answering } else { Medium::Sending(ppdus) };
    }

    fn start_ppdu(
        &mut self,
        node: usize,
        at_ns: u64,
        horizon_ns: u64,
        collided: bool,
    ) -> Option<Transmission> {
        let (station, direction) = self.choose_queue(node, horizon_ns)?;
        let errors = if collided { None } else { Some(&mut self.errors) };
        let ppdu = self.stations[station].start(direction, at_ns, horizon_ns, errors)?;
        Some(Transmission { node, station, ppdu })
    }

    /// The queue a node sends from; the access point serves its stations in turn.
    fn choose_queue(&mut self, node: usize, horizon_ns: u64) -> Option<(usize, Direction)> {
        if node != ACCESS_POINT {
            return Some((node - 1, Direction::Tx));
        }
        let count = self.stations.len();
        let ready = |station: &usize| {
            self.stations[*station]
                .down
                .first_eligible_ns()
                .is_some_and(|eligible_ns| eligible_ns <= horizon_ns)
        };
        let station = (0..count).map(|step| (self.next_down + step) % count).find(ready)?;
        self.next_down = (station + 1) % count;
        Some((station, Direction::Rx))
    }

    fn end_ppdu(&mut self, index: usize) {
        let Medium::Sending(ppdus) = &mut self.medium else { return };
        let sent = ppdus.swap_remove(index);
        if ppdus.is_empty() {
            self.medium = Medium::Answering;
        }
        let settled = self.stations[sent.station].end(&sent.ppdu);
        if settled.arrived > 0 || settled.given_up > 0 {
            self.contenders[sent.node].succeeded();
        } else {
            self.contenders[sent.node].failed();
        }
        let Ppdu { direction, end_ns, .. } = sent.ppdu;
        settled.released.into_iter().for_each(|item| self.arrive(end_ns, direction == Direction::Rx, item));
    }

    fn fall_idle(&mut self) {
        self.medium = Medium::Idle;
        for node in 0..self.contenders.len() {
            let came = self.eligible_ns(node).is_some_and(|eligible_ns| eligible_ns <= self.idle_since_ns);
            if came && !self.senders.contains(&node) {
                self.contenders[node].join();
            }
        }
    }

    /// A packet has crossed the air or a path: it is where it was going, or at the access point.
    fn arrive(&mut self, at_ns: u64, is_there: bool, item: Item<P>) {
        match item.to {
            to if is_there => self.departures.push_back(Departure { at_ns, to, packet: item.packet }),
            Port::Station(station) => self.stations[station].arrive(at_ns, Direction::Rx, item),
            Port::Wired(host) => self.push_path(at_ns, host, UP, item),
        }
    }

    fn push_path(&mut self, now_ns: u64, host: usize, way: usize, item: Item<P>) {
        let ip_bytes = item.ip_bytes;
        self.paths[host].ways[way].enqueue(now_ns, item, ip_bytes);
        self.leave_path(host, way);
    }

    /// What is through a path goes on.
    fn leave_path(&mut self, host: usize, way: usize) {
        while let Some((at_ns, item)) = self.paths[host].ways[way].poll() {
            self.arrive(at_ns, way == UP, item);
        }
    }
}
