// SPDX-License-Identifier: Apache-2.0
use super::*;

const RTO_NS: i64 = 300_000_000;

fn seq(number: u64) -> Seq48 {
    Seq48::new(number)
}

/// A window that its sender fills all the time.
fn full() -> Window {
    let mut window = Window::new(1440);
    window.on_sent(0, seq(1 << 40), u64::MAX, RTO_NS);
    window
}

fn acknowledge(window: &mut Window, received: u64, ack_ratio: u64) -> u64 {
    window.on_acknowledged(0, received, seq(1), ack_ratio);
    window.cwnd()
}

#[test]
fn the_first_window_follows_the_packet_size() {
    assert_eq!([64, 1095, 1440, 2190, 9000, 0].map(|bytes| Window::new(bytes).cwnd()), [4, 4, 3, 2, 2, 4]);
}

#[test]
fn slow_start_grows_by_half_of_what_is_acknowledged_up_to_half_the_ack_ratio() {
    let mut window = full();
    assert_eq!(acknowledge(&mut window, 2, 2), 4);
    assert_eq!(acknowledge(&mut window, 1, 2), 4);
    assert_eq!(acknowledge(&mut window, 1, 2), 5);
    assert_eq!(acknowledge(&mut window, 100, 2), 6);
    assert_eq!(acknowledge(&mut window, 100, 8), 10);
    // Ack Ratio 1: half a packet per acknowledgement.
    assert_eq!(acknowledge(&mut window, 1, 1), 10);
    assert_eq!(acknowledge(&mut window, 1, 1), 11);
}

#[test]
fn congestion_avoidance_grows_by_one_packet_per_window() {
    let mut window = full();
    (0..100).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    assert!(window.on_congestion(seq(5), seq(200)));
    let cwnd = window.cwnd();
    assert_eq!(window.ssthresh(), cwnd);
    for _ in 1..cwnd {
        assert_eq!(acknowledge(&mut window, 1, 2), cwnd);
    }
    assert_eq!(acknowledge(&mut window, 1, 2), cwnd + 1);
}

#[test]
fn losses_of_one_flight_cut_once() {
    let mut window = full();
    (0..61).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    assert_eq!(window.cwnd(), 64);
    assert!(window.on_congestion(seq(10), seq(70)));
    assert!(!window.on_congestion(seq(40), seq(72)));
    assert!(!window.on_congestion(seq(70), seq(90)));
    assert_eq!(window.cwnd(), 32);
    assert!(window.on_congestion(seq(71), seq(90)));
    assert_eq!(window.cwnd(), 16);
}

#[test]
fn the_window_never_falls_below_one_nor_the_threshold_below_two() {
    let mut window = full();
    for event in 0..5 {
        window.on_congestion(seq(1000 * event + 1), seq(1000 * event + 2));
    }
    assert_eq!((window.cwnd(), window.ssthresh()), (1, 2));
    window.on_timeout(seq(9000));
    assert_eq!((window.cwnd(), window.ssthresh()), (1, 2));
    window.on_receive_buffer_drops(7);
    assert_eq!(window.cwnd(), 1);
}

#[test]
fn a_timeout_starts_again_from_one() {
    let mut window = full();
    (0..61).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    window.on_timeout(seq(100));
    assert_eq!((window.cwnd(), window.ssthresh()), (1, 32));
    // Losses from before the timeout do not cut once more.
    assert!(!window.on_congestion(seq(99), seq(120)));
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let mut window = Window::new(1440);
    window.on_sent(0, seq(1), 1, RTO_NS);
    assert_eq!(acknowledge(&mut window, 1, 2), 3);
    window.on_sent(0, seq(2), 3, RTO_NS);
    window.on_acknowledged(0, 2, seq(2), 2);
    assert_eq!(window.cwnd(), 4);
    window.on_sent(0, seq(3), 1, RTO_NS);
    window.on_acknowledged(0, 2, seq(3), 2);
    assert_eq!(window.cwnd(), 4);
}

#[test]
fn an_idle_window_is_halved_per_timeout_down_to_the_initial_one() {
    let mut window = full();
    (0..61).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    window.before_sending(0, RTO_NS);
    window.before_sending(2 * RTO_NS + 1, RTO_NS);
    assert_eq!(window.cwnd(), 16);
    window.before_sending(100 * RTO_NS, RTO_NS);
    assert_eq!(window.cwnd(), 3);
    assert!(window.ssthresh() >= 48);
}

#[test]
fn an_application_that_uses_little_of_the_window_loses_the_rest() {
    let mut window = full();
    (0..61).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    for step in 0..100 {
        let now_ns = step * RTO_NS / 4;
        window.before_sending(now_ns, RTO_NS);
        window.on_sent(now_ns, seq(step as u64), 5, RTO_NS);
    }
    assert!((5..=6).contains(&window.cwnd()), "{}", window.cwnd());
    assert!(window.ssthresh() >= 48);
}

#[test]
fn half_the_sequence_window_bounds_it() {
    let mut window = full();
    window.set_sequence_window(100);
    (0..500).for_each(|_| {
        acknowledge(&mut window, 2, 2);
    });
    assert_eq!(window.cwnd(), 50);
    window.set_sequence_window(1000);
    assert_eq!(acknowledge(&mut window, 2, 2), 51);
    window.set_sequence_window(20);
    assert_eq!(window.cwnd(), 10);
}

#[test]
fn a_slow_receiver_ends_slow_start_and_holds_growth() {
    let mut window = full();
    window.hold_until(100);
    window.leave_slow_start();
    assert_eq!(acknowledge(&mut window, 50, 50), 3);
    window.on_acknowledged(100, 3, seq(1), 2);
    assert_eq!(window.cwnd(), 4);
    assert_eq!(window.ssthresh(), 3);
}
