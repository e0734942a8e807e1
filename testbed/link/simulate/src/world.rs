// SPDX-License-Identifier: Apache-2.0
//! Who acts next? The path, a timer of an end, or a flow that begins: the world moves from one moment to the next.

use netjoule_link_model::path::chain::Chain;
use netjoule_link_model::path::told::{RouterStep, RouterTold};
use netjoule_link_model::path::{ways, ElementParams};
use netjoule_link_model::range::ParameterError;

use crate::config::{ns, Asked};
use crate::ends::{Content, Ends, Way};
use crate::outcome::{Outcome, Step};

/// Of which flow, and what.
type Packet = (usize, Content);

#[derive(Debug)]
struct Flow {
    /// Until it has begun.
    start_ns: Option<u64>,
    ends: Box<dyn Ends>,
    acked: u64,
}

/// Flows over a path.
#[derive(Debug)]
struct World {
    now_ns: u64,
    forward: Chain<Packet>,
    back: Chain<Packet>,
    flows: Vec<Flow>,
}

/// What comes of a document.
///
/// # Errors
/// [`ParameterError`] names the value that cannot be, with its place.
pub fn simulate(asked: &Asked) -> Result<Outcome, ParameterError> {
    let (params, steps) = asked.checked()?;
    let mut world = World::new(asked, &params)?;
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

fn earlier(one_ns: Option<u64>, other_ns: Option<u64>) -> Option<u64> {
    match (one_ns, other_ns) {
        (Some(one_ns), Some(other_ns)) => Some(one_ns.min(other_ns)),
        _ => one_ns.or(other_ns),
    }
}

impl World {
    fn new(asked: &Asked, params: &[ElementParams]) -> Result<Self, ParameterError> {
        let [forward, back] = ways(params, asked.seed, 0, 0);
        let each = asked.flows.iter().enumerate();
        let flows = each.map(|(index, flow)| {
            let ends = flow.ends.ends(asked.seed, index)?;
            Ok(Flow { start_ns: Some(ns(flow.start_s)), ends, acked: 0 })
        });
        Ok(Self {
            now_ns: 0,
            forward: Chain::new(forward),
            back: Chain::new(back),
            flows: flows.collect::<Result<_, _>>()?,
        })
    }

    fn run_until(&mut self, until_ns: u64) {
        loop {
            let ends_ns = self.ends_next_ns();
            let paths_ns = earlier(self.forward.next_event_ns(), self.back.next_event_ns());
            let Some(at_ns) = earlier(ends_ns, paths_ns).filter(|at_ns| *at_ns <= until_ns) else { break };
            // An end that wants to be asked at once may name a time before.
            let at_ns = at_ns.max(self.now_ns);
            self.now_ns = at_ns;
            self.forward.advance(at_ns);
            self.back.advance(at_ns);
            // Most of what happens inside a path concerns no end.
            if ends_ns.is_some_and(|ends_ns| ends_ns <= at_ns)
                || self.forward.has_output()
                || self.back.has_output()
            {
                self.act();
            }
        }
        self.now_ns = until_ns;
    }

    fn ends_next_ns(&self) -> Option<u64> {
        let mut first_ns = None;
        for flow in &self.flows {
            first_ns = earlier(first_ns, earlier(flow.start_ns, flow.ends.next_ns()));
        }
        first_ns
    }

    fn act(&mut self) {
        let now_ns = self.now_ns;
        for index in 0..self.flows.len() {
            let start_ns = &mut self.flows[index].start_ns;
            *start_ns = start_ns.filter(|at_ns| *at_ns > now_ns);
            self.transmit(index);
        }
        // What crosses a path without delay is there at once, and may be answered.
        loop {
            let (up, down) = (self.forward.poll(), self.back.poll());
            let is_done = up.is_none() && down.is_none();
            for (way, packet) in [(Way::Up, up), (Way::Down, down)] {
                if let Some((_, (index, content))) = packet {
                    self.flows[index].ends.take(now_ns, way, content);
                    self.transmit(index);
                }
            }
            if is_done {
                return;
            }
        }
    }

    fn transmit(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.start_ns.is_some() {
            return;
        }
        while let Some(packet) = flow.ends.poll(self.now_ns) {
            let chain = match packet.way {
                Way::Up => &mut self.forward,
                Way::Down => &mut self.back,
            };
            chain.enqueue(self.now_ns, (index, packet.content), packet.ip_bytes);
        }
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
            routers: self.forward.records(self.now_ns).into_iter().map(RouterStep::from).collect(),
        }
    }
}
