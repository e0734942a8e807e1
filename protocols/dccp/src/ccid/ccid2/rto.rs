// SPDX-License-Identifier: Apache-2.0
//! Round-trip time and transmit timeout (RFC 4341 section 5, with the algorithm of RFC 2988 and RFC 6298).

/// The receiver may keep its acknowledgement back for 0.2 s (RFC 4340 section 11.3), so a timeout nearer to the round-trip
/// time than this would come before acknowledgements that are merely delayed.
const LEAST_MARGIN_NS: i64 = 250_000_000;
/// Timeout before the first measurement (RFC 2988 section 2.1 says 3 s, RFC 6298 1 s).
const INITIAL_RTO_NS: i64 = 1_000_000_000;
/// Upper bound of the backed-off timeout (RFC 2988 section 2.5 allows one of at least 60 s).
const MOST_RTO_NS: i64 = 64_000_000_000;
/// Round-trip times above this are taken for a clock that jumped.
const MOST_SAMPLE_NS: i64 = 60_000_000_000;

/// The estimator.
#[derive(Debug, Default)]
pub struct RttEstimator {
    smoothed_ns: Option<i64>,
    deviation_ns: i64,
    backoff: u32,
}

impl RttEstimator {
    /// Take one measurement; ends the back-off.
    pub fn sample(&mut self, rtt_ns: i64) {
        let sample_ns = rtt_ns.clamp(1, MOST_SAMPLE_NS);
        match self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(sample_ns);
                self.deviation_ns = sample_ns / 2;
            }
            Some(smoothed_ns) => {
                let error_ns = sample_ns - smoothed_ns;
                self.deviation_ns += (error_ns.abs() - self.deviation_ns) / 4;
                self.smoothed_ns = Some(smoothed_ns + error_ns / 8);
            }
        }
        self.backoff = 0;
    }

    /// Smoothed round-trip time.
    pub const fn rtt_ns(&self) -> Option<i64> {
        self.smoothed_ns
    }

    /// The timeout without back-off.
    pub fn base_rto_ns(&self) -> i64 {
        match self.smoothed_ns {
            Some(rtt_ns) => rtt_ns + (4 * self.deviation_ns).max(LEAST_MARGIN_NS),
            None => INITIAL_RTO_NS,
        }
    }

    /// The timeout in force.
    pub fn rto_ns(&self) -> i64 {
        (self.base_rto_ns() << self.backoff.min(10)).min(MOST_RTO_NS)
    }

    /// A timeout occurred: double the next one, as TCP does.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(10);
    }

    /// The last timeout was not answered yet.
    pub const fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// Data was acknowledged: the path works again.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_first_measurement_sets_both_averages() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto_ns(), 1_000 * MS);
        rtt.sample(400 * MS);
        assert_eq!((rtt.rtt_ns(), rtt.rto_ns()), (Some(400 * MS), 1_200 * MS));
        rtt.sample(480 * MS);
        // 400 + 80 / 8; 200 + (80 - 200) / 4.
        assert_eq!((rtt.rtt_ns(), rtt.rto_ns()), (Some(410 * MS), (410 + 4 * 170) * MS));
    }

    #[test]
    fn the_timeout_leaves_room_for_a_delayed_acknowledgement() {
        let mut rtt = RttEstimator::default();
        (0..100).for_each(|_| rtt.sample(10 * MS));
        assert_eq!(rtt.rto_ns(), 260 * MS);
    }

    #[test]
    fn back_off_doubles_up_to_a_bound_and_ends_with_an_answer() {
        let mut rtt = RttEstimator::default();
        rtt.sample(100 * MS);
        let base = rtt.rto_ns();
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto_ns(), 4 * base);
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_ns(), MOST_RTO_NS);
        rtt.end_back_off();
        assert_eq!(rtt.rto_ns(), base);
    }

    #[test]
    fn absurd_measurements_do_no_harm() {
        let mut rtt = RttEstimator::default();
        rtt.sample(i64::MIN);
        rtt.sample(i64::MAX);
        assert!(rtt.rto_ns() > 0 && rtt.rto_ns() <= MOST_RTO_NS);
    }
}
