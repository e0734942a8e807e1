// SPDX-License-Identifier: Apache-2.0
//! Which numbers can a machine's document hold? Times and powers in their range: a document with any other is refused
//! where it stands, so that the error has its line.

use serde::{Deserialize, Serialize};

use crate::range::{within, ParameterError};

/// A time of 0 s to a day; a number of seconds in documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds(pub(super) f64);

impl Seconds {
    /// In whole nanoseconds.
    pub fn ns(self) -> u64 {
        (self.0 * 1e9).round() as u64
    }
}

impl TryFrom<f64> for Seconds {
    type Error = ParameterError;

    fn try_from(value: f64) -> Result<Self, ParameterError> {
        within("a time in s", value, 0.0..=86_400.0).map(Self)
    }
}

impl From<Seconds> for f64 {
    fn from(value: Seconds) -> Self {
        value.0
    }
}

/// A power of 0 to 100 W; a number of watts in documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Watts(pub(super) f64);

impl TryFrom<f64> for Watts {
    type Error = ParameterError;

    fn try_from(value: f64) -> Result<Self, ParameterError> {
        within("a power in W", value, 0.0..=100.0).map(Self)
    }
}

impl From<Watts> for f64 {
    fn from(value: Watts) -> Self {
        value.0
    }
}
