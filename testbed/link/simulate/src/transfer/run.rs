// SPDX-License-Identifier: Apache-2.0
//! What becomes of a transfer? The scheduler asks for parts, connections bring them, a device's power is counted beside.

use std::collections::BTreeMap;

use netjoule_link_model::path::element::earlier;
use netjoule_link_model::range::ParameterError;
use netjoule_scheduler::dispatch::{Action, Ended, PartId};
use netjoule_scheduler::log::Record;
use netjoule_scheduler::scheduler::Scheduler;
use serde::Serialize;

use super::config::{Asked, Power};
use super::connection::{ConnectionParams, HttpEnds};
use crate::config::ns;
use crate::world::World;

/// The answer to a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Of the document.
    pub id: u64,
    /// Of this program.
    pub version: &'static str,
    /// Simulated time begins here.
    pub start_ns: u64,
    /// The last byte came, or the limit.
    pub end_ns: u64,
    /// Whether every file is whole.
    pub is_whole: bool,
    /// Bytes of files.
    pub bytes: u64,
    /// Dynamic energy of the client, J.
    pub energy_j: f64,
    /// Connections opened.
    pub connections_opened_n: usize,
    /// In order of time.
    pub steps: Vec<Step>,
    /// What the algorithm decided, from what.
    pub records: Vec<Record>,
}

/// One step of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its end; it begins where the one before ends.
    pub t_end_ns: u64,
    /// File bytes that came in it.
    pub bytes: u64,
    /// Dynamic energy in it, J.
    pub energy_j: f64,
    /// Connections with a request at its end.
    pub connections_n: usize,
}

/// A part under way, and the connection that brings it.
#[derive(Clone, Copy)]
struct Moving {
    flow: usize,
    next: u64,
    end: u64,
    asked_to: u64,
}

struct Run {
    world: World<HttpEnds>,
    scheduler: Scheduler,
    sizes: Vec<u64>,
    params: ConnectionParams,
    power: Power,
    moving: BTreeMap<PartId, Moving>,
    /// Open connections without a request, the one that was used last at the end.
    idle: Vec<usize>,
    opened: usize,
    bytes: u64,
    energy_j: f64,
    /// Energy is counted up to here.
    counted_ns: u64,
}

/// What comes of a document.
///
/// # Errors
/// [`ParameterError`] names the value that cannot be, with its place.
pub fn transfer(asked: &Asked) -> Result<Outcome, ParameterError> {
    let (path, params) = asked.checked()?;
    let sizes = asked.sizes();
    let known: Vec<_> = sizes.iter().copied().map(Some).collect();
    let scheduler = Scheduler::new(&asked.transfer.settings, &known);
    let mut run = Run {
        world: World::new(asked.seed, &path, Vec::new()),
        scheduler: scheduler.map_err(|error| ParameterError(error.to_string()))?,
        sizes,
        params,
        power: asked.transfer.power,
        moving: BTreeMap::new(),
        idle: Vec::new(),
        opened: 0,
        bytes: 0,
        energy_j: 0.0,
        counted_ns: 0,
    };
    let steps = run.all_steps(ns(asked.interval_s), ns(asked.limit_s));
    Ok(Outcome {
        id: asked.id,
        version: env!("CARGO_PKG_VERSION"),
        start_ns: 0,
        end_ns: run.world.now_ns,
        is_whole: run.scheduler.is_finished(),
        bytes: run.bytes,
        energy_j: run.energy_j,
        connections_opened_n: run.opened,
        steps,
        records: run.scheduler.records().cloned().collect(),
    })
}

impl Run {
    fn all_steps(&mut self, interval_ns: u64, limit_ns: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut before = (0, 0.0);
        self.scheduler.used(0);
        while !self.scheduler.is_finished() && self.world.now_ns < limit_ns {
            let until_ns = (self.world.now_ns / interval_ns + 1).saturating_mul(interval_ns).min(limit_ns);
            self.until(until_ns);
            steps.push(Step {
                t_end_ns: self.world.now_ns,
                bytes: self.bytes - before.0,
                energy_j: self.energy_j - before.1,
                connections_n: self.moving.len(),
            });
            before = (self.bytes, self.energy_j);
        }
        steps
    }

    /// Goes on until a moment, or until the transfer is done.
    fn until(&mut self, until_ns: u64) {
        loop {
            for action in self.scheduler.poll(self.world.now_ns) {
                self.act(action);
            }
            if self.scheduler.is_finished() || self.world.now_ns >= until_ns {
                return;
            }
            let ask_ns = earlier(self.scheduler.next_ns(), Some(until_ns)).unwrap_or(until_ns);
            while !self.has_news() && self.world.next_moment(ask_ns.max(self.world.now_ns)) {}
            self.count_energy();
            self.take_news();
        }
    }

    fn has_news(&self) -> bool {
        self.moving.values().any(|part| self.world.ends(part.flow).has_news())
    }

    /// For how long so many connections had a request; what bytes cost is counted where they come.
    fn count_energy(&mut self) {
        let time_s = (self.world.now_ns - self.counted_ns) as f64 / 1e9;
        self.counted_ns = self.world.now_ns;
        let Power { base_w, share_per_connection, .. } = self.power;
        self.energy_j += base_w * (1.0 + share_per_connection * self.moving.len() as f64) * time_s;
    }

    fn take_news(&mut self) {
        let parts: Vec<PartId> = self.moving.keys().copied().collect();
        for part in parts {
            let flow = self.moving[&part].flow;
            if !self.world.ends(flow).has_news() && !self.is_whole(part) {
                continue;
            }
            let mut came = 0;
            self.world.drive(flow, |ends| came = ends.news());
            let taken = self.scheduler.received(part, came);
            self.bytes += taken;
            self.energy_j += self.power.base_w * self.power.share_per_rate * taken as f64 * 8e-6;
            if let Some(moving) = self.moving.get_mut(&part) {
                moving.next += taken;
            }
            if self.is_whole(part) {
                self.end(part);
            }
        }
        self.scheduler.used((self.energy_j * 1e6) as u64);
    }

    fn is_whole(&self, part: PartId) -> bool {
        let is_whole = |moving: &Moving| {
            let is_cut = moving.end < moving.asked_to;
            (is_cut && moving.next >= moving.end) || self.world.ends(moving.flow).is_done()
        };
        self.moving.get(&part).is_some_and(is_whole)
    }

    /// A part is there. A connection that would bring more than is wanted closes.
    fn end(&mut self, part: PartId) {
        let Some(moving) = self.moving.remove(&part) else { return };
        self.scheduler.ended(part, Ended::Done);
        if moving.end < moving.asked_to {
            self.world.drive(moving.flow, HttpEnds::close);
        } else {
            self.idle.push(moving.flow);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start { part, file, first, end } => {
                let end = end.unwrap_or(self.sizes[file]);
                let flow = self.idle.pop().unwrap_or_else(|| {
                    self.opened += 1;
                    self.world.add(HttpEnds::new(self.params))
                });
                let now_ns = self.world.now_ns;
                self.world.drive(flow, |ends| ends.request(now_ns, end - first));
                self.moving.insert(part, Moving { flow, next: first, end, asked_to: end });
            }
            Action::Limit { part, end } => {
                if let Some(moving) = self.moving.get_mut(&part) {
                    moving.end = end;
                }
            }
        }
    }
}
