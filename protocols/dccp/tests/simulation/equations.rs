// SPDX-License-Identifier: Apache-2.0
//! Throughput that models predict, packets per second.

/// The TFRC equation (RFC 5348 section 3.1) with b = 1 and t_RTO = 4 R.
pub(crate) fn tfrc(p: f64, rtt_s: f64) -> f64 {
    let rto_s = 4.0 * rtt_s;
    1.0 / (rtt_s * (2.0 * p / 3.0).sqrt() + rto_s * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p))
}

/// The full model of Padhye, Firoiu, Towsley, Kurose (SIGCOMM 1998, equation 32) without limit of the receiver's window: packets
/// sent per second at a rate `p` of loss indications, with one acknowledgement per `b` packets and a first timeout of `rto_s`.
pub(crate) fn pftk(p: f64, rtt_s: f64, rto_s: f64, b: f64) -> f64 {
    pftk_with_timeouts(p, rtt_s, rto_s, b, None)
}

/// As [`pftk`], with `share` of the loss indications being timeouts instead of the model's own share.
pub(crate) fn pftk_with_timeouts(p: f64, rtt_s: f64, rto_s: f64, b: f64, share: Option<f64>) -> f64 {
    let third = (2.0 + b) / (3.0 * b);
    let window = third + (8.0 * (1.0 - p) / (3.0 * b * p) + third * third).sqrt();
    let q = |power: f64| (1.0 - p).powf(power);
    let modelled = ((1.0 - q(3.0)) * (1.0 + q(3.0) * (1.0 - q(window - 3.0))) / (1.0 - q(window))).min(1.0);
    let timeout = share.unwrap_or(modelled);
    let back_off =
        1.0 + p + 2.0 * p.powi(2) + 4.0 * p.powi(3) + 8.0 * p.powi(4) + 16.0 * p.powi(5) + 32.0 * p.powi(6);
    let packets = (1.0 - p) / p + window + timeout / (1.0 - p);
    let time_s = rtt_s * (b / 2.0 * window + 1.0) + timeout * rto_s * back_off / (1.0 - p);
    packets / time_s
}

/// Jain's fairness index.
pub(crate) fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

#[test]
fn the_models_give_their_known_values() {
    // sqrt(3 / 2bp) / R dominates for small p.
    assert!((tfrc(1e-6, 0.1) / (1.5e6f64.sqrt() / 0.1) - 1.0).abs() < 0.01);
    assert!((pftk(1e-6, 0.1, 0.4, 1.0) / (1.5e6f64.sqrt() / 0.1) - 1.0).abs() < 0.01);
    assert!((pftk(1e-6, 0.1, 0.4, 2.0) / (0.75e6f64.sqrt() / 0.1) - 1.0).abs() < 0.01);
    // RFC 5348's equation at p = 10 %: 1 / (0.0258 + 0.4 * 3 * 0.1936 * 0.1 * 1.32).
    assert!((tfrc(0.1, 0.1) - 17.69).abs() < 0.1);
    assert!((jain(&[1.0, 1.0]) - 1.0).abs() < 1e-12 && (jain(&[1.0, 0.0]) - 0.5).abs() < 1e-12);
}
