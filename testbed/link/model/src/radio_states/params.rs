// SPDX-License-Identifier: Apache-2.0
//! What does a document say of a machine? Which radio, with which parameters, and where the numbers come from.

use serde::{Deserialize, Serialize};

use super::lte::{Lte, LteParams};
use super::radio::Radio;
use super::umts::{Umts, UmtsParams};
use super::wifi::{Wifi, WifiParams};
use crate::range::ParameterError;

/// A machine as a user gives it: `{"source": "...", "machine": {"lte": {...}}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDocument {
    /// Where the numbers come from.
    pub source: String,
    /// The machine.
    pub machine: MachineParams,
}

/// Which radio, and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineParams {
    /// PSM, CAM, CAMH.
    Wifi(WifiParams),
    /// IDLE, PROMOTION, CR, SHORT_DRX, LONG_DRX.
    Lte(LteParams),
    /// IDLE, PCH, FACH, DCH and promotions.
    Umts(UmtsParams),
}

impl MachineParams {
    /// The radio in its lowest state.
    pub(super) fn radio(&self, start_ns: u64) -> Result<Box<dyn Radio>, ParameterError> {
        match self {
            Self::Wifi(params) => params.check()?,
            Self::Lte(params) => params.check()?,
            Self::Umts(params) => params.check()?,
        }
        Ok(match self.clone() {
            Self::Wifi(params) => Box::new(Wifi::new(params, start_ns)),
            Self::Lte(params) => Box::new(Lte::new(params, start_ns)),
            Self::Umts(params) => Box::new(Umts::new(params, start_ns)),
        })
    }
}
