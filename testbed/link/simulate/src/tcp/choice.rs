// SPDX-License-Identifier: Apache-2.0
//! Which congestion control does a flow have?

use serde::Deserialize;

use super::control::{CongestionControl, NewReno};
use super::cubic::Cubic;

/// Which congestion control a flow has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlName {
    /// RFC 5681 and RFC 6582.
    #[default]
    Newreno,
    /// RFC 9438.
    Cubic,
}

impl ControlName {
    /// It, before its first loss.
    pub fn control(self) -> Box<dyn CongestionControl> {
        match self {
            Self::Newreno => Box::new(NewReno),
            Self::Cubic => Box::new(Cubic::default()),
        }
    }
}
