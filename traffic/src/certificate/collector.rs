// SPDX-License-Identifier: Apache-2.0
//! Collects departures while a flow runs. A message costs a subtraction and a count in a histogram; the times are those
//! that the pacer has read anyway.

use hdrhistogram::Histogram;

use crate::certificate::{Basis, Errors, Limits, PacingCertificate, Trains};
use crate::schedule::Schedule;

/// Largest error that is told apart, ns (longer ones count as this).
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Longest train that is told apart.
const LONGEST_TRAIN: u64 = 1 << 40;
/// Up to so many messages of a hand-over are counted one by one; of more, the ends are compared first.
const FEW: u64 = 8;

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

/// Collects the departures of one flow.
#[derive(Debug)]
pub struct Certifier {
    basis: Basis,
    errors: Histogram<u64>,
    greatest_ns: i64,
    trains: Histogram<u64>,
    /// Messages that left since the last wait.
    train: u64,
    early: u64,
    held_back: u64,
    held_back_not_sent: u64,
}

impl Certifier {
    /// Before the first departure.
    pub fn new(basis: Basis) -> Self {
        let histogram = |greatest, digits| {
            Histogram::new_with_bounds(1, greatest, digits).expect("constant bounds and digits are valid")
        };
        Self {
            basis,
            errors: histogram(LONGEST_NS, 3),
            greatest_ns: 0,
            trains: histogram(LONGEST_TRAIN, 2),
            train: 0,
            early: 0,
            held_back: 0,
            held_back_not_sent: 0,
        }
    }

    /// Messages left. With launch times only those that were handed over too late are late, and follow each other.
    pub fn depart(&mut self, schedule: &Schedule, over: &HandOver) {
        match self.basis {
            Basis::HandOver => {
                self.train += over.messages;
                self.spread(schedule, over, 0, over.messages - 1);
            }
            Basis::LaunchTime => {
                for offset in 0..over.messages {
                    let late_ns = over.left_ns(offset) - schedule.due_ns(over.first + offset);
                    if late_ns <= 0 {
                        self.pause();
                    }
                    self.train += 1;
                    self.count(late_ns.max(0), 1);
                }
            }
        }
    }

    /// The sender waited: what leaves next begins a train.
    pub fn pause(&mut self) {
        if self.train > 0 {
            self.trains.saturating_record(self.train);
            self.train = 0;
        }
    }

    /// Messages that had found no room in their transport when they were due: they leave now, or never (`sent` false).
    pub fn hold_back(&mut self, messages: u64, sent: bool) {
        self.held_back += messages;
        if !sent {
            self.held_back_not_sent += messages;
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
        if least_ns >= 0 && self.errors.equivalent(least_ns as u64, greatest_ns as u64) {
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
        self.greatest_ns = self.greatest_ns.max(error_ns);
        self.errors.saturating_record_n(error_ns.max(0) as u64, messages);
    }

    /// The certificate, not yet judged.
    pub fn finish(mut self, totals: &Totals) -> PacingCertificate {
        self.pause();
        let departures = self.errors.len();
        let share = |count: u64| (departures > 0).then(|| count as f64 / departures as f64);
        let of_all = |count: u64| count as f64 / totals.scheduled.max(1) as f64;
        let within = |us: u64| share(self.errors.count_between(0, us * 1_000));
        PacingCertificate {
            error_basis: self.basis,
            departures,
            error_us: self.errors_us(),
            within_5us_ratio: within(5),
            within_50us_ratio: within(50),
            within_500us_ratio: within(500),
            back_to_back_ratio: share(departures.saturating_sub(self.trains.len())),
            train_messages: self.train_messages(departures),
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

    fn errors_us(&self) -> Option<Errors> {
        let max = self.greatest_ns as f64 * 1e-3;
        // A percentile is the upper edge of its class.
        let quantile = |share| (self.errors.value_at_quantile(share) as f64 * 1e-3).min(max);
        (!self.errors.is_empty()).then(|| Errors {
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max,
        })
    }

    fn train_messages(&self, departures: u64) -> Option<Trains> {
        let trains = self.trains.len();
        let max = self.trains.max();
        (trains > 0).then(|| Trains {
            mean: departures as f64 / trains as f64,
            p99: self.trains.value_at_quantile(0.99).min(max),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One message a millisecond.
    fn schedule() -> Schedule {
        Schedule::new(8_000_000, 1000, 1_000_000_000)
    }

    fn totals(scheduled: u64, sent: u64) -> Totals {
        Totals { scheduled, sent, cpu_s: 0.25, span_ns: 1_000_000_000 }
    }

    fn at_once(first: u64, messages: u64, at_ns: i64) -> HandOver {
        HandOver { first, messages, from_ns: at_ns, to_ns: at_ns }
    }

    #[test]
    fn a_flow_in_which_nothing_left_has_no_figures() {
        let found = Certifier::new(Basis::HandOver).finish(&totals(10, 0));
        assert_eq!((found.departures, found.error_us, found.train_messages), (0, None, None));
        assert_eq!((found.within_5us_ratio, found.back_to_back_ratio), (None, None));
        assert_eq!((found.achieved_ratio, found.cpu_ratio), (0.0, Some(0.25)));
    }

    #[test]
    fn errors_are_departure_less_deadline_and_shares_count_them() {
        let mut certifier = Certifier::new(Basis::HandOver);
        for (index, late_ns) in (0..).zip([1_000, 4_000, 40_000, 400_000, 900_000]) {
            certifier.depart(&schedule(), &at_once(index, 1, index as i64 * 1_000_000 + late_ns));
            certifier.pause();
        }
        let found = certifier.finish(&totals(5, 5));
        let errors = found.error_us.unwrap();
        assert!((errors.p50 / 40.0 - 1.0).abs() < 1e-3, "{errors:?}");
        assert_eq!((errors.p99, errors.max), (900.0, 900.0));
        assert_eq!((found.within_5us_ratio, found.within_50us_ratio), (Some(0.4), Some(0.6)));
        assert_eq!((found.within_500us_ratio, found.messages_early), (Some(0.8), 0));
        assert_eq!(found.back_to_back_ratio, Some(0.0));
        assert_eq!(found.train_messages, Some(Trains { mean: 1.0, p99: 1, max: 1 }));
    }

    #[test]
    fn an_early_departure_shows() {
        let mut certifier = Certifier::new(Basis::HandOver);
        certifier.depart(&schedule(), &at_once(1, 1, 999_999));
        assert_eq!(certifier.finish(&totals(1, 1)).messages_early, 1);
    }

    #[test]
    fn messages_without_a_wait_between_them_are_a_train() {
        let mut certifier = Certifier::new(Basis::HandOver);
        certifier.depart(&schedule(), &at_once(0, 3, 2_000_000));
        certifier.depart(&schedule(), &at_once(3, 1, 3_000_000));
        certifier.pause();
        certifier.pause();
        certifier.depart(&schedule(), &at_once(4, 1, 4_000_000));
        let found = certifier.finish(&totals(5, 5));
        assert_eq!(found.train_messages, Some(Trains { mean: 2.5, p99: 4, max: 4 }));
        assert_eq!(found.back_to_back_ratio, Some(0.6));
    }

    #[test]
    fn messages_handed_over_together_leave_at_an_even_pace() {
        let over = HandOver { first: 0, messages: 4, from_ns: 100, to_ns: 180 };
        assert_eq!([0, 1, 2, 3].map(|offset| over.left_ns(offset)), [100, 120, 140, 160]);
    }

    #[test]
    fn the_kernel_keeps_launch_times_that_it_was_told_in_time() {
        let mut certifier = Certifier::new(Basis::LaunchTime);
        certifier.depart(&schedule(), &at_once(0, 4, 1_500_000));
        let found = certifier.finish(&totals(4, 4));
        // 0 and 1 were due already, 2 and 3 wait for their time in the kernel.
        assert_eq!(found.error_us.unwrap().max, 1_500.0);
        assert_eq!(found.within_5us_ratio, Some(0.5));
        assert_eq!(found.train_messages, Some(Trains { mean: 4.0 / 3.0, p99: 2, max: 2 }));
    }

    #[test]
    fn what_the_transport_held_back_is_no_error_of_the_sender() {
        let mut certifier = Certifier::new(Basis::HandOver);
        certifier.depart(&schedule(), &at_once(0, 1, 0));
        certifier.hold_back(3, true);
        certifier.hold_back(2, false);
        let found = certifier.finish(&totals(8, 4));
        assert_eq!((found.departures, found.held_back_ratio), (1, 0.625));
        assert_eq!(found.held_back_not_sent_ratio, 0.25);
        assert_eq!(found.error_us.unwrap().max, 0.0);
    }

    proptest! {
        #[test]
        fn a_long_hand_over_counts_as_its_messages_one_by_one(
            rate_bps in 1_000_000_u64..10_000_000_000,
            first in 0_u64..1_000,
            messages in 1_u64..200,
            late_ns in 0_i64..20_000_000,
            takes_ns in 0_i64..200_000,
        ) {
            let schedule = Schedule::new(rate_bps, 64, 10_000_000_000);
            let from_ns = schedule.due_ns(first + messages) + late_ns;
            let over = HandOver { first, messages, from_ns, to_ns: from_ns + takes_ns };
            let mut together = Certifier::new(Basis::HandOver);
            together.depart(&schedule, &over);
            let mut one_by_one = Certifier::new(Basis::HandOver);
            for offset in 0..messages {
                one_by_one.count(over.left_ns(offset) - schedule.due_ns(first + offset), 1);
            }
            prop_assert_eq!(together.errors, one_by_one.errors);
            prop_assert_eq!((together.early, together.train), (0, messages));
        }
    }
}
