// SPDX-License-Identifier: Apache-2.0
//! The pacing menu: names on the command line, in workloads, on the control channel and in reports.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How long before a deadline `hybrid` stops sleeping and watches the clock, us. It covers what a wake-up takes on an
/// idle host (95 % within 50 us) and leaves a schedule of up to 10,000 messages a second half of its time asleep.
pub const SPIN_US: u64 = 50;

/// Most messages of one burst.
pub const LARGEST_BURST: u64 = 10_000;

/// How messages are timed. No mode sends a message before its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Mode {
    /// Sleep until the deadline.
    #[default]
    Absolute,
    /// Sleep until [`SPIN_US`] before the deadline, then watch the clock.
    Hybrid,
    /// Watch the clock all the time: a core is busy.
    Spin,
    /// Hand messages to the kernel ahead, each with its launch time (`SO_TXTIME`, see socket(7) and tc-fq(8)).
    SoTxtime,
    /// Messages leave in groups of this many, each group when its last message is due.
    Burst(u64),
}

/// A text that names no pacing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no pacing (absolute, hybrid, spin, so_txtime, or burst:N with N from 1 to {LARGEST_BURST})"
)]
pub struct BadMode(String);

impl Mode {
    /// What does not go with a window or with trains, in one sentence.
    ///
    /// # Errors
    /// The sentence.
    pub fn fits(self, window_us: u64, gso: bool) -> Result<(), &'static str> {
        match self {
            Self::SoTxtime if window_us > 0 => {
                Err("so_txtime gives every message its own launch time: leave the window out")
            }
            Self::SoTxtime if gso => {
                Err("so_txtime gives every message its own launch time: leave GSO trains out")
            }
            _ => Ok(()),
        }
    }

    /// Messages that leave together: N of `burst:N`.
    pub fn burst(self) -> Option<u64> {
        match self {
            Self::Burst(messages) => Some(messages),
            _ => None,
        }
    }

    /// How long before a deadline the clock is watched, us; `None` where this is not so, or always.
    pub fn spin_us(self) -> Option<u64> {
        (self == Self::Hybrid).then_some(SPIN_US)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute => formatter.write_str("absolute"),
            Self::Hybrid => formatter.write_str("hybrid"),
            Self::Spin => formatter.write_str("spin"),
            Self::SoTxtime => formatter.write_str("so_txtime"),
            Self::Burst(messages) => write!(formatter, "burst:{messages}"),
        }
    }
}

impl FromStr for Mode {
    type Err = BadMode;

    fn from_str(text: &str) -> Result<Self, BadMode> {
        let bad = || BadMode(text.chars().take(40).collect());
        match text {
            "absolute" => Ok(Self::Absolute),
            "hybrid" => Ok(Self::Hybrid),
            "spin" => Ok(Self::Spin),
            "so_txtime" => Ok(Self::SoTxtime),
            _ => {
                let digits = text.strip_prefix("burst:").filter(|rest| is_plain(rest)).ok_or_else(bad)?;
                let messages = digits.parse().map_err(|_| bad())?;
                if (1..=LARGEST_BURST).contains(&messages) {
                    Ok(Self::Burst(messages))
                } else {
                    Err(bad())
                }
            }
        }
    }
}

/// Digits without sign or leading zero: one spelling per number, so that equal modes are equal texts.
fn is_plain(digits: &str) -> bool {
    !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl TryFrom<String> for Mode {
    type Error = BadMode;

    fn try_from(text: String) -> Result<Self, BadMode> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_mode_of_the_menu_survives_as_text() {
        for text in ["absolute", "hybrid", "spin", "so_txtime", "burst:1", "burst:10000"] {
            let mode: Mode = text.parse().unwrap();
            assert_eq!(mode.to_string(), text);
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Mode>(&json).unwrap(), mode);
        }
        assert_eq!(Mode::default().to_string(), "absolute");
    }

    #[test]
    fn other_texts_are_told_the_menu() {
        for text in ["", "Absolute", "burst", "burst:", "burst:0", "burst:+4", "burst:04", "burst:10001"] {
            let error = text.parse::<Mode>().unwrap_err().to_string();
            assert!(error.contains("burst:N") && error.contains("hybrid"), "{text}: {error}");
        }
    }

    #[test]
    fn a_launch_time_of_its_own_leaves_no_room_for_sharing() {
        assert!(Mode::SoTxtime.fits(1, false).is_err());
        assert!(Mode::SoTxtime.fits(0, true).is_err());
        assert_eq!(Mode::SoTxtime.fits(0, false), Ok(()));
        assert_eq!(Mode::Burst(4).fits(100, true), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_is_a_mode_that_writes_itself_so_or_none(text in "\\PC{0,20}|burst:[0-9]{0,6}") {
            if let Ok(mode) = text.parse::<Mode>() {
                prop_assert_eq!(mode.to_string(), text);
            }
        }
    }
}
