// SPDX-License-Identifier: Apache-2.0
//! Whether a flow's counts agree: what both ends counted, against the schedule and against each other. Pure.

use super::ends::{ReceiverPart, SenderPart};
use crate::intervals::{End, Interval};

/// Sizes of the messages of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Smallest message in bytes.
    pub least: u64,
    /// Largest message in bytes.
    pub greatest: u64,
    /// All messages of the schedule together, in bytes.
    pub scheduled_bytes: u64,
}

impl Sizes {
    /// `messages` of one size.
    pub fn one(payload_bytes: u64, messages: u64) -> Self {
        let scheduled_bytes = messages.saturating_mul(payload_bytes);
        Self { least: payload_bytes, greatest: payload_bytes, scheduled_bytes }
    }

    /// Whether so many messages can have so many bytes; with one size, only if they have that size.
    fn fit(&self, messages: u64, bytes: Option<u64>) -> bool {
        let range = messages.saturating_mul(self.least)..=messages.saturating_mul(self.greatest);
        bytes.is_some_and(|bytes| range.contains(&bytes))
    }
}

/// Whether the counts agree: scheduled = sent + not sent, sent = received + lost, the bytes of each part are such as its
/// messages can have, and intervals add up to the totals at both ends.
pub fn reconciles(
    sender: &SenderPart,
    receiver: Option<&ReceiverPart>,
    intervals: &[Interval],
    sizes: Sizes,
) -> bool {
    let total = |end, value: fn(&Interval) -> u64| {
        intervals.iter().filter(|interval| interval.end == end).map(value).sum::<u64>()
    };
    let sender_agrees = sender.messages_scheduled == sender.messages_sent + sender.messages_not_sent
        && sizes.fit(sender.messages_sent, Some(sender.bytes_sent))
        && sizes.fit(sender.messages_not_sent, sizes.scheduled_bytes.checked_sub(sender.bytes_sent))
        && total(End::Sender, |interval| interval.messages) == sender.messages_sent
        && total(End::Sender, |interval| interval.bytes) == sender.bytes_sent;
    let receiver_agrees = receiver.is_none_or(|receiver| {
        sender.messages_sent == receiver.messages_received_unique + receiver.messages_lost
            && sizes.fit(receiver.messages_received_unique, Some(receiver.bytes_received_unique))
            && sizes
                .fit(receiver.messages_lost, sender.bytes_sent.checked_sub(receiver.bytes_received_unique))
            && total(End::Receiver, |interval| interval.messages) == receiver.messages_received_unique
            && total(End::Receiver, |interval| interval.bytes) == receiver.bytes_received_unique
            && total(End::Receiver, |interval| interval.messages_lost.unwrap_or(0)) == receiver.messages_lost
    });
    sender_agrees && receiver_agrees
}

#[cfg(test)]
mod tests {
    use netjoule_transport::Values;

    use super::*;
    use netjoule_measure::cpu::costs::Cpu;

    fn parts() -> (SenderPart, ReceiverPart, Vec<Interval>) {
        let sender = SenderPart {
            host: "a".into(),
            boot_id: "b".into(),
            start_ns: 0,
            first_packet_ns: None,
            last_packet_ns: None,
            end_ns: 1,
            messages_scheduled: 10,
            messages_sent: 9,
            messages_not_sent: 1,
            bytes_sent: 900,
            goodput_mbps: 1.0,
            departure_delay_us: None,
            realtime: None,
            cpu: Cpu::default(),
            transport_stats: Values::new(),
            pacer_work: None,
            pacing_certificate: None,
        };
        let receiver = ReceiverPart {
            host: "a".into(),
            boot_id: "b".into(),
            first_packet_ns: None,
            last_packet_ns: None,
            messages_received_unique: 7,
            messages_lost: 2,
            messages_duplicate: 0,
            messages_reordered: 0,
            bytes_received_unique: 700,
            goodput_mbps: 1.0,
            loss_ratio: None,
            jitter_ms: None,
            one_way_delay_ms: None,
            one_way_delay_reason: None,
            pdv_ms: None,
            ipdv_ms: None,
            loss_bursts: None,
            arrival_stamp_source: None,
            cpu: Cpu::default(),
            transport_stats: Values::new(),
        };
        let interval = |end, messages, lost| Interval {
            end,
            start_ns: 0,
            end_ns: 1,
            messages,
            bytes: 100 * messages,
            messages_lost: lost,
            messages_duplicate: None,
            messages_reordered: None,
            jitter_ms: None,
            goodput_mbps: 0.0,
            cpu_s: 0.0,
            cpu_user_s: None,
            cpu_system_s: None,
            context_switches_voluntary: 0,
            context_switches_involuntary: 0,
            host_irq_s: None,
            host_softirq_s: None,
            omitted: false,
        };
        let intervals = vec![interval(End::Sender, 9, None), interval(End::Receiver, 7, Some(2))];
        (sender, receiver, intervals)
    }

    #[test]
    fn counts_that_agree_reconcile_and_any_slip_shows() {
        let (sender, receiver, intervals) = parts();
        let sizes = Sizes::one(100, 10);
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes));
        assert!(reconciles(&sender, None, &intervals[..1], sizes));
        assert!(!reconciles(&sender, Some(&receiver), &intervals[..1], sizes));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes::one(101, 10)));
        let lossy = ReceiverPart { messages_lost: 3, ..receiver.clone() };
        assert!(!reconciles(&sender, Some(&lossy), &intervals, sizes));
        let late = SenderPart { messages_not_sent: 0, ..sender };
        assert!(!reconciles(&late, Some(&receiver), &intervals, sizes));
    }

    #[test]
    fn bytes_of_several_sizes_must_be_such_as_the_messages_can_have() {
        let (sender, receiver, intervals) = parts();
        // One message not sent and two lost: of 64 to 150 bytes each.
        let sizes = |scheduled_bytes| Sizes { least: 64, greatest: 150, scheduled_bytes };
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes(964)));
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes(1_050)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(963)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(1_051)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(800)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes { least: 101, ..sizes(1_050) }));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes { greatest: 99, ..sizes(999) }));
    }
}
