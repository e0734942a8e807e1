// SPDX-License-Identifier: Apache-2.0
//! When the next packet may leave (RFC 5348 sections 4.6 and 8.3).

use super::whole_ns;
use crate::ccid::Departure;

/// Granularity of wake-ups, ns (t_gran).
const GRANULARITY_NS: f64 = 1e6;
/// Packets that are due within this time leave together, ns, where a round trip is at least twice as long. At rates where there
/// are several, trains of one packet would cost both hosts more than the packets do.
const GATHER_NS: f64 = 100e3;
/// At most so many: a connection's queue has to hold them.
const GATHER_PACKETS: f64 = 32.0;

/// Nominal send times.
#[derive(Debug, Default, Clone)]
pub(super) struct Pacer {
    /// Nominal send time of the last packet, whole ns and the fraction (rates above one packet per ns exist on paper).
    last: Option<(i64, f64)>,
}

impl Pacer {
    /// When a packet may leave. `interval_ns` is t_ipi; `rtt_ns` 0 while not known.
    pub(super) fn departure(&self, now_ns: i64, interval_ns: f64, rtt_ns: f64) -> Departure {
        let (nominal_ns, fraction) = self.nominal(now_ns, interval_ns, rtt_ns);
        let early_ns = early_ns(interval_ns, rtt_ns);
        let at_ns = nominal_ns.saturating_add(whole_ns((fraction - early_ns).ceil()));
        if at_ns <= now_ns {
            Departure::Now
        } else {
            Departure::At(at_ns.saturating_add(whole_ns(gather_ns(interval_ns, rtt_ns))))
        }
    }

    /// How many packets may leave at `now_ns`.
    pub(super) fn burst(&self, now_ns: i64, interval_ns: f64, rtt_ns: f64) -> u64 {
        let (nominal_ns, fraction) = self.nominal(now_ns, interval_ns, rtt_ns);
        let past_ns = now_ns.saturating_sub(nominal_ns) as f64 - fraction + early_ns(interval_ns, rtt_ns);
        if past_ns < 0.0 {
            0
        } else {
            (past_ns / interval_ns) as u64 + 1
        }
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, now_ns: i64, interval_ns: f64, rtt_ns: f64) {
        self.on_all_sent(now_ns, 1, interval_ns, rtt_ns);
    }

    /// `packets` left, at least one.
    pub(super) fn on_all_sent(&mut self, now_ns: i64, packets: u64, interval_ns: f64, rtt_ns: f64) {
        let (nominal_ns, fraction) = self.nominal(now_ns, interval_ns, rtt_ns);
        let after_ns = fraction + interval_ns * (packets - 1) as f64;
        self.last = Some((nominal_ns.saturating_add(whole_ns(after_ns.floor())), after_ns.fract()));
    }

    /// t_(i+1) = t_i + t_ipi, but no older than the credit reaches.
    fn nominal(&self, now_ns: i64, interval_ns: f64, rtt_ns: f64) -> (i64, f64) {
        let Some((last_ns, fraction)) = self.last else { return (now_ns, 0.0) };
        let after_ns = fraction + interval_ns;
        let nominal_ns = last_ns.saturating_add(whole_ns(after_ns.floor()));
        //= rfc5348#4.6
        //# To limit burstiness, a TFRC implementation MUST prevent bursts of
        //# arbitrary size.
        //= rfc5348#4.6
        //# This limit MUST be less than or equal to one round-
        //# trip time's worth of packets.
        let credit_ns = (rtt_ns - interval_ns - early_ns(interval_ns, rtt_ns)).max(0.0);
        let oldest_ns = now_ns.saturating_sub(whole_ns(credit_ns));
        if nominal_ns < oldest_ns {
            (oldest_ns, 0.0)
        } else {
            (nominal_ns, after_ns.fract())
        }
    }
}

/// t_delta: how long before its nominal time a packet may leave.
fn early_ns(interval_ns: f64, rtt_ns: f64) -> f64 {
    interval_ns.min(GRANULARITY_NS).min(rtt_ns) / 2.0
}

/// How long a packet that has to wait is kept for company.
fn gather_ns(interval_ns: f64, rtt_ns: f64) -> f64 {
    let most_ns = (rtt_ns / 2.0).min(GATHER_NS).min(GATHER_PACKETS * interval_ns);
    if interval_ns > most_ns / 2.0 {
        0.0
    } else {
        most_ns - interval_ns
    }
}

#[cfg(test)]
mod tests {
    use super::Pacer;
    use crate::ccid::Departure;

    fn burst(pacer: &mut Pacer, now_ns: i64, interval_ns: f64, rtt_ns: f64) -> usize {
        let mut packets = 0;
        while pacer.departure(now_ns, interval_ns, rtt_ns) == Departure::Now {
            pacer.on_sent(now_ns, interval_ns, rtt_ns);
            packets += 1;
        }
        packets
    }

    #[test]
    fn the_example_of_section_8_3_sends_half_a_millisecond_early() {
        // 10 packets per 10 ms round trip: t_ipi 1 ms, t_delta 0.5 ms.
        let mut pacer = Pacer::default();
        pacer.on_sent(0, 1e6, 1e7);
        assert_eq!(pacer.departure(1, 1e6, 1e7), Departure::At(500_000));
        assert_eq!(pacer.departure(500_000, 1e6, 1e7), Departure::Now);
    }

    #[test]
    fn a_burst_after_idling_is_one_round_trips_worth() {
        for per_rtt in [1.0, 2.0, 3.5, 10.0, 333.0] {
            let mut pacer = Pacer::default();
            pacer.on_sent(0, 1e7 / per_rtt, 1e7);
            let packets = burst(&mut pacer, 5_000_000_000, 1e7 / per_rtt, 1e7);
            assert!(packets as f64 <= per_rtt && packets as f64 > per_rtt - 1.5, "{per_rtt}: {packets}");
        }
    }

    #[test]
    fn coarse_wake_ups_within_a_round_trip_keep_the_rate() {
        let (mut pacer, mut packets) = (Pacer::default(), 0);
        for tick in 0..1000 {
            packets += burst(&mut pacer, tick * 4_000_000, 150_000.0, 1e7);
        }
        // 4 s at one packet per 150 us.
        assert!((packets as f64 / (4e9 / 150_000.0) - 1.0).abs() < 0.01, "{packets}");
    }

    #[test]
    fn a_burst_at_once_is_the_one_that_packets_one_by_one_are() {
        for (interval_ns, rtt_ns) in [(1e7, 1e6), (700.3, 21_000.0), (60_000.0, 1e7), (0.43, 30.0)] {
            let mut pacer = Pacer::default();
            pacer.on_sent(0, interval_ns, rtt_ns);
            for now_ns in [100, 20_000, 21_500, 90_000, 5_000_000, 20_000_000] {
                let (mut together, packets) = (pacer.clone(), pacer.burst(now_ns, interval_ns, rtt_ns));
                assert_eq!(
                    burst(&mut pacer, now_ns, interval_ns, rtt_ns) as u64,
                    packets,
                    "{interval_ns} {now_ns}"
                );
                if packets > 0 {
                    together.on_all_sent(now_ns, packets, interval_ns, rtt_ns);
                }
                let time = |pacer: &Pacer| pacer.last.map(|(ns, fraction)| ns as f64 + fraction).unwrap();
                assert!((time(&together) - time(&pacer)).abs() < 1e-3 * packets.max(1) as f64);
            }
        }
    }

    #[test]
    fn at_many_packets_per_second_who_has_to_wait_waits_for_company() {
        let wait = |interval_ns, rtt_ns| {
            let mut pacer = Pacer::default();
            pacer.on_sent(0, interval_ns, rtt_ns);
            pacer.departure(1, interval_ns, rtt_ns)
        };
        // A million packets per second: 32 packets; fewer: 100 us; or half of the round trip where that is shorter.
        assert_eq!(wait(1e3, 1e7), Departure::At(31_500));
        assert_eq!(wait(1e4, 1e7), Departure::At(95_000));
        assert_eq!(wait(1e3, 5e4), Departure::At(24_500));
        // 20,000 packets per second, and many to few round trips: at once.
        assert_eq!(wait(5.1e4, 1e7), Departure::At(25_500));
        assert_eq!(wait(1e3, 3e3), Departure::At(500));
    }

    #[test]
    fn more_than_one_packet_per_nanosecond_is_kept_apart() {
        let mut pacer = Pacer::default();
        pacer.on_sent(0, 0.3, 0.0);
        assert!(burst(&mut pacer, 300, 0.3, 0.0) <= 1);
    }
}
