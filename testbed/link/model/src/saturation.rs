// SPDX-License-Identifier: Apache-2.0
//! How much can one saturated sender get through? The closed form that the model is held against.
//!
//! No contention, no loss: bursts as large as the limits allow, mean back-off CW_min / 2 slots.

use serde::Serialize;

use crate::airtime::{self, Framing, AIFS_NS, CW_MIN, SIFS_NS, SLOT_NS};

/// IPv4 and UDP headers.
pub const UDP_IPV4_HEADER_BYTES: u32 = 28;

/// Saturation of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// MPDUs per PPDU.
    pub mpdus_per_ppdu: usize,
    /// Mean duration of one transmission opportunity, back-off included.
    pub txop_us: f64,
    /// Packets per second.
    pub packets_per_s: f64,
    /// UDP payload, Mb/s.
    pub goodput_mbps: f64,
}

/// Saturation with UDP messages of `payload_bytes` over IPv4; `cap_pps` as in the configuration.
pub fn saturation(framing: &Framing, payload_bytes: u32, cap_pps: Option<f64>) -> Saturation {
    let ip_bytes = payload_bytes + UDP_IPV4_HEADER_BYTES;
    let subframe = framing.subframe_bytes(ip_bytes);
    let mpdus = ((framing.psdu_limit_bytes() / subframe) as usize).clamp(1, framing.subframe_limit());
    let psdu = framing.psdu_bytes(mpdus, subframe * mpdus as u32, ip_bytes);
    let backoff_ns = f64::from(CW_MIN) / 2.0 * SLOT_NS as f64;
    let exchange_ns = AIFS_NS + airtime::ppdu_ns(framing.phy(), psdu) + SIFS_NS + airtime::response_ns(mpdus);
    let txop_ns = exchange_ns as f64 + backoff_ns;
    let packets_per_s = (mpdus as f64 * 1e9 / txop_ns).min(cap_pps.unwrap_or(f64::INFINITY));
    Saturation {
        mpdus_per_ppdu: mpdus,
        txop_us: txop_ns / 1e3,
        packets_per_s,
        goodput_mbps: packets_per_s * f64::from(payload_bytes) * 8.0 / 1e6,
    }
}
