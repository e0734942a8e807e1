// SPDX-License-Identifier: Apache-2.0
//! Values by name, as options, offers and statistics are.

use serde_json::{Map, Value};

/// Free-form named values: path statistics, offers.
pub type Values = Map<String, Value>;
