// SPDX-License-Identifier: Apache-2.0
//! The sender by itself: what each kind of feedback does to rate, round trip, window counter and options.

use super::{emit, figure, packet, MS, S};
use crate::ccid::ccid3::Sender;
use crate::ccid::tfrc::equation;
use crate::ccid::{Departure, Ecn, Incoming, SendingCcid};
use crate::options::DccpOption;
use crate::packet::PacketType;
use crate::seqno::Seq48;

const SEGMENT: usize = 1000;

/// A sender that has sent packet 0 at time 0.
fn started() -> Sender {
    let mut sender = Sender::new(0, Seq48::new(0), SEGMENT);
    send(&mut sender, 0, 0);
    sender
}

fn send(sender: &mut Sender, now_ns: i64, seq: u64) -> u8 {
    let ccval = sender.ccval(now_ns);
    sender.on_sent(now_ns, Seq48::new(seq), Some(SEGMENT), Ecn::NotEct);
    ccval
}

fn feedback(sender: &mut Sender, now_ns: i64, seq: u64, ack: u64, options: &[DccpOption<'_>]) {
    let bytes = emit(options);
    let packet = packet(PacketType::Ack, 0, &bytes, &[]);
    let incoming = Incoming {
        arrived_ns: now_ns,
        seq: Seq48::new(seq),
        ack: Some(Seq48::new(ack)),
        ecn: Ecn::NotEct,
        packet: &packet,
    };
    sender.on_incoming(&incoming).expect("no violation");
}

fn linux(rate: u32, inverse: u32) -> [DccpOption<'static>; 2] {
    [DccpOption::ReceiveRate(rate), DccpOption::LossEventRate(inverse)]
}

fn value(sender: &Sender, name: &str) -> f64 {
    figure(&sender.figures(), name)
}

#[test]
fn linux_feedback_without_elapsed_time_and_intervals_is_accepted() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 1, 0, &linux(0, u32::MAX));
    assert_eq!(sender.rtt_ns(), Some(100 * MS));
    assert!((value(&sender, "allowed_rate_bytes_per_s") - 4000.0 / 0.1).abs() < 1e-6, "W_init / R");
    send(&mut sender, 100 * MS, 1);
    feedback(&mut sender, 200 * MS, 2, 1, &linux(1_000_000, 100));
    let wanted = equation::bytes_per_s(1000.0, 0.1, 0.01);
    assert!((value(&sender, "allowed_rate_bytes_per_s") / wanted - 1.0).abs() < 1e-6);
}

#[test]
fn an_acknowledgement_without_the_options_is_no_feedback() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 1, 0, &[]);
    feedback(&mut sender, 101 * MS, 2, 0, &[DccpOption::ReceiveRate(5)]);
    assert_eq!(value(&sender, "feedback_received"), 0.0);
    assert_eq!(sender.rtt_ns(), None);
}

#[test]
fn elapsed_time_is_taken_from_the_round_trip() {
    let mut sender = started();
    let mut options = vec![DccpOption::ElapsedTime(3000)];
    options.extend(linux(0, u32::MAX));
    feedback(&mut sender, 100 * MS, 1, 0, &options);
    assert_eq!(sender.rtt_ns(), Some(70 * MS));
    // A delay longer than the whole time is not believed.
    options[0] = DccpOption::ElapsedTime(u32::MAX);
    feedback(&mut sender, 200 * MS, 2, 0, &options);
    assert_eq!(sender.rtt_ns(), Some(70 * MS));
}

#[test]
fn the_round_trip_is_averaged_with_nine_tenths_and_oscillation_reduction_uses_roots() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 1, 0, &linux(0, u32::MAX));
    send(&mut sender, 200 * MS, 1);
    feedback(&mut sender, 600 * MS, 2, 1, &linux(1_000_000, 100));
    assert_eq!(sender.rtt_ns(), Some(130 * MS));
    // R_sqmean = 0.9 sqrt(0.1) + 0.1 sqrt(0.4); X_inst = X R_sqmean / sqrt(0.4).
    let root_mean = 0.9 * 0.1_f64.sqrt() + 0.1 * 0.4_f64.sqrt();
    let ratio = value(&sender, "instantaneous_rate_bytes_per_s") / value(&sender, "allowed_rate_bytes_per_s");
    assert!((ratio - root_mean / 0.4_f64.sqrt()).abs() < 1e-9, "{ratio}");
}

#[test]
fn old_feedback_is_ignored() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 5, 0, &linux(0, u32::MAX));
    feedback(&mut sender, 110 * MS, 4, 0, &linux(0, 2));
    assert_eq!(value(&sender, "loss_event_rate"), 0.0);
}

#[test]
fn intervals_give_p_exactly_where_the_rounded_rate_agrees() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 1, 0, &linux(0, u32::MAX));
    // Skip 0; current (1, 1, data 2), then 8 intervals of 9 or 10 packets: mean (4 * 9 + 2 * 10) / 6.
    let mut contents = vec![0, 0, 0, 1, 0, 0, 1, 0, 0, 2];
    for length in [9, 9, 9, 9, 10, 10, 10, 10] {
        contents.extend([0, 0, length - 1, 0, 0, 1, 0, 0, length]);
    }
    send(&mut sender, 150 * MS, 1);
    let mut options = linux(1_000_000, 10).to_vec();
    options.push(DccpOption::LossIntervals(&contents));
    feedback(&mut sender, 250 * MS, 2, 1, &options);
    assert!((1.0 / value(&sender, "loss_event_rate") - 56.0 / 6.0).abs() < 1e-9);
    // A claim of fewer losses than any interval supports is not believed; of more, it is.
    options[1] = DccpOption::LossEventRate(1000);
    feedback(&mut sender, 260 * MS, 3, 1, &options);
    assert!((1.0 / value(&sender, "loss_event_rate") - 56.0 / 6.0).abs() < 1e-9);
    options[1] = DccpOption::LossEventRate(5);
    feedback(&mut sender, 270 * MS, 4, 1, &options);
    assert!((value(&sender, "loss_event_rate") - 0.2).abs() < 1e-9);
}

#[test]
fn ccval_rises_a_quarter_at_a_time_and_at_most_five() {
    let mut sender = Sender::new(0, Seq48::new(0), SEGMENT);
    sender.set_initial_rtt(40 * MS);
    assert_eq!(send(&mut sender, 0, 0), 0);
    assert_eq!(send(&mut sender, 9 * MS, 1), 0);
    assert_eq!(send(&mut sender, 10 * MS, 2), 1);
    assert_eq!(send(&mut sender, 35 * MS, 3), 3);
    assert_eq!(send(&mut sender, S, 4), 8);
    assert_eq!(send(&mut sender, 2 * S, 5), 13);
    assert_eq!(send(&mut sender, 3 * S, 6), 2, "modulo 16");
    // Asking again without sending must not run ahead.
    sender.ccval(4 * S);
    assert_eq!(sender.ccval(5 * S), 7);
}

#[test]
fn an_acknowledged_counter_pulls_the_next_four_on() {
    let mut sender = Sender::new(0, Seq48::new(0), SEGMENT);
    sender.set_initial_rtt(400 * MS);
    assert_eq!(send(&mut sender, 0, 0), 0);
    feedback(&mut sender, 50 * MS, 1, 0, &[]);
    assert_eq!(send(&mut sender, 60 * MS, 1), 4);
    feedback(&mut sender, 70 * MS, 2, 0, &[]);
    assert_eq!(send(&mut sender, 70 * MS, 2), 4, "packet 0 was acknowledged already");
}

#[test]
fn the_rtt_estimate_is_rounded_up_and_says_when_there_is_none() {
    let mut sender = started();
    let options = |sender: &mut Sender| {
        let mut found = Vec::new();
        sender.data_options(0, &mut |option| {
            if let DccpOption::RttEstimate(rtt_us) = option {
                found.push(rtt_us);
            }
        });
        found
    };
    sender.set_rtt_estimate_feature(false);
    assert!(options(&mut sender).is_empty(), "not agreed");
    sender.set_rtt_estimate_feature(true);
    assert_eq!(options(&mut sender), [0]);
    for (rtt_ns, said) in [(1, 1), (50_001, 51), (16_777_214_000, 0xff_fffe), (20 * S, 0xff_ffff)] {
        sender.set_initial_rtt(rtt_ns);
        assert_eq!(options(&mut sender), [said], "{rtt_ns} ns");
    }
}

#[test]
fn slow_receiver_and_data_dropped_limit_the_next_round_trip() {
    let mut sender = started();
    feedback(&mut sender, 100 * MS, 1, 0, &linux(0, u32::MAX));
    let mut now_ns = 100 * MS;
    for seq in 1..40 {
        now_ns += 25 * MS;
        send(&mut sender, now_ns, seq);
    }
    let mut options = linux(40_000, u32::MAX).to_vec();
    options.push(DccpOption::SlowReceiver);
    feedback(&mut sender, now_ns + 100 * MS, 2, 38, &options);
    feedback(&mut sender, now_ns + 350 * MS, 3, 39, &options);
    assert!((value(&sender, "receive_rate_bytes_per_s") - 20_000.0).abs() < 1e-6, "X_recv = X_inrecv / 2");
    // Three packets dropped in the receive buffer: X_drop = 40000 - 3 * 1000 / R.
    send(&mut sender, now_ns + 400 * MS, 40);
    send(&mut sender, now_ns + 400 * MS, 41);
    send(&mut sender, now_ns + 400 * MS, 42);
    options[2] = DccpOption::DataDropped(&[0x80 | 2 << 4 | 7]);
    let rtt_s = sender.rtt_ns().expect("known") as f64 / 1e9;
    feedback(&mut sender, now_ns + 500 * MS, 4, 42, &options);
    let bound = (40_000.0 - 3.0 * 1000.0 / rtt_s).max(40_000_f64.min(1000.0 / rtt_s));
    assert!((value(&sender, "receive_rate_bytes_per_s") - bound / 2.0).abs() < 1.0);
    assert!(sender.wants_ack_of_acks());
    sender.on_sent(now_ns + 500 * MS, Seq48::new(43), None, Ecn::NotEct);
    assert!(!sender.wants_ack_of_acks());
}

#[test]
fn packets_per_rtt_follow_rate_and_round_trip() {
    let mut sender = Sender::new(0, Seq48::new(0), 1000);
    assert_eq!(sender.packets_per_rtt(), 1);
    sender.set_initial_rtt(100 * MS);
    assert_eq!(sender.packets_per_rtt(), 4);
}

#[test]
fn the_initial_window_is_that_of_rfc_3390() {
    for (segment, window) in [(300, 1200.0), (1000, 4000.0), (1440, 4380.0), (2190, 4380.0), (9000, 18_000.0)]
    {
        let mut sender = Sender::new(0, Seq48::new(0), 1440);
        sender.set_initial_rtt(S);
        assert_eq!(sender.departure(0, segment), Departure::Now);
        assert!((value(&sender, "allowed_rate_bytes_per_s") - window).abs() < 1e-6, "{segment}");
    }
}

/// Size of the messages that follow a greeting of 21 bytes, as in `netjoule-traffic`.
const MESSAGE: usize = 1380;

/// A sender with a round trip of 40 ms whose greeting was answered.
fn greeted() -> Sender {
    let mut sender = Sender::new(0, Seq48::new(0), 1440);
    sender.set_initial_rtt(40 * MS);
    assert_eq!(sender.departure(0, 21), Departure::Now);
    sender.ccval(0);
    sender.on_sent(0, Seq48::new(0), Some(21), Ecn::NotEct);
    sender.on_queue_empty(0);
    feedback(&mut sender, 40 * MS, 1, 0, &linux(0, u32::MAX));
    sender
}

#[test]
fn a_small_first_message_does_not_hold_larger_ones_to_its_initial_window() {
    let mut sender = greeted();
    assert!((value(&sender, "allowed_rate_bytes_per_s") - 84.0 / 0.04).abs() < 1e-6);
    assert_eq!(sender.departure(48 * MS, MESSAGE), Departure::Now);
    assert!((value(&sender, "allowed_rate_bytes_per_s") - 4380.0 / 0.04).abs() < 1e-6);
    // What a loss or silence has lowered, a larger message does not raise.
    let mut lossy = greeted();
    feedback(&mut lossy, 45 * MS, 2, 0, &linux(500, 10));
    let before = value(&lossy, "allowed_rate_bytes_per_s");
    lossy.departure(48 * MS, MESSAGE);
    assert!((value(&lossy, "allowed_rate_bytes_per_s") - before).abs() < 1e-9);
    let mut silent = greeted();
    silent.on_sent(41 * MS, Seq48::new(1), Some(21), Ecn::NotEct);
    silent.departure(10 * S, 21);
    let before = value(&silent, "allowed_rate_bytes_per_s");
    assert!(before < 84.0 / 0.04, "{before}");
    silent.departure(10 * S, MESSAGE);
    assert!((value(&silent, "allowed_rate_bytes_per_s") - before).abs() < 1e-9);
}

/// Linux's receiver, as captured: the sixth packet is lost, p is 1/3 from then on for as long as no second loss comes (it
/// leaves its first, synthesised loss interval as it is), and feedback answers each packet. The equation allows 5 kB/s.
#[test]
fn after_a_small_first_message_and_an_early_loss_the_equation_is_used_up() {
    let mut sender = greeted();
    let (mut now_ns, mut seq, mut arrived_ns) = (48 * MS, 0, 48 * MS);
    let (mut known_ns, mut sent_since) = (i64::MAX, 0.0);
    while known_ns == i64::MAX || now_ns < known_ns + 2 * S {
        match sender.departure(now_ns, MESSAGE) {
            Departure::At(at_ns) => now_ns = at_ns,
            Departure::OnFeedback => unreachable!("a rate, not a window"),
            Departure::Now => {
                seq += 1;
                sent_since += if now_ns > known_ns { 1.0 } else { 0.0 };
                sender.ccval(now_ns);
                sender.on_sent(now_ns, Seq48::new(seq), Some(MESSAGE), Ecn::NotEct);
                if seq != 6 {
                    // Where packets are further apart than the round trip, feedback comes before the next.
                    let rate = MESSAGE as i64 * S / (now_ns + 20 * MS - arrived_ns).max(20 * MS);
                    arrived_ns = now_ns + 20 * MS;
                    now_ns += 40 * MS;
                    let inverse = if seq < 6 { u32::MAX } else { 3 };
                    feedback(&mut sender, now_ns, seq + 1, seq, &linux(rate as u32, inverse));
                    known_ns = if seq > 6 { known_ns.min(now_ns) } else { known_ns };
                }
            }
        }
    }
    let wanted = 2.0 * equation::bytes_per_s(MESSAGE as f64, 0.04, 1.0 / 3.0) / MESSAGE as f64;
    assert!(sent_since > 0.8 * wanted, "{sent_since} of {wanted}");
    assert_eq!(value(&sender, "nofeedback_expirations"), 0.0);
}
