// SPDX-License-Identifier: Apache-2.0
//! Departures that are written down, and the certificate that comes of them.

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
    let found = Certifier::new(Basis::HandOver).finish(&schedule(), &totals(10, 0));
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
    let found = certifier.finish(&schedule(), &totals(5, 5));
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
    assert_eq!(certifier.finish(&schedule(), &totals(1, 1)).messages_early, 1);
}

#[test]
fn messages_without_a_wait_between_them_are_a_train() {
    let mut certifier = Certifier::new(Basis::HandOver);
    certifier.depart(&schedule(), &at_once(0, 3, 2_000_000));
    certifier.depart(&schedule(), &at_once(3, 1, 3_000_000));
    certifier.pause();
    certifier.pause();
    certifier.depart(&schedule(), &at_once(4, 1, 4_000_000));
    let found = certifier.finish(&schedule(), &totals(5, 5));
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
    let found = certifier.finish(&schedule(), &totals(4, 4));
    // 0 and 1 were due already, 2 and 3 wait for their time in the kernel.
    assert_eq!(found.error_us.unwrap().max, 1_500.0);
    assert_eq!(found.within_5us_ratio, Some(0.5));
    assert_eq!(found.train_messages, Some(Trains { mean: 4.0 / 3.0, p99: 2, max: 2 }));
}

#[test]
fn with_stamps_a_message_is_as_late_as_it_left_whenever_it_was_handed_over() {
    let schedule = schedule();
    let mut certifier = Certifier::new(Basis::LaunchTimeMeasured);
    certifier.depart(&schedule, &at_once(0, 5, -700_000));
    // Punctual; 30 us late; 1.2 ms late, so that the next leaves behind it; and one that the kernel let go early.
    for (index, late_ns) in (0..).zip([0, 30_000, 1_200_000, 250_000, -10_000]) {
        certifier.leave(index * 1_000_000, index * 1_000_000 + late_ns);
    }
    let found = certifier.finish(&schedule, &totals(5, 5));
    assert_eq!((found.departures, found.departures_not_stamped, found.messages_early), (5, Some(0), 1));
    assert_eq!(found.error_us.unwrap().max, 1_200.0);
    assert_eq!((found.within_5us_ratio, found.within_500us_ratio), (Some(0.4), Some(0.8)));
    assert_eq!(found.train_messages.unwrap().max, 2);
    assert_eq!(found.back_to_back_ratio, Some(0.2));
}

#[test]
fn a_kernel_that_stamps_nothing_leaves_no_figures() {
    let mut certifier = Certifier::new(Basis::LaunchTimeMeasured);
    certifier.depart(&schedule(), &at_once(0, 4, -700_000));
    let found = certifier.finish(&schedule(), &totals(4, 4));
    assert_eq!((found.departures, found.departures_not_stamped), (4, Some(4)));
    assert_eq!((found.error_us, found.within_5us_ratio, found.back_to_back_ratio), (None, None, None));
    assert_eq!(found.train_messages, None);
}

#[test]
fn a_few_departures_without_a_stamp_shift_the_percentiles_and_count_as_late() {
    let mut certifier = Certifier::new(Basis::LaunchTimeMeasured);
    certifier.depart(&schedule(), &at_once(0, 10_000, -700_000));
    for index in 0..9_991 {
        certifier.leave(index * 1_000_000, index * 1_000_000 + if index < 9_890 { 1_000 } else { 60_000 });
    }
    let found = certifier.finish(&schedule(), &totals(10_000, 10_000));
    assert_eq!(found.departures_not_stamped, Some(9));
    let errors = found.error_us.unwrap();
    // Of those seen 98.99 % are within 1 us; of all fewer.
    assert!(errors.p50 < 1.01 && errors.p99 > 59.0, "{errors:?}");
    assert_eq!(found.within_500us_ratio, Some(0.9991));
}

#[test]
fn what_the_transport_held_back_is_no_error_of_the_sender() {
    let mut certifier = Certifier::new(Basis::HandOver);
    certifier.depart(&schedule(), &at_once(0, 1, 0));
    certifier.hold_back(3, true);
    certifier.hold_back(2, false);
    let found = certifier.finish(&schedule(), &totals(8, 4));
    assert_eq!((found.departures, found.held_back_ratio), (1, 0.625));
    assert_eq!(found.held_back_not_sent_ratio, 0.25);
    assert_eq!(found.error_us.unwrap().max, 0.0);
}

#[test]
fn a_sender_that_is_held_back_for_hours_remembers_no_more_than_one_that_is_not() {
    let schedule = schedule();
    let mut certifier = Certifier::new(Basis::HandOver);
    for index in 0..3 * REMEMBERED as u64 {
        certifier.depart(&schedule, &at_once(index, 1, index as i64 * 1_000_000));
        certifier.hold_back(1, true);
    }
    let before = certifier.recent.len();
    for _ in 0..1_000_000 {
        certifier.hold_back(1, true);
    }
    assert_eq!((before, certifier.recent.len()), (REMEMBERED + 1, REMEMBERED + 1));
    // All of it may still be given back, the latest first.
    certifier.take_back(1_000_001);
    assert_eq!(certifier.recent.len(), REMEMBERED);
    let found = certifier.finish(&schedule, &totals(1, 1));
    assert_eq!((found.departures, found.held_back_not_sent_ratio), (3 * REMEMBERED as u64, 1_000_001.0));
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
        let totals = totals(messages, messages);
        let (together, one_by_one) = (together.finish(&schedule, &totals), one_by_one.finish(&schedule, &totals));
        prop_assert_eq!((together.departures, together.messages_early), (messages, 0));
        prop_assert_eq!(one_by_one.departures, messages);
        prop_assert_eq!(together.within_500us_ratio, one_by_one.within_500us_ratio);
        let (some, others) = (together.error_us.unwrap(), one_by_one.error_us.unwrap());
        for (one, other) in [(some.p50, others.p50), (some.p99, others.p99), (some.max, others.max)] {
            prop_assert!((one - other).abs() <= 1e-3 * other, "{:?} {:?}", some, others);
        }
        prop_assert_eq!(together.train_messages.map(|train| train.max), Some(messages));
    }

    /// Whatever is handed over, held back, sent late and given back: every message of the schedule is in one place.
    #[test]
    fn departures_and_what_was_held_back_and_refused_are_the_schedule(
        steps in proptest::collection::vec((1_u64..40, 0_u8..4, 0_i64..3_000_000), 0..200),
        given_back in 0_u64..(REMEMBERED as u64),
    ) {
        let schedule = Schedule::new(8_000_000, 1000, 10_000_000_000);
        let mut certifier = Certifier::new(Basis::HandOver);
        let (mut done, mut sent, mut refused) = (0, 0, 0);
        let mut errors_us = Vec::new();
        for (messages, kind, late_ns) in steps {
            match kind {
                0 => refused += messages,
                1 => certifier.hold_back(messages, false),
                2 => {
                    certifier.hold_back(messages, true);
                    errors_us.extend((0..messages).map(|_| None));
                }
                _ => {
                    let at_ns = schedule.due_ns(done + messages - 1) + late_ns;
                    certifier.pause();
                    certifier.depart(&schedule, &at_once(done, messages, at_ns));
                    errors_us.extend((done..done + messages).map(|index| Some(at_ns - schedule.due_ns(index))));
                }
            }
            done += messages;
            sent += if kind > 1 { messages } else { 0 };
        }
        let given_back = given_back.min(sent);
        certifier.take_back(given_back);
        let found = certifier.finish(&schedule, &totals(done, sent - given_back));
        let of_all = |ratio: f64| (ratio * done as f64).round() as u64;
        errors_us.truncate((sent - given_back) as usize);
        let left = errors_us.iter().flatten().count() as u64;
        prop_assert_eq!(found.departures, left, "only what left is in the errors");
        prop_assert_eq!(found.error_us.map(|error| (error.max * 1e3).round() as i64), errors_us.iter().flatten().max().copied());
        let kept = of_all(found.achieved_ratio) + of_all(found.held_back_not_sent_ratio);
        prop_assert_eq!(kept + refused, done);
        prop_assert_eq!(found.departures + of_all(found.held_back_ratio) + refused, done);
    }

    /// Stamps of the kernel tell when messages left; those without one are the latest of all.
    #[test]
    fn departures_without_a_stamp_are_never_counted_as_punctual(
        late_ns in proptest::collection::vec(0_i64..800_000, 1..200),
        unseen in 0_u64..4,
    ) {
        let schedule = schedule();
        let mut certifier = Certifier::new(Basis::LaunchTimeMeasured);
        let all = late_ns.len() as u64 + unseen;
        certifier.depart(&schedule, &at_once(0, all, -500_000));
        for (index, late_ns) in (0..).zip(&late_ns) {
            certifier.leave(schedule.due_ns(index), schedule.due_ns(index) + late_ns);
        }
        let found = certifier.finish(&schedule, &totals(all, all));
        prop_assert_eq!((found.departures, found.departures_not_stamped), (all, Some(unseen)));
        prop_assert_eq!(found.error_us.is_some(), unseen == 0, "fewer than 1,000: each of them is in p99.9");
        let up_to = |limit_ns: i64| late_ns.iter().filter(|late_ns| **late_ns <= limit_ns).count() as f64 / all as f64;
        if let Some(share) = found.within_50us_ratio {
            prop_assert!((up_to(50_000)..=up_to(50_050)).contains(&share), "{}", share);
        }
    }
}
