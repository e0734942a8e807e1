// SPDX-License-Identifier: Apache-2.0
//! The receiver by itself: loss intervals, loss events, feedback times, rates.

use super::{acknowledge, arrive, emit, figure, packet, Ack, MS, S};
use crate::ccid::ccid3::Receiver;
use crate::ccid::{Ecn, Incoming, ReceivingCcid};
use crate::options::loss_intervals::LossInterval;
use crate::options::DccpOption;
use crate::packet::PacketType;
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// A receiver to which data packets `from` to `to` come, one in `gap_ns`, with the window counter rising every
/// `per_quarter` packets; `fate` says what happens to each (`None`: lost).
fn receive(
    from: u64,
    to: u64,
    gap_ns: i64,
    per_quarter: u64,
    fate: impl Fn(u64) -> Option<(PacketType, Ecn)>,
) -> Receiver {
    let mut receiver = Receiver::new(0);
    for seq in from..=to {
        if let Some((kind, ecn)) = fate(seq) {
            let ccval = ((seq - from) / per_quarter % 16) as u8;
            let packet = packet(kind, ccval, &[], &[0; 100]);
            arrive(&mut receiver, (seq - from) as i64 * gap_ns, seq, ecn, &packet);
        }
    }
    receiver
}

const fn interval(lossless: u32, loss: u32, nonce: bool, data: u32) -> LossInterval {
    LossInterval { lossless_length: lossless, loss_length: loss, nonce_echo: nonce, data_length: data }
}

/// RFC 4342 section 8.6.2: packets 0 to 44, of which 10, 19, 20, 21, 23, 32 and 43 are lost or marked.
#[test]
fn the_example_of_section_8_6_2_gives_its_bytes() {
    let lost = [10, 19, 20, 21, 23, 32, 43];
    let receiver = &mut receive(0, 44, MS, 1, |seq| {
        // Odd nonce sums over 0 to 9 and 33 to 42; packet 40 is not data; L2's 24 to 31 hold one, too, and 27.
        let nonce = [3, 35].contains(&seq);
        let kind = if [30, 31, 22, 40].contains(&seq) { PacketType::Ack } else { PacketType::Data };
        (!lost.contains(&seq)).then_some((kind, if nonce { Ecn::Ect1 } else { Ecn::Ect0 }))
    });
    let said = acknowledge(receiver, 45 * MS, 44);
    // Skip Length 2: packets 43 (lost, but not yet known) and 44.
    assert_eq!(said.skip, 2);
    let first_data = said.intervals[3].data_length;
    assert_eq!(
        said.intervals,
        [
            interval(10, 1, true, 10),
            interval(8, 5, false, 10),
            interval(8, 1, false, 9),
            interval(10, 0, true, first_data)
        ]
    );
    // The bytes of L3 as they stand in the RFC.
    let at = said.bytes.windows(2).position(|pair| pair == [193, 39]).expect("option 193 of 39 bytes");
    assert_eq!(said.bytes[at..at + 12], [193, 39, 2, 0, 0, 10, 128, 0, 1, 0, 0, 10]);
    assert_eq!(said.bytes[at + 12..at + 21], [0, 0, 8, 0, 0, 5, 0, 0, 10]);
}

#[test]
fn before_any_loss_there_is_one_interval_without_data_length() {
    let receiver = &mut receive(5, 24, MS, 5, |_| Some((PacketType::Data, Ecn::NotEct)));
    let said = acknowledge(receiver, 19 * MS + 123_456, 24);
    assert_eq!(said.intervals, [interval(20, 0, false, 0)]);
    assert_eq!((said.skip, said.loss_event_rate, said.receive_rate), (0, u32::MAX, 0));
    assert_eq!(said.elapsed, 12, "123 us in units of 10 us, rounded down");
}

#[test]
fn losses_within_a_round_trip_are_one_event_and_later_ones_another() {
    // Four packets per quarter: losses 40 and 50 are 2 to 3 quarters apart, 70 is 5 or more after packet 39.
    let lost = [40, 50, 70];
    let receiver =
        &mut receive(0, 80, MS, 4, |seq| (!lost.contains(&seq)).then_some((PacketType::Data, Ecn::NotEct)));
    let said = acknowledge(receiver, 81 * MS, 80);
    assert_eq!(said.intervals.len(), 3);
    assert_eq!(said.intervals[0], interval(10, 1, false, 11));
    assert_eq!(said.intervals[1], interval(19, 11, false, 30));
    assert_eq!((said.intervals[2].lossless_length, said.intervals[2].loss_length), (40, 0));
}

#[test]
fn with_the_rtt_option_arrival_times_tell_events_apart() {
    let mut receiver = Receiver::new(0);
    receiver.set_rtt_estimate_feature(true);
    let option = emit(&[DccpOption::RttEstimate(10_000)]);
    for seq in (0..100_u64).filter(|seq| ![40, 49, 60].contains(seq)) {
        // The counter stands still: it must not count.
        arrive(
            &mut receiver,
            seq as i64 * MS,
            seq,
            Ecn::NotEct,
            &packet(PacketType::Data, 3, &option, &[0; 9]),
        );
    }
    let said = acknowledge(&mut receiver, 100 * MS, 99);
    let lengths: Vec<_> = said.intervals.iter().map(|i| (i.lossless_length, i.loss_length)).collect();
    assert_eq!(lengths, [(39, 1), (10, 10), (40, 0)]);
}

#[test]
fn a_mark_is_a_loss_event_at_once() {
    let receiver = &mut receive(0, 30, MS, 1, |seq| {
        Some((PacketType::Data, if seq == 30 { Ecn::Ce } else { Ecn::Ect0 }))
    });
    let said = acknowledge(receiver, 31 * MS, 30);
    assert_eq!(
        said.intervals[0],
        interval(0, 1, false, 1),
        "S_A equals S_C: length one (RFC 5348 section 5.3)"
    );
    assert!(said.loss_event_rate < u32::MAX);
}

#[test]
fn a_mark_takes_the_hole_before_it_along() {
    // RFC 5348 section 5.1: n - 1, then n + 1 unmarked, n + 2 marked: the event begins with n.
    let receiver = &mut receive(0, 12, MS, 1, |seq| {
        (seq != 10).then_some((PacketType::Data, if seq == 12 { Ecn::Ce } else { Ecn::Ect0 }))
    });
    let said = acknowledge(receiver, 13 * MS, 12);
    assert_eq!(said.intervals[0], interval(0, 3, false, 3));
}

#[test]
fn reordering_by_less_than_three_is_no_loss() {
    let mut receiver = Receiver::new(0);
    for (index, seq) in [0, 1, 4, 3, 2, 5, 7, 8, 6, 9].into_iter().enumerate() {
        arrive(
            &mut receiver,
            index as i64 * MS,
            seq,
            Ecn::NotEct,
            &packet(PacketType::Data, 0, &[], &[0; 10]),
        );
    }
    let said = acknowledge(&mut receiver, 20 * MS, 9);
    assert_eq!(said.intervals, [interval(10, 0, false, 0)]);
    arrive(&mut receiver, 21 * MS, 9, Ecn::NotEct, &packet(PacketType::Data, 0, &[], &[0; 10]));
    assert_eq!(figure(&receiver.figures(), "receiver_data_packets"), 10.0, "a duplicate does not count");
}

#[test]
fn a_long_hole_that_is_not_yet_lost_skips_three_at_most() {
    let receiver = &mut receive(0, 60, MS, 1, |seq| {
        (!(20..60).contains(&seq)).then_some((PacketType::Data, Ecn::NotEct))
    });
    let said = acknowledge(receiver, 61 * MS, 60);
    assert_eq!((said.skip, said.intervals.len()), (3, 1));
    assert_eq!(said.intervals[0].lossless_length, 58);
}

#[test]
fn ndp_count_excuses_lost_acknowledgements() {
    let mut receiver = Receiver::new(0);
    let plain = packet(PacketType::Data, 0, &[], &[0; 10]);
    let ndp = emit(&[DccpOption::NdpCount(2)]);
    for seq in (0..10_u64).chain(12..20) {
        let is_after = seq == 12;
        let data = packet(PacketType::Data, 0, if is_after { &ndp } else { &[] }, &[0; 10]);
        arrive(&mut receiver, seq as i64 * MS, seq, Ecn::NotEct, if is_after { &data } else { &plain });
    }
    assert_eq!(figure(&receiver.figures(), "receiver_loss_events"), 0.0);
    // A hole of four of which two are known to be without data is a loss.
    for seq in 24..30_u64 {
        let data = packet(PacketType::Data, 9, if seq == 24 { &ndp } else { &[] }, &[0; 10]);
        arrive(&mut receiver, seq as i64 * MS, seq, Ecn::NotEct, &data);
    }
    let said = acknowledge(&mut receiver, 30 * MS, 29);
    assert_eq!(said.intervals[0], interval(8, 2, false, 8));
}

#[test]
fn nine_intervals_are_reported_and_p_follows_from_them() {
    // One loss in 20 packets, counter one step per 3 packets.
    let receiver =
        &mut receive(0, 400, MS, 3, |seq| (seq % 20 != 10).then_some((PacketType::Data, Ecn::NotEct)));
    let said = acknowledge(receiver, 401 * MS, 400);
    assert_eq!(said.intervals.len(), 9);
    assert!(said.intervals[1..].iter().all(|one| *one == interval(19, 1, false, 20)));
    assert_eq!(said.loss_event_rate, 20);
}

#[test]
fn little_room_still_gets_the_newest_intervals() {
    let mut receiver =
        receive(0, 400, MS, 3, |seq| (seq % 20 != 10).then_some((PacketType::Data, Ecn::NotEct)));
    let mut kinds = Vec::new();
    receiver.ack_options(401 * MS, Seq48::new(0), Seq48::new(400), 18 + 3 + 9 + 8, &mut |option| {
        if let DccpOption::LossIntervals(contents) = option {
            assert_eq!(contents.len(), 10);
        }
        kinds.push(option.kind());
    });
    assert_eq!(kinds, [43, 194, 192, 193]);
    assert_eq!(receiver.ack_due_ns(), None);
}

#[test]
fn the_first_interval_gives_the_rate_that_arrived() {
    use crate::ccid::tfrc::equation;
    let mut receiver = Receiver::new(0);
    receiver.set_rtt_estimate_feature(true);
    let option = emit(&[DccpOption::RttEstimate(50_000)]);
    let mut said = None;
    for seq in (0..2000_u64).filter(|seq| *seq != 1500) {
        let now_ns = seq as i64 * MS;
        arrive(&mut receiver, now_ns, seq, Ecn::NotEct, &packet(PacketType::Data, 0, &option, &[0; 1000]));
        if receiver.ack_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            said = Some(acknowledge(&mut receiver, now_ns, seq));
        }
    }
    let said: Ack = said.expect("feedback");
    assert!((f64::from(said.receive_rate) / 1e6 - 1.0).abs() < 0.03, "{}", said.receive_rate);
    let first = f64::from(said.intervals[1].data_length);
    let rate = equation::bytes_per_s(1000.0, 0.05, 1.0 / first);
    assert!((rate / 1e6 - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn a_marked_first_packet_asks_for_half_a_packet_per_round_trip() {
    use crate::ccid::tfrc::equation;
    let mut receiver = Receiver::new(0);
    receiver.set_initial_rtt(100 * MS);
    arrive(&mut receiver, 0, 0, Ecn::Ce, &packet(PacketType::Data, 0, &[], &[0; 1000]));
    let said = acknowledge(&mut receiver, 0, 0);
    let rate = equation::bytes_per_s(1000.0, 0.1, 1.0 / f64::from(said.intervals[1].data_length));
    // Whole packets: the interval is 3 or 4 long.
    assert!(rate > 0.5 * 1000.0 / 0.1 * 0.7 && rate < 0.5 * 1000.0 / 0.1 * 1.3, "{rate}");
}

#[test]
fn feedback_on_the_first_packet_then_four_counters_later_and_at_once_on_loss() {
    let mut receiver = Receiver::new(0);
    let data = |ccval| packet(PacketType::Data, ccval, &[], &[0; 100]);
    assert_eq!(receiver.ack_due_ns(), None);
    arrive(&mut receiver, 0, 0, Ecn::NotEct, &data(0));
    assert_eq!(receiver.ack_due_ns(), Some(0));
    acknowledge(&mut receiver, 0, 0);
    for ccval in 1..=3 {
        arrive(&mut receiver, i64::from(ccval) * 10 * MS, u64::from(ccval), Ecn::NotEct, &data(ccval));
        assert!(receiver.ack_due_ns().is_none_or(|due_ns| due_ns > 40 * MS), "counter {ccval}");
    }
    arrive(&mut receiver, 40 * MS, 4, Ecn::NotEct, &data(4));
    assert_eq!(receiver.ack_due_ns(), Some(40 * MS));
    acknowledge(&mut receiver, 40 * MS, 4);
    // Packet 5 is lost; 6, 7 and 8 tell.
    for seq in 6..=8 {
        assert!(receiver.ack_due_ns().is_none_or(|due_ns| due_ns > 60 * MS));
        arrive(&mut receiver, 40 * MS + seq as i64 * MS, seq, Ecn::NotEct, &data(4));
    }
    assert_eq!(receiver.ack_due_ns(), Some(48 * MS));
    acknowledge(&mut receiver, 48 * MS, 8);
    assert_eq!(receiver.ack_due_ns(), None, "nothing new, nothing to say");
}

#[test]
fn below_a_millisecond_feedback_waits_for_a_millisecond() {
    let mut receiver = Receiver::new(0);
    receiver.set_rtt_estimate_feature(true);
    let option = emit(&[DccpOption::RttEstimate(50)]);
    let mut acks = 0;
    for seq in 0..1000_u64 {
        let now_ns = seq as i64 * 10_000;
        arrive(&mut receiver, now_ns, seq, Ecn::NotEct, &packet(PacketType::Data, 0, &option, &[0; 1440]));
        if receiver.ack_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            acknowledge(&mut receiver, now_ns, seq);
            acks += 1;
        }
    }
    assert!((9..=11).contains(&acks), "{acks} in 10 ms");
}

#[test]
fn receive_rate_counts_what_came_since_the_last_report() {
    let mut receiver = Receiver::new(0);
    receiver.set_initial_rtt(10 * MS);
    let data = packet(PacketType::Data, 0, &[], &[0; 1000]);
    arrive(&mut receiver, 0, 0, Ecn::NotEct, &data);
    assert_eq!(acknowledge(&mut receiver, 0, 0).receive_rate, 0);
    for seq in 1..=40 {
        arrive(&mut receiver, seq as i64 * MS, seq, Ecn::NotEct, &data);
    }
    assert_eq!(acknowledge(&mut receiver, 45 * MS, 40).receive_rate, 1_000_000);
    // Early, after 2 ms: the rate still is that of at least one round trip.
    for seq in 41..=42 {
        arrive(&mut receiver, seq as i64 * MS, seq, Ecn::NotEct, &data);
    }
    assert_eq!(acknowledge(&mut receiver, 45 * MS, 42).receive_rate, 1_000_000);
    // One packet after a pause: one packet per round trip, not per pause.
    acknowledge(&mut receiver, 60 * MS, 42);
    arrive(&mut receiver, 5 * S, 43, Ecn::NotEct, &data);
    let rate = acknowledge(&mut receiver, 5 * S, 43).receive_rate;
    assert!((100_000..=300_000).contains(&rate), "{rate}");
}

/// RFC 5348 section 6.2: feedback is about data. An Ack that leaves for another reason says nothing of rate and losses, also when
/// packets without data have shown that the messages before them are lost.
#[test]
fn without_data_there_is_no_feedback() {
    let mut receiver = Receiver::new(0);
    let (data, ack) = (packet(PacketType::Data, 0, &[], &[0; 100]), packet(PacketType::Ack, 0, &[], &[]));
    let said = |receiver: &mut Receiver, now_ns, seq: u64| {
        let mut options = 0;
        let number = Seq48::new(seq);
        receiver.ack_options(now_ns, Seq48::new(7), number, 500, &mut |_| options += 1);
        options
    };
    arrive(&mut receiver, MS, 1, Ecn::NotEct, &ack);
    for seq in 3..6 {
        arrive(&mut receiver, seq as i64 * MS, seq, Ecn::NotEct, &ack);
    }
    assert_eq!((receiver.ack_due_ns(), said(&mut receiver, 6 * MS, 5)), (None, 0));
    arrive(&mut receiver, 7 * MS, 6, Ecn::NotEct, &data);
    assert!(receiver.ack_due_ns().is_some() && said(&mut receiver, 7 * MS, 6) > 0);
    arrive(&mut receiver, 8 * MS, 7, Ecn::NotEct, &ack);
    assert_eq!(said(&mut receiver, 9 * MS, 7), 0);
}

#[test]
fn many_packets_in_one_nanosecond_have_a_finite_rate() {
    let mut receiver = Receiver::new(0);
    let data = packet(PacketType::Data, 0, &[], &[0; 1440]);
    for seq in 0..50 {
        arrive(&mut receiver, 7, seq, Ecn::NotEct, &data);
    }
    assert_eq!(acknowledge(&mut receiver, 7, 49).receive_rate, 0);
    arrive(&mut receiver, 7, 50, Ecn::NotEct, &data);
    assert_eq!(acknowledge(&mut receiver, 7, 50).receive_rate, 50 * 1440 * 1000);
}

#[test]
fn the_window_counter_gives_the_round_trip() {
    let receiver = receive(0, 200, MS, 5, |_| Some((PacketType::Data, Ecn::NotEct)));
    assert!((figure(&receiver.figures(), "receiver_rtt_us") - 20_000.0).abs() < 1.0);
}

#[test]
fn options_without_a_number_double_the_round_trip() {
    let mut receiver = Receiver::new(0);
    receiver.set_rtt_estimate_feature(true);
    let none = emit(&[DccpOption::RttEstimate(0)]);
    assert_eq!(figure(&receiver.figures(), "receiver_rtt_us"), 500_000.0);
    for (seq, now_ns) in [(0, 0), (1, 400 * MS), (2, 600 * MS), (3, 1500 * MS), (4, 1700 * MS)] {
        arrive(&mut receiver, now_ns, seq, Ecn::NotEct, &packet(PacketType::Data, 0, &none, &[]));
    }
    assert_eq!(figure(&receiver.figures(), "receiver_rtt_us"), 2_000_000.0);
    let numeric = emit(&[DccpOption::RttEstimate(30_000)]);
    arrive(&mut receiver, 1800 * MS, 5, Ecn::NotEct, &packet(PacketType::Data, 0, &numeric, &[]));
    assert!(figure(&receiver.figures(), "receiver_rtt_us") < 2_000_000.0);
}

#[test]
fn an_invalid_rtt_estimate_resets_when_the_feature_is_on() {
    let bytes = [128, 6, 1, 2, 3, 4];
    let data = packet(PacketType::Data, 0, &bytes, &[]);
    let incoming = Incoming { arrived_ns: 0, seq: Seq48::new(0), ack: None, ecn: Ecn::NotEct, packet: &data };
    assert!(Receiver::new(0).on_incoming(&incoming).is_ok());
    let mut receiver = Receiver::new(0);
    receiver.set_rtt_estimate_feature(true);
    let violation = receiver.on_incoming(&incoming).expect_err("six bytes");
    assert_eq!((violation.code, violation.data), (ResetCode::OptionError, [128, 6, 1]));
}
