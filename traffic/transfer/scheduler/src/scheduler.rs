// SPDX-License-Identifier: Apache-2.0
//! A transfer from its first request to its last byte, without its I/O.

use std::collections::VecDeque;
use std::ops::Range;

use crate::dispatch::{Action, Dispatch, Ended, PartId};
use crate::level::{Level, Policy, Seen};
use crate::log::{Decision, Record};
use crate::partition::{partition, Chunk};
use crate::path::{Path, UNKNOWN};
use crate::policy;
use crate::settings::{Algorithm, Settings, SettingsError};

/// A meter that says nothing for so many probing intervals is taken for none: a probe waits for it for two at most.
const SILENT_INTERVALS: u64 = 3;

/// The decisions of one transfer. Times are nanoseconds since it began.
pub struct Scheduler {
    settings: Settings,
    dispatch: Dispatch,
    policy: Box<dyn Policy>,
    level: Level,
    again_ns: Option<u64>,
    /// What the policy saw last of the chunks: those with files, and those with bytes that nobody asked for.
    open: Option<(usize, usize)>,
    bytes: u64,
    energy_uj: Option<u64>,
    /// Since when no reading of it has come; none until it is known when the last one came.
    silent_since_ns: Option<u64>,
    /// Where the path became known on the way, what went before stands in a record of its own.
    records: VecDeque<Record>,
}

impl Scheduler {
    /// A transfer of files whose sizes may not be known yet.
    pub fn new(settings: &Settings, sizes: &[Option<u64>]) -> Result<Self, SettingsError> {
        settings.check()?;
        let dispatch = Dispatch::new(sizes, settings.least_part_bytes, settings.streams);
        let mut scheduler = Self {
            settings: settings.clone(),
            dispatch,
            policy: policy::of(settings),
            level: Level::default(),
            again_ns: None,
            open: None,
            bytes: 0,
            energy_uj: None,
            silent_since_ns: None,
            records: VecDeque::new(),
        };
        scheduler.begin();
        Ok(scheduler)
    }

    /// The policy from its start, on chunks of what nothing was asked of yet.
    fn begin(&mut self) {
        let files = self.dispatch.untouched();
        let chunks = match (self.settings.algorithm, self.settings.path) {
            (Algorithm::Auto, path) => partition(&files, &path.unwrap_or(UNKNOWN), &self.settings.cuts),
            (Algorithm::Fixed, _) | (_, None) => vec![Chunk::of(files)],
            (_, Some(path)) => partition(&files, &path, &self.settings.cuts),
        };
        let chunks: Vec<_> = chunks.into_iter().map(|chunk| chunk.files).collect();
        self.dispatch.divide(&chunks);
        self.policy = policy::of(&self.settings);
        self.open = None;
        self.records.push_back(Record { settings: self.settings.clone(), decisions: Vec::new() });
    }

    /// What to do now. To be asked after anything was told, and at [`Scheduler::next_ns`].
    pub fn poll(&mut self, now_ns: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        self.miss_a_silent_meter(now_ns);
        loop {
            let left = self.dispatch.left();
            let with_files = left.iter().filter(|left| left.files > 0).count();
            let open = Some((with_files, self.dispatch.chunks_with_more()));
            if with_files > 0
                && (open != self.open || self.again_ns.is_some_and(|again_ns| now_ns >= again_ns))
            {
                self.open = open;
                self.decide(Seen { at_ns: now_ns, bytes: self.bytes, energy_uj: self.energy_uj, left });
            }
            let more = self.dispatch.fill(&self.level);
            if more.is_empty() {
                return actions;
            }
            actions.extend(more);
        }
    }

    /// A meter that says nothing any more is none, until it speaks again: no probe is to wait for it for ever.
    fn miss_a_silent_meter(&mut self, now_ns: u64) {
        let since_ns = *self.silent_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns.min(now_ns) > SILENT_INTERVALS * self.settings.interval_ns {
            self.energy_uj = None;
        }
    }

    fn decide(&mut self, seen: Seen) {
        let decided = self.policy.decide(&seen);
        self.again_ns = decided.again_ns;
        self.level = decided.level.clone();
        if let Some(record) = self.records.back_mut() {
            record.decisions.push(Decision { seen, level: decided.level, why: decided.why });
        }
    }

    /// When to ask again though nothing happens.
    pub fn next_ns(&self) -> Option<u64> {
        self.again_ns.filter(|_| !self.is_finished())
    }

    /// Connections that are wanted now.
    pub fn connections(&self) -> u32 {
        self.level.connections()
    }

    /// Bytes that are still to come of the files whose size is known.
    pub fn left_bytes(&self) -> u64 {
        self.dispatch.left().iter().map(|left| left.bytes).sum()
    }

    /// Whether every file is whole or given up.
    pub fn is_finished(&self) -> bool {
        self.dispatch.is_finished()
    }

    /// Whether one file is.
    pub fn is_over(&self, file: usize) -> bool {
        self.dispatch.is_over(file)
    }

    /// Bytes of a part have come. Returns how many of them belong to it: those behind its end do not.
    pub fn received(&mut self, part: PartId, bytes: u64) -> u64 {
        let taken = self.dispatch.received(part, bytes);
        self.bytes += taken;
        taken
    }

    /// A part has ended; what has not come of it will be asked for again.
    pub fn ended(&mut self, part: PartId, how: Ended) {
        self.dispatch.ended(part, how);
    }

    /// Dynamic energy of the transfer so far, microjoules, by a meter or a device model.
    pub fn used(&mut self, energy_uj: u64) {
        self.energy_uj = Some(energy_uj);
        self.silent_since_ns = None;
    }

    /// The size of a file, and whether its server has ranges.
    pub fn learn(&mut self, file: usize, size: u64, has_ranges: bool) {
        self.dispatch.learn(file, size, has_ranges);
    }

    /// Bytes of a file that are there from an earlier transfer; before the first [`Scheduler::poll`].
    pub fn resume(&mut self, file: usize, size: u64, there: &[Range<u64>]) {
        self.dispatch.resume(file, size, there);
    }

    /// A file begins anew in one part; its parts must have ended before.
    pub fn restart(&mut self, file: usize, size: Option<u64>) {
        self.dispatch.restart(file, size);
    }

    /// A file will not come.
    pub fn give_up(&mut self, file: usize) {
        self.dispatch.give_up(file);
    }

    /// The path, measured in band: taken where none was given, once. Chunks and levels are chosen anew by it.
    pub fn measured(&mut self, path: Path) {
        if self.settings.path.is_none() {
            self.settings.path = Some(path);
            if !matches!(self.settings.algorithm, Algorithm::Fixed | Algorithm::Auto) {
                self.begin();
            }
        }
    }

    /// What was decided, from what: one record, or two where the path became known on the way.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }
}
