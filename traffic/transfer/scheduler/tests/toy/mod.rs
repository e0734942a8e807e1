// SPDX-License-Identifier: Apache-2.0
//! A path of fluid flows: a connection has a window that doubles each round trip up to its share, a request costs a
//! round trip, all share the bandwidth evenly. Dynamic power is that of the fitted model of the paper's phone.

use std::collections::BTreeMap;

use netjoule_scheduler::dispatch::{Action, Ended, PartId};
use netjoule_scheduler::path::Path;
use netjoule_scheduler::scheduler::Scheduler;
use netjoule_scheduler::settings::Settings;

const STEP_S: f64 = 0.01;
const INITIAL_WINDOW_BYTES: f64 = 14_600.0;

struct Part {
    file: usize,
    first: u64,
    next: f64,
    end: u64,
    /// Nothing comes before.
    starts_s: f64,
    window: f64,
}

pub(crate) struct Toy {
    pub(crate) path: Path,
    pub(crate) scheduler: Scheduler,
    pub(crate) bytes: u64,
    pub(crate) energy_j: f64,
    pub(crate) most_parts: u32,
    /// The meter says nothing from then on.
    pub(crate) silent_from_s: f64,
    /// Of so many parts one fails half-way.
    pub(crate) fails_each: Option<u32>,
    sizes: Vec<u64>,
    step: u64,
    parts: BTreeMap<PartId, Part>,
    /// Windows of connections that are open and have nothing to do.
    idle: Vec<f64>,
    got: Vec<Vec<(u64, u64)>>,
}

pub(crate) fn run(settings: &Settings, path: Path, sizes: &[u64]) -> Toy {
    let mut toy = Toy::new(settings, path, sizes);
    toy.finish();
    toy
}

impl Toy {
    pub(crate) fn new(settings: &Settings, path: Path, sizes: &[u64]) -> Self {
        let known: Vec<_> = sizes.iter().copied().map(Some).collect();
        let mut scheduler = Scheduler::new(settings, &known).unwrap();
        scheduler.used(0);
        Self {
            path,
            scheduler,
            bytes: 0,
            energy_j: 0.0,
            most_parts: 0,
            silent_from_s: f64::INFINITY,
            fails_each: None,
            sizes: sizes.to_vec(),
            step: 0,
            parts: BTreeMap::new(),
            idle: Vec::new(),
            got: vec![Vec::new(); sizes.len()],
        }
    }

    pub(crate) fn time_s(&self) -> f64 {
        self.step as f64 * STEP_S
    }

    pub(crate) fn finish(&mut self) {
        while !self.scheduler.is_finished() {
            self.advance();
            assert!(self.time_s() < 1e5, "it does not end");
        }
    }

    pub(crate) fn advance_to(&mut self, time_s: f64) {
        while self.time_s() < time_s {
            self.advance();
        }
    }

    fn advance(&mut self) {
        let now_ns = (self.time_s() * 1e9) as u64;
        for action in self.scheduler.poll(now_ns) {
            self.act(action);
        }
        self.most_parts = self.most_parts.max(u32::try_from(self.parts.len()).unwrap());
        self.step += 1;
        let before = self.bytes;
        self.move_bytes();
        let rate_mbps = (self.bytes - before) as f64 * 8e-6 / STEP_S;
        let power_w = 1.0 + 0.075 * rate_mbps + 0.015 * self.parts.len() as f64;
        self.energy_j += power_w * STEP_S;
        if self.time_s() < self.silent_from_s {
            self.scheduler.used((self.energy_j * 1e6) as u64);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start { part, file, first, end } => {
                let rtt_s = self.path.rtt_ns as f64 / 1e9;
                let (window, wait_s) =
                    self.idle.pop().map_or((INITIAL_WINDOW_BYTES, 2.0 * rtt_s), |w| (w, rtt_s));
                let end = end.unwrap_or(self.sizes[file]);
                let starts_s = self.time_s() + wait_s;
                self.parts.insert(part, Part { file, first, next: first as f64, end, starts_s, window });
            }
            Action::Limit { part, end } => self.parts.get_mut(&part).unwrap().end = end,
        }
    }

    fn move_bytes(&mut self) {
        let now_s = self.time_s();
        let rtt_s = self.path.rtt_ns as f64 / 1e9;
        let moving = self.parts.values().filter(|part| part.starts_s <= now_s).count().max(1);
        let share = self.path.bandwidth_bytes_per_s as f64 / moving as f64;
        let most = self.path.buffer_bytes as f64 / 2.0;
        let mut over = Vec::new();
        for (id, part) in self.parts.iter_mut().filter(|(_, part)| part.starts_s <= now_s) {
            let rate = (part.window / rtt_s).min(share);
            part.window = (part.window * (STEP_S / rtt_s).exp2())
                .min(most)
                .min(INITIAL_WINDOW_BYTES.max(2.0 * share * rtt_s));
            let before = part.next as u64;
            part.next = (part.next + rate * STEP_S).min(part.end as f64);
            let told = part.next as u64 - before;
            self.bytes += self.scheduler.received(*id, told);
            let fails = self.fails_each.is_some_and(|each| id % u64::from(each) == 1)
                && part.next >= (part.first + part.end) as f64 / 2.0;
            if part.next as u64 >= part.end || fails {
                over.push(*id);
            }
        }
        for id in over {
            let part = self.parts.remove(&id).unwrap();
            let next = part.next as u64;
            self.got[part.file].push((part.first, next));
            self.idle.push(part.window);
            self.scheduler.ended(id, if next >= part.end { Ended::Done } else { Ended::Failed });
        }
        self.idle.truncate(64);
    }

    /// Every byte of every file came once.
    pub(crate) fn assert_whole(&self, sizes: &[u64]) {
        for (got, size) in self.got.iter().zip(sizes) {
            let mut got: Vec<_> = got.iter().filter(|(first, end)| first < end).collect();
            got.sort_unstable();
            let mut next = 0;
            for (first, end) in got {
                assert_eq!(*first, next);
                next = *end;
            }
            assert_eq!(next, *size);
        }
    }
}
