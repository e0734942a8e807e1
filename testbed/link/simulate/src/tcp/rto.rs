// SPDX-License-Identifier: Apache-2.0
//! How long does a sender wait for an acknowledgement? The retransmission timeout of RFC 6298.

const MAX_NS: u64 = 60_000_000_000;
const FIRST_NS: u64 = 1_000_000_000;
/// Most doublings of the timeout.
const BACKOFFS: u32 = 6;

/// The estimate and the timeout that follows from it.
#[derive(Clone, Debug)]
pub struct Rto {
    min_ns: u64,
    smoothed: Option<(f64, f64)>,
    backoff: u32,
}

impl Rto {
    /// Nothing measured yet: one second.
    pub fn new(min_ns: u64) -> Self {
        Self { min_ns, smoothed: None, backoff: 0 }
    }

    /// Takes in a round-trip time of a segment that was sent once (Karn's algorithm, section 3).
    pub fn sample(&mut self, rtt_ns: u64) {
        let rtt = rtt_ns as f64;
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2.0),
            Some((mean, variation)) => {
                (mean + (rtt - mean) / 8.0, variation + ((rtt - mean).abs() - variation) / 4.0)
            }
        });
        self.backoff = 0;
    }

    /// The average round-trip time, ns; 0 before the first one is known.
    pub fn mean_ns(&self) -> f64 {
        self.smoothed.map_or(0.0, |(mean, _)| mean)
    }

    /// Doubles the timeout (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFFS);
    }

    /// The timeout.
    pub fn ns(&self) -> u64 {
        let base_ns =
            self.smoothed.map_or(FIRST_NS, |(mean, variation)| (mean + 4.0 * variation).round() as u64);
        (base_ns.max(self.min_ns) << self.backoff).min(MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_round_trip_time_and_doubles() {
        let mut rto = Rto::new(200_000_000);
        assert_eq!(rto.ns(), 1_000_000_000);
        rto.sample(100_000_000);
        assert_eq!(rto.ns(), 300_000_000);
        (0..100).for_each(|_| rto.sample(100_000_000));
        assert_eq!(rto.ns(), 200_000_000);
        rto.back_off();
        assert_eq!(rto.ns(), 400_000_000);
        (0..20).for_each(|_| rto.back_off());
        assert_eq!(rto.ns(), 200_000_000 << BACKOFFS);
        rto.sample(100_000_000);
        assert_eq!(rto.ns(), 200_000_000);
    }
}
