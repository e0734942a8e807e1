// SPDX-License-Identifier: Apache-2.0
//! A flow as the send loop would send it, on a clock that is a number: a wake-up comes late by what the case says, and
//! sending takes no time.

use proptest::prelude::*;

use super::*;

/// One message a millisecond, ten in all.
fn ten_messages() -> Schedule {
    Schedule::new(8_000_000, 1000, 10_000_000)
}

/// Messages that left together, and when.
#[derive(Debug)]
struct Departure {
    at_ns: i64,
    first: u64,
    messages: u64,
}

/// All departures of a flow whose wake-ups are late by the values of `late_ns`, in turn.
fn fly(mode: Mode, window_ns: i64, duration_ns: i64, schedule: &Schedule, late_ns: &[i64]) -> Vec<Departure> {
    let mut pacer = Pacer::new(mode, window_ns, duration_ns, schedule);
    fly_with(&mut pacer, schedule, late_ns, u64::MAX)
}

/// The same where at most `most` messages of one size go at once.
fn fly_with(pacer: &mut Pacer, schedule: &Schedule, late_ns: &[i64], most: u64) -> Vec<Departure> {
    let (mut now_ns, mut done, mut departures) = (0, 0, Vec::new());
    let mut late = late_ns.iter().cycle();
    while done < schedule.count() {
        let released = pacer.released(schedule, done, now_ns);
        if released > done {
            let due = released - done;
            let messages = if most == u64::MAX { due } else { schedule.alike(done, due.min(most)) };
            departures.push(Departure { at_ns: now_ns, first: done, messages });
            done += messages;
            pacer.advance(schedule, done, released);
            if done == schedule.count() {
                break;
            }
        }
        now_ns = match pacer.rest(now_ns) {
            Rest::Sleep { until_ns } => {
                // What has passed already is not slept for.
                let late_ns = if until_ns > now_ns { late.next().copied().unwrap_or(0) } else { 0 };
                let woke_ns = now_ns.max(until_ns) + late_ns;
                pacer.woke(now_ns, until_ns, woke_ns);
                woke_ns
            }
            Rest::Spin { until_ns } => now_ns.max(until_ns),
        };
    }
    departures
}

/// When each message left.
fn times(departures: &[Departure]) -> Vec<i64> {
    departures.iter().flat_map(|one| (0..one.messages).map(|_| one.at_ns)).collect()
}

/// Messages of 100 and of 200 bytes, 100 us apart, for 20 ms.
fn two_sizes() -> Schedule {
    let profile = r#"{"schema_version":1,"name":"two-sizes","messages":{
        "size_bytes":{"distribution":"empirical","values":[100,200]},
        "inter_departure_s":{"distribution":"constant","value":0.0001}}}"#;
    let profile = crate::schedule::text::read(profile.as_bytes(), "two-sizes").unwrap();
    Schedule::of_profile(&profile, 1, 20_000_000).unwrap()
}

#[test]
fn a_window_ends_for_all_that_were_due_by_then_whatever_one_hand_over_takes() {
    // A window of 1 ms at 100 messages a ms, where 32 go at once; and one of 1 ms at 10, where sizes change.
    let fast = Schedule::new(51_200_000, 64, 20_000_000);
    for schedule in [&fast, &two_sizes()] {
        let mut pacer = Pacer::new(Mode::Absolute, 1_000_000, 20_000_000, schedule);
        let departures = fly_with(&mut pacer, schedule, &[0], 32);
        assert!(departures.len() as u64 > 2 * pacer.work().wake_ups, "hand-overs are shorter than windows");
        assert!(pacer.work().wake_ups <= 20, "{:?}", pacer.work());
        let whole = fly(Mode::Absolute, 1_000_000, 20_000_000, schedule, &[0]);
        assert_eq!(times(&departures), times(&whole));
    }
}

#[test]
fn what_came_due_while_the_rest_of_a_window_found_no_room_may_leave_with_it_once_its_own_has_ended() {
    let schedule = ten_messages();
    let mut pacer = Pacer::new(Mode::Absolute, 2_500_000, 10_000_000, &schedule);
    assert_eq!(pacer.released(&schedule, 0, 2_500_000), 3);
    pacer.advance(&schedule, 1, 3);
    // Message 3 opened a window at 3 ms.
    assert_eq!(pacer.released(&schedule, 1, 5_400_000), 3);
    assert_eq!(pacer.released(&schedule, 1, 5_500_000), 6);
}

#[test]
fn a_sender_that_catches_up_learns_nothing_of_late_wake_ups() {
    let schedule = Schedule::new(30_000_000, 64, 100_000_000);
    let mut pacer = Pacer::new(Mode::Absolute, 50_000, 100_000_000, &schedule);
    for step in 1..=1_000 {
        // It comes back from handing over 300 us late, and does not sleep.
        pacer.woke(step * 1_000_000 + 300_000, step * 1_000_000, step * 1_000_000 + 300_000);
    }
    assert_eq!(pacer.work(), PacerWork { wake_ups: 0, naps: 0, window_lead_us: Some(0) });
}

#[test]
fn a_window_allows_for_wake_ups_that_come_late_and_nothing_is_early_for_it() {
    // 58.6 messages a ms for 100 ms, and a host that wakes 18 to 30 us late.
    let schedule = Schedule::new(30_000_000, 64, 100_000_000);
    let late_ns = [18_000, 20_000, 19_000, 22_000, 18_500, 20_500, 21_000, 19_500, 20_000, 30_000];
    let departures = fly(Mode::Absolute, 50_000, 100_000_000, &schedule, &late_ns);
    let settled = &departures[departures.len() / 2..];
    let kept = settled.iter().filter(|one| one.at_ns - schedule.due_ns(one.first) <= 51_000).count();
    assert!(kept * 100 >= settled.len() * 85, "{kept} of {}", settled.len());
    let messages: u64 = settled.iter().map(|one| one.messages).sum();
    assert!(messages >= 2 * settled.len() as u64, "{messages} in {} wake-ups", settled.len());
}

#[test]
fn what_a_window_ends_early_by_is_told_and_without_one_nothing_is() {
    let schedule = Schedule::new(30_000_000, 64, 100_000_000);
    let mut pacer = Pacer::new(Mode::Absolute, 50_000, 100_000_000, &schedule);
    let departures = fly_with(&mut pacer, &schedule, &[18_000, 20_000], u64::MAX);
    let work = pacer.work();
    assert_eq!((work.wake_ups, work.naps), (departures.len() as u64, 0));
    assert!((18..=22).contains(&work.window_lead_us.unwrap()), "{work:?}");
    assert_eq!(Pacer::new(Mode::Absolute, 0, 100_000_000, &schedule).work().window_lead_us, None);
}

#[test]
fn the_departure_after_the_next_is_known_while_the_next_is_slept_for() {
    let schedule = Schedule::new(30_000_000, 64, 100_000_000);
    let mut pacer = Pacer::new(Mode::Absolute, 50_000, 100_000_000, &schedule);
    let (mut done, mut known) = (0, 0);
    for late_ns in [18_000, 20_000, 19_000, 22_000].into_iter().cycle().take(1_000) {
        let following_ns = pacer.following_ns();
        let woke_ns = pacer.departure_ns() + late_ns;
        pacer.woke(0, pacer.departure_ns(), woke_ns);
        done = pacer.released(&schedule, done, woke_ns);
        pacer.advance(&schedule, done, done);
        assert!(pacer.departure_ns() >= schedule.due_ns(done));
        known += u32::from(pacer.departure_ns() == following_ns);
    }
    assert!(known > 900, "{known} of 1000");
}

#[test]
fn a_host_whose_wake_ups_vary_by_most_of_a_window_is_told_few_new_alarms_and_still_wakes_inside_it() {
    // One message every 17 us. Of ten wake-ups nine are 12 to 48 us late and one is 70 us late: no host that wakes so
    // late can keep the window, however often its alarm is changed.
    let schedule = Schedule::new(30_000_000, 64, 100_000_000);
    let mut pacer = Pacer::new(Mode::Absolute, 50_000, 100_000_000, &schedule);
    let (mut done, mut known, wake_ups) = (0, 0, 1_500);
    let late_us = [31, 24, 48, 12, 36, 70, 28, 44, 33, 39];
    for late_us in late_us.into_iter().cycle().take(wake_ups) {
        let (asleep_from_ns, alarm_ns) = (pacer.departure_ns() - 1, pacer.departure_ns());
        let following_ns = pacer.following_ns();
        assert!((0..=50_000).contains(&(alarm_ns - schedule.due_ns(done))), "{done} leaves at {alarm_ns}");
        let woke_ns = alarm_ns + 1_000 * late_us;
        pacer.woke(asleep_from_ns, alarm_ns, woke_ns);
        done = pacer.released(&schedule, done, woke_ns);
        pacer.advance(&schedule, done, done);
        known += usize::from(pacer.departure_ns() == following_ns);
    }
    assert!(known * 100 >= wake_ups * 85, "{known} of {wake_ups}");
    assert!(done as usize >= 3 * wake_ups, "{wake_ups} for {done} messages");
}

/// Departures of one message every 37 ms where the host wakes `long_ns` late from a long sleep and `short_ns` from a nap:
/// how late each message left, and what the pacer did for that.
fn talk(mode: Mode, long_ns: i64, short_ns: i64) -> (Vec<i64>, PacerWork) {
    let schedule = Schedule::new(65_000, 300, 5_000_000_000);
    let mut pacer = Pacer::new(mode, 0, 5_000_000_000, &schedule);
    let (mut now_ns, mut late_ns) = (0, Vec::new());
    for message in 0..schedule.count() {
        while pacer.released(&schedule, message, now_ns) == message {
            now_ns = match pacer.rest(now_ns) {
                Rest::Spin { until_ns } => until_ns,
                Rest::Sleep { until_ns } => {
                    let woke_ns = until_ns + if until_ns - now_ns >= LONG_NS { long_ns } else { short_ns };
                    pacer.woke(now_ns, until_ns, woke_ns);
                    woke_ns
                }
            };
        }
        late_ns.push(now_ns - schedule.due_ns(message));
        pacer.advance(&schedule, message + 1, message + 1);
    }
    (late_ns, pacer.work())
}

#[test]
fn a_host_that_wakes_late_from_long_sleeps_comes_to_the_deadline_in_naps() {
    let (late_ns, work) = talk(Mode::Absolute, 90_000, 15_000);
    assert!(late_ns.iter().all(|late_ns| *late_ns >= 0));
    let settled = &late_ns[late_ns.len() / 2..];
    assert!(settled.iter().all(|late_ns| *late_ns <= 15_000), "{settled:?}");
    assert!(work.wake_ups <= 8 * late_ns.len() as u64, "{work:?} for {}", late_ns.len());
    // At most one sleep of each approach is to end at the departure itself.
    assert!(work.wake_ups - work.naps < late_ns.len() as u64, "{work:?} for {}", late_ns.len());
    assert!(work.naps > late_ns.len() as u64, "{work:?} for {}", late_ns.len());
}

#[test]
fn a_host_that_wakes_soon_sleeps_once_per_message() {
    for mode in [Mode::Absolute, Mode::Hybrid] {
        let (late_ns, work) = talk(mode, 12_000, 8_000);
        assert_eq!((work.wake_ups, work.naps), (late_ns.len() as u64 - 1, 0), "{mode}");
    }
}

#[test]
fn hybrid_watches_the_clock_to_the_deadline_on_a_host_that_wakes_late_too() {
    let (late_ns, work) = talk(Mode::Hybrid, 90_000, 15_000);
    assert!(late_ns[late_ns.len() / 2..].iter().all(|late_ns| *late_ns == 0), "{late_ns:?}");
    assert!(work.naps > late_ns.len() as u64, "{work:?} for {}", late_ns.len());
}

proptest! {
    #[test]
    fn a_learnt_quantile_settles_where_it_belongs(percent in 5_i64..96, seed in 0_u64..1_000) {
        let mut quantile = Quantile::new(percent, 1_000);
        let mut state = seed;
        let mut below = 0;
        for step in 0..60_000 {
            // Numbers of a linear congruence (Knuth, MMIX), 0 to 100 us.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value_ns = ((state >> 33) % 100_000) as i64;
            below += i64::from(step >= 10_000 && value_ns <= quantile.value_ns);
            quantile.learn(value_ns);
        }
        prop_assert!((below - 500 * percent).abs() <= 50_000 * 3 / 100, "{} of 50000 at {} %", below, percent);
    }
}

#[test]
fn without_a_window_every_message_leaves_at_its_own_deadline() {
    let schedule = ten_messages();
    for mode in [Mode::Absolute, Mode::Hybrid, Mode::Spin] {
        let departures = fly(mode, 0, 10_000_000, &schedule, &[0]);
        let times: Vec<_> = departures.iter().map(|departure| departure.at_ns).collect();
        assert_eq!(times, (0..10).map(|index| schedule.due_ns(index)).collect::<Vec<_>>(), "{mode}");
    }
}

#[test]
fn a_window_gathers_neighbours_and_ends_with_the_flow() {
    let departures = fly(Mode::Absolute, 2_500_000, 10_000_000, &ten_messages(), &[0]);
    let seen: Vec<_> = departures.iter().map(|one| (one.at_ns, one.messages)).collect();
    assert_eq!(seen, [(2_500_000, 3), (5_500_000, 3), (8_500_000, 3), (10_000_000, 1)]);
}

#[test]
fn what_wakes_the_sender_inside_a_window_does_not_split_it() {
    let schedule = ten_messages();
    let mut pacer = Pacer::new(Mode::Absolute, 2_500_000, 10_000_000, &schedule);
    assert_eq!(pacer.released(&schedule, 0, 1_700_000), 0);
    assert_eq!(pacer.released(&schedule, 0, 2_500_000), 3);
    pacer.advance(&schedule, 3, 3);
    assert_eq!(pacer.rest(2_500_000), Rest::Sleep { until_ns: 5_500_000 });
}

#[test]
fn a_burst_leaves_when_its_last_message_is_due_and_the_rest_with_the_last_of_all() {
    let departures = fly(Mode::Burst(4), 0, 10_000_000, &ten_messages(), &[0]);
    let seen: Vec<_> = departures.iter().map(|one| (one.at_ns, one.messages)).collect();
    assert_eq!(seen, [(3_000_000, 4), (7_000_000, 4), (9_000_000, 2)]);
}

#[test]
fn a_burst_that_was_cut_goes_on_with_its_own_rest() {
    let schedule = ten_messages();
    let mut pacer = Pacer::new(Mode::Burst(4), 0, 10_000_000, &schedule);
    pacer.advance(&schedule, 2, 2);
    assert_eq!(pacer.departure_ns(), 3_000_000);
    assert_eq!(pacer.released(&schedule, 2, 3_000_000), 4);
}

#[test]
fn hybrid_sleeps_first_and_then_watches_the_clock() {
    let schedule = ten_messages();
    let mut pacer = Pacer::new(Mode::Hybrid, 0, 10_000_000, &schedule);
    pacer.advance(&schedule, 1, 1);
    assert_eq!(pacer.rest(10_000), Rest::Sleep { until_ns: 950_000 });
    assert_eq!(pacer.rest(950_000), Rest::Spin { until_ns: 1_000_000 });
    let spinning = Pacer::new(Mode::Spin, 0, 10_000_000, &schedule);
    assert_eq!(spinning.rest(-5), Rest::Spin { until_ns: 0 });
}

#[test]
fn launch_times_are_told_ahead_for_all_that_are_due_soon() {
    let schedule = Schedule::new(80_000_000, 1000, 10_000_000);
    let mut pacer = Pacer::new(Mode::SoTxtime, 0, 10_000_000, &schedule);
    // One message every 100 us: at the start those of the next millisecond go, deadline 1 ms included.
    assert_eq!(pacer.released(&schedule, 0, 0), 11);
    pacer.advance(&schedule, 11, 11);
    assert_eq!(pacer.rest(0), Rest::Sleep { until_ns: 600_000 });
    assert_eq!(pacer.released(&schedule, 11, 599_999), 11);
    assert_eq!(pacer.released(&schedule, 11, 600_000), 17);
}

#[test]
fn of_a_fast_flow_no_more_wait_in_the_kernel_than_it_keeps() {
    // A message a microsecond: a millisecond ahead are a thousand.
    let schedule = Schedule::new(800_000_000, 100, 10_000_000);
    let mut pacer = Pacer::new(Mode::SoTxtime, 0, 10_000_000, &schedule);
    assert_eq!(pacer.released(&schedule, 0, 0), 65);
    pacer.advance(&schedule, 65, 65);
    assert_eq!(pacer.rest(0), Rest::Sleep { until_ns: 33_000 });
    assert_eq!(pacer.released(&schedule, 65, 33_000), 98);
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Absolute),
        Just(Mode::Hybrid),
        Just(Mode::Spin),
        (1_u64..200).prop_map(Mode::Burst)
    ]
}

/// Schedules of at most some thousand messages.
fn flows() -> impl Strategy<Value = (Schedule, i64)> {
    (1_000_u64..200_000_000, 16_u64..2_000, 1_000_000_u64..50_000_000).prop_map(
        |(rate_bps, bytes, duration_ns)| (Schedule::new(rate_bps, bytes, duration_ns), duration_ns as i64),
    )
}

proptest! {
    /// When a message leaves is the pacer's matter, however few the transport takes at once.
    #[test]
    fn batches_change_no_departure(
        mode in modes(),
        (schedule, duration_ns) in flows(),
        window_ns in prop_oneof![Just(0_i64), 1_i64..3_000_000],
        late_ns in proptest::collection::vec(0_i64..2_000_000, 1..8),
        most in 1_u64..100,
    ) {
        let mut pacer = Pacer::new(mode, window_ns, duration_ns, &schedule);
        let departures = fly_with(&mut pacer, &schedule, &late_ns, most);
        let whole = fly(mode, window_ns, duration_ns, &schedule, &late_ns);
        prop_assert_eq!(times(&departures), times(&whole));
    }

    #[test]
    fn nothing_leaves_early_and_everything_that_is_due_leaves_once_and_in_order(
        mode in modes(),
        (schedule, duration_ns) in flows(),
        window_ns in 0_i64..3_000_000,
        late_ns in proptest::collection::vec(0_i64..2_000_000, 1..8),
    ) {
        let mut next = 0;
        for departure in fly(mode, window_ns, duration_ns, &schedule, &late_ns) {
            prop_assert_eq!(departure.first, next);
            next += departure.messages;
            prop_assert!(departure.at_ns >= schedule.due_ns(next - 1), "{:?}", departure);
        }
        prop_assert_eq!(next, schedule.count());
    }

    #[test]
    fn on_a_punctual_host_no_message_is_later_than_its_window_and_all_leave_by_the_end(
        mode in prop_oneof![Just(Mode::Absolute), Just(Mode::Hybrid), Just(Mode::Spin)],
        (schedule, duration_ns) in flows(),
        window_ns in 0_i64..3_000_000,
    ) {
        for departure in fly(mode, window_ns, duration_ns, &schedule, &[0]) {
            prop_assert!(departure.at_ns - schedule.due_ns(departure.first) <= window_ns);
            // The last deadline is rounded up to a whole ns, so it may be the end itself.
            prop_assert!(departure.at_ns <= duration_ns);
        }
    }

    #[test]
    fn neighbours_inside_a_window_share_one_wake_up(
        (schedule, duration_ns) in flows(),
        window_ns in 1_i64..3_000_000,
    ) {
        let departures = fly(Mode::Absolute, window_ns, duration_ns, &schedule, &[0]);
        for pair in departures.windows(2) {
            // What left later was due after the window that the first message of the wake-up before had opened.
            prop_assert!(schedule.due_ns(pair[1].first) > schedule.due_ns(pair[0].first) + window_ns);
        }
    }

    #[test]
    fn bursts_have_their_size_however_late_the_host_wakes(
        size in 1_u64..200,
        (schedule, duration_ns) in flows(),
        late_ns in proptest::collection::vec(0_i64..2_000_000, 1..8),
    ) {
        let departures = fly(Mode::Burst(size), 0, duration_ns, &schedule, &late_ns);
        let (last, others) = departures.split_last().unwrap();
        for departure in others {
            prop_assert_eq!(departure.messages % size, 0);
        }
        prop_assert_eq!(last.first + last.messages, schedule.count());
        // A punctual host sends one group at a time, each when its last message is due.
        for departure in fly(Mode::Burst(size), 0, duration_ns, &schedule, &[0]) {
            let end = departure.first + departure.messages;
            prop_assert_eq!(departure.at_ns, schedule.due_ns(end - 1));
            prop_assert!(departure.messages == size || end == schedule.count());
        }
    }

    #[test]
    fn launch_times_are_told_before_the_launch_on_a_punctual_host_and_few_wait_in_the_kernel(
        (schedule, duration_ns) in flows(),
        late_ns in proptest::collection::vec(0_i64..LAUNCH_MARGIN_NS, 1..8),
    ) {
        let mut next = 0;
        let greatest_ns = late_ns.iter().max().copied().unwrap_or(0);
        for departure in fly(Mode::SoTxtime, 0, duration_ns, &schedule, &late_ns) {
            let first = departure.first;
            next = first + departure.messages;
            // A fast flow has what it is given at a refill: a wake-up later than that comes too late.
            let refill_ns = schedule.due_ns(first.saturating_sub(LAUNCH_REFILL_MESSAGES)) + greatest_ns;
            prop_assert!(first == 0 || departure.at_ns <= schedule.due_ns(first).max(refill_ns));
            prop_assert!(schedule.due_ns(next - 1) <= departure.at_ns + LAUNCH_AHEAD_NS);
            prop_assert!(next <= schedule.due_by(departure.at_ns) + LAUNCH_AHEAD_MESSAGES);
        }
        prop_assert_eq!(next, schedule.count());
    }
}
