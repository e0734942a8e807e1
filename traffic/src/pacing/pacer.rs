// SPDX-License-Identifier: Apache-2.0
//! What may leave at a given time, when the next message leaves, and whether to sleep or to watch the clock until
//! then. Pure; all times are ns after the start of the flow.
//!
//! A message leaves at its own deadline. With a window it leaves at the end of the window that the first message held
//! opened, together with all that are due by then: at most the window late. With `burst:N` a group of N leaves when
//! its last message is due. With `so_txtime` it is handed over ahead and the kernel sends it at its deadline. What
//! is due before the end of the flow leaves by then.

use crate::pacing::{Mode, SPIN_US};
use crate::schedule::Schedule;

/// With `so_txtime`: what is due this soon is handed over, ns. Well below the horizon of fq (10 s), and few enough
/// messages for a send buffer.
const LAUNCH_AHEAD_NS: i64 = 1_000_000;
/// With `so_txtime`: no message is handed over later than this before its launch, as far as it is up to us, ns. Covers
/// a late wake-up.
const LAUNCH_MARGIN_NS: i64 = 500_000;

/// What to do until something leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Sleep until then.
    Sleep {
        /// ns after the start.
        until_ns: i64,
    },
    /// Watch the clock until then.
    Spin {
        /// ns after the start.
        until_ns: i64,
    },
}

/// Decides when the messages of one schedule leave.
#[derive(Debug, Clone, Copy)]
pub struct Pacer {
    mode: Mode,
    window_ns: i64,
    /// Length of the flow: no window stays open beyond it.
    duration_ns: i64,
    /// When the first message that has not left leaves.
    departure_ns: i64,
}

impl Pacer {
    /// A pacer before the first message.
    pub fn new(mode: Mode, window_ns: i64, duration_ns: i64, schedule: &Schedule) -> Self {
        let mut pacer = Self { mode, window_ns, duration_ns, departure_ns: 0 };
        pacer.advance(schedule, 0);
        pacer
    }

    /// The messages before `done` are accounted for. (An index that the schedule lacks departs at the flow's end.)
    pub fn advance(&mut self, schedule: &Schedule, done: u64) {
        let count = schedule.count();
        self.departure_ns = if done >= count {
            self.duration_ns
        } else {
            match self.mode {
                Mode::Burst(size) => self.window_end_ns(schedule.due_ns(last_of_group(done, size, count))),
                Mode::SoTxtime => schedule.due_ns(done) - LAUNCH_MARGIN_NS,
                Mode::Absolute | Mode::Hybrid | Mode::Spin => self.window_end_ns(schedule.due_ns(done)),
            }
        };
    }

    /// When the first message that has not left leaves, or with `so_txtime` is handed over.
    pub fn departure_ns(&self) -> i64 {
        self.departure_ns
    }

    /// How many messages of the schedule may have left by `elapsed_ns`, the `done` first of which have; none leaves
    /// while its window is open.
    pub fn released(&self, schedule: &Schedule, done: u64, elapsed_ns: i64) -> u64 {
        if elapsed_ns < self.departure_ns {
            return done;
        }
        let due = match self.mode {
            Mode::SoTxtime => schedule.due_by(elapsed_ns + LAUNCH_AHEAD_NS),
            _ => schedule.due_by(elapsed_ns),
        };
        let whole = match self.mode {
            // The rest of the schedule is a group, too.
            Mode::Burst(size) if due < schedule.count() => due - due % size,
            _ => due,
        };
        whole.max(done)
    }

    /// What to do at `elapsed_ns` until the next departure; it may have passed already.
    pub fn rest(&self, elapsed_ns: i64) -> Rest {
        let until_ns = self.departure_ns;
        let spin_ns = SPIN_US as i64 * 1_000;
        match self.mode {
            Mode::Spin => Rest::Spin { until_ns },
            Mode::Hybrid if until_ns - elapsed_ns <= spin_ns => Rest::Spin { until_ns },
            Mode::Hybrid => Rest::Sleep { until_ns: until_ns - spin_ns },
            Mode::Absolute | Mode::SoTxtime | Mode::Burst(_) => Rest::Sleep { until_ns },
        }
    }

    /// End of the window that a message due at `due_ns` opens; never before the deadline itself.
    fn window_end_ns(&self, due_ns: i64) -> i64 {
        due_ns.max((due_ns + self.window_ns).min(self.duration_ns))
    }
}

/// The last message of the group of `size` that message `index` of `count` belongs to.
fn last_of_group(index: u64, size: u64, count: u64) -> u64 {
    (index - index % size + size - 1).min(count - 1)
}

#[cfg(test)]
#[path = "pacer_tests.rs"]
mod tests;
