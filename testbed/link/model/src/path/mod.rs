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
pub mod told;

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
use crate::scaling::{RateRule, Record};

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

    /// The elements that it comes to. Chance is drawn from `seed` in streams from `stream` on, 256 apart.
    pub fn elements<P: 'static>(&self, seed: u64, stream: u64, start_ns: u64) -> Vec<Box<dyn Element<P>>> {
        let mut elements: Vec<Box<dyn Element<P>>> = Vec::new();
        if self.loss_ratio > 0.0 {
            elements.push(Box::new(Loss::new(self.loss_ratio, Rng::new(seed, stream))));
        }
        if let Some(bursts) = self.bursts {
            elements.push(Box::new(Bursts::new(bursts, Rng::new(seed, stream + (1 << 8)), start_ns)));
        }
        let ruled = |rule: Box<dyn RateRule>| Router::ruled(self.queue, self.delay_ns, rule, start_ns);
        let serialiser = |rate_mbps: f64| Serialiser::new(rate_mbps, self.queue, self.delay_ns);
        elements.push(match &self.service {
            Service::Unlimited => Box::new(Delay::new(self.delay_ns)),
            Service::Fixed(rate_mbps) => Box::new(serialiser(*rate_mbps)),
            Service::Scaled(rule) => Box::new(ruled(Box::new(*rule))),
            Service::Varying(params) => {
                Box::new(ruled(Box::new(Varying::new(*params, Rng::new(seed, stream + (2 << 8)), start_ns))))
            }
            Service::PractRa(params) => {
                let rng = Rng::new(seed, stream + (3 << 8));
                Box::new(ruled(Box::new(PractRa::new(params.clone(), rng, start_ns))))
            }
            Service::Sleep(params) => {
                let record = Record::new(start_ns, params.rate_mbps, params.rate_mbps);
                let sleeper = Box::new(Sleeper::new(*params));
                Box::new(Router::new(serialiser(params.rate_mbps), record, sleeper, start_ns))
            }
        });
        elements
    }
}

pub(crate) const UP: usize = 0;
pub(crate) const DOWN: usize = 1;

/// What the elements come to in each direction of a path: towards its far end, and back. Each element of each direction draws
/// from streams of its own, from `stream` on.
pub fn ways<P: 'static>(
    elements: &[ElementParams],
    seed: u64,
    stream: u64,
    start_ns: u64,
) -> [Vec<Box<dyn Element<P>>>; 2] {
    let made = |way: usize, each: &mut dyn Iterator<Item = &ElementParams>| {
        let stream = |index: u64| stream + way as u64 + (index << 16);
        each.zip(0..)
            .flat_map(|(params, index)| params.facing(way).elements(seed, stream(index), start_ns))
            .collect()
    };
    [made(UP, &mut elements.iter()), made(DOWN, &mut elements.iter().rev())]
}

/// A path in both directions: from the access point to the host ([`UP`]), and back ([`DOWN`]).
#[derive(Debug)]
pub(crate) struct Path<P> {
    seed: u64,
    stream: u64,
    changes: u64,
    pub(crate) ways: [Chain<P>; 2],
}

impl<P: 'static> Path<P> {
    /// The path with number `index`, empty; its chance is its own.
    pub(crate) fn new(seed: u64, index: usize, elements: &[ElementParams], start_ns: u64) -> Self {
        let stream = ((index as u64) << 48) + 2;
        let mut path = Self { seed, stream, changes: 0, ways: [(); 2].map(|()| Chain::new(Vec::new())) };
        path.change(start_ns, elements);
        path
    }

    /// Other elements take the place of those that there are; they draw from streams of their own, so that a change repeats no
    /// losses.
    pub(crate) fn change(&mut self, now_ns: u64, elements: &[ElementParams]) {
        let made = ways(elements, self.seed, self.stream + (self.changes << 32), now_ns);
        self.ways.iter_mut().zip(made).for_each(|(chain, elements)| chain.change(now_ns, elements));
        self.changes += 1;
    }
}
