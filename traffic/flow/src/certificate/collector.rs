// SPDX-License-Identifier: Apache-2.0
//! Collects departures while a flow runs. A message costs a subtraction and a count in a histogram; the times are those
//! that the pacer has read anyway.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use super::document::{Basis, Errors, Limits, PacingCertificate, Trains};
use crate::schedule::Schedule;
use netjoule_measure::distribution::Distribution;

/// Sizes that are remembered: more than any transport holds back (the longest queue has 256 messages).
pub(crate) const REMEMBERED: usize = 1024;

/// Longest train that is told apart.
const LONGEST_TRAIN: u64 = 1 << 40;
/// Up to so many messages of a hand-over are counted one by one; of more, the ends are compared first.
const FEW: u64 = 8;
/// The greatest percentile of [`Errors`].
const HIGHEST: f64 = 0.999;

/// Messages handed over one after the other, without a wait. Times are ns after the start of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOver {
    /// Index of the first in the schedule.
    pub first: u64,
    /// How many; above 0.
    pub messages: u64,
    /// When handing over began.
    pub from_ns: i64,
    /// When it was done. A train that is one call has no length: then this is the begin.
    pub to_ns: i64,
}

impl HandOver {
    /// When message `offset` of these left, at an even pace.
    fn left_ns(&self, offset: u64) -> i64 {
        self.from_ns + (self.to_ns - self.from_ns) * offset as i64 / self.messages as i64
    }

    /// The same without the last `messages` of these.
    fn without_last(self, messages: u64) -> Self {
        let kept = self.messages - messages;
        Self { messages: kept, to_ns: self.left_ns(kept), ..self }
    }
}

/// What is known of a flow when it is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Messages of the schedule.
    pub scheduled: u64,
    /// Messages that left.
    pub sent: u64,
    /// CPU time of the process, s.
    pub cpu_s: f64,
    /// From the start to the end, ns.
    pub span_ns: i64,
}

/// What happened last; the transport may still give messages of it back.
#[derive(Debug, Clone, Copy)]
enum Recent {
    Handed {
        over: HandOver,
        /// The sender had waited before it.
        after_pause: bool,
    },
    /// Left late, because the transport had no room.
    HeldBack { messages: u64 },
}

impl Recent {
    fn messages(&self) -> u64 {
        match self {
            Self::Handed { over, .. } => over.messages,
            Self::HeldBack { messages } => *messages,
        }
    }
}

/// Collects the departures of one flow.
#[derive(Debug)]
pub struct Certifier {
    basis: Basis,
    /// The last messages that left, in order, which are in no figure yet. Bounded: an entry has a message at least, with a
    /// departure all but [`REMEMBERED`] messages go, and two entries of messages that were held back never follow each other.
    recent: VecDeque<Recent>,
    recent_messages: u64,
    /// The sender has waited since the last hand-over.
    paused: bool,
    /// Errors of departures, ns; 0 for an early one.
    errors: Distribution,
    trains: Histogram<u64>,
    /// Messages that left since the last wait.
    train: u64,
    early: u64,
    /// Messages with a launch time that the kernel took.
    launched: u64,
    /// The latest time at which one of these left.
    left_ns: i64,
    held_back: u64,
    held_back_not_sent: u64,
}

impl Certifier {
    /// Before the first departure.
    pub fn new(basis: Basis) -> Self {
        Self {
            basis,
            recent: VecDeque::with_capacity(REMEMBERED + 2),
            recent_messages: 0,
            paused: false,
            errors: Distribution::default(),
            trains: Histogram::new_with_bounds(1, LONGEST_TRAIN, 2)
                .expect("constant bounds and digits are valid"),
            train: 0,
            early: 0,
            launched: 0,
            left_ns: i64::MIN,
            held_back: 0,
            held_back_not_sent: 0,
        }
    }

    /// Messages were handed over. With launch times only those that were handed over too late are late, and follow each
    /// other; where the kernel stamps them, [`Self::leave`] tells.
    pub fn depart(&mut self, schedule: &Schedule, over: &HandOver) {
        let after_pause = std::mem::take(&mut self.paused);
        self.remember(Recent::Handed { over: *over, after_pause });
        self.settle(schedule, REMEMBERED as u64);
    }

    /// A message with a launch time, due at `due_ns`, left at `left_ns` by the kernel's stamp; ns after the start.
    pub fn leave(&mut self, due_ns: i64, left_ns: i64) {
        if due_ns > self.left_ns {
            // It waited for its own time: that of the one before had come and gone.
            self.end_train();
        }
        self.left_ns = self.left_ns.max(left_ns);
        self.train += 1;
        self.count(left_ns - due_ns, 1);
    }

    /// The sender waited: what leaves next begins a train.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Messages that had found no room in their transport when they were due: they leave now, or never (`sent` false).
    pub fn hold_back(&mut self, messages: u64, sent: bool) {
        self.held_back += messages;
        if !sent {
            self.held_back_not_sent += messages;
            return;
        }
        // One entry however long it lasts: nothing but a departure settles entries, and none may come for hours.
        match self.recent.back_mut() {
            Some(Recent::HeldBack { messages: before }) => {
                *before += messages;
                self.recent_messages += messages;
            }
            _ => self.remember(Recent::HeldBack { messages }),
        }
    }

    /// The last messages that were handed over have not left after all: the transport held them back to the end.
    pub fn take_back(&mut self, messages: u64) {
        let mut left = messages;
        while left > 0 {
            let Some(last) = self.recent.pop_back() else { return };
            let back = left.min(last.messages());
            left -= back;
            self.recent_messages -= back;
            self.held_back_not_sent += back;
            match last {
                Recent::Handed { over, after_pause } => {
                    self.held_back += back;
                    if back < over.messages {
                        self.recent.push_back(Recent::Handed { over: over.without_last(back), after_pause });
                    }
                }
                Recent::HeldBack { messages } if back < messages => {
                    self.recent.push_back(Recent::HeldBack { messages: messages - back });
                }
                Recent::HeldBack { .. } => {}
            }
        }
    }

    fn remember(&mut self, recent: Recent) {
        self.recent_messages += recent.messages();
        self.recent.push_back(recent);
    }

    /// Put into the figures what has been followed by `kept` messages or more.
    fn settle(&mut self, schedule: &Schedule, kept: u64) {
        while let Some(oldest) = self.recent.front().copied() {
            if self.recent_messages - oldest.messages() < kept {
                return;
            }
            self.recent_messages -= oldest.messages();
            self.recent.pop_front();
            if let Recent::Handed { over, after_pause } = oldest {
                if after_pause {
                    self.end_train();
                }
                self.book(schedule, &over);
            }
        }
    }

    fn book(&mut self, schedule: &Schedule, over: &HandOver) {
        match self.basis {
            Basis::HandOver => {
                self.train += over.messages;
                self.spread(schedule, over, 0, over.messages - 1);
            }
            Basis::LaunchTime => {
                for offset in 0..over.messages {
                    let late_ns = over.left_ns(offset) - schedule.due_ns(over.first + offset);
                    if late_ns <= 0 {
                        self.end_train();
                    }
                    self.train += 1;
                    self.count(late_ns.max(0), 1);
                }
            }
            Basis::LaunchTimeMeasured => self.launched += over.messages,
        }
    }

    fn end_train(&mut self) {
        if self.train > 0 {
            self.trains.saturating_record(self.train);
            self.train = 0;
        }
    }

    /// Count messages `from..=to` of a hand-over. Departures and deadlines both rise, so the error of each lies between
    /// the two below; when those are one value to the histogram, all are.
    fn spread(&mut self, schedule: &Schedule, over: &HandOver, from: u64, to: u64) {
        if to - from < FEW {
            for offset in from..=to {
                self.count(over.left_ns(offset) - schedule.due_ns(over.first + offset), 1);
            }
            return;
        }
        let least_ns = over.left_ns(from) - schedule.due_ns(over.first + to);
        let greatest_ns = over.left_ns(to) - schedule.due_ns(over.first + from);
        if least_ns >= 0 && self.errors.takes_for_one(least_ns as u64, greatest_ns as u64) {
            self.count(greatest_ns, to - from + 1);
            return;
        }
        let middle = from + (to - from) / 2;
        self.spread(schedule, over, from, middle);
        self.spread(schedule, over, middle + 1, to);
    }

    fn count(&mut self, error_ns: i64, messages: u64) {
        if error_ns < 0 {
            self.early += messages;
        }
        self.errors.record_times(error_ns.max(0), messages);
    }

    /// The certificate, not yet judged.
    pub fn finish(mut self, schedule: &Schedule, totals: &Totals) -> PacingCertificate {
        self.settle(schedule, 0);
        self.end_train();
        let seen = self.errors.count();
        let departures = if self.basis == Basis::LaunchTimeMeasured { self.launched } else { seen };
        let of_all = |count: u64| count as f64 / totals.scheduled.max(1) as f64;
        let errors = ErrorFigures::of(&mut self.errors, departures);
        let trains = self.trains.len();
        PacingCertificate {
            error_basis: self.basis,
            departures,
            departures_not_stamped: (self.basis == Basis::LaunchTimeMeasured)
                .then(|| departures.saturating_sub(seen)),
            error_us: errors.as_ref().map(|errors| errors.us),
            within_5us_ratio: errors.as_ref().map(|errors| errors.within_ratio[0]),
            within_50us_ratio: errors.as_ref().map(|errors| errors.within_ratio[1]),
            within_500us_ratio: errors.as_ref().map(|errors| errors.within_ratio[2]),
            back_to_back_ratio: errors.map(|_| seen.saturating_sub(trains) as f64 / seen as f64),
            train_messages: train_messages(&self.trains, seen),
            messages_early: self.early,
            held_back_ratio: of_all(self.held_back),
            held_back_not_sent_ratio: of_all(self.held_back_not_sent),
            achieved_ratio: of_all(totals.sent),
            cpu_s: totals.cpu_s,
            cpu_ratio: (totals.span_ns > 0).then(|| totals.cpu_s / (totals.span_ns as f64 * 1e-9)),
            limits: Limits::default(),
            failed: Vec::new(),
            passed: None,
        }
    }
}

/// Figures of the errors of `departures`, of which some may not have been seen.
#[derive(Debug)]
struct ErrorFigures {
    us: Errors,
    /// Shares within 5, 50 and 500 us.
    within_ratio: [f64; 3],
}

impl ErrorFigures {
    /// The figures, an unseen departure taken for the latest of all; `None` where a percentile would be one of those.
    fn of(errors: &mut Distribution, departures: u64) -> Option<Self> {
        let seen = errors.count() as f64;
        let all = departures as f64;
        let told = errors.told().filter(|_| HIGHEST * all <= seen)?;
        let quantile = |share: f64| told.quantile_ns((share * all / seen).min(1.0)) * 1e-3;
        let us = Errors {
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(HIGHEST),
            max: told.max_ns() * 1e-3,
        };
        let within_ratio = [5, 50, 500].map(|us: u64| told.count_to(us * 1_000) as f64 / all);
        Some(Self { us, within_ratio })
    }
}

fn train_messages(trains: &Histogram<u64>, departures: u64) -> Option<Trains> {
    let (count, max) = (trains.len(), trains.max());
    (count > 0).then(|| Trains {
        mean: departures as f64 / count as f64,
        p99: trains.value_at_quantile(0.99).min(max),
        max,
    })
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
