// SPDX-License-Identifier: Apache-2.0
//! Which data rate belongs to a modulation and coding scheme?
//!
//! HT (802.11n, MCS 0-31 with the stream count inside the index) and VHT (802.11ac, MCS 0-9 and a
//! stream count beside it), BCC coding, equal modulation on all streams. IEEE 802.11-2016 clauses
//! 19.5 and 21.5: every value follows from subcarriers, bits per subcarrier and code rate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The PHY generation of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standard {
    /// 802.11n, 20 or 40 MHz.
    Ht,
    /// 802.11ac, 20, 40 or 80 MHz.
    Vht,
}

/// One PHY rate, checked: such a scheme exists and its numbers are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    standard: Standard,
    mcs: u8,
    streams: u8,
    width_mhz: u16,
    guard_interval_ns: u16,
    n_dbps: u32,
    n_es: u32,
}

/// Why a rate does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PhyError {
    /// The channel width is not one of the standard's.
    #[error("width_mhz {width_mhz} does not exist in {standard}; use {allowed}")]
    Width {
        /// What was asked for.
        width_mhz: u16,
        /// The standard it was asked of.
        standard: Standard,
        /// The widths it has.
        allowed: &'static str,
    },
    /// The MCS index is beyond the standard's table.
    #[error("mcs {mcs} does not exist in {standard}; use 0 to {greatest}")]
    Mcs {
        /// What was asked for.
        mcs: u8,
        /// The standard it was asked of.
        standard: Standard,
        /// The greatest index of that table.
        greatest: u8,
    },
    /// An HT index fixes the stream count; the two disagree.
    #[error("streams {streams} contradicts HT mcs {mcs}, which has {implied}")]
    HtStreams {
        /// What was asked for.
        streams: u8,
        /// The HT index.
        mcs: u8,
        /// The stream count inside the index.
        implied: u8,
    },
    /// Stream count outside 1 to 4.
    #[error("streams {0} is not supported; use 1 to 4")]
    Streams(u8),
    /// Guard interval other than 400 or 800 ns.
    #[error("guard_interval_ns {0} does not exist; use 800 (long) or 400 (short)")]
    GuardInterval(u16),
    /// The standard leaves this combination out because its numbers are not whole.
    #[error("VHT mcs {mcs} with {streams} stream(s) at {width_mhz} MHz is left out of the standard; use another mcs")]
    LeftOut {
        /// The VHT index.
        mcs: u8,
        /// The stream count.
        streams: u8,
        /// The channel width.
        width_mhz: u16,
    },
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ht => "HT",
            Self::Vht => "VHT",
        })
    }
}

/// Bits per subcarrier and stream, and code rate as a fraction, by MCS 0-9.
const MODULATION: [(u32, u32, u32); 10] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
];

impl Phy {
    /// Checks and builds a rate. For HT `streams` may be `None`: the index says it.
    ///
    /// # Errors
    /// [`PhyError`] names what does not exist.
    pub fn new(
        standard: Standard,
        mcs: u8,
        streams: Option<u8>,
        width_mhz: u16,
        guard_interval_ns: u16,
    ) -> Result<Self, PhyError> {
        let n_sd = data_subcarriers(standard, width_mhz)?;
        let (row, streams) = row_and_streams(standard, mcs, streams)?;
        if guard_interval_ns != 800 && guard_interval_ns != 400 {
            return Err(PhyError::GuardInterval(guard_interval_ns));
        }
        let (bits, numerator, denominator) = MODULATION[usize::from(row)];
        let n_cbps = n_sd * bits * u32::from(streams);
        let whole = n_cbps * numerator % denominator == 0;
        let n_dbps = n_cbps * numerator / denominator;
        // One encoder per 300 Mb/s (HT) or 600 Mb/s (VHT) of short-guard-interval rate, 3.6 us symbols.
        let bits_per_encoder = if standard == Standard::Ht { 1080 } else { 2160 };
        let n_es = n_dbps.div_ceil(bits_per_encoder);
        if !whole || n_cbps % n_es != 0 || n_dbps % n_es != 0 {
            return Err(PhyError::LeftOut { mcs, streams, width_mhz });
        }
        Ok(Self { standard, mcs, streams, width_mhz, guard_interval_ns, n_dbps, n_es })
    }

    /// HT or VHT.
    pub fn standard(&self) -> Standard {
        self.standard
    }

    /// MCS index: 0-31 for HT, 0-9 for VHT.
    pub fn mcs(&self) -> u8 {
        self.mcs
    }

    /// Spatial streams, 1-4.
    pub fn streams(&self) -> u8 {
        self.streams
    }

    /// Channel width, MHz.
    pub fn width_mhz(&self) -> u16 {
        self.width_mhz
    }

    /// Guard interval, ns: 800 (long) or 400 (short).
    pub fn guard_interval_ns(&self) -> u16 {
        self.guard_interval_ns
    }

    /// Data bits per OFDM symbol.
    pub fn n_dbps(&self) -> u32 {
        self.n_dbps
    }

    /// BCC encoders; each adds 6 tail bits.
    pub fn n_es(&self) -> u32 {
        self.n_es
    }

    /// Duration of one data symbol, ns: 4000 (long guard interval) or 3600 (short).
    pub fn symbol_ns(&self) -> u64 {
        3200 + u64::from(self.guard_interval_ns)
    }

    /// Data rate, Mb/s, unrounded (`iw` prints one decimal).
    pub fn rate_mbps(&self) -> f64 {
        f64::from(self.n_dbps) * 1000.0 / self.symbol_ns() as f64
    }
}

fn data_subcarriers(standard: Standard, width_mhz: u16) -> Result<u32, PhyError> {
    match (standard, width_mhz) {
        (_, 20) => Ok(52),
        (_, 40) => Ok(108),
        (Standard::Vht, 80) => Ok(234),
        (Standard::Ht, _) => Err(PhyError::Width { width_mhz, standard, allowed: "20 or 40" }),
        (Standard::Vht, _) => Err(PhyError::Width { width_mhz, standard, allowed: "20, 40 or 80" }),
    }
}

/// Row of the modulation table and stream count of an index.
fn row_and_streams(standard: Standard, mcs: u8, streams: Option<u8>) -> Result<(u8, u8), PhyError> {
    let greatest = if standard == Standard::Ht { 31 } else { 9 };
    if mcs > greatest {
        return Err(PhyError::Mcs { mcs, standard, greatest });
    }
    match standard {
        Standard::Ht => {
            let implied = mcs / 8 + 1;
            match streams {
                Some(streams) if streams != implied => Err(PhyError::HtStreams { streams, mcs, implied }),
                _ => Ok((mcs % 8, implied)),
            }
        }
        Standard::Vht => {
            let streams = streams.unwrap_or(1);
            if (1..=4).contains(&streams) {
                Ok((mcs, streams))
            } else {
                Err(PhyError::Streams(streams))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed long/short guard interval rates of one stream, MCS 0 upwards, and of two streams.
    type PrintedRow = (u16, usize, &'static [(f64, f64)]);
    const PRINTED: [PrintedRow; 6] = [
        (
            20,
            1,
            &[
                (6.5, 7.2),
                (13.0, 14.4),
                (19.5, 21.7),
                (26.0, 28.9),
                (39.0, 43.3),
                (52.0, 57.8),
                (58.5, 65.0),
                (65.0, 72.2),
                (78.0, 86.7),
            ],
        ),
        (
            20,
            2,
            &[
                (13.0, 14.4),
                (26.0, 28.9),
                (39.0, 43.3),
                (52.0, 57.8),
                (78.0, 86.7),
                (104.0, 115.6),
                (117.0, 130.0),
                (130.0, 144.4),
                (156.0, 173.3),
            ],
        ),
        (
            40,
            1,
            &[
                (13.5, 15.0),
                (27.0, 30.0),
                (40.5, 45.0),
                (54.0, 60.0),
                (81.0, 90.0),
                (108.0, 120.0),
                (121.5, 135.0),
                (135.0, 150.0),
                (162.0, 180.0),
                (180.0, 200.0),
            ],
        ),
        (
            40,
            2,
            &[
                (27.0, 30.0),
                (54.0, 60.0),
                (81.0, 90.0),
                (108.0, 120.0),
                (162.0, 180.0),
                (216.0, 240.0),
                (243.0, 270.0),
                (270.0, 300.0),
                (324.0, 360.0),
                (360.0, 400.0),
            ],
        ),
        (
            80,
            1,
            &[
                (29.3, 32.5),
                (58.5, 65.0),
                (87.8, 97.5),
                (117.0, 130.0),
                (175.5, 195.0),
                (234.0, 260.0),
                (263.3, 292.5),
                (292.5, 325.0),
                (351.0, 390.0),
                (390.0, 433.3),
            ],
        ),
        (
            80,
            2,
            &[
                (58.5, 65.0),
                (117.0, 130.0),
                (175.5, 195.0),
                (234.0, 260.0),
                (351.0, 390.0),
                (468.0, 520.0),
                (526.5, 585.0),
                (585.0, 650.0),
                (702.0, 780.0),
                (780.0, 866.7),
            ],
        ),
    ];

    /// The table prints one decimal, a half rounded either way (87.75 as 87.8, 263.25 as 263.3).
    fn assert_printed(phy: &Phy, printed_mbps: f64) {
        assert!(
            (phy.rate_mbps() - printed_mbps).abs() <= 0.0501,
            "{phy:?}: {} {printed_mbps}",
            phy.rate_mbps()
        );
    }

    #[test]
    fn every_rate_matches_the_printed_table() {
        for (width_mhz, streams, rates) in PRINTED {
            for (mcs, (long_mbps, short_mbps)) in rates.iter().enumerate() {
                let streams = streams as u8;
                let vht = |gi| Phy::new(Standard::Vht, mcs as u8, Some(streams), width_mhz, gi).unwrap();
                assert_printed(&vht(800), *long_mbps);
                assert_printed(&vht(400), *short_mbps);
                if mcs < 8 && width_mhz < 80 {
                    let index = mcs as u8 + 8 * (streams - 1);
                    let ht = |gi| Phy::new(Standard::Ht, index, None, width_mhz, gi).unwrap();
                    assert_printed(&ht(800), *long_mbps);
                    assert_printed(&ht(400), *short_mbps);
                    assert_eq!(ht(800).n_dbps(), vht(800).n_dbps());
                }
            }
        }
    }

    #[test]
    fn the_three_studied_rates_have_their_bits_per_symbol() {
        for (mcs, n_dbps, rate_mbps) in [(10, 324, 81.0), (12, 648, 162.0), (13, 864, 216.0)] {
            let phy = Phy::new(Standard::Ht, mcs, Some(2), 40, 800).unwrap();
            assert_eq!((phy.n_dbps(), phy.n_es(), phy.rate_mbps()), (n_dbps, 1, rate_mbps));
        }
    }

    #[test]
    fn encoders_follow_the_rate() {
        let ht = |mcs| Phy::new(Standard::Ht, mcs, None, 40, 800).unwrap().n_es();
        assert_eq!((ht(15), ht(20), ht(21), ht(31)), (1, 1, 2, 2));
        let vht = |mcs, streams| Phy::new(Standard::Vht, mcs, Some(streams), 80, 800).unwrap().n_es();
        assert_eq!((vht(9, 1), vht(6, 2), vht(7, 2), vht(9, 2), vht(9, 3)), (1, 1, 2, 2, 3));
    }

    #[test]
    fn what_does_not_exist_is_refused_with_its_name() {
        let error = |standard, mcs, streams, width, gi| {
            Phy::new(standard, mcs, streams, width, gi).unwrap_err().to_string()
        };
        assert_eq!(error(Standard::Ht, 13, None, 80, 800), "width_mhz 80 does not exist in HT; use 20 or 40");
        assert_eq!(error(Standard::Ht, 32, None, 40, 800), "mcs 32 does not exist in HT; use 0 to 31");
        assert_eq!(error(Standard::Vht, 10, None, 40, 800), "mcs 10 does not exist in VHT; use 0 to 9");
        assert_eq!(error(Standard::Ht, 13, Some(1), 40, 800), "streams 1 contradicts HT mcs 13, which has 2");
        assert!(error(Standard::Ht, 13, None, 40, 600).starts_with("guard_interval_ns 600"));
        for (mcs, streams, width) in [(9, 1, 20), (9, 2, 20), (9, 4, 20), (6, 3, 80)] {
            assert!(error(Standard::Vht, mcs, Some(streams), width, 800).contains("left out of the standard"));
        }
        assert!(Phy::new(Standard::Vht, 9, Some(3), 20, 800).is_ok());
    }
}
