// SPDX-License-Identifier: Apache-2.0
//! What does a connection know about itself and its path?

use std::time::Duration;

use netjoule_transport::{Congestion, Values};
use serde_json::{json, Value};

use crate::options::Choice;
use crate::path::pacer::Waits;
use crate::path::packet_io::Counters;

/// `ssl_early_data_reason_t` of BoringSSL: the server took the early data.
const EARLY_DATA_ACCEPTED: u32 = 2;

/// Figures of the connection since its start, its handshake included; names carry units. `quiche_pacing`: quiche gives
/// packets times, and none left before its time.
pub(crate) fn of(quic: &quiche::Connection, choice: Choice, wire: Counters, waits: Waits) -> Values {
    let mut values = Values::new();
    // What is not known has no entry.
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            values.insert(name.to_owned(), value);
        }
    };
    put("library", json!("quiche"));
    put("congestion_control", json!(choice.congestion_control.name()));
    put("quiche_pacing", json!(quic.pacing_enabled()));
    if quic.pacing_enabled() {
        put("packets_held_for_their_time", json!(waits.held));
        put("latest_departure_us", json!(waits.latest.as_secs_f64() * 1e6));
    }
    if choice.early_data {
        put("session_resumed", json!(quic.is_resumed()));
        put("early_data_accepted", json!(quic.early_data_reason() == EARLY_DATA_ACCEPTED));
    }
    put("source_connection_id_bytes", json!(quic.source_id().len()));
    put("destination_connection_id_bytes", json!(quic.destination_id().len()));
    put("max_udp_payload_bytes", json!(quic.max_send_udp_payload_size()));

    let stats = quic.stats();
    put("packets_sent", json!(stats.sent));
    put("packets_received", json!(stats.recv));
    put("packets_lost", json!(stats.lost));
    put("packets_lost_spuriously", json!(stats.spurious_lost));
    put("packets_retransmitted", json!(stats.retrans));
    put("bytes_sent", json!(stats.sent_bytes));
    put("bytes_received", json!(stats.recv_bytes));
    put("bytes_acknowledged", json!(stats.acked_bytes));
    put("bytes_lost", json!(stats.lost_bytes));
    put("stream_bytes_retransmitted", json!(stats.stream_retrans_bytes));
    put("datagram_frames_sent", json!(stats.dgram_sent));
    put("datagram_frames_received", json!(stats.dgram_recv));
    put(
        "flow_control_blocked_sent",
        json!(stats.data_blocked_sent_count + stats.stream_data_blocked_sent_count),
    );
    put("bytes_in_flight_s", json!(stats.bytes_in_flight_duration.as_secs_f64()));

    if let Some(path) = quic.path_stats().find(|path| path.active) {
        put("rtt_ms", json!(milliseconds(path.rtt)));
        put("rtt_variation_ms", json!(milliseconds(path.rttvar)));
        put("min_rtt_ms", json!(path.min_rtt.map(milliseconds)));
        put("max_rtt_ms", json!(path.max_rtt.map(milliseconds)));
        put("congestion_window_bytes", json!(path.cwnd));
        put("delivery_rate_mbps", json!(path.delivery_rate as f64 * 8e-6));
        put("probe_timeouts", json!(path.total_pto_count));
        put("datagram_frames_lost", json!(path.dgram_lost));
        put("pmtu_bytes", json!(path.pmtu));
    }

    put("udp_packets_sent", json!(wire.packets));
    put("udp_payload_bytes_sent", json!(wire.bytes));
    put("udp_send_calls", json!(wire.calls));
    put("udp_kernel_drops", json!(wire.kernel_drops));
    put("unreachable_answers", json!(wire.unreachable));
    values
}

/// Congestion control now. quiche tells neither its slow-start threshold nor what is in flight, and its pacing rate only
/// with each packet.
pub(crate) fn congestion(quic: &quiche::Connection) -> Option<Congestion> {
    let path = quic.path_stats().find(|path| path.active)?;
    Some(Congestion {
        window_bytes: Some(path.cwnd as u64),
        smoothed_rtt_ms: Some(milliseconds(path.rtt)),
        rtt_variation_ms: Some(milliseconds(path.rttvar)),
        packets_lost: Some(path.lost as u64),
        packets_retransmitted: Some(path.retrans as u64),
        ..Congestion::default()
    })
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
