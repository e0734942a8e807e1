// SPDX-License-Identifier: Apache-2.0
//! A flow of a capture as a profile: its trace, or the distributions of its sizes and inter-departure times. Pure.

use std::collections::BTreeMap;

use netjoule_transport::message::{HEADER_BYTES, LONGEST_STATED_BYTES};

use crate::schedule::document::{Distribution, Document, Law, Messages, Trace};
use crate::schedule::Departure;
use crate::schedule::{text, trace};

use super::flows::Flow;

/// Values that a distribution of times keeps.
const MOST_VALUES: usize = 1_000;

/// The messages of a flow as they will be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Departures {
    pub(super) list: Vec<Departure>,
    /// Messages that were smaller than a message's header and were made as large.
    pub(super) raised: u64,
}

impl Departures {
    /// Of a flow: what lies within `span_ns` of its first message, what is longer than `cut_bytes` cut.
    pub(super) fn of(flow: &Flow, cut_bytes: Option<u64>, span_ns: Option<u64>) -> Self {
        let first_ns = flow.messages.first().map_or(0, |(time_ns, _)| *time_ns);
        let most_ns = i128::from(span_ns.unwrap_or(u64::MAX));
        let most_bytes = cut_bytes.map_or(LONGEST_STATED_BYTES, |bytes| bytes as usize);
        let (mut list, mut raised) = (Vec::new(), 0);
        for (time_ns, bytes) in flow.messages.iter().take_while(|(time_ns, _)| time_ns - first_ns < most_ns) {
            let mut rest = *bytes as usize;
            while rest > 0 {
                let piece = rest.min(most_bytes);
                raised += u64::from(piece < HEADER_BYTES);
                let due_ns = u64::try_from(time_ns - first_ns).unwrap_or(u64::MAX);
                list.push(Departure { due_ns, bytes: piece.max(HEADER_BYTES) as u16 });
                rest -= piece;
            }
        }
        Self { list, raised }
    }

    /// Time after which the flow may begin again: the last message's, and the mean inter-departure time.
    pub(super) fn period_ns(&self) -> Option<u64> {
        let last_ns = self.list.last()?.due_ns;
        let gaps = self.list.len() as u64 - 1;
        (gaps > 0 && last_ns > 0).then(|| last_ns + last_ns.div_ceil(gaps))
    }

    /// As they were, again and again.
    pub(super) fn trace(&self, name: &str, description: String) -> Document {
        let mut document = text::traced(String::new(), name);
        let period_s = self.period_ns().map(|period_ns| period_ns as f64 / 1e9);
        document.trace = Some(Trace { csv: trace::to_csv(&self.list), period_s });
        document.description = Some(description);
        document
    }

    /// As independent draws from what was seen. `None` for a single message, which has no inter-departure time.
    pub(super) fn distributions(&self, name: &str, description: String) -> Option<Document> {
        let mut sizes = BTreeMap::new();
        self.list.iter().for_each(|departure| *sizes.entry(departure.bytes).or_insert(0) += 1);
        let (values, weights) =
            sizes.into_iter().map(|(bytes, count): (u16, u64)| (f64::from(bytes), count)).unzip();
        let mut document = text::traced(String::new(), name);
        document.trace = None;
        document.messages = Some(Messages {
            size_bytes: Distribution(Law::Empirical { values, weights: Some(weights) }),
            inter_departure_s: Distribution(self.gaps()?),
        });
        document.description = Some(description);
        Some(document)
    }

    /// Inter-departure times in order of size, in groups of about equal weight; each group stands as its mean, so the mean
    /// of all is kept.
    fn gaps(&self) -> Option<Law> {
        let mut gaps: Vec<u64> = self.list.windows(2).map(|pair| pair[1].due_ns - pair[0].due_ns).collect();
        gaps.sort_unstable();
        let most = gaps.len().div_ceil(MOST_VALUES).max(1);
        let groups = gaps.chunks(most).map(|group| {
            let mean_ns = group.iter().map(|gap| u128::from(*gap)).sum::<u128>() as f64 / group.len() as f64;
            (mean_ns.round() / 1e9, group.len() as u64)
        });
        let (values, weights): (Vec<_>, Vec<_>) = groups.unzip();
        (!values.is_empty()).then_some(Law::Empirical { values, weights: Some(weights) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::flows::Ends;
    use super::*;
    use crate::schedule::profile::Profile;
    use crate::schedule::Schedule;

    const START_NS: i128 = 1_700_000_000_000_000_000;

    fn flow(messages: &[(i128, u32)]) -> Flow {
        let address = "10.1.2.3:5000".parse().unwrap();
        let ends = Ends { protocol: 17, source: address, destination: address };
        Flow::seen(ends, messages.iter().map(|(ns, bytes)| (START_NS + ns, *bytes)).collect())
    }

    #[test]
    fn a_trace_is_what_was_seen_and_begins_again_after_a_mean_gap() {
        let departures = Departures::of(&flow(&[(0, 300), (20, 7), (60, 1_440)]), None, None);
        let list = [(0, 300), (20, 16), (60, 1_440)].map(|(due_ns, bytes)| Departure { due_ns, bytes });
        assert_eq!((&departures.list[..], departures.raised), (&list[..], 1));
        assert_eq!(departures.period_ns(), Some(90));
        let profile = Profile::new(departures.trace("x", "y".into())).unwrap();
        let schedule = Schedule::of_profile(&profile, 1, 151).unwrap();
        let due: Vec<_> = (0..schedule.count()).map(|index| schedule.due_ns(index)).collect();
        assert_eq!(due, [0, 20, 60, 90, 110, 150]);
    }

    #[test]
    fn what_the_device_would_segment_is_cut_and_a_span_is_kept() {
        let seen = flow(&[(0, 4_000), (50, 100), (100, 100)]);
        let departures = Departures::of(&seen, Some(1_440), Some(100));
        let sizes: Vec<_> = departures.list.iter().map(|departure| departure.bytes).collect();
        assert_eq!(sizes, [1_440, 1_440, 1_120, 100]);
        assert_eq!(Departures::of(&flow(&[(0, 90_000)]), None, None).list.len(), 2);
    }

    #[test]
    fn one_message_has_neither_period_nor_times_between() {
        let departures = Departures::of(&flow(&[(0, 64)]), None, None);
        assert_eq!(departures.period_ns(), None);
        assert!(departures.distributions("x", String::new()).is_none());
        assert!(Profile::new(departures.trace("x", String::new())).is_ok());
    }

    #[test]
    fn distributions_keep_the_means() {
        let messages: Vec<_> =
            (0..5_000_i128).map(|k| (k * 1_000_000 + k * k % 700_000, 64 + (k % 5) as u32 * 100)).collect();
        let departures = Departures::of(&flow(&messages), None, None);
        let document = departures.distributions("x", String::new()).unwrap();
        let Some(Messages { size_bytes, inter_departure_s }) = document.messages else {
            panic!("no messages")
        };
        for (distribution, mean, most) in [
            (size_bytes, 264.0, 5),
            (inter_departure_s, departures.list.last().unwrap().due_ns as f64 * 1e-9 / 4_999.0, MOST_VALUES),
        ] {
            let Law::Empirical { values, weights: Some(weights) } = distribution.0 else {
                panic!("not empirical")
            };
            assert!(values.len() <= most && values.len() == weights.len(), "{}", values.len());
            let total: u64 = weights.iter().sum();
            let sum: f64 = values.iter().zip(&weights).map(|(value, weight)| value * *weight as f64).sum();
            assert!((sum / total as f64 / mean - 1.0).abs() < 1e-6, "{sum} {total} {mean}");
        }
    }
}
