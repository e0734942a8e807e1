// SPDX-License-Identifier: Apache-2.0
//! practRA: the service rate follows an average of what arrives, under a limit for the delay in the queue.
//!
//! Nedevschi et al. (NSDI 2008), as Panarello et al. (AJEEE 13:1, 2016) put it under a TCP flow. One step of the rate set at a
//! time, at ticks of the minimum rate change interval (mRCI):
//!
//! - up, if `q / r_i > d` or `(delta r_f + q) / r_(i+1) > d - delta`;
//! - else down, if `q = 0` and `r_f < r_(i-1)`.
//!
//! What both leave open is pinned here: q is without the packet in service; r_f starts with its first sample; a sample is
//! what arrived in a window over the window's length, dropped packets included; the first one ends at the first tick and is of
//! less time, but divided by as much, as in the study's reference; the rate starts at its highest.
//!
//! The variant `headroom` is ours. Under practRA a flow that grows must first fill the queue, which is where it loses packets.
//! Here the rate rises before that, as soon as `r_f > u r_i`, and falls only if `r_f < u r_(i-1)`: a share 1 - u stays free.

use super::RateRule;
use crate::range::{within, ParameterError};
use crate::rng::Rng;

/// Parameters of practRA.
#[derive(Clone, Debug, PartialEq)]
pub struct PractRaParams {
    /// The rates that there are, Mb/s, ascending; two or more.
    pub rates_mbps: Vec<f64>,
    /// Weight of a new sample in the estimate, above 0 to 1.
    pub weight: f64,
    /// Length of a sample, ns.
    pub window_ns: u64,
    /// Minimum rate change interval: between two ticks, ns.
    pub interval_ns: u64,
    /// delta: after a switch no packet is sent for so long, ns.
    pub stall_ns: u64,
    /// d: the delay in the queue that is to be kept, ns.
    pub delay_limit_ns: u64,
    /// From the start to the first tick, ns; 1 to `interval_ns`. `None` = drawn by chance.
    pub phase_ns: Option<u64>,
    /// u, the share of a rate that may be in use, above 0 to 1: the variant `headroom`. `None` = practRA.
    pub utilisation: Option<f64>,
}

impl PractRaParams {
    /// Says whether the rule can work with a queue of which `queue_bits` can wait, the packet in service not counted.
    ///
    /// # Errors
    /// A parameter is out of its range, or the rate could never rise again: a full queue would be within the delay limit.
    pub fn check(&self, queue_bits: u64) -> Result<(), ParameterError> {
        let ascending = self.rates_mbps.windows(2).all(|pair| pair[0] < pair[1]);
        if self.rates_mbps.len() < 2 || !ascending || self.rates_mbps[0] <= 0.0 {
            let sentence = "practra needs two or more rates above 0, in ascending order";
            return Err(ParameterError(sentence.to_owned()));
        }
        within("weight", self.weight, 0.001..=1.0)?;
        within("utilisation", self.utilisation.unwrap_or(1.0), 0.01..=1.0)?;
        if let Some(phase_ns) = self.phase_ns {
            within("phase in ms", ms(phase_ns), 1e-6..=ms(self.interval_ns))?;
        }
        if self.stall_ns >= self.interval_ns || self.stall_ns >= self.delay_limit_ns {
            return Err(ParameterError(format!(
                "delta is {} ms; it must be less than the rate change interval ({} ms) and than the delay limit d ({} ms)",
                ms(self.stall_ns),
                ms(self.interval_ns),
                ms(self.delay_limit_ns)
            )));
        }
        match self.rates_mbps.windows(2).find(|pair| self.is_stuck(pair[0], pair[1], queue_bits)) {
            Some(pair) => Err(ParameterError(format!(
                "the rate could never rise from {} to {} Mb/s: a full queue of {} kbit is within the delay limit d of {} ms; \
                 make the queue longer, or d shorter",
                pair[0],
                pair[1],
                queue_bits as f64 / 1e3,
                ms(self.delay_limit_ns)
            ))),
            None => Ok(()),
        }
    }

    /// Neither condition for a step up holds even with a full queue. An estimate above the highest rate lasts no longer
    /// than a burst, so that rate is the most that can arrive.
    fn is_stuck(&self, rate_mbps: f64, next_mbps: f64, queue_bits: u64) -> bool {
        let arriving_mbps = self.rates_mbps.last().copied().unwrap_or(0.0);
        !self.must_rise(rate_mbps, next_mbps, arriving_mbps, queue_bits)
    }

    /// bit / (Mb/s) = us.
    fn must_rise(&self, rate_mbps: f64, next_mbps: f64, estimate_mbps: f64, queued_bits: u64) -> bool {
        let (stall_us, limit_us) = (self.stall_ns as f64 / 1e3, self.delay_limit_ns as f64 / 1e3);
        let queued_bits = queued_bits as f64;
        self.utilisation.is_some_and(|share| estimate_mbps > share * rate_mbps)
            || queued_bits > limit_us * rate_mbps
            || stall_us * estimate_mbps + queued_bits > (limit_us - stall_us) * next_mbps
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The rule with its estimate.
#[derive(Debug)]
pub struct PractRa {
    params: PractRaParams,
    rate: usize,
    estimate_mbps: Option<f64>,
    sample_bits: u64,
    next_sample_ns: u64,
    next_rule_ns: u64,
}

impl PractRa {
    /// The rule at its highest rate, with nothing arrived yet. [`PractRaParams::check`] the parameters before.
    pub fn new(params: PractRaParams, mut rng: Rng, start_ns: u64) -> Self {
        let by_chance_ns = 1 + rng.uniform(0.0, params.interval_ns as f64 - 1.0) as u64;
        let phase_ns = params.phase_ns.unwrap_or(by_chance_ns);
        Self {
            rate: params.rates_mbps.len() - 1,
            estimate_mbps: None,
            sample_bits: 0,
            next_sample_ns: start_ns + phase_ns.min(params.window_ns),
            next_rule_ns: start_ns + phase_ns,
            params,
        }
    }

    fn sample(&mut self) {
        let bits = std::mem::take(&mut self.sample_bits);
        let sample_mbps = bits as f64 * 1e3 / self.params.window_ns as f64;
        let weight = self.params.weight;
        let estimate_mbps = self.estimate_mbps.map_or(sample_mbps, |old| old + weight * (sample_mbps - old));
        self.estimate_mbps = Some(estimate_mbps);
        self.next_sample_ns += self.params.window_ns;
    }

    /// The place of the new rate in the rate set.
    fn decide(&self, queued_bits: u64) -> Option<usize> {
        let (rates, estimate_mbps) = (&self.params.rates_mbps, self.estimate_mbps?);
        let rises = rates.get(self.rate + 1).is_some_and(|next_mbps| {
            self.params.must_rise(rates[self.rate], *next_mbps, estimate_mbps, queued_bits)
        });
        if rises {
            return Some(self.rate + 1);
        }
        let below = self.rate.checked_sub(1)?;
        (queued_bits == 0 && estimate_mbps < self.params.utilisation.unwrap_or(1.0) * rates[below])
            .then_some(below)
    }
}

impl RateRule for PractRa {
    fn first_rate_mbps(&self) -> f64 {
        self.max_rate_mbps()
    }

    fn max_rate_mbps(&self) -> f64 {
        self.params.rates_mbps[self.params.rates_mbps.len() - 1]
    }

    fn stall_ns(&self) -> u64 {
        self.params.stall_ns
    }

    fn next_tick_ns(&self) -> Option<u64> {
        Some(self.next_sample_ns.min(self.next_rule_ns))
    }

    fn tick(&mut self, now_ns: u64, arrived_bits: u64, queued_bits: u64) -> Option<f64> {
        self.sample_bits += arrived_bits;
        if now_ns >= self.next_sample_ns {
            self.sample();
        }
        if now_ns < self.next_rule_ns {
            return None;
        }
        self.next_rule_ns += self.params.interval_ns;
        self.rate = self.decide(queued_bits)?;
        Some(self.params.rates_mbps[self.rate])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const MS: u64 = 1_000_000;

    fn params() -> PractRaParams {
        PractRaParams {
            rates_mbps: (1..=10).map(f64::from).collect(),
            weight: 0.25,
            window_ns: 10 * MS,
            interval_ns: 10 * MS,
            stall_ns: MS,
            delay_limit_ns: 45_360_000,
            phase_ns: Some(10 * MS),
            utilisation: None,
        }
    }

    /// Bits that arrive in a window at this rate.
    fn at(rate_mbps: f64) -> u64 {
        (rate_mbps * 10e3) as u64
    }

    #[test]
    fn the_rate_falls_a_step_a_tick_while_nothing_waits_and_less_arrives() {
        let mut rule = PractRa::new(params(), Rng::new(1, 1), 0);
        assert_eq!(rule.first_rate_mbps(), 10.0);
        let rates: Vec<_> = (1..=4).map(|tick| rule.tick(tick * 10 * MS, at(7.5), 0)).collect();
        // 7.5 is below 9 and 8, not below 7.
        assert_eq!(rates, [Some(9.0), Some(8.0), None, None]);
    }

    #[test]
    fn a_queue_keeps_the_rate_and_a_long_one_raises_it() {
        let mut rule = PractRa::new(params(), Rng::new(1, 1), 0);
        assert_eq!(rule.tick(10 * MS, at(1.0), 12_000), None);
        assert_eq!(rule.tick(20 * MS, at(1.0), 0), Some(9.0));
        // First condition: 9 Mb/s have 408.24 kbit sent in d.
        assert_eq!(rule.tick(30 * MS, 0, 408_000), None);
        assert_eq!(rule.tick(40 * MS, 0, 409_000), Some(10.0));
    }

    #[test]
    fn the_second_condition_counts_what_arrives_during_a_switch() {
        let value = PractRaParams { rates_mbps: vec![9.0, 10.0], stall_ns: 8 * MS, ..params() };
        let mut rule = PractRa::new(value, Rng::new(1, 1), 0);
        assert_eq!(rule.tick(10 * MS, 0, 0), Some(9.0));
        // The estimate is 0.25 x 20 Mb/s: 8 ms of it and the queue exceed 37.36 ms at 10 Mb/s from 333.6 kbit on.
        assert_eq!(rule.tick(20 * MS, at(20.0), 333_700), Some(10.0));
        rule.rate = 0;
        rule.estimate_mbps = Some(5.0);
        assert_eq!(rule.tick(30 * MS, at(5.0), 333_500), None);
    }

    #[test]
    fn headroom_rises_before_a_queue_is_there_and_falls_only_where_enough_stays_free() {
        let value = PractRaParams { utilisation: Some(0.8), weight: 1.0, ..params() };
        let mut rule = PractRa::new(value, Rng::new(1, 1), 0);
        let arriving = [7.3, 7.1, 6.5, 7.3, 6.5, 6.3];
        let rates: Vec<_> =
            (1..).zip(arriving).map(|(tick, mbps)| rule.tick(tick * 10 * MS, at(mbps), 0)).collect();
        // 7.2 is 0.8 of 9, 6.4 of 8: at 9 Mb/s it rises above 7.2 and falls below 6.4.
        assert_eq!(rates, [None, Some(9.0), None, Some(10.0), Some(9.0), Some(8.0)]);
    }

    #[test]
    fn samples_and_ticks_have_times_of_their_own() {
        let mut rule = PractRa::new(
            PractRaParams { window_ns: 4 * MS, phase_ns: Some(3 * MS), ..params() },
            Rng::new(1, 1),
            0,
        );
        let mut times = Vec::new();
        while let Some(at_ns) = rule.next_tick_ns().filter(|at_ns| *at_ns < 20 * MS) {
            rule.tick(at_ns, 1_000, 99_000);
            times.push(at_ns / MS);
        }
        assert_eq!(times, [3, 7, 11, 13, 15, 19]);
    }

    #[test]
    fn a_setting_in_which_the_rate_could_never_rise_is_refused() {
        let queue_bits = 41 * 12_000;
        assert_eq!(params().check(queue_bits), Ok(()));
        let stuck = PractRaParams { delay_limit_ns: 55_500_000, ..params() };
        assert_eq!(PractRaParams { utilisation: Some(0.95), ..stuck.clone() }.check(queue_bits), Ok(()));
        let sentence = stuck.check(queue_bits).unwrap_err().0;
        assert!(sentence.contains("never rise from 9 to 10 Mb/s: a full queue of 492 kbit"), "{sentence}");
        for wrong in [
            PractRaParams { stall_ns: 10 * MS, ..params() },
            PractRaParams { delay_limit_ns: MS, ..params() },
            PractRaParams { rates_mbps: vec![5.0], ..params() },
            PractRaParams { rates_mbps: vec![5.0, 4.0], ..params() },
            PractRaParams { weight: 0.0, ..params() },
            PractRaParams { phase_ns: Some(0), ..params() },
            PractRaParams { utilisation: Some(1.1), ..params() },
        ] {
            assert!(wrong.check(queue_bits).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        /// The rule for d: what waits in a full queue over the second highest rate is more than d.
        #[test]
        fn below_its_bound_d_never_keeps_the_rate_down_and_what_does_is_refused(
            steps in prop::collection::vec(0.1f64..5.0, 2..12),
            queue_packets in 2u64..200,
            of_bound in 0.05f64..1.3,
            stall in 0.0f64..0.9,
        ) {
            let rates_mbps: Vec<f64> =
                steps.iter().scan(0.0, |sum, step| { *sum += step; Some(*sum) }).collect();
            let top = rates_mbps.len() - 1;
            let queue_bits = (queue_packets - 1) * 12_000;
            let limit_ns = (of_bound * queue_bits as f64 * 1e3 / rates_mbps[top - 1]) as u64;
            let value = PractRaParams {
                delay_limit_ns: limit_ns,
                stall_ns: (stall * limit_ns as f64) as u64,
                interval_ns: 2 * limit_ns,
                window_ns: 2 * limit_ns,
                phase_ns: None,
                rates_mbps: rates_mbps.clone(),
                ..params()
            };
            let is_allowed = value.check(queue_bits).is_ok();
            prop_assert!(is_allowed || of_bound > 0.999);
            let mut rule = PractRa::new(value, Rng::new(1, 1), 0);
            (rule.rate, rule.estimate_mbps) = (0, Some(rates_mbps[top]));
            for _ in 0..top {
                let (at_ns, window_ns) = (rule.next_rule_ns, rule.params.window_ns);
                rule.tick(at_ns, (rates_mbps[top] * window_ns as f64 / 1e3) as u64, queue_bits);
            }
            prop_assert_eq!(rule.rate == top, is_allowed);
        }
    }
}
