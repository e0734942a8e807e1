// SPDX-License-Identifier: Apache-2.0
//! Radios against what arithmetic says of them.

use netjoule_link_model::radio_states::packet::Direction::{self, Down, Up};
use netjoule_link_model::radio_states::packet::Packet;
use netjoule_link_model::radio_states::params::MachineParams;
use netjoule_link_model::radio_states::presets::{find, NAMES};
use netjoule_link_model::radio_states::quantity::{Seconds, Watts};
use netjoule_link_model::radio_states::replay::{replay, Arrival, Replay};
use netjoule_link_model::radio_states::umts::{Pch, Promotion, Rise};

type Sent = (f64, Direction, u32);

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn arrivals(trace: &[Sent]) -> Vec<Arrival> {
    trace
        .iter()
        .map(|&(t_s, direction, ip_bytes)| Arrival { at_ns: ns(t_s), packet: Packet { direction, ip_bytes } })
        .collect()
}

fn play(preset: &str, trace: &[Sent], until_s: Option<f64>) -> Replay {
    replay(&find(preset).unwrap().machine, &arrivals(trace), until_s.map(ns)).unwrap()
}

/// So many packets of one size, in equal steps from 0 on.
fn periodic(count: u32, step_s: f64, direction: Direction, ip_bytes: u32) -> Vec<Sent> {
    (0..count).map(|index| (f64::from(index) * step_s, direction, ip_bytes)).collect()
}

fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-6 * expected.abs(), "{actual} is not {expected}");
}

fn assert_delays(replay: &Replay, expected_s: &[f64]) {
    let expected: Vec<_> = expected_s.iter().copied().map(ns).collect();
    assert_eq!(replay.delays_ns, expected);
}

fn assert_intervals(replay: &Replay, expected: &[(f64, f64, &str)]) {
    let told: Vec<_> = replay.intervals.iter().map(|each| (each.start_ns, each.end_ns, each.state)).collect();
    let expected: Vec<_> =
        expected.iter().map(|&(start_s, end_s, state)| (ns(start_s), ns(end_s), state)).collect();
    assert_eq!(told, expected);
}

fn seconds(replay: &Replay, state: &str) -> f64 {
    replay.spent.get(state).map_or(0.0, |spent| spent.time_ns as f64 / 1e9)
}

#[test]
fn wifi_one_packet_costs_one_tail() {
    let one = play("energybox-s2", &[(1.0, Up, 1500)], None);
    assert_intervals(&one, &[(0.0, 1.0, "PSM"), (1.0, 1.22, "CAM")]);
    assert_delays(&one, &[0.0]);
    assert_near(one.energy_j, 0.03 + 0.22 * 0.25);
    assert_near(one.tail_j.unwrap(), 0.22 * 0.25);
    assert_near(play("aro-wifi", &[(0.0, Down, 100)], None).energy_j, 0.25 * 0.403);
}

#[test]
fn wifi_periodic_packets_cost_a_tail_each_or_never_sleep() {
    let apart = play("energybox-s2", &periodic(10, 1.0, Up, 100), Some(10.0));
    assert_near(apart.energy_j, 10.0 * (0.22 * 0.25 + 0.78 * 0.03));
    let close = play("energybox-s2", &periodic(50, 0.2, Down, 100), Some(10.0));
    assert_near(close.energy_j, 10.0 * 0.25);
}

#[test]
fn wifi_bulk_is_camh_from_the_packet_that_exceeds_the_window_until_too_few_are_left_in_it() {
    let bulk = play("energybox-s2", &periodic(1_000, 0.001, Down, 1500), None);
    // The third packet makes 4,500 B; of the last three the first leaves the window 50 ms after 0.997 s.
    assert_intervals(&bulk, &[(0.0, 0.002, "CAM"), (0.002, 1.047, "CAMH"), (1.047, 1.219, "CAM")]);
    assert_near(bulk.energy_j, 1.045 * 0.45 + 0.174 * 0.25);
    // 3,000 B within 50 ms are not more than 3,000 B.
    let even = play("energybox-s2", &periodic(100, 0.025, Down, 1500), None);
    assert_eq!(seconds(&even, "CAMH"), 0.0);
}

#[test]
fn wifi_down_packets_wait_for_a_beacon_unless_the_station_wakes_up_itself() {
    assert_delays(&play("n9-wlan", &[(0.03, Down, 100), (0.04, Down, 100)], None), &[0.07, 0.06]);
    assert_delays(&play("n9-wlan", &[(0.03, Up, 100), (0.04, Down, 100)], None), &[0.0, 0.0]);
    let woken = play("n9-wlan", &[(0.03, Down, 100), (0.05, Up, 100)], None);
    assert_delays(&woken, &[0.02, 0.0]);
    assert_intervals(&woken, &[(0.0, 0.05, "PSM"), (0.05, 0.25, "CAM")]);
    // Exactly at a beacon, and 0.2 s after the last packet: asleep again.
    assert_delays(
        &play("n9-wlan", &[(0.3, Down, 100), (0.5, Down, 100), (0.71, Down, 9)], None),
        &[0.0, 0.0, 0.09],
    );
}

#[test]
fn lte_one_packet_costs_a_promotion_and_the_published_tail() {
    let one = play("aro-lte", &[(0.0, Down, 1000)], None);
    let connected = [(0.0, 0.26, "PROMOTION"), (0.26, 0.36, "CR")];
    let cycles = [(0.36, 0.38, "SHORT_DRX"), (0.38, 10.38, "LONG_DRX")];
    assert_intervals(&one, &[connected, cycles].concat());
    assert_delays(&one, &[0.26]);
    let (cr_j, drx_j) = (0.1 * 1.2, 0.02244 + 250.0 * 0.04364);
    assert_near(one.tail_j.unwrap(), cr_j + drx_j);
    assert!((one.tail_j.unwrap() - (0.12 + 10.93)).abs() < 0.011, "{one:?}");
    assert_near(one.energy_j, 0.26 * 1.21 + 0.008 * 0.051_97 + cr_j + drx_j);
}

#[test]
fn lte_periodic_packets_pay_inactivity_and_drx_each_time() {
    let each_s = play("aro-lte", &periodic(11, 1.0, Up, 100), Some(10.26));
    // From the pass of the first (0.26 s) to 1 s, then nine whole seconds, of which 0.88 s are 22 long cycles; the last
    // packet comes at 10 s.
    let cycles = |count: f64| count * 0.04364;
    let first_j = 0.12 + 0.02244 + cycles(15.0) + 0.002 * 1.68 + 0.018 * 1.06;
    let whole_j = 0.12 + 0.02244 + cycles(22.0);
    let last_j = 0.12 + 0.02244 + cycles(3.0) + 0.002 * 1.68 + 0.018 * 1.06;
    let packets_j = 11.0 * 0.0008 * 0.438_39;
    assert_near(each_s.energy_j, 0.26 * 1.21 + first_j + 9.0 * whole_j + last_j + packets_j);
    assert_eq!(each_s.delays_ns.iter().sum::<u64>(), ns(0.26));
}

#[test]
fn lte_bulk_has_the_published_power_over_rate() {
    // 1.2 Mb/s down and 0.12 Mb/s up for 20 s, from the end of the promotion on.
    let mut trace = vec![(0.0, Up, 40)];
    trace.extend((0..2_000).flat_map(|index| {
        let t_s = 0.26 + 0.01 * f64::from(index);
        [(t_s, Down, 1500), (t_s, Up, 150)]
    }));
    let bulk = play("mobisys12", &trace, Some(20.26));
    let power_w = 1.288 + 0.051_97 * 1.2 + 0.438_39 * 0.12;
    assert_near(bulk.energy_j, 0.26 * 1.21 + 0.000_32 * 0.438_39 + 20.0 * power_w);
    assert_eq!(seconds(&bulk, "CR"), 20.0);
}

#[test]
fn lte_down_packets_wait_for_the_next_on_time_and_up_packets_do_not() {
    // The long cycles begin at 0.38 s + 40 ms x n; IDLE at 10.38 s.
    let delay_s = |t_s: f64, direction| {
        let second = play("aro-lte", &[(0.0, Up, 40), (t_s, direction, 40)], None);
        second.delays_ns[1] as f64 / 1e9
    };
    for (t_s, direction, expected_s) in [
        (0.361, Down, 0.0),
        (0.365, Down, 0.015),
        (0.365, Up, 0.0),
        (0.78, Down, 0.0),
        (0.781_999, Down, 0.0),
        (0.782, Down, 0.038),
        (0.79, Down, 0.03),
        (0.79, Up, 0.0),
        (10.37, Down, 0.01 + 0.26),
        (10.38, Down, 0.26),
        (10.37, Up, 0.0),
    ] {
        assert!((delay_s(t_s, direction) - expected_s).abs() < 2e-9, "{direction:?} at {t_s} s");
    }
    let woken = play("aro-lte", &[(0.0, Up, 40), (0.79, Down, 40), (0.8, Up, 40)], None);
    assert_delays(&woken, &[0.26, 0.01, 0.0]);
}

#[test]
fn lte_idle_costs_its_pagings() {
    let idle = play("mobisys12", &[], Some(12.8 + 0.02));
    assert_near(idle.energy_j, (10.0 * 0.043 + 0.02) * 0.594);
    assert_eq!(idle.tail_j, None);
}

#[test]
fn umts_one_packet_costs_a_promotion_and_two_tails() {
    let one = play("aro-i997", &[(0.5, Up, 40)], None);
    assert_intervals(
        &one,
        &[(0.0, 0.5, "IDLE"), (0.5, 2.5, "PROMOTION_IDLE_DCH"), (2.5, 6.5, "DCH"), (6.5, 16.5, "FACH")],
    );
    assert_delays(&one, &[2.0]);
    assert_near(one.energy_j, 2.0 * 0.65 + 4.0 * 1.3 + 10.0 * 0.3);
    assert_near(one.tail_j.unwrap(), 8.2);
    let inspire = play("aro-inspire", &[(0.0, Up, 40)], None);
    assert_near(inspire.energy_j, 2.0 * 0.65 + 4.0 * 0.6 + 10.0 * 0.38);
}

#[test]
fn umts_periodic_packets_keep_dch_or_fach() {
    let each_s = play("aro-i997", &periodic(21, 1.0, Down, 1500), Some(22.0));
    assert_near(each_s.energy_j, 2.0 * 0.65 + 20.0 * 1.3);
    let small = play("aro-i997", &periodic(11, 7.0, Down, 400), Some(77.0));
    // After the first tail in DCH they pass in FACH.
    assert_near(small.energy_j, 2.0 * 0.65 + 4.0 * 1.3 + 71.0 * 0.3);
}

#[test]
fn umts_bulk_is_one_promotion_and_dch() {
    let bulk = play("aro-i997", &periodic(3_000, 0.01, Down, 1500), None);
    assert_near(bulk.energy_j, 2.0 * 0.65 + (29.99 - 2.0 + 4.0) * 1.3 + 10.0 * 0.3);
    assert_eq!((bulk.delays_ns[0], bulk.delays_ns[100], bulk.delays_ns[200]), (ns(2.0), ns(1.0), 0));
}

#[test]
fn umts_queues_longer_than_their_threshold_begin_the_promotion() {
    // FACH is from 6 s to 16 s. A queue of 300 B is empty after 0.0014 x 300^2 + 1.6 x 300 + 20 = 626 ms.
    for (sent, waits) in [
        (vec![(7.0, Up, 543)], false),
        (vec![(7.0, Up, 544)], true),
        (vec![(7.0, Down, 475)], false),
        (vec![(7.0, Down, 476)], true),
        (vec![(7.0, Up, 300), (7.626, Up, 300)], true),
        (vec![(7.0, Up, 300), (7.626_001, Up, 300)], false),
        (vec![(7.0, Up, 300), (7.1, Down, 300)], false),
        (vec![(7.0, Up, 200), (7.3, Up, 200), (7.6, Up, 200)], true),
    ] {
        let trace: Vec<_> = [(0.0, Up, 40)].into_iter().chain(sent.clone()).collect();
        let played = play("aro-i997", &trace, None);
        let last_ns = *played.delays_ns.last().unwrap();
        assert_eq!(last_ns, if waits { ns(1.5) } else { 0 }, "{sent:?}");
        assert_eq!(seconds(&played, "PROMOTION_FACH_DCH"), if waits { 1.5 } else { 0.0 }, "{sent:?}");
    }
    let promoted = play("aro-i997", &[(0.0, Up, 40), (7.0, Up, 544)], None);
    let expected_j = 2.0 * 0.65 + 4.0 * 1.3 + 0.3 + 1.5 * 0.8 + 4.0 * 1.3 + 10.0 * 0.3;
    assert_near(promoted.energy_j, expected_j);
}

#[test]
fn umts_size_decides_where_a_promotion_from_idle_leads() {
    let small = play("energybox-teliasonera", &[(0.0, Up, 294)], None);
    assert_intervals(&small, &[(0.0, 0.43, "PROMOTION_IDLE_FACH"), (0.43, 6.03, "FACH")]);
    assert_near(small.energy_j, 0.43 * 0.2 + 5.6 * 0.5);
    // It counts in the queue when it passes.
    let middle = play("energybox-teliasonera", &[(0.0, Up, 1000)], None);
    assert_delays(&middle, &[0.43 + 0.65]);
    assert_near(middle.energy_j, 0.43 * 0.2 + 0.65 * 0.5 + 4.1 * 1.3 + 5.6 * 0.5);
    let large = play("energybox-teliasonera", &[(0.0, Up, 1001)], None);
    assert_intervals(&large, &[(0.0, 1.7, "PROMOTION_IDLE_DCH"), (1.7, 5.8, "DCH"), (5.8, 11.4, "FACH")]);
    // The second of those that waited exceeds the threshold; queues of this network are empty after 0.1 s.
    let two = [(0.0, Up, 200), (0.1, Up, 200), (0.2, Up, 10)];
    assert_delays(&play("energybox-teliasonera", &two, None), &[0.43, 0.98, 0.88]);
    let apart = [(0.0, Up, 200), (0.54, Up, 200)];
    assert_delays(&play("energybox-teliasonera", &apart, None), &[0.43, 0.0]);
}

#[test]
fn umts_of_the_n9_has_less_power_in_dch_once_nothing_passes_and_a_long_pch() {
    let one = play("n9-umts", &[(0.0, Up, 1000)], None);
    assert_delays(&one, &[1.5]);
    let dch_j = 0.1 * 1.47 + 2.9 * 1.085;
    assert_near(one.tail_j.unwrap(), dch_j + 2.0 * 0.489 + 1_800.0 * 0.0147);
    // Packets each 50 ms hold the power of a transfer.
    let bulk = play("n9-umts", &periodic(101, 0.05, Down, 1000), Some(5.1));
    assert_near(bulk.energy_j, 1.5 * 0.489 + 3.6 * 1.47);
    let from_pch = play("n9-umts", &[(0.0, Up, 40), (100.0, Down, 40)], Some(101.0));
    assert_delays(&from_pch, &[1.0, 1.0]);
    assert_near(from_pch.energy_j, 0.489 * (1.0 + 2.0 + 1.0) + 97.0 * 0.0147);
    assert_eq!(seconds(&from_pch, "PROMOTION_PCH_FACH"), 1.0);
}

#[test]
fn umts_promotions_from_pch_have_times_of_their_own_where_they_are_given() {
    let mut machine = find("n9-umts").unwrap().machine;
    let MachineParams::Umts(umts) = &mut machine else { unreachable!("n9-umts is UMTS") };
    let promotion = |duration_s| Promotion {
        duration_s: Seconds::try_from(duration_s).unwrap(),
        power_w: Watts::try_from(0.5).unwrap(),
    };
    let rise = Rise::BySize { threshold_bytes: 100, fach: promotion(0.3), dch: promotion(0.7) };
    umts.pch = umts.pch.map(|pch| Pch { rise: Some(rise), ..pch });
    for (ip_bytes, state, expected_s) in [(100, "PROMOTION_PCH_FACH", 0.3), (101, "PROMOTION_PCH_DCH", 0.7)] {
        let trace = arrivals(&[(0.0, Up, 40), (100.0, Down, ip_bytes)]);
        let played = replay(&machine, &trace, Some(ns(101.0))).unwrap();
        assert_delays(&played, &[1.0, expected_s]);
        assert_eq!(seconds(&played, state), expected_s);
    }
}

/// A request at `start_s`, and `wait_s` later a file of 1 MB in packets of 1,500 B at 8 Mb/s.
fn file(start_s: f64, wait_s: f64) -> Vec<Sent> {
    let packets = (0..667).map(|index| (start_s + wait_s + 0.0015 * f64::from(index), Down, 1500));
    std::iter::once((start_s, Up, 1500)).chain(packets).collect()
}

/// Energy of the tail of one file, without what the lowest state would take meanwhile.
fn tail_above_rest_j(one: &Replay, last_s: f64, rest_w: f64) -> f64 {
    one.tail_j.unwrap() - rest_w * (one.end_ns - ns(last_s)) as f64 / 1e9
}

#[test]
fn two_files_back_to_back_or_at_once_pay_one_tail() {
    for preset in NAMES {
        let (pause_s, until_s) = (4_000.0, 8_000.0);
        // The server's answer comes once the request is through.
        let wait_s = play(preset, &[(0.0, Up, 1500)], None).delays_ns[0] as f64 / 1e9;
        let first = file(0.0, wait_s);
        let last_s = first[first.len() - 1].0;
        let back_to_back = [first.clone(), file(last_s + 0.0015, 0.0)].concat();
        let mut at_once = [first.clone(), file(0.0007, wait_s)].concat();
        at_once.sort_by(|one, other| one.0.total_cmp(&other.0));
        let one = play(preset, &first, None);
        let apart = play(preset, &[first, file(pause_s, wait_s)].concat(), Some(until_s));
        let rest_w = play(preset, &[], Some(until_s)).energy_j / until_s;
        let expected_j = tail_above_rest_j(&one, last_s, rest_w);
        for two in [&back_to_back, &at_once] {
            let tail_j = play(preset, two, None).tail_j.unwrap();
            assert!((tail_j / one.tail_j.unwrap() - 1.0).abs() < 0.05, "{preset}: {tail_j}");
            let saved_j = apart.energy_j - play(preset, two, Some(until_s)).energy_j;
            assert!(saved_j > 0.95 * expected_j, "{preset}: {saved_j} J saved of a tail of {expected_j} J");
        }
    }
}
