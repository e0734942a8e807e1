// SPDX-License-Identifier: Apache-2.0
//! Who acts next? The path, a timer of an end, or a flow that begins: the world moves from one moment to the next.

use netjoule_link_model::path::chain::Chain;
use netjoule_link_model::path::told::{RouterStep, RouterTold};
use netjoule_link_model::path::{ways, ElementParams};
use netjoule_link_model::range::ParameterError;

use crate::config::{ns, Asked};
use crate::outcome::{FlowTotals, Outcome, Step};
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;
use crate::tcp::{Ack, Segment, SYN};

type Packet = (usize, Segment);

#[derive(Debug)]
struct Flow {
    /// Until it has begun.
    start_ns: Option<u64>,
    sender: Sender,
    receiver: Receiver,
    packet_bytes: u32,
    ack_bytes: u32,
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
    let totals = |flow: &Flow| FlowTotals::new(flow.sender.acked(), flow.sender.counts());
    let flows = world.flows.iter().map(totals).collect();
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
        let flows = asked.flows.iter().map(|flow| {
            Ok(Flow {
                start_ns: Some(ns(flow.start_s)),
                sender: Sender::new(flow.sender()?),
                receiver: Receiver::new(flow.delayed_acks),
                packet_bytes: flow.packet_bytes,
                ack_bytes: flow.ack_bytes,
                acked: 0,
            })
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
            self.now_ns = at_ns;
            self.forward.advance(at_ns);
            self.back.advance(at_ns);
            // Most of what happens inside a path concerns no end.
            if ends_ns == Some(at_ns) || self.forward.has_output() || self.back.has_output() {
                self.act();
            }
        }
        self.now_ns = until_ns;
    }

    fn ends_next_ns(&self) -> Option<u64> {
        let mut first_ns = None;
        for flow in &self.flows {
            for at_ns in [flow.start_ns, flow.sender.next_ns(), flow.receiver.next_ns()] {
                first_ns = earlier(first_ns, at_ns);
            }
        }
        first_ns
    }

    fn act(&mut self) {
        let now_ns = self.now_ns;
        for index in 0..self.flows.len() {
            let flow = &mut self.flows[index];
            flow.start_ns = flow.start_ns.filter(|at_ns| *at_ns > now_ns);
            flow.sender.expire(now_ns);
            if let Some(ack) = flow.receiver.poll(now_ns) {
                self.answer(index, ack);
            }
            self.transmit(index);
        }
        // What crosses a path without delay is there at once, and may be answered.
        loop {
            let data = self.forward.poll();
            if let Some((_, (index, Segment::Data(number)))) = data {
                if let Some(ack) = self.flows[index].receiver.take(now_ns, number) {
                    self.answer(index, ack);
                }
            }
            let ack = self.back.poll();
            if let Some((_, (index, Segment::Ack(told)))) = ack {
                self.flows[index].sender.take(now_ns, told);
                self.transmit(index);
            }
            if data.is_none() && ack.is_none() {
                return;
            }
        }
    }

    fn answer(&mut self, index: usize, ack: Ack) {
        let ack_bytes = self.flows[index].ack_bytes;
        self.back.enqueue(self.now_ns, (index, Segment::Ack(ack)), ack_bytes);
    }

    fn transmit(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.start_ns.is_some() {
            return;
        }
        while let Some(number) = flow.sender.poll(self.now_ns) {
            let bytes = if number == SYN { flow.ack_bytes } else { flow.packet_bytes };
            self.forward.enqueue(self.now_ns, (index, Segment::Data(number)), bytes);
        }
    }

    /// What has come since the last step.
    fn step(&mut self) -> Step {
        let acked = self.flows.iter_mut().map(|flow| {
            let before = std::mem::replace(&mut flow.acked, flow.sender.acked());
            flow.acked - before
        });
        let acked_packets = acked.collect();
        Step {
            t_end_ns: self.now_ns,
            acked_packets,
            window_packets: self.flows.iter().map(|flow| flow.sender.window()).collect(),
            routers: self.forward.records(self.now_ns).into_iter().map(RouterStep::from).collect(),
        }
    }
}
