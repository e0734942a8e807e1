// SPDX-License-Identifier: Apache-2.0
//! The throughput equation (RFC 5348 section 3.1) and its inverse (section 6.3.1).

/// Least loss event rate that [`loss_event_rate_for`] gives: one loss event in 10^12 packets.
const MIN_LOSS_EVENT_RATE: f64 = 1e-12;

/// f(p) of RFC 5348 section 8.1: round-trip times per segment, with t_RTO = 4 R and b = 1.
///
/// `p` is taken into 0 to 1.
pub fn rtts_per_segment(p: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    //= rfc5348#3.1
    //# Implementations SHOULD set t_RTO = 4*R.
    //= rfc5348#3.1
    //# The use of b = 1 is
    //# RECOMMENDED.
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// X_Bps, bytes per second, for segments of `segment_bytes`, a round trip of `rtt_s` seconds and the loss event rate
/// `p`. Without loss there is no limit: infinity.
pub fn bytes_per_s(segment_bytes: f64, rtt_s: f64, p: f64) -> f64 {
    //= rfc5348#3.1
    //# The throughput equation currently REQUIRED for TFRC is a slightly
    //# simplified version of the throughput equation for Reno TCP from
    //# [PFTK98].
    let seconds = rtt_s * rtts_per_segment(p);
    if seconds > 0.0 {
        segment_bytes / seconds
    } else {
        f64::INFINITY
    }
}

/// The loss event rate for which [`bytes_per_s`] gives `target_bytes_per_s`, far closer than the 5 % that section 6.3.1
/// asks for. Rates out of reach give the nearest: 1, or 10^-12.
pub fn loss_event_rate_for(segment_bytes: f64, rtt_s: f64, target_bytes_per_s: f64) -> f64 {
    let wanted = segment_bytes / (rtt_s * target_bytes_per_s);
    if wanted.is_nan() || wanted >= rtts_per_segment(1.0) {
        return 1.0;
    }
    if wanted <= rtts_per_segment(MIN_LOSS_EVENT_RATE) {
        return MIN_LOSS_EVENT_RATE;
    }
    // f rises with p; halve the interval of ln p until it is narrower than 10^-6.
    let (mut low, mut high) = (MIN_LOSS_EVENT_RATE.ln(), 0.0);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        if rtts_per_segment(middle.exp()) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::{bytes_per_s, loss_event_rate_for, rtts_per_segment};

    #[test]
    fn the_equation_matches_values_worked_by_hand() {
        // p = 0.01: sqrt(0.02/3) = 0.081650; 12 sqrt(0.00375) 0.01 (1.0032) = 0.0073720.
        assert!((rtts_per_segment(0.01) - 0.089_022).abs() < 1e-6);
        // p = 0.1: sqrt(0.2/3) = 0.258199; 12 sqrt(0.0375) 0.1 (1.32) = 0.306741.
        assert!((rtts_per_segment(0.1) - 0.564_940).abs() < 1e-6);
        let rate = bytes_per_s(1440.0, 0.1, 0.01);
        assert!((rate - 1440.0 / 0.008_902_2).abs() < 5.0, "{rate}");
    }

    #[test]
    fn no_loss_is_no_limit() {
        assert!(bytes_per_s(1440.0, 0.1, 0.0).is_infinite());
        assert!(bytes_per_s(1440.0, 0.0, 0.1).is_infinite());
    }

    #[test]
    fn the_inverse_undoes_the_equation_over_nine_decades() {
        for exponent in 0..=9 {
            let p = 10_f64.powi(-exponent);
            for rtt_s in [1e-6, 1e-4, 0.05, 3.0] {
                let rate = bytes_per_s(300.0, rtt_s, p);
                assert!(rate.is_finite() && rate > 0.0);
                let found = loss_event_rate_for(300.0, rtt_s, rate);
                assert!((found / p - 1.0).abs() < 1e-3, "p {p} rtt {rtt_s}: {found}");
            }
        }
    }

    #[test]
    fn the_inverse_keeps_to_0_to_1() {
        assert!((loss_event_rate_for(1440.0, 0.1, 0.0) - 1.0).abs() < f64::EPSILON);
        assert!((loss_event_rate_for(0.0, 0.0, 0.0) - 1.0).abs() < f64::EPSILON);
        assert!(loss_event_rate_for(1440.0, 0.1, f64::INFINITY) > 0.0);
    }
}
