// SPDX-License-Identifier: Apache-2.0
//! Sender and receiver together: rates against the equation, slow start, silence, applications that send less.

use super::link::{Application, Loop};
use super::{figure, MS, S};
use crate::ccid::tfrc::equation;
use crate::ccid::{ReceivingCcid, SendingCcid};

/// Every n-th packet is lost.
fn every(n: u64) -> impl FnMut(u64) -> bool {
    move |index| index % n == n - 1
}

/// Each packet is lost with this probability (a linear congruential generator, fixed seed).
fn randomly(p: f64) -> impl FnMut(u64) -> bool {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 / (1_u64 << 53) as f64) < p
    }
}

fn steady_rate_over_equation(n: u64, rtt_ms: i64, by_option: bool) -> f64 {
    let mut run = Loop::new(rtt_ms * MS, 1440, every(n));
    if by_option {
        run.use_rtt_option();
    }
    run.shake_hands();
    run.run_for(200 * rtt_ms * MS + 20 * S);
    let span_ns = 300 * rtt_ms * MS;
    let packets = run.run_for(span_ns);
    let rate = packets as f64 * 1440.0 / (span_ns as f64 / 1e9);
    rate / equation::bytes_per_s(1440.0, rtt_ms as f64 / 1e3, 1.0 / n as f64)
}

#[test]
fn a_fixed_loss_rate_gives_the_equations_rate_within_5_percent() {
    for (n, rtt_ms) in [(1000, 10), (300, 50), (100, 100), (30, 200), (20, 20)] {
        for by_option in [true, false] {
            let ratio = steady_rate_over_equation(n, rtt_ms, by_option);
            assert!((ratio - 1.0).abs() < 0.05, "1 in {n}, {rtt_ms} ms, option {by_option}: {ratio}");
        }
    }
}

#[test]
fn random_loss_gives_the_equation_fed_with_the_runs_own_loss_event_rate() {
    for (p, rtt_ms) in [(0.001, 50), (0.01, 100), (0.03, 20), (0.1, 50), (0.1, 200)] {
        for by_option in [true, false] {
            let mut run = Loop::new(rtt_ms * MS, 1440, randomly(p));
            if by_option {
                run.use_rtt_option();
            }
            run.shake_hands();
            run.run_for(100 * rtt_ms * MS);
            let events_before = figure(&run.receiver.figures(), "receiver_loss_events");
            let span_ns = 4_000 * rtt_ms * MS;
            let packets = run.run_for(span_ns) as f64;
            let events = figure(&run.receiver.figures(), "receiver_loss_events") - events_before;
            let rate = packets * 1440.0 / (span_ns as f64 / 1e9);
            let ratio = rate / equation::bytes_per_s(1440.0, rtt_ms as f64 / 1e3, events / packets);
            println!(
                "p {p} rtt {rtt_ms} option {by_option}: {ratio:.3} (events/packets {:.4})",
                events / packets
            );
            assert!((ratio - 1.0).abs() < 0.15, "p {p}, {rtt_ms} ms, option {by_option}: {ratio}");
        }
    }
}

#[test]
fn slow_start_doubles_each_round_trip_to_over_2_gbit_per_s() {
    let rtt_ns = 10 * MS;
    let mut run = Loop::new(rtt_ns, 1440, |_| false);
    run.use_rtt_option();
    run.shake_hands();
    let initial = run.allowed_rate();
    assert!((initial - 4380.0 / 0.01).abs() < 1.0, "{initial}");
    // X follows 2 X_recv, which covers data sent one to two round trips ago: 2^(2/3) each round trip, and never more
    // than double.
    let mut rate = initial;
    for _ in 0..12 {
        run.run_for(2 * rtt_ns);
        let next = run.allowed_rate();
        assert!(next <= 4.01 * rate && (next >= 1.1 * rate || rate <= initial), "{rate} then {next}");
        rate = next;
    }
    assert!(rate > 250e6, "{rate}");
}

#[test]
fn without_a_handshake_it_begins_with_one_packet_per_second() {
    let mut run = Loop::new(100 * MS, 1000, |_| false);
    assert_eq!(run.run_for(90 * MS), 1);
    // The first feedback gives the round trip and the initial window.
    run.run_for(15 * MS);
    assert!((run.allowed_rate() - 4000.0 / 0.1).abs() < 1.0, "{}", run.allowed_rate());
}

#[test]
fn a_sub_millisecond_path_reaches_2_gbit_per_s_with_few_acknowledgements() {
    let mut run = Loop::new(50_000, 1440, |_| false);
    run.use_rtt_option();
    run.shake_hands();
    run.run_for(30 * MS);
    assert!(run.allowed_rate() > 250e6, "{}", run.allowed_rate());
    assert!(run.acks <= 33, "{} acknowledgements in 30 ms", run.acks);
}

#[test]
fn one_acknowledgement_per_round_trip() {
    for by_option in [true, false] {
        let mut run = Loop::new(20 * MS, 1440, every(200));
        if by_option {
            run.use_rtt_option();
        }
        run.shake_hands();
        run.run_for(S);
        let (before, events) = (run.acks, figure(&run.receiver.figures(), "receiver_loss_events"));
        run.run_for(2 * S);
        let events = figure(&run.receiver.figures(), "receiver_loss_events") - events;
        let acks = (run.acks - before) as f64 - events;
        assert!(acks > 60.0 && acks <= 101.0, "{acks} in 100 round trips");
    }
}

#[test]
fn silence_halves_the_rate_down_to_one_packet_in_64_s() {
    let mut run = Loop::new(50 * MS, 1440, |_| false);
    run.shake_hands();
    run.run_for(600 * MS);
    run.is_deaf = true;
    let before = run.allowed_rate();
    // What is on its way still arrives, then four round trips pass.
    run.run_for(300 * MS);
    let halved = run.allowed_rate();
    assert!(halved <= before && halved >= before / 2.0 * 0.9, "{before} then {halved}");
    run.run_for(200 * MS);
    assert!((run.allowed_rate() / halved - 0.5).abs() < 0.01, "{halved} then {}", run.allowed_rate());
    run.run_for(4000 * S);
    assert!((run.allowed_rate() - 1440.0 / 64.0).abs() < 1e-6, "{}", run.allowed_rate());
}

#[test]
fn silence_in_congestion_avoidance_halves_and_feedback_restores() {
    let mut run = Loop::new(50 * MS, 1440, every(100));
    run.shake_hands();
    run.run_for(20 * S);
    let before = run.allowed_rate();
    run.is_deaf = true;
    run.run_for(300 * MS);
    assert!(run.allowed_rate() < 0.55 * before, "{before} then {}", run.allowed_rate());
    run.is_deaf = false;
    run.run_for(5 * S);
    assert!(run.allowed_rate() > 0.9 * before, "{before} then {}", run.allowed_rate());
}

#[test]
fn idling_does_not_cut_below_the_initial_rate() {
    for loss in [0, 100] {
        let mut run = Loop::new(50 * MS, 1440, move |index| loss > 0 && index % 100 == 99);
        run.shake_hands();
        run.run_for(500 * MS);
        run.application = Application::Silent;
        run.run_for(600 * S);
        let initial = 4380.0 / 0.05;
        // One question on the rate makes the timer catch up.
        run.application = Application::Saturated;
        run.run_for(0);
        let rate = run.allowed_rate();
        assert!(rate >= 0.5 * initial * 0.99, "{rate} < {initial}");
        assert!(rate < 2.1 * initial, "{rate} after ten minutes");
    }
}

#[test]
fn a_data_limited_application_does_not_make_the_rate_grow_without_bound_and_is_not_cut() {
    // 300 bytes in 37 ms is 8108 B/s: under one packet per round trip of 50 ms, then well over one.
    for (interval_ms, rtt_ms) in [(37, 50), (5, 50), (37, 10)] {
        let mut run = Loop::new(rtt_ms * MS, 300, |_| false);
        run.application = Application::Every(interval_ms * MS);
        run.shake_hands();
        let sent = run.run_for(100 * interval_ms * MS);
        assert!(sent >= 75, "{sent} of the first 100 left");
        let wanted = 300.0 / (interval_ms as f64 / 1e3);
        let initial = 1200.0 / (rtt_ms as f64 / 1e3);
        run.run_for(1000 * interval_ms * MS);
        let rate = run.allowed_rate();
        assert!(rate >= wanted && rate < 4.0 * wanted.max(initial), "{rate} for {wanted}");
        assert!(run.run_for(1000 * interval_ms * MS).abs_diff(1000) <= 1);
    }
}

#[test]
fn coarse_wake_ups_do_not_lose_rate() {
    let mut fine = Loop::new(50 * MS, 1440, every(300));
    fine.shake_hands();
    fine.run_for(20 * S);
    let wanted = fine.run_for(20 * S) as f64;
    let mut coarse = Loop::new(50 * MS, 1440, every(300));
    coarse.granularity_ns = 4 * MS;
    coarse.shake_hands();
    coarse.run_for(20 * S);
    let got = coarse.run_for(20 * S) as f64;
    assert!((got / wanted - 1.0).abs() < 0.05, "{got} of {wanted}");
}

#[test]
fn the_timer_never_wakes_the_sender() {
    let mut run = Loop::new(10 * MS, 300, |_| false);
    run.application = Application::Every(37 * MS);
    run.shake_hands();
    run.run_for(S);
    assert_eq!(run.sender.next_timeout_ns(), None);
}

#[test]
fn who_hears_nothing_over_a_short_path_stops_after_two_milliseconds_and_tries_again() {
    let mut run = Loop::new(50_000, 1440, |_| false);
    run.use_rtt_option();
    run.shake_hands();
    run.run_for(35 * MS);
    let packets_per_ms = run.allowed_rate() / 1440.0 / 1e3;
    run.is_deaf = true;
    // What was under way is answered yet. The nofeedback timer expires after 20 ms.
    let packets = run.run_for(15 * MS) as f64;
    let most = (4.2 * packets_per_ms).max(2_048.0 + packets_per_ms);
    assert!(packets > packets_per_ms && packets < most, "{packets} at {packets_per_ms} per ms");
    assert!(packets < 12.0 * packets_per_ms, "{packets} at {packets_per_ms} per ms");
    assert!(run.run_for(10 * MS) > 0);
    assert!(run.run_for(S) > 0);
    run.is_deaf = false;
    run.run_for(200 * MS);
    assert!(run.run_for(S) > 1_000);
}
