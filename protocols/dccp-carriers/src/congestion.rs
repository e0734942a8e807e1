// SPDX-License-Identifier: Apache-2.0
//! Congestion control's figures of a DCCP connection in the words of every transport. Pure.
//!
//! CCID 2 counts packets (RFC 4341), so its windows are told in packets of the size that the flow sends. CCID 3 has no
//! window: its allowed rate (RFC 5348, X) is what lets data leave.

use netjoule_transport::Congestion;

/// Greatest whole number that every reader of a report holds exactly.
pub(crate) const MOST_FIGURE: f64 = ((1_u64 << 53) - 1) as f64;

/// From figures by name (see `netjoule_dccp`), and the size of a data packet from the DCCP header on, in bytes, once one
/// has left.
pub(crate) fn of(figure: impl Fn(&str) -> Option<f64>, packet_bytes: Option<f64>) -> Congestion {
    // A threshold that was never set is larger than any count.
    let count = |name: &str| figure(name).filter(|value| (0.0..=MOST_FIGURE).contains(value));
    let bytes = |name: &str| Some((count(name)? * packet_bytes?).round() as u64);
    Congestion {
        window_bytes: bytes("cwnd_packets"),
        slow_start_threshold_bytes: bytes("ssthresh_packets"),
        pacing_rate_mbps: figure("allowed_rate_bytes_per_s").map(|rate| rate * 8e-6),
        in_flight_bytes: bytes("pipe_packets"),
        // No round trip was measured yet.
        smoothed_rtt_ms: figure("rtt_us").filter(|rtt_us| *rtt_us > 0.0).map(|rtt_us| rtt_us * 1e-3),
        rtt_variation_ms: None,
        packets_lost: count("packets_lost").map(|lost| lost as u64),
        packets_retransmitted: None,
        loss_events: count("loss_events").map(|events| events as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up<'a>(figures: &'a [(&'a str, f64)]) -> impl Fn(&str) -> Option<f64> + 'a {
        |wanted| figures.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    #[test]
    fn windows_are_in_bytes_once_a_packets_size_is_known() {
        let figures = [
            ("cwnd_packets", 10.0),
            ("ssthresh_packets", u64::MAX as f64),
            ("pipe_packets", 3.0),
            ("rtt_us", 1_500.0),
            ("packets_lost", 2.0),
            ("loss_events", 1.0),
        ];
        assert_eq!(of(look_up(&figures), None).window_bytes, None);
        let told = of(look_up(&figures), Some(1_012.0));
        assert_eq!((told.window_bytes, told.in_flight_bytes), (Some(10_120), Some(3_036)));
        assert_eq!(told.slow_start_threshold_bytes, None);
        assert_eq!(
            (told.smoothed_rtt_ms, told.packets_lost, told.loss_events),
            (Some(1.5), Some(2), Some(1))
        );
    }

    #[test]
    fn a_rate_takes_the_place_of_a_window() {
        let told = of(look_up(&[("allowed_rate_bytes_per_s", 1.25e6), ("rtt_us", 0.0)]), Some(1_012.0));
        assert_eq!(
            (told.pacing_rate_mbps, told.window_bytes, told.smoothed_rtt_ms),
            (Some(10.0), None, None)
        );
    }
}
