// SPDX-License-Identifier: Apache-2.0
//! How long does a frame exchange keep the medium busy?
//!
//! 5 GHz OFDM timing, best-effort EDCA parameters, PSDU and A-MPDU sizes with CCMP encryption.
//! IEEE 802.11-2016 clauses 9.7 (A-MPDU), 10.3 (DCF), 19.4.3 and 21.4.3 (TXTIME).
//! Durations in nanoseconds, sizes in bytes.

use crate::mcs::{Phy, Standard};

/// Slot time.
pub const SLOT_NS: u64 = 9_000;
/// Short interframe space.
pub const SIFS_NS: u64 = 16_000;
/// Arbitration interframe space of best effort: SIFS + 3 slots.
pub const AIFS_NS: u64 = SIFS_NS + 3 * SLOT_NS;
/// Acknowledgement at the 24 Mb/s basic rate.
pub const ACK_NS: u64 = 28_000;
/// Compressed block acknowledgement at the 24 Mb/s basic rate.
pub const BLOCK_ACK_NS: u64 = 32_000;
/// Least contention window (slots), of access point and stations.
pub const CW_MIN: u32 = 15;
/// Greatest contention window of a station.
pub const CW_MAX_STATION: u32 = 1023;
/// Greatest contention window of the access point (hostapd's best-effort default).
pub const CW_MAX_ACCESS_POINT: u32 = 63;
/// Slots of a block acknowledgement's bitmap.
pub const BLOCK_ACK_WINDOW: usize = 64;
/// Greatest PSDU of an HT A-MPDU; taken for VHT as well.
pub const PSDU_LIMIT_BYTES: u32 = 65_535;
/// Greatest duration of a PPDU, preamble included.
pub const PPDU_LIMIT_NS: u64 = 4_000_000;
/// QoS header 26, CCMP 16, LLC/SNAP 8, FCS 4.
pub const MPDU_OVERHEAD_BYTES: u32 = 26 + 16 + 8 + 4;
/// A-MPDU delimiter.
const DELIMITER_BYTES: u32 = 4;
/// SERVICE field in front of the PSDU.
const SERVICE_BITS: u64 = 16;
/// Tail bits per BCC encoder.
const TAIL_BITS: u64 = 6;

/// MPDU size of an IP packet.
pub fn mpdu_bytes(ip_bytes: u32) -> u32 {
    MPDU_OVERHEAD_BYTES + ip_bytes
}

/// Preamble of a PPDU: HT-mixed or VHT, with its long training fields.
pub fn preamble_ns(phy: &Phy) -> u64 {
    let training_fields = if phy.streams() == 3 { 4 } else { u64::from(phy.streams()) };
    match phy.standard() {
        Standard::Ht => 32_000 + 4_000 * training_fields,
        Standard::Vht => 36_000 + 4_000 * training_fields,
    }
}

/// Duration of a PPDU that carries `psdu_bytes`.
pub fn ppdu_ns(phy: &Phy, psdu_bytes: u32) -> u64 {
    let bits = SERVICE_BITS + 8 * u64::from(psdu_bytes) + TAIL_BITS * u64::from(phy.n_es());
    let data_ns = bits.div_ceil(u64::from(phy.n_dbps())) * phy.symbol_ns();
    // With the short guard interval the end is rounded up to a 4 us boundary.
    preamble_ns(phy) + data_ns.next_multiple_of(4_000)
}

/// How MPDUs are put together on one link: everything that does not change from packet to packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Framing {
    phy: Phy,
    subframe_limit: usize,
    least_subframe_bytes: u32,
    psdu_limit_bytes: u32,
}

impl Framing {
    /// `subframe_limit` 1 switches aggregation off; `min_mpdu_spacing_ns` is the receiver's minimum
    /// MPDU start spacing.
    pub fn new(phy: Phy, subframe_limit: usize, min_mpdu_spacing_ns: u64) -> Self {
        let spacing_bits = min_mpdu_spacing_ns * u64::from(phy.n_dbps());
        let least_subframe_bytes = spacing_bits.div_ceil(phy.symbol_ns() * 8).next_multiple_of(4) as u32;
        let symbols = (PPDU_LIMIT_NS - preamble_ns(&phy)) / phy.symbol_ns();
        let bits = symbols * u64::from(phy.n_dbps()) - SERVICE_BITS - TAIL_BITS * u64::from(phy.n_es());
        Self {
            phy,
            subframe_limit: subframe_limit.clamp(1, BLOCK_ACK_WINDOW),
            least_subframe_bytes,
            psdu_limit_bytes: PSDU_LIMIT_BYTES.min((bits / 8) as u32),
        }
    }

    /// The PHY rate.
    pub fn phy(&self) -> &Phy {
        &self.phy
    }

    /// Most MPDUs in one PPDU, 1-64.
    pub fn subframe_limit(&self) -> usize {
        self.subframe_limit
    }

    /// Greatest A-MPDU by size and duration. A single MPDU is sent even when it is longer.
    pub fn psdu_limit_bytes(&self) -> u32 {
        self.psdu_limit_bytes
    }

    /// One A-MPDU subframe: delimiter, MPDU, padding to 4 bytes and to the minimum start spacing.
    pub fn subframe_bytes(&self, ip_bytes: u32) -> u32 {
        let padded = (DELIMITER_BYTES + mpdu_bytes(ip_bytes)).next_multiple_of(4);
        padded.max(self.least_subframe_bytes)
    }

    /// PSDU of a single packet: a plain MPDU in HT, an A-MPDU of one (S-MPDU) in VHT.
    pub fn single_psdu_bytes(&self, ip_bytes: u32) -> u32 {
        match self.phy.standard() {
            Standard::Ht => mpdu_bytes(ip_bytes),
            Standard::Vht => (DELIMITER_BYTES + mpdu_bytes(ip_bytes)).next_multiple_of(4),
        }
    }

    /// PSDU of a burst whose subframes add up to `subframes_bytes`; `first_ip_bytes` is its only
    /// packet when `mpdus` is 1.
    pub fn psdu_bytes(&self, mpdus: usize, subframes_bytes: u32, first_ip_bytes: u32) -> u32 {
        if mpdus == 1 {
            self.single_psdu_bytes(first_ip_bytes)
        } else {
            subframes_bytes
        }
    }
}

/// The answer to a PPDU of `mpdus` MPDUs: an ACK for one, a block acknowledgement for more.
pub fn response_ns(mpdus: usize) -> u64 {
    if mpdus == 1 {
        ACK_NS
    } else {
        BLOCK_ACK_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ht(mcs: u8) -> Phy {
        Phy::new(Standard::Ht, mcs, None, 40, 800).unwrap()
    }

    #[test]
    fn preambles_follow_the_training_fields() {
        let ht = |mcs| preamble_ns(&ht(mcs));
        assert_eq!([ht(0), ht(8), ht(16), ht(24)], [36_000, 40_000, 48_000, 48_000]);
        let vht = |streams| preamble_ns(&Phy::new(Standard::Vht, 0, Some(streams), 80, 800).unwrap());
        assert_eq!([vht(1), vht(2)], [40_000, 44_000]);
    }

    #[test]
    fn a_plain_frame_at_216_mbps() {
        // 64 B payload, 92 B IP: 146 B MPDU, 1190 bits, 2 symbols; 1470 B: 15 symbols.
        assert_eq!(ppdu_ns(&ht(13), mpdu_bytes(92)), 40_000 + 2 * 4_000);
        assert_eq!(ppdu_ns(&ht(13), mpdu_bytes(1498)), 40_000 + 15 * 4_000);
    }

    #[test]
    fn short_guard_interval_ends_on_a_4_us_boundary() {
        let phy = Phy::new(Standard::Ht, 13, None, 40, 400).unwrap();
        // 2 symbols of 3.6 us are 7.2 us, sent as 8 us.
        assert_eq!(ppdu_ns(&phy, mpdu_bytes(92)), 40_000 + 8_000);
    }

    #[test]
    fn spacing_pads_small_subframes_only() {
        let framing = Framing::new(ht(13), 64, 8_000);
        assert_eq!(framing.subframe_bytes(92), 216);
        assert_eq!(framing.subframe_bytes(1498), 1556);
        assert_eq!(Framing::new(ht(12), 64, 8_000).subframe_bytes(92), 164);
        assert_eq!(Framing::new(ht(13), 64, 0).subframe_bytes(92), 152);
    }

    #[test]
    fn duration_limits_slow_rates_before_size_does() {
        assert_eq!(Framing::new(ht(13), 64, 8_000).psdu_limit_bytes(), PSDU_LIMIT_BYTES);
        let framing = Framing::new(ht(10), 64, 8_000);
        assert!(ppdu_ns(&ht(10), framing.psdu_limit_bytes()) <= PPDU_LIMIT_NS);
        assert!(ppdu_ns(&ht(10), framing.psdu_limit_bytes() + 1) > PPDU_LIMIT_NS);
    }

    #[test]
    fn one_mpdu_needs_no_delimiter_in_ht_and_one_in_vht() {
        assert_eq!(Framing::new(ht(13), 64, 8_000).single_psdu_bytes(92), 146);
        let vht = Phy::new(Standard::Vht, 9, Some(2), 80, 800).unwrap();
        assert_eq!(Framing::new(vht, 64, 8_000).single_psdu_bytes(92), 152);
    }
}
