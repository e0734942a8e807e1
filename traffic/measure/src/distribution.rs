// SPDX-License-Identifier: Apache-2.0
//! How times of either sign are spread: exact least, mean and greatest, percentiles to three digits. Pure, in bounded
//! memory: one histogram per sign (HDR: buckets that grow with the value).

use hdrhistogram::Histogram;

/// Largest time that is told apart, in ns; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of a percentile.
const DIGITS: u8 = 3;

/// Collects times in ns.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// Times below 0, without their sign.
    negative: Option<Histogram<u64>>,
    /// All others.
    positive: Histogram<u64>,
    count: u64,
    sum_ns: f64,
    magnitudes_ns: f64,
    min_ns: i64,
    max_ns: i64,
    /// A time that came so many times in a row and is not in a histogram yet: messages of a train share theirs.
    run: (i64, u64),
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            negative: None,
            positive: histogram(),
            count: 0,
            sum_ns: 0.0,
            magnitudes_ns: 0.0,
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            run: (0, 0),
        }
    }
}

impl Distribution {
    /// Take one time.
    pub fn record(&mut self, time_ns: i64) {
        self.record_times(time_ns, 1);
    }

    /// Take one time that came so many times.
    pub fn record_times(&mut self, time_ns: i64, times: u64) {
        if time_ns != self.run.0 {
            self.end_run();
            self.run.0 = time_ns;
        }
        self.run.1 += times;
    }

    /// Whether percentiles do not tell these two times apart.
    pub fn takes_for_one(&self, one_ns: u64, other_ns: u64) -> bool {
        self.positive.equivalent(one_ns, other_ns)
    }

    /// How many were taken.
    pub fn count(&self) -> u64 {
        self.count + self.run.1
    }

    /// What can be told so far; `None` when nothing was taken.
    pub fn told(&mut self) -> Option<Told<'_>> {
        self.end_run();
        (self.count > 0).then_some(Told { of: self })
    }

    fn end_run(&mut self) {
        let (time_ns, times) = self.run;
        self.run.1 = 0;
        if times == 0 {
            return;
        }
        let magnitude = time_ns.unsigned_abs();
        let histogram = match time_ns {
            0.. => &mut self.positive,
            _ => self.negative.get_or_insert_with(histogram),
        };
        histogram.saturating_record_n(magnitude, times);
        self.count += times;
        self.sum_ns += time_ns as f64 * times as f64;
        self.magnitudes_ns += magnitude as f64 * times as f64;
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }
}

/// A distribution that holds something.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    of: &'a Distribution,
}

impl Told<'_> {
    /// Least, ns.
    pub fn min_ns(&self) -> f64 {
        self.of.min_ns as f64
    }

    /// Greatest, ns.
    pub fn max_ns(&self) -> f64 {
        self.of.max_ns as f64
    }

    /// Mean, ns.
    pub fn mean_ns(&self) -> f64 {
        self.of.sum_ns / self.of.count as f64
    }

    /// Mean without signs, ns.
    pub fn mean_magnitude_ns(&self) -> f64 {
        self.of.magnitudes_ns / self.of.count as f64
    }

    /// How many were no longer than `limit_ns`, times of up to a part in a thousand more among them.
    pub fn count_to(&self, limit_ns: u64) -> u64 {
        let negatives = self.of.negative.as_ref().map_or(0, Histogram::len);
        negatives + self.of.positive.count_between(0, limit_ns)
    }

    /// Percentile by nearest rank: the least time that is not exceeded by `share` (0 to 1) of all; ns, right to a part in
    /// a thousand.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let rank = ((share * self.of.count as f64).ceil() as u64).clamp(1, self.of.count);
        let negatives = self.of.negative.as_ref().map_or(0, Histogram::len);
        let value = match &self.of.negative {
            // The least of them has the greatest magnitude.
            Some(histogram) if rank <= negatives => -(at_rank(histogram, negatives - rank + 1) as f64),
            _ => at_rank(&self.of.positive, rank - negatives) as f64,
        };
        value.clamp(self.min_ns(), self.max_ns())
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("constant bounds and digits are valid")
}

/// The `rank`-th least of what `histogram` holds, counted from 1.
fn at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut passed = 0;
    for bucket in histogram.iter_recorded() {
        passed += bucket.count_since_last_iteration();
        if passed >= rank {
            return bucket.value_iterated_to();
        }
    }
    histogram.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes_do_not_break_it() {
        let mut distribution = Distribution::default();
        assert!(distribution.told().is_none());
        for time_ns in [i64::MIN, i64::MAX, 0] {
            distribution.record(time_ns);
        }
        let told = distribution.told().unwrap();
        assert_eq!((told.min_ns(), told.max_ns()), (i64::MIN as f64, i64::MAX as f64));
        assert_eq!(told.quantile_ns(0.5), 0.0);
    }

    proptest! {
        /// Against the sorted list, with runs of equal times.
        #[test]
        fn it_tells_what_the_list_of_all_times_tells(
            runs in proptest::collection::vec((-2_000_000_000_i64..2_000_000_000, 1_usize..5), 1..200),
            share in 0.0..=1.0_f64,
        ) {
            let mut times: Vec<i64> =
                runs.iter().flat_map(|(time, length)| std::iter::repeat_n(*time, *length)).collect();
            let mut distribution = Distribution::default();
            times.iter().for_each(|time| distribution.record(*time));
            prop_assert_eq!(distribution.count(), times.len() as u64);
            let told = distribution.told().unwrap();
            let (count, sum) = (times.len() as f64, times.iter().sum::<i64>());
            prop_assert!((told.mean_ns() - sum as f64 / count).abs() < 1e-3);
            let magnitudes: u64 = times.iter().map(|time| time.unsigned_abs()).sum();
            prop_assert!((told.mean_magnitude_ns() - magnitudes as f64 / count).abs() < 1e-3);
            times.sort_unstable();
            prop_assert_eq!(told.min_ns(), times[0] as f64);
            prop_assert_eq!(told.max_ns(), *times.last().unwrap() as f64);
            let rank = ((share * count).ceil() as usize).clamp(1, times.len());
            let right = times[rank - 1] as f64;
            prop_assert!((told.quantile_ns(share) - right).abs() <= 1e-3 * right.abs(), "{}", right);
            let limit = right.abs();
            let up_to = |limit: f64| times.iter().filter(|time| **time as f64 <= limit).count() as u64;
            let counted = told.count_to(limit as u64);
            prop_assert!((up_to(limit)..=up_to(limit * 1.001)).contains(&counted), "{}", counted);
        }
    }
}
