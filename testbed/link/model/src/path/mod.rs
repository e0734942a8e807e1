// SPDX-License-Identifier: Apache-2.0
//! What lies between the access point and a host behind it? A path: elements, each of which hands its packets to the next.

pub mod bursts;
pub mod chain;
pub mod config;
pub mod delay;
pub mod element;
pub mod loss;
pub mod router;
pub mod serialiser;
pub mod sleeper;

use bursts::{BurstParams, Bursts};
use chain::Chain;
use delay::Delay;
use element::Element;
use loss::Loss;
use router::Router;
use serialiser::{QueueLimit, Serialiser};
use sleeper::{SleepParams, Sleeper};

use serde::{Deserialize, Serialize};

use crate::rng::Rng;
use crate::scaling::fixed::FixedParams;
use crate::scaling::practra::{PractRa, PractRaParams};
use crate::scaling::varying::{Varying, VaryingParams};

/// At which rate an element serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Service {
    /// At once.
    #[default]
    Unlimited,
    /// At this rate, Mb/s of IP bytes.
    Fixed(f64),
    /// At this rate, with a record of it.
    Scaled(FixedParams),
    /// At a rate that chance changes.
    Varying(VaryingParams),
    /// At a rate that follows the load.
    PractRa(PractRaParams),
    /// At a rate between sleeps.
    Sleep(SleepParams),
}

impl Service {
    /// At the highest rate that it can have, and always so.
    fn highest(&self) -> Self {
        match self {
            Self::Unlimited => Self::Unlimited,
            Self::Fixed(rate_mbps) => Self::Fixed(*rate_mbps),
            Self::Scaled(params) => Self::Fixed(params.max_rate_mbps),
            Self::Varying(params) => Self::Fixed(params.max_rate_mbps),
            Self::Sleep(params) => Self::Fixed(params.rate_mbps),
            Self::PractRa(params) => {
                params.rates_mbps.last().map_or(Self::Unlimited, |rate| Self::Fixed(*rate))
            }
        }
    }
}

/// In which direction an element's bursts and changes of rate act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acts {
    /// In both, each for itself.
    #[default]
    Both,
    /// Towards the host behind the access point.
    Up,
    /// Towards the access point.
    Down,
}

/// Parameters of one element as a topology describes it: it loses packets, adds bursts of other traffic, queues and serves
/// what there is, then delays it.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementParams {
    /// Share of packets lost, 0 to 1.
    pub loss_ratio: f64,
    /// Other traffic that enters here.
    pub bursts: Option<BurstParams>,
    /// Packets that wait for the service and in it; one more is dropped.
    pub queue: QueueLimit,
    /// The service.
    pub service: Service,
    /// One-way delay, ns.
    pub delay_ns: u64,
    /// Where bursts and changes of rate act.
    pub acts: Acts,
}

impl Default for ElementParams {
    fn default() -> Self {
        Self {
            loss_ratio: 0.0,
            bursts: None,
            queue: QueueLimit::packets(1000),
            service: Service::Unlimited,
            delay_ns: 0,
            acts: Acts::Both,
        }
    }
}

impl ElementParams {
    /// The same in one direction of a path.
    fn facing(&self, way: usize) -> Self {
        let acts = match self.acts {
            Acts::Both => true,
            Acts::Up => way == UP,
            Acts::Down => way == DOWN,
        };
        if acts {
            return self.clone();
        }
        Self { bursts: None, service: self.service.highest(), ..self.clone() }
    }

    /// The elements that it comes to. Chance is drawn from `seed` in streams from `stream` on: up to 16 of them.
    pub fn elements<P: 'static>(&self, seed: u64, stream: u64, start_ns: u64) -> Vec<Box<dyn Element<P>>> {
        let mut elements: Vec<Box<dyn Element<P>>> = Vec::new();
        if self.loss_ratio > 0.0 {
            elements.push(Box::new(Loss::new(self.loss_ratio, Rng::new(seed, stream))));
        }
        if let Some(bursts) = self.bursts {
            elements.push(Box::new(Bursts::new(bursts, Rng::new(seed, stream + 1), start_ns)));
        }
        match &self.service {
            Service::Unlimited => {}
            Service::Fixed(rate_mbps) => elements.push(Box::new(Serialiser::new(*rate_mbps, self.queue))),
            Service::Scaled(rule) => {
                elements.push(Box::new(Router::new(self.queue, Box::new(*rule), start_ns)));
            }
            Service::Varying(params) => {
                let rule = Varying::new(*params, Rng::new(seed, stream + 2), start_ns);
                elements.push(Box::new(Router::new(self.queue, Box::new(rule), start_ns)));
            }
            Service::Sleep(params) => {
                elements.push(Box::new(Sleeper::new(*params, self.queue, start_ns)));
            }
            Service::PractRa(params) => {
                let rule = PractRa::new(params.clone(), Rng::new(seed, stream + 3), start_ns);
                elements.push(Box::new(Router::new(self.queue, Box::new(rule), start_ns)));
            }
        }
        if self.delay_ns > 0 {
            elements.push(Box::new(Delay::new(self.delay_ns)));
        }
        elements
    }
}

/// A path in both directions: from the access point to the host ([`UP`]), and back ([`DOWN`]).
pub(crate) type Paths<P> = [Path<P>; 2];

pub(crate) const UP: usize = 0;
pub(crate) const DOWN: usize = 1;

/// The path with number `index`, empty; its chance is its own.
pub(crate) fn new<P: 'static>(
    seed: u64,
    index: usize,
    elements: &[ElementParams],
    start_ns: u64,
) -> Paths<P> {
    let stream = (index as u64) << 48;
    let mut paths = [Path::new(seed, stream + 2), Path::new(seed, stream + 3)];
    change(&mut paths, start_ns, elements);
    paths
}

/// Other elements take the place of those that there are.
pub(crate) fn change<P: 'static>(paths: &mut Paths<P>, now_ns: u64, elements: &[ElementParams]) {
    paths[UP].change(now_ns, elements.iter().map(|element| element.facing(UP)));
    paths[DOWN].change(now_ns, elements.iter().rev().map(|element| element.facing(DOWN)));
}

/// One direction of a path.
#[derive(Debug)]
pub(crate) struct Path<P> {
    seed: u64,
    stream: u64,
    changes: u64,
    pub(crate) chain: Chain<P>,
}

impl<P: 'static> Path<P> {
    /// A path without elements; chance will be drawn from streams of their own beside `stream`.
    fn new(seed: u64, stream: u64) -> Self {
        Self { seed, stream, changes: 0, chain: Chain::new(Vec::new()) }
    }

    /// Each element of each path draws from streams of its own, so that a change repeats no losses.
    fn change(&mut self, now_ns: u64, elements: impl Iterator<Item = ElementParams>) {
        let stream = |index: u64| self.stream + (index << 16) + (self.changes << 32);
        let made = elements
            .zip(0..)
            .flat_map(|(params, index)| params.elements(self.seed, stream(index), now_ns))
            .collect();
        self.chain.change(now_ns, made);
        self.changes += 1;
    }
}
