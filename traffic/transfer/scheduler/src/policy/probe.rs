// SPDX-License-Identifier: Apache-2.0
//! One level's probe: a warm-up that does not count, then a window that does.

use crate::level::Seen;
use crate::objective::{Given, Objective};

/// What was seen at the start of a window.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    bytes: u64,
    energy_uj: Option<u64>,
}

impl Mark {
    fn of(seen: &Seen) -> Self {
        Self { at_ns: seen.at_ns, bytes: seen.bytes, energy_uj: seen.energy_uj }
    }
}

/// A probe of one level. It is asked at each decision, and says when it wants to be asked again.
pub(super) struct Probe {
    connections: u32,
    warm_at_ns: u64,
    window_ns: u64,
    mark: Option<Mark>,
}

/// Where a probe is.
pub(super) enum Probed {
    /// It wants to be asked again at this time, nanoseconds.
    Waits(u64),
    /// What the level gave.
    Gave(Given),
}

impl Probe {
    /// A level that begins now; nanoseconds.
    pub(super) fn start(connections: u32, now_ns: u64, warm_up_ns: u64, window_ns: u64) -> Self {
        Self { connections, warm_at_ns: now_ns + warm_up_ns, window_ns, mark: None }
    }

    /// What the level has given, once its window is over.
    pub(super) fn seen(&mut self, seen: &Seen) -> Probed {
        if seen.at_ns < self.warm_at_ns {
            return Probed::Waits(self.warm_at_ns);
        }
        let mut mark = *self.mark.get_or_insert_with(|| Mark::of(seen));
        if mark.energy_uj.is_none() && seen.energy_uj.is_some() {
            // The meter has begun to speak: the window begins with it.
            mark = *self.mark.insert(Mark::of(seen));
        }
        let end_ns = mark.at_ns + self.window_ns;
        let has_news = seen.energy_uj.is_none() || seen.energy_uj > mark.energy_uj;
        // A slow meter is waited for, so long again.
        let last_ns = if has_news { end_ns } else { end_ns + self.window_ns };
        if seen.at_ns < last_ns {
            return Probed::Waits(if seen.at_ns < end_ns { end_ns } else { last_ns });
        }
        let joules = |energy_uj: u64| energy_uj as f64 / 1e6;
        Probed::Gave(Given {
            connections: self.connections,
            bytes: seen.bytes.saturating_sub(mark.bytes) as f64,
            energy_j: seen
                .energy_uj
                .zip(mark.energy_uj)
                .filter(|_| has_news)
                .map(|(now, then)| joules(now.saturating_sub(then))),
            has_meter: seen.energy_uj.is_some(),
            time_s: (seen.at_ns - mark.at_ns) as f64 / 1e9,
            left_bytes: seen.left_bytes() as f64,
            spent_j: joules(seen.energy_uj.unwrap_or(0)),
        })
    }
}

/// The best of some levels, by what counts now that the last has been probed; of equals the one with the fewest
/// connections.
pub(super) fn best(objective: Objective, levels: &[Given]) -> Option<Given> {
    let objective = objective.with_meter(levels.last()?.has_meter);
    let better = |a: &Given, b: &Given| {
        let (of_a, of_b) = (objective.score(a), objective.score(b));
        of_a > of_b || (of_a == of_b && a.connections < b.connections)
    };
    levels.iter().copied().reduce(|kept, level| if better(&level, &kept) { level } else { kept })
}
