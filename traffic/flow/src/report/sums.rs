// SPDX-License-Identifier: Apache-2.0
//! What both ends moved without the first seconds of a flow (`-O`). Pure.

use serde::{Deserialize, Serialize};

use crate::intervals::{End, Interval};

/// Both ends without the intervals that are marked as omitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    /// Begin of the sender's first interval that counts, s after its flow's.
    pub omitted_s: f64,
    /// The sending end.
    pub sender: Sum,
    /// The receiving end; missing for null.
    pub receiver: Option<Sum>,
}

/// One end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Messages sent, or first copies received.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Messages lost (receiver).
    pub messages_lost: Option<u64>,
    /// Payload rate over the rest of the flow, or as long as something came, Mb/s.
    pub goodput_mbps: f64,
}

impl Sums {
    /// Of a flow of `duration_ns`, the first part included.
    pub fn of(intervals: &[Interval], duration_ns: i64) -> Self {
        let all = |end| intervals.iter().filter(move |interval| interval.end == end);
        let omitted_ns = |end| {
            let begin_ns = all(end).next()?.start_ns;
            Some(all(end).find(|interval| !interval.omitted)?.start_ns - begin_ns)
        };
        let sum = |end| {
            let counted = || all(end).filter(|interval| !interval.omitted);
            let bytes = counted().map(|interval| interval.bytes).sum();
            let left_ns = duration_ns - omitted_ns(end).unwrap_or(duration_ns);
            let mut busy = counted().filter(|interval| interval.messages > 0);
            let moved_ns = counted()
                .next()
                .zip(busy.next_back())
                .map_or(0, |(first, last)| last.end_ns - first.start_ns);
            // The interval in which the flow ended may reach a little beyond its time.
            let rest_ns = if moved_ns - left_ns > left_ns / 100 { moved_ns } else { left_ns };
            Sum {
                messages: counted().map(|interval| interval.messages).sum(),
                bytes,
                messages_lost: counted().map(|interval| interval.messages_lost).sum(),
                goodput_mbps: goodput_mbps(bytes, rest_ns),
            }
        };
        Self {
            omitted_s: omitted_ns(End::Sender).unwrap_or(duration_ns) as f64 / 1e9,
            sender: sum(End::Sender),
            receiver: all(End::Receiver).next().map(|_| sum(End::Receiver)),
        }
    }
}

/// Payload rate in Mb/s; 0 for an empty span.
pub fn goodput_mbps(bytes: u64, span_ns: i64) -> f64 {
    if span_ns <= 0 {
        return 0.0;
    }
    bytes as f64 * 8e3 / span_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::Series;
    use netjoule_measure::cpu::usage::Usage;

    #[test]
    fn the_first_second_is_in_no_sum() {
        let mut intervals = Vec::new();
        for mut series in
            [Series::sender(500, 7, Usage::default()), Series::receiver(500, 90, Usage::default())]
        {
            series = series.omitting(1_000);
            let begin_ns = series.next_end_ns() - 500;
            for message in 0..30 {
                series.roll(begin_ns + message * 100, None, Usage::default);
                // A slow start: nothing but a byte in each message.
                series.count(1, if message < 10 { 1 } else { 125 });
            }
            series.finish(begin_ns + 3_000, None, Usage::default());
            intervals.extend(series.into_closed());
        }
        let sums = Sums::of(&intervals, 3_000);
        assert_eq!((sums.omitted_s, sums.sender.messages, sums.sender.bytes), (1e-6, 20, 2_500));
        assert_eq!((sums.sender.goodput_mbps, sums.sender.messages_lost), (10_000.0, None));
        let receiver = sums.receiver.unwrap();
        assert_eq!((receiver.messages_lost, receiver.goodput_mbps), (Some(0), 10_000.0));
    }

    #[test]
    fn goodput_is_payload_bits_over_time() {
        assert_eq!(goodput_mbps(1_250_000, 1_000_000_000), 10.0);
        assert_eq!(goodput_mbps(1, 0), 0.0);
    }
}
