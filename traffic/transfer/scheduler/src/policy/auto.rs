// SPDX-License-Identifier: Apache-2.0
//! Auto, our own: begins where arithmetic says, doubles while it pays, refines, then watches.
//!
//! - Connections are what it changes, also for HTTP/2 and /3: one connection has one window, however many streams.
//! - It probes in band; a level's first round trips (handshakes, slow start) do not count.
//! - It asks whether a probe can pay before it makes one: what is left must last several times as long as the probe.
//! - Chunks share its connections by the connection time that each still needs, so that small and large files move side
//!   by side, and one probe sees the same mix as the next.
//! - A connection without work takes half of the longest rest of its chunk: large files need no parallelism of their
//!   own, and the last file does not go over one connection.
//! - It does not collapse: a level must be better than the best by a margin, the level before is gone back to
//!   otherwise, and only a lasting fall below the best starts another search, which begins where it is.

use super::probe::{Probe, Probed};
use super::shares::by_weight;
use crate::level::{Decided, Left, Level, Policy, Seen, Share};
use crate::objective::{Given, Objective};
use crate::path::{Path, UNKNOWN};
use crate::settings::Settings;

/// A level that is not better by this share is not worth its connections.
const MARGIN: f64 = 0.02;
/// What is left must last so many probes, or none is made: a level can hardly gain more than a fourth.
const PROBES_LEFT: f64 = 4.0;
/// Levels that differ by less than this factor are not searched between.
const FAR: f64 = 1.5;
/// Below this share of the best, so often in a row, the search begins anew.
const FALLEN: f64 = 0.7;
/// After so many steady windows it asks whether fewer connections, by this factor, would do.
const STEADY: u32 = 4;
const FEWER: f64 = 1.4;
const FALLEN_TIMES: u32 = 3;
/// First level where the path is not known.
const FIRST: u32 = 4;
/// A request and the start of its answer.
const A_REQUEST_RTT: f64 = 1.25;
const INITIAL_WINDOW_BYTES: f64 = 14_600.0;
const LEAST_WINDOW_NS: u64 = 1_000_000_000;
const WINDOW_RTT: u64 = 8;
const WINDOW_OF_LEFT: f64 = 0.01;

/// Where the search is.
#[derive(Clone, Copy, PartialEq)]
enum Search {
    /// The first level is probed.
    First,
    /// Up by doubling.
    Up,
    /// Down by halving.
    Down,
    /// Between the best and the next ones that were tried, above and below it.
    Between,
    /// Done; the best is watched.
    Watch,
    /// Whether fewer would do, now that the first turbulence is over.
    Fewer,
}

pub(super) struct Auto {
    path: Option<Path>,
    most: u32,
    objective: Objective,
    interval_ns: u64,
    search: Search,
    connections: u32,
    /// Fewer cannot fill the path, whatever a probe of one moment says.
    least: u32,
    probe: Option<Probe>,
    best: Option<Given>,
    /// Levels tried in this search.
    tried: Vec<u32>,
    fallen: u32,
    /// Windows since the search ended.
    steady: u32,
}

impl Auto {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            path: settings.path,
            most: settings.max_connections,
            objective: settings.objective,
            interval_ns: settings.interval_ns,
            search: Search::First,
            connections: 0,
            least: 1,
            probe: None,
            best: None,
            tried: Vec::new(),
            fallen: 0,
            steady: 0,
        }
    }

    /// Connections that should fill the path: the connection time that all files need, by the time that the path
    /// needs for their bytes.
    fn first(&self, seen: &Seen) -> u32 {
        let Some(path) = self.path else { return FIRST.min(self.most) };
        let needed_s: f64 = seen.left.iter().map(|left| connection_time_s(left, &path)).sum();
        let least_s = seen.left_bytes().max(1) as f64 / path.bandwidth_bytes_per_s as f64;
        ((needed_s / least_s).ceil() as u32).clamp(1, self.most)
    }

    /// Handshakes, a request, and the doublings from the initial window to a connection's share.
    fn warm_up_ns(&self, connections: u32) -> u64 {
        let Some(path) = self.path else { return self.interval_ns / 2 };
        let share = (path.bdp_bytes() / u64::from(connections.max(1))).min(path.buffer_bytes) as f64;
        let doublings = (share / INITIAL_WINDOW_BYTES).max(1.0).log2().ceil();
        (path.rtt_ns as f64 * (3.0 + doublings)) as u64
    }

    /// The longer the transfer, the longer a level is looked at: congestion control swings over seconds.
    fn window_ns(&self, seen: &Seen) -> u64 {
        let Some(path) = self.path else { return LEAST_WINDOW_NS.min(self.interval_ns) };
        let left_ns = seen.left_bytes() as f64 / path.bandwidth_bytes_per_s.max(1) as f64 * 1e9;
        let least_ns = LEAST_WINDOW_NS.max(WINDOW_RTT * path.rtt_ns);
        self.interval_ns.min(least_ns.max((left_ns * WINDOW_OF_LEFT) as u64))
    }

    fn begin(&mut self, connections: u32, seen: &Seen) {
        self.connections = connections;
        self.tried.push(connections);
        self.probe =
            Some(Probe::start(connections, seen.at_ns, self.warm_up_ns(connections), self.window_ns(seen)));
    }

    /// Whether a probe of this level can pay.
    fn pays(&self, connections: u32, seen: &Seen) -> bool {
        let Some(best) = self.best else { return true };
        let left_s = seen.left_bytes() as f64 * best.time_s / best.bytes.max(1.0);
        let probe_s = (self.warm_up_ns(connections) + self.window_ns(seen)) as f64 / 1e9;
        left_s > PROBES_LEFT * probe_s
    }

    /// Level to try next while the search is on, and where the search is with it.
    fn next(&self, was_better: bool) -> Option<(Search, u32)> {
        let best = self.best?.connections;
        let fresh = |level: u32| (self.least..=self.most).contains(&level) && !self.tried.contains(&level);
        let doubled = best.saturating_mul(2).min(self.most);
        let up = (Search::Up, doubled);
        let down = (Search::Down, best / 2);
        let fewer = (Search::Fewer, (f64::from(best) / FEWER).round() as u32);
        let order = match self.search {
            Search::First => vec![up, down],
            Search::Up if was_better => vec![up],
            // One step up did not pay from the very first level: it may be too high already.
            Search::Up if self.tried.len() == 2 => vec![down],
            Search::Down if was_better => vec![down],
            Search::Fewer if was_better => vec![fewer],
            _ => vec![],
        };
        let found = order.into_iter().find(|(_, level)| fresh(*level));
        let is_on = !matches!(self.search, Search::Fewer | Search::Watch);
        let between = || is_on.then(|| self.between(best).into_iter().find(|level| fresh(*level))).flatten();
        found.or_else(|| between().map(|level| (Search::Between, level)))
    }

    /// The geometric means of the best level and those next to it that were tried, where these are far from it.
    fn between(&self, best: u32) -> Vec<u32> {
        let above = self.tried.iter().copied().filter(|level| *level > best).min();
        let below = self.tried.iter().copied().filter(|level| *level < best).max();
        let middle = |a: u32, b: u32| (f64::from(a) * f64::from(b)).sqrt().round() as u32;
        let is_far = |a: u32, b: u32| f64::from(b) >= FAR * f64::from(a);
        let above = above.filter(|above| is_far(best, *above)).map(|above| middle(best, above));
        let below = below.filter(|below| is_far(*below, best)).map(|below| middle(below, best));
        above.into_iter().chain(below).collect()
    }

    fn take(&mut self, given: Given, seen: &Seen) {
        let objective = self.objective.with_meter(given.has_meter);
        let score = objective.score(&given);
        let kept = self.best.map(|best| objective.score(&best));
        if self.search == Search::Watch {
            self.watch(given, score, kept.unwrap_or(score), seen);
            return;
        }
        // More connections must be worth it; fewer need only be as good.
        let more = self.best.is_some_and(|best| given.connections > best.connections);
        let wanted = kept.map(|kept| kept + kept.abs() * if more { MARGIN } else { -MARGIN });
        // What a meter said nothing of is never better, or a silent one would take connections away one by one.
        let was_better = wanted.is_none_or(|wanted| score > wanted.max(f64::MIN));
        if was_better {
            self.best = Some(given);
        }
        match self.next(was_better) {
            Some((search, level)) if self.pays(level, seen) => {
                self.search = search;
                self.begin(level, seen);
            }
            _ => self.settle(seen),
        }
    }

    /// The connections, by what each chunk needs.
    fn level(&self, seen: &Seen) -> Level {
        let path = self.path.unwrap_or(UNKNOWN);
        let open: Vec<usize> = (0..seen.left.len()).filter(|k| seen.left[*k].files > 0).collect();
        let needs: Vec<f64> = open.iter().map(|k| connection_time_s(&seen.left[*k], &path)).collect();
        let mut shares = vec![Share::default(); seen.left.len()];
        for (k, connections) in open.iter().zip(by_weight(self.connections, &needs)) {
            shares[*k] = Share { connections, parallelism: connections };
        }
        Level { shares, shared: true }
    }

    fn settle(&mut self, seen: &Seen) {
        self.steady = if self.search == Search::Fewer { STEADY } else { 0 };
        self.search = Search::Watch;
        self.fallen = 0;
        let connections = self.best.map_or(self.connections, |best| best.connections);
        self.begin(connections, seen);
    }

    /// What the level gives now; the best is what it gave last, unless it has fallen.
    fn watch(&mut self, given: Given, score: f64, kept: f64, seen: &Seen) {
        self.fallen = if score < kept - kept.abs() * (1.0 - FALLEN) { self.fallen + 1 } else { 0 };
        self.steady += 1;
        let has_fallen = self.fallen >= FALLEN_TIMES;
        if self.fallen == 0 || has_fallen {
            self.best = Some(given);
        }
        self.tried = vec![given.connections];
        // Large files alone may fill the path for a while, and small ones pay for it later.
        let is_alike = seen.left.iter().filter(|left| left.files > 0).count() == 1;
        self.search = match (has_fallen, self.steady == STEADY) {
            (true, _) => Search::First,
            (_, true) if is_alike => Search::Fewer,
            _ => Search::Watch,
        };
        match self.next(true).filter(|(_, level)| self.pays(*level, seen)) {
            Some((search, level)) => {
                self.search = search;
                self.begin(level, seen);
            }
            None => {
                self.search = Search::Watch;
                self.begin(given.connections, seen);
            }
        }
    }
}

impl Policy for Auto {
    fn decide(&mut self, seen: &Seen) -> Decided {
        if self.connections == 0 {
            let first = self.first(seen);
            self.least = if self.path.is_some() { first.div_ceil(2) } else { 1 };
            self.begin(first, seen);
        }
        let mut again_ns = None;
        if let Some(probe) = &mut self.probe {
            match probe.seen(seen) {
                Probed::Waits(until_ns) => again_ns = Some(until_ns),
                Probed::Gave(given) => {
                    self.take(given, seen);
                    let warm_ns = self.warm_up_ns(self.connections);
                    again_ns = Some(seen.at_ns + warm_ns);
                }
            }
        }
        let why = match self.search {
            Search::First => "begins where bandwidth, RTT and sizes say".to_owned(),
            Search::Up => "doubles".to_owned(),
            Search::Down => "halves".to_owned(),
            Search::Between => "tries between".to_owned(),
            Search::Watch => "stays and watches".to_owned(),
            Search::Fewer => "tries fewer".to_owned(),
        };
        Decided { level: self.level(seen), again_ns, why }
    }
}

/// Connection time that what is left of a chunk needs, seconds, if every connection has a window of its own: the kernel
/// takes about half of a receive buffer for itself.
fn connection_time_s(left: &Left, path: &Path) -> f64 {
    let round_trips =
        left.files as f64 * A_REQUEST_RTT + left.bytes as f64 * 2.0 / path.buffer_bytes.max(1) as f64;
    round_trips * path.rtt_ns as f64 / 1e9
}
