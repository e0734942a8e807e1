// SPDX-License-Identifier: Apache-2.0
//! EHT, energy-aware high throughput: probes channel counts two apart, then stays with the most efficient.
//!
//! Guner and Kosar (2018), algorithm 3, with the weights and the shape of HTEE of the same group (SC 2015): a chunk
//! weighs `ln(bytes) ln(files + 1)` (`+ 1`, or a chunk of one file would weigh nothing), channels go by largest
//! remainder with at least one to each chunk that is not done, so that probing begins at the number of chunks. The
//! weights are taken from what is left. A probe leaves out each connection's first round trips.

use super::probe::{best, Probe, Probed};
use super::shares::{by_weight, mean_bytes, share};
use crate::level::{Decided, Left, Level, Policy, Seen, Share};
use crate::objective::{Given, Objective};
use crate::path::Path;
use crate::settings::Settings;

const STEP: u32 = 2;
/// Handshake, first request and slow start of a new connection.
const WARM_UP_RTT: u64 = 6;

pub(super) struct Eht {
    path: Path,
    most: u32,
    objective: Objective,
    interval_ns: u64,
    channels: u32,
    probe: Option<Probe>,
    levels: Vec<Given>,
}

impl Eht {
    pub(super) fn of(settings: &Settings, path: Path) -> Self {
        Self {
            path,
            most: settings.max_connections,
            objective: settings.objective,
            interval_ns: settings.interval_ns,
            channels: 0,
            probe: None,
            levels: Vec::new(),
        }
    }

    fn level(&self, seen: &Seen) -> Level {
        let open: Vec<usize> = (0..seen.left.len()).filter(|k| seen.left[*k].files > 0).collect();
        let weights: Vec<f64> = open.iter().map(|k| weight(&seen.left[*k])).collect();
        let mut shares = vec![Share::default(); seen.left.len()];
        if !open.is_empty() {
            for (k, channels) in open.iter().zip(by_weight(self.channels, &weights)) {
                shares[*k] = share(channels, &self.path, mean_bytes(&seen.left[*k]));
            }
        }
        Level { shares, shared: false }
    }

    /// An interval without warm-up is half of it at least.
    fn warm_up_ns(&self) -> u64 {
        (WARM_UP_RTT * self.path.rtt_ns).min(self.interval_ns / 2)
    }

    fn begin(&mut self, channels: u32, now_ns: u64) {
        self.channels = channels;
        let warm_up_ns = self.warm_up_ns();
        self.probe = Some(Probe::start(channels, now_ns, warm_up_ns, self.interval_ns - warm_up_ns));
    }

    /// The next level to probe, or the best one to stay with.
    fn go_on(&mut self, seen: &Seen) {
        if self.channels + STEP <= self.most {
            self.begin(self.channels + STEP, seen.at_ns);
        } else {
            self.channels = best(self.objective, &self.levels).map_or(self.channels, |best| best.connections);
            self.probe = None;
        }
    }
}

impl Policy for Eht {
    fn decide(&mut self, seen: &Seen) -> Decided {
        if self.channels == 0 {
            let chunks = seen.left.iter().filter(|left| left.files > 0).count();
            self.begin(u32::try_from(chunks).unwrap_or(u32::MAX).clamp(1, self.most.max(1)), seen.at_ns);
        }
        let mut again_ns = None;
        while let Some(probe) = &mut self.probe {
            match probe.seen(seen) {
                Probed::Waits(until_ns) => {
                    again_ns = Some(until_ns);
                    break;
                }
                Probed::Gave(given) => {
                    self.levels.push(given);
                    self.go_on(seen);
                }
            }
        }
        let why = match &self.probe {
            Some(_) => format!("probes {} channels", self.channels),
            None => format!("{} channels were the best of {}", self.channels, self.levels.len()),
        };
        Decided { level: self.level(seen), again_ns, why }
    }
}

fn weight(left: &Left) -> f64 {
    ((left.bytes + 1) as f64).ln() * ((left.files + 1) as f64).ln()
}
