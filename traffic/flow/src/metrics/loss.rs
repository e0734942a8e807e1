// SPDX-License-Identifier: Apache-2.0
//! Loss bursts: runs of consecutive messages that were lost (the loss periods of RFC 3357, section 5). Pure, in bounded
//! memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest burst that is told apart, messages.
const LONGEST: u64 = 1 << 56;
/// Significant digits of a percentile: exact up to 255 messages, then to a part in a hundred.
const DIGITS: u8 = 2;
/// Lengths that are counted one by one; longer ones go together up to each power of two.
const ONE_BY_ONE: u64 = 16;
/// Bins of lengths: [`ONE_BY_ONE`], and one up to each power of two from 2^5 to 2^56.
const BINS: usize = ONE_BY_ONE as usize + 52;

/// Bursts of one range of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthCount {
    /// Shortest length, messages.
    pub from_messages: u64,
    /// Longest length, messages.
    pub to_messages: u64,
    /// Bursts of these lengths.
    pub bursts: u64,
}

/// Summary for the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BurstSummary {
    /// Bursts.
    pub count: u64,
    /// Mean length, messages.
    pub mean_messages: f64,
    /// Median length, messages.
    pub p50_messages: u64,
    /// 95th percentile, messages.
    pub p95_messages: u64,
    /// 99th percentile, messages.
    pub p99_messages: u64,
    /// Longest, messages.
    pub max_messages: u64,
    /// How many of which length; ranges without any are left out.
    pub lengths: Vec<LengthCount>,
}

/// Takes the fate of every message in the order of sending.
#[derive(Debug, Clone, Default)]
pub struct LossBursts {
    /// Lost ones since the last that arrived.
    open: u64,
    lengths: Option<Box<Lengths>>,
}

#[derive(Debug, Clone)]
struct Lengths {
    histogram: Histogram<u64>,
    bins: [u64; BINS],
    lost: u64,
    longest: u64,
}

impl LossBursts {
    /// The next `messages` were lost.
    pub fn lost(&mut self, messages: u64) {
        self.open += messages;
    }

    /// The next message arrived.
    pub fn arrived(&mut self) {
        if self.open > 0 {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        let length = std::mem::take(&mut self.open);
        self.lengths.get_or_insert_with(|| Box::new(Lengths::new())).record(length);
    }

    /// Summary when nothing more comes; a burst at the end counts. Zeros without any loss.
    pub fn summary(mut self) -> BurstSummary {
        self.arrived();
        self.lengths.map(|lengths| lengths.summary()).unwrap_or_default()
    }
}

impl Lengths {
    fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("constant bounds and digits are valid");
        Self { histogram, bins: [0; BINS], lost: 0, longest: 0 }
    }

    fn record(&mut self, length: u64) {
        self.histogram.saturating_record(length);
        self.bins[bin(length)] += 1;
        self.lost += length;
        self.longest = self.longest.max(length);
    }

    fn summary(&self) -> BurstSummary {
        let count = self.histogram.len();
        let percentile = |share| self.histogram.value_at_quantile(share).min(self.longest);
        let lengths = self.bins.iter().enumerate().filter(|(_, bursts)| **bursts > 0);
        BurstSummary {
            count,
            mean_messages: self.lost as f64 / count as f64,
            p50_messages: percentile(0.50),
            p95_messages: percentile(0.95),
            p99_messages: percentile(0.99),
            max_messages: self.longest,
            lengths: lengths.map(|(bin, bursts)| range(bin).with(*bursts)).collect(),
        }
    }
}

/// Which bin a length (at least 1) belongs to.
fn bin(length: u64) -> usize {
    if length <= ONE_BY_ONE {
        return length as usize - 1;
    }
    // 17 to 32 have a longest number of 5 bits when counted from 0, 33 to 64 one of 6, ...
    let bits = (u64::BITS - (length - 1).leading_zeros()) as usize;
    (ONE_BY_ONE as usize + bits - 5).min(BINS - 1)
}

/// Lengths of a bin.
fn range(bin: usize) -> LengthCount {
    let (from_messages, to_messages) = match bin.checked_sub(ONE_BY_ONE as usize) {
        None => (bin as u64 + 1, bin as u64 + 1),
        Some(power) => ((ONE_BY_ONE << power) + 1, ONE_BY_ONE << (power + 1)),
    };
    LengthCount { from_messages, to_messages, bursts: 0 }
}

impl LengthCount {
    const fn with(self, bursts: u64) -> Self {
        Self { bursts, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_of_lengths_leave_nothing_out() {
        assert_eq!(range(0).from_messages, 1);
        for bin in 1..BINS {
            assert_eq!(range(bin - 1).to_messages + 1, range(bin).from_messages);
        }
        assert_eq!(range(BINS - 1).to_messages, LONGEST);
        for length in (1..=1_000).chain([1 << 20, (1 << 20) + 1, LONGEST - 1, LONGEST]) {
            let range = range(bin(length));
            assert!((range.from_messages..=range.to_messages).contains(&length), "{length} {range:?}");
        }
    }

    #[test]
    fn without_loss_there_is_no_burst() {
        let mut bursts = LossBursts::default();
        bursts.arrived();
        assert_eq!(bursts.summary(), BurstSummary::default());
    }

    #[test]
    fn the_last_messages_are_a_burst_too() {
        let mut bursts = LossBursts::default();
        bursts.lost(2);
        bursts.arrived();
        bursts.lost(3);
        bursts.lost(4);
        let summary = bursts.summary();
        assert_eq!((summary.count, summary.max_messages, summary.mean_messages), (2, 7, 4.5));
        assert_eq!((summary.p50_messages, summary.p99_messages), (2, 7));
    }

    proptest! {
        /// Against the runs of a list of fates.
        #[test]
        fn bursts_are_the_runs_of_lost_messages(fates in proptest::collection::vec(any::<bool>(), 0..600)) {
            let mut bursts = LossBursts::default();
            for arrived in &fates {
                if *arrived {
                    bursts.arrived();
                } else {
                    bursts.lost(1);
                }
            }
            let mut runs: Vec<u64> = fates
                .split(|arrived| *arrived)
                .filter(|run| !run.is_empty())
                .map(|run| run.len() as u64)
                .collect();
            runs.sort_unstable();
            let summary = bursts.summary();
            prop_assert_eq!(summary.count, runs.len() as u64);
            prop_assert_eq!(summary.lengths.iter().map(|length| length.bursts).sum::<u64>(), summary.count);
            prop_assert_eq!(summary.max_messages, runs.last().copied().unwrap_or(0));
            if !runs.is_empty() {
                let mean = runs.iter().sum::<u64>() as f64 / runs.len() as f64;
                prop_assert!((summary.mean_messages - mean).abs() < 1e-9);
                for (told, share) in
                    [(summary.p50_messages, 0.5), (summary.p95_messages, 0.95), (summary.p99_messages, 0.99)]
                {
                    let rank = ((share * runs.len() as f64).ceil() as usize).clamp(1, runs.len());
                    prop_assert_eq!(told, runs[rank - 1]);
                }
            }
        }
    }
}
