// SPDX-License-Identifier: Apache-2.0
//! Who acts next? The path, a timer of an end, or a flow that begins: the world moves from one moment to the next.

use netjoule_link_model::path::chain::Chain;
use netjoule_link_model::path::element::earlier;
use netjoule_link_model::path::told::{RouterStep, RouterTold};
use netjoule_link_model::path::{ways, ElementParams};
use netjoule_link_model::range::ParameterError;

use crate::config::{ns, Asked, PathParams};
use crate::ends::{Content, Ends, Packet, Way};
use crate::outcome::{Outcome, Step};

/// A packet inside a path, with the index of its flow. Small: elements move it again and again.
#[derive(Debug)]
struct Inside {
    index: u32,
    ip_bytes: u32,
    content: Content,
}

/// A path, from the senders and back.
#[derive(Debug)]
struct Path([Chain<Inside>; 2]);

const WAYS: [Way; 2] = [Way::Up, Way::Down];

/// Among a world's paths.
const SHARED: usize = 0;

/// Among a world's paths, the one of this flow alone.
fn own(flow: usize) -> usize {
    SHARED + 1 + flow
}

#[derive(Debug)]
struct Flow<E> {
    /// When it begins, then when one of its ends has something to do.
    next_ns: Option<u64>,
    ends: E,
    acked: u64,
}

/// Flows over a path.
#[derive(Debug)]
pub(crate) struct World<E> {
    pub(crate) now_ns: u64,
    /// What all flows share, then what each of them crosses on its own; nothing more where there is no such.
    paths: Vec<Path>,
    flows: Vec<Flow<E>>,
}

/// What comes of a document.
///
/// # Errors
/// [`ParameterError`] names the value that cannot be, with its place.
pub fn simulate(asked: &Asked) -> Result<Outcome, ParameterError> {
    let (params, steps) = asked.checked()?;
    let flows = asked.flows.iter().enumerate();
    let flows = flows.map(|(index, flow)| Ok((ns(flow.start_s), flow.ends.ends(asked.seed, index)?)));
    let flows = flows.collect::<Result<Vec<_>, ParameterError>>()?;
    let mut world = World::new(asked.seed, &params, flows);
    let steps = (1..=steps).map(|step| {
        world.run_until(ns(asked.interval_s * step as f64));
        world.step()
    });
    let steps = steps.collect();
    let flows = world.flows.iter().map(|flow| flow.ends.totals()).collect();
    let [routers, _] = RouterTold::ways(&asked.elements);
    let version = env!("CARGO_PKG_VERSION");
    Ok(Outcome { id: asked.id, version, start_ns: 0, end_ns: world.now_ns, routers, steps, flows })
}

impl Path {
    fn new(elements: &[ElementParams], seed: u64, stream: u64) -> Self {
        Self(ways(elements, seed, stream, 0).map(Chain::new))
    }

    fn next_ns(&self) -> Option<u64> {
        earlier(self.0[0].next_event_ns(), self.0[1].next_event_ns())
    }

    fn advance(&mut self, now_ns: u64) {
        self.0.iter_mut().for_each(|chain| chain.advance(now_ns));
    }

    fn has_output(&self) -> bool {
        self.0.iter().any(Chain::has_output)
    }

    fn enqueue(&mut self, now_ns: u64, index: usize, packet: Packet) {
        let Packet { way, content, ip_bytes } = packet;
        let inside = Inside { index: index as u32, ip_bytes, content };
        self.0[way as usize].enqueue(now_ns, inside, ip_bytes);
    }

    fn poll(&mut self, way: Way) -> Option<(usize, Packet)> {
        let (_, Inside { index, ip_bytes, content }) = self.0[way as usize].poll()?;
        Some((index as usize, Packet { way, content, ip_bytes }))
    }
}

impl<E: Ends> World<E> {
    /// Flows with the moment at which each begins.
    pub(crate) fn new(seed: u64, params: &PathParams, flows: Vec<(u64, E)>) -> Self {
        let elements = [&params.shared[..]].into_iter().chain(params.access.chunks(1)).zip(0..);
        let flows = flows.into_iter();
        Self {
            now_ns: 0,
            paths: elements.map(|(path, number)| Path::new(path, seed, number << 48)).collect(),
            flows: flows.map(|(start_ns, ends)| Flow { next_ns: Some(start_ns), ends, acked: 0 }).collect(),
        }
    }

    /// A flow more, from now on; its index.
    pub(crate) fn add(&mut self, ends: E) -> usize {
        self.flows.push(Flow { next_ns: None, ends, acked: 0 });
        self.flows.len() - 1
    }

    /// The ends of a flow.
    pub(crate) fn ends(&self, index: usize) -> &E {
        &self.flows[index].ends
    }

    /// Has the ends of a flow do something, and sends what they have to send.
    pub(crate) fn drive(&mut self, index: usize, act: impl FnOnce(&mut E)) {
        act(&mut self.flows[index].ends);
        self.transmit(index);
    }

    fn run_until(&mut self, until_ns: u64) {
        while self.next_moment(until_ns) {}
    }

    /// Goes on to the next moment at which something may happen; false where there is none up to `until_ns`, which it is
    /// then.
    pub(crate) fn next_moment(&mut self, until_ns: u64) -> bool {
        let ends_ns = self.ends_next_ns();
        let paths_ns = self.paths.iter().fold(None, |first_ns, path| earlier(first_ns, path.next_ns()));
        let Some(at_ns) = earlier(ends_ns, paths_ns).filter(|at_ns| *at_ns <= until_ns) else {
            self.now_ns = until_ns;
            return false;
        };
        // An end that wants to be asked at once may name a time before.
        let at_ns = at_ns.max(self.now_ns);
        self.now_ns = at_ns;
        self.paths.iter_mut().for_each(|path| path.advance(at_ns));
        // Most of what happens inside a path concerns no end.
        if self.paths.iter().any(Path::has_output) || ends_ns.is_some_and(|ends_ns| ends_ns <= at_ns) {
            self.act();
        }
        true
    }

    fn ends_next_ns(&self) -> Option<u64> {
        self.flows.iter().fold(None, |first_ns, flow| earlier(first_ns, flow.next_ns))
    }

    fn act(&mut self) {
        for index in 0..self.flows.len() {
            if self.flows[index].next_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
                self.transmit(index);
            }
        }
        // What crosses a path without delay is there at once, and may be answered.
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for way in WAYS {
                if let Some(out) = self.paths[SHARED].poll(way) {
                    is_done = false;
                    self.leave_shared(out);
                }
            }
            for path in SHARED + 1..self.paths.len() {
                for (index, packet) in WAYS.map(|way| self.paths[path].poll(way)).into_iter().flatten() {
                    is_done = false;
                    self.leave_access(index, packet);
                }
            }
        }
    }

    fn leave_shared(&mut self, (index, packet): (usize, Packet)) {
        match self.paths.get_mut(own(index)) {
            Some(access) if packet.way == Way::Down => access.enqueue(self.now_ns, index, packet),
            _ => self.arrive(index, packet),
        }
    }

    fn leave_access(&mut self, index: usize, packet: Packet) {
        match packet.way {
            Way::Up => self.paths[SHARED].enqueue(self.now_ns, index, packet),
            Way::Down => self.arrive(index, packet),
        }
    }

    fn arrive(&mut self, index: usize, packet: Packet) {
        self.flows[index].ends.take(self.now_ns, packet.way, packet.content);
        self.transmit(index);
    }

    /// Sends what one of its ends has to send; until something comes, none has more before `next_ns`.
    fn transmit(&mut self, index: usize) {
        while let Some(packet) = self.flows[index].ends.poll(self.now_ns) {
            let has_own = packet.way == Way::Up && own(index) < self.paths.len();
            let path = if has_own { own(index) } else { SHARED };
            self.paths[path].enqueue(self.now_ns, index, packet);
        }
        self.flows[index].next_ns = self.flows[index].ends.next_ns();
    }

    /// What has come since the last step.
    fn step(&mut self) -> Step {
        let acked = self.flows.iter_mut().map(|flow| {
            let before = std::mem::replace(&mut flow.acked, flow.ends.totals().acked_packets);
            flow.acked - before
        });
        let acked_packets = acked.collect();
        Step {
            t_end_ns: self.now_ns,
            acked_packets,
            window_packets: self.flows.iter().map(|flow| flow.ends.window()).collect(),
            routers: self.paths[SHARED].0[Way::Up as usize]
                .records(self.now_ns)
                .into_iter()
                .map(RouterStep::from)
                .collect(),
        }
    }
}
