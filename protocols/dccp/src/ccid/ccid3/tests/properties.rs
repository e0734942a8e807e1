// SPDX-License-Identifier: Apache-2.0
//! Whatever arrives, nothing panics, p stays within 0 to 1 and rates stay finite.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{packet, Receiver, Sender};
use crate::ccid::{Departure, Ecn, Incoming, ReceivingCcid, SendingCcid};
use crate::options::DccpOption;
use crate::packet::PacketType;
use crate::seqno::Seq48;

const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
const KINDS: [PacketType; 4] = [PacketType::Data, PacketType::Ack, PacketType::DataAck, PacketType::Sync];

fn options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        any::<u32>().prop_map(|rate| super::emit(&[DccpOption::ReceiveRate(rate)])),
        any::<u32>().prop_map(|inverse| super::emit(&[DccpOption::LossEventRate(inverse)])),
        any::<u32>().prop_map(|time| super::emit(&[DccpOption::ElapsedTime(time)])),
        (0..4_u8, vec(any::<u8>(), 9 * 9)).prop_map(|(skip, mut bytes)| {
            bytes.insert(0, skip);
            super::emit(&[DccpOption::LossIntervals(&bytes)])
        }),
        any::<u64>().prop_map(|count| super::emit(&[DccpOption::NdpCount(count >> 16)])),
        (0..1_u32 << 24).prop_map(|rtt_us| super::emit(&[DccpOption::RttEstimate(rtt_us)])),
        vec(any::<u8>(), 1..20).prop_map(|bytes| super::emit(&[DccpOption::DataDropped(&bytes)])),
        vec(any::<u8>(), 0..12),
    ];
    vec(option, 0..5).prop_map(|options| options.concat())
}

/// Time passed (mostly little), numbers ahead (may be negative), type, ECN, CCVal, options, payload.
type Step = (i64, i64, usize, usize, u8, Vec<u8>, usize);

fn arrivals() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![Just(0), 0..1_000_i64, 0..1_000_000_000_i64, 0..1_000_000_000_000_i64];
    let ahead = prop_oneof![Just(1_i64), -3..6_i64, -1_000_000..1_000_000_i64, any::<i64>()];
    vec((pause, ahead, 0..4_usize, 0..4_usize, 0..16_u8, options(), 0..1500_usize), 1..60)
}

proptest! {
    #[test]
    fn the_receiver_survives_any_packets(steps in arrivals(), by_option in any::<bool>(), rtt_ns in 0..3_000_000_000_i64) {
        let mut receiver = Receiver::new(0);
        receiver.set_rtt_estimate_feature(by_option);
        receiver.set_initial_rtt(rtt_ns);
        let (mut now_ns, mut seq, payload) = (0, Seq48::new(3), vec![0; 1500]);
        for (pause_ns, ahead, kind, ecn, ccval, options, bytes) in steps {
            now_ns += pause_ns;
            seq = seq.add(ahead as u64);
            let packet = packet(KINDS[kind], ccval, &options, &payload[..bytes]);
            let incoming = Incoming { arrived_ns: now_ns, seq, ack: None, ecn: ECN[ecn], packet: &packet };
            let _ = receiver.on_incoming(&incoming);
            for (name, value) in receiver.figures() {
                prop_assert!(value.is_finite() && value >= 0.0, "{} {}", name, value);
            }
            let p = super::figure(&receiver.figures(), "receiver_loss_event_rate");
            prop_assert!((0.0..=1.0).contains(&p));
            if ccval % 3 == 0 {
                receiver.ack_options(now_ns, Seq48::new(0), seq, usize::from(ccval) * 10, &mut |_| {});
                prop_assert!(receiver.ack_due_ns().is_none_or(|due_ns| due_ns > now_ns));
            }
        }
    }

    #[test]
    fn the_sender_survives_any_feedback(steps in arrivals(), segment in 0..9000_usize, rtt_ns in 0..3_000_000_000_i64) {
        let mut sender = Sender::new(0, Seq48::new(0), segment);
        if segment % 2 == 0 {
            sender.set_initial_rtt(rtt_ns);
        }
        let (mut now_ns, mut sent, mut seq) = (0, 0_u64, Seq48::new(9));
        for (pause_ns, ahead, kind, ecn, ccval, options, bytes) in steps {
            now_ns += pause_ns;
            if sender.departure(now_ns, bytes) == Departure::Now {
                let before = sender.ccval(now_ns);
                prop_assert!(before < 16);
                sender.data_options(now_ns, &mut |_| {});
                sender.on_sent(now_ns, Seq48::new(sent), Some(bytes), ECN[ecn]);
                sent += 1;
            }
            seq = seq.add(1 + u64::from(ccval));
            let packet = packet(KINDS[kind], ccval, &options, &[]);
            let ack = Seq48::new(sent).add(ahead.clamp(-5, 2) as u64);
            let incoming = Incoming { arrived_ns: now_ns, seq, ack: Some(ack), ecn: ECN[ecn], packet: &packet };
            let _ = sender.on_incoming(&incoming);
            sender.on_timeout(now_ns);
            for (name, value) in sender.figures() {
                prop_assert!(value.is_finite() && value >= 0.0, "{} {}", name, value);
            }
            prop_assert!((0.0..=1.0).contains(&super::figure(&sender.figures(), "loss_event_rate")));
            prop_assert!(super::figure(&sender.figures(), "instantaneous_rate_bytes_per_s") > 0.0);
            prop_assert!(sender.packets_per_rtt() >= 1);
        }
    }
}
