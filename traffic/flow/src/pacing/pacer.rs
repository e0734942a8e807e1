// SPDX-License-Identifier: Apache-2.0
//! What may leave at a given time, when the next message leaves, and whether to sleep or to watch the clock until
//! then. Pure; all times are ns after the start of the flow.
//!
//! A message leaves at its own deadline. With a window it leaves at the end of the window that the first message held
//! opened, together with all that are due by then: at most the window late. Where they are handed over in several
//! batches, those after the first go at once: their window has ended. With `burst:N` a group of N leaves when its last
//! message is due. With `so_txtime` it is handed over ahead and the kernel sends it at its deadline. What is due before the
//! end of the flow leaves by then.
//!
//! A host wakes some time after the deadline that it was given, and a window is a promise about departures. So the pacer
//! learns how late wake-ups come and aims that much before the window's end; never before the deadline itself.
//!
//! An alarm that is told ahead is cheap, one that is changed costs as much as a wake-up (`netjoule_measure::wait`). What waits
//! after a departure depends on how late it came. Where that varies by more than the window leaves room for, no departure
//! told ahead suits all; with `absolute` the next one then is a window later whatever waits, at most a window after the
//! deadline of what leaves.
//!
//! From a long sleep hosts wake later still: the processor has to leave a deep idle state, or the virtual one has to be
//! scheduled first. Where `absolute` or `hybrid` without a window learns that this takes long, it ends the long sleep that
//! much earlier and comes to the deadline, or to where the clock is watched, in naps, from which the host wakes soon. On a
//! host that wakes soon anyway it does not.

use serde::{Deserialize, Serialize};

use crate::pacing::{Mode, SPIN_US};
use crate::schedule::Schedule;

/// With `so_txtime`: what is due this soon is handed over, ns. Well below the horizon of fq (10 s).
const LAUNCH_AHEAD_NS: i64 = 1_000_000;
/// With `so_txtime`: at most so many messages wait in the kernel. fq drops what comes to a flow that has 100 packets
/// queued (`flow_limit`, tc-fq(8)), and nobody is told.
const LAUNCH_AHEAD_MESSAGES: u64 = 64;
/// With `so_txtime`: of a fast flow the next are handed over when so many still wait.
const LAUNCH_REFILL_MESSAGES: u64 = 32;
/// With `so_txtime`: no message is handed over later than this before its launch, as far as it is up to us, ns. Covers
/// a late wake-up.
const LAUNCH_MARGIN_NS: i64 = 500_000;

/// Of all wake-ups this share comes at most as late as a window allows for, %.
const LATE_PERCENT: i64 = 90;
/// Of all wake-ups this share comes sooner than the departure after the next is told for, %.
const SOON_PERCENT: i64 = 20;

/// A sleep from this length on is long: nothing of the host is still awake after it, ns.
const LONG_NS: i64 = 1_000_000;
/// Where this share of long sleeps ends at most so late, they are not ended early, % and ns.
const PUNCTUAL: (i64, i64) = (90, 25_000);
/// The naps begin at most this long before a departure, ns.
const LONGEST_APPROACH_NS: i64 = 500_000;
/// A nap is at most this long, ns.
const NAP_NS: i64 = 30_000;

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
    /// The first message of the departure after that, and its time.
    following: (u64, i64),
    /// The windows of the messages before this one have ended.
    ended_below: u64,
    /// How late most wake-ups come, and how late at least.
    late: Quantile,
    soon: Quantile,
    /// How late most wake-ups from a long sleep come.
    deep: Quantile,
    wake_ups: u64,
    naps: u64,
}

impl Pacer {
    /// A pacer before the first message.
    pub fn new(mode: Mode, window_ns: i64, duration_ns: i64, schedule: &Schedule) -> Self {
        let mut pacer = Self {
            mode,
            window_ns,
            duration_ns,
            departure_ns: 0,
            following: (u64::MAX, 0),
            ended_below: 0,
            late: Quantile::new(LATE_PERCENT, 1_000),
            soon: Quantile::new(SOON_PERCENT, 1_000),
            // A thin flow has few long sleeps to learn from.
            deep: Quantile::new(PUNCTUAL.0, 10_000),
            wake_ups: 0,
            naps: 0,
        };
        pacer.advance(schedule, 0, 0);
        pacer
    }

    /// The messages before `done` are accounted for, of those before `released` that might have left. (An index that the
    /// schedule lacks departs at the flow's end.)
    pub fn advance(&mut self, schedule: &Schedule, done: u64, released: u64) {
        // Without a window every message has its own deadline, and what came due meanwhile goes with the rest of a batch.
        self.ended_below = if self.window_ns > 0 { released.max(done) } else { done };
        let next_ns = self.departure_after(schedule, self.ended_below);
        if done < self.ended_below {
            self.departure_ns = schedule.due_ns(done);
            self.following = (self.ended_below, next_ns);
            return;
        }
        self.departure_ns = next_ns;
        let late_ns = if self.varies() { self.lead_ns().max(self.soon.value_ns) } else { self.soon.value_ns };
        let next = self.released(schedule, done, self.departure_ns + late_ns).max(done + 1);
        self.following = (next, self.departure_of(schedule, next));
    }

    /// When `first` leaves, the first message whose window has not ended. What was told as the following departure is kept
    /// to where it serves: an alarm may be armed for it.
    fn departure_after(&self, schedule: &Schedule, first: u64) -> i64 {
        let (told_first, told_ns) = self.following;
        let serves = match self.mode {
            Mode::Absolute if first < schedule.count() => {
                let waited_ns = told_ns - schedule.due_ns(first);
                (told_first <= first || self.varies()) && (0..=self.window_ns).contains(&waited_ns)
            }
            _ => told_first == first,
        };
        if serves {
            told_ns
        } else {
            self.departure_of(schedule, first)
        }
    }

    /// Whether how late most wake-ups come varies by more than what is left of a window that ends early for them.
    fn varies(&self) -> bool {
        self.mode == Mode::Absolute && self.lead_ns() - self.soon.value_ns > self.window_ns - self.lead_ns()
    }

    /// When the group of messages that begins with `first` leaves.
    fn departure_of(&self, schedule: &Schedule, first: u64) -> i64 {
        let count = schedule.count();
        if first >= count {
            return self.duration_ns;
        }
        match self.mode {
            Mode::Burst(size) => self.window_end_ns(schedule.due_ns(last_of_group(first, size, count))),
            Mode::SoTxtime => {
                let in_time_ns = schedule.due_ns(first) - LAUNCH_MARGIN_NS;
                // When this one is due, there is room for as many as went before it.
                let before = first.checked_sub(LAUNCH_REFILL_MESSAGES);
                before.map_or(in_time_ns, |before| in_time_ns.max(schedule.due_ns(before)))
            }
            Mode::Absolute | Mode::Hybrid | Mode::Spin => self.window_end_ns(schedule.due_ns(first)),
        }
    }

    /// A sleep that began at `since_ns` and should have ended at `until_ns` ended at `elapsed_ns`. None was where `until_ns`
    /// had passed: a sender that catches up learns nothing of how late its host wakes.
    pub fn woke(&mut self, since_ns: i64, until_ns: i64, elapsed_ns: i64) {
        if until_ns <= since_ns {
            return;
        }
        self.wake_ups += 1;
        self.naps += u64::from(until_ns < self.end_of_sleep_ns());
        let late_ns = elapsed_ns - until_ns;
        if late_ns < 0 {
            return;
        }
        self.late.learn(late_ns);
        self.soon.learn(late_ns);
        if until_ns - since_ns >= LONG_NS {
            self.deep.learn(late_ns);
        }
    }

    /// What it did so far.
    pub fn work(&self) -> PacerWork {
        let lead_us = (self.window_ns > 0).then(|| (self.lead_ns() as u64 + 500) / 1_000);
        PacerWork { wake_ups: self.wake_ups, naps: self.naps, window_lead_us: lead_us }
    }

    /// By how much a window ends early, so that a wake-up that is as late as most still is in it.
    fn lead_ns(&self) -> i64 {
        match self.mode {
            Mode::Absolute | Mode::Burst(_) => self.late.value_ns.min(self.window_ns),
            Mode::Hybrid | Mode::Spin | Mode::SoTxtime => 0,
        }
    }

    /// When the first message that has not left leaves, or with `so_txtime` is handed over.
    pub fn departure_ns(&self) -> i64 {
        self.departure_ns
    }

    /// The departure after that, should this one be punctual.
    pub fn following_ns(&self) -> i64 {
        self.following.1
    }

    /// How many messages of the schedule may have left by `elapsed_ns`, the `done` first of which have (that many were told
    /// to [`Self::advance`]); none leaves while its window is open.
    pub fn released(&self, schedule: &Schedule, done: u64, elapsed_ns: i64) -> u64 {
        let (waits_from, departure_ns) =
            if done < self.ended_below { self.following } else { (done, self.departure_ns) };
        if elapsed_ns < departure_ns {
            return waits_from;
        }
        let due = match self.mode {
            Mode::SoTxtime => {
                let waiting_next = schedule.due_by(elapsed_ns).saturating_add(LAUNCH_AHEAD_MESSAGES);
                schedule.due_by(elapsed_ns + LAUNCH_AHEAD_NS).min(waiting_next)
            }
            _ => schedule.due_by(elapsed_ns),
        };
        let whole = match self.mode {
            // The rest of the schedule is a group, too.
            Mode::Burst(size) if due < schedule.count() => due - due % size,
            _ => due,
        };
        whole.max(waits_from)
    }

    /// What to do at `elapsed_ns` until the next departure; it may have passed already.
    pub fn rest(&self, elapsed_ns: i64) -> Rest {
        let until_ns = self.departure_ns;
        match self.mode {
            Mode::Spin => Rest::Spin { until_ns },
            Mode::Hybrid if elapsed_ns >= self.end_of_sleep_ns() => Rest::Spin { until_ns },
            Mode::Absolute | Mode::Hybrid => Rest::Sleep { until_ns: self.next_stop_ns(elapsed_ns) },
            Mode::SoTxtime | Mode::Burst(_) => Rest::Sleep { until_ns },
        }
    }

    /// Until when nothing but sleep is wanted: the departure, or where the clock is watched from.
    fn end_of_sleep_ns(&self) -> i64 {
        match self.mode {
            Mode::Hybrid => self.departure_ns - SPIN_US as i64 * 1_000,
            _ => self.departure_ns,
        }
    }

    /// Where the sleep that begins at `elapsed_ns` ends: when all of it is over, or on the way there.
    fn next_stop_ns(&self, elapsed_ns: i64) -> i64 {
        let end_ns = self.end_of_sleep_ns();
        let late_ns = self.deep.value_ns;
        if self.window_ns > 0 || late_ns <= PUNCTUAL.1 {
            return end_ns;
        }
        // Twice as much leaves room for two naps at least.
        let approach_ns = end_ns - (2 * late_ns).min(LONGEST_APPROACH_NS);
        if approach_ns - elapsed_ns >= LONG_NS {
            approach_ns
        } else if elapsed_ns >= approach_ns {
            end_ns.min(elapsed_ns + NAP_NS)
        } else {
            end_ns
        }
    }

    /// End of the window that a message due at `due_ns` opens; never before the deadline itself.
    fn window_end_ns(&self, due_ns: i64) -> i64 {
        due_ns.max((due_ns + self.window_ns).min(self.duration_ns) - self.lead_ns())
    }
}

/// What pacing one flow took: how late its host wakes is learnt in each flow anew, so it is not the same in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacerWork {
    /// Sleeps until a departure, or on the way to one, that ended.
    pub wake_ups: u64,
    /// Those of them that were to end before the departure, for a wake-up nearer to it.
    pub naps: u64,
    /// How much before a window's end its messages left in the end, to allow for a late wake-up, us; missing without a
    /// window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_lead_us: Option<u64>,
}

/// A quantile of values that come one by one: a step up after a greater one, a step down after a smaller one, in the
/// ratio that balances at the quantile (Robbins and Monro 1951, "A Stochastic Approximation Method").
#[derive(Debug, Clone, Copy)]
struct Quantile {
    percent: i64,
    /// Both steps together: the smaller, the slower and the more exact.
    steps_ns: i64,
    value_ns: i64,
}

impl Quantile {
    fn new(percent: i64, steps_ns: i64) -> Self {
        Self { percent, steps_ns, value_ns: 0 }
    }

    fn learn(&mut self, value_ns: i64) {
        let share = if value_ns > self.value_ns { self.percent } else { self.percent - 100 };
        self.value_ns = (self.value_ns + self.steps_ns * share / 100).max(0);
    }
}

/// The last message of the group of `size` that message `index` of `count` belongs to.
fn last_of_group(index: u64, size: u64, count: u64) -> u64 {
    (index - index % size + size - 1).min(count - 1)
}

#[cfg(test)]
#[path = "pacer_tests.rs"]
mod tests;
