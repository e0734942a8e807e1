// SPDX-License-Identifier: Apache-2.0
//! What was decided and from what, so that a decision can be understood, and taken again.

use serde::{Deserialize, Serialize};

use crate::level::{Level, Seen};
use crate::policy;
use crate::settings::Settings;

/// What a policy decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What it rested on.
    pub seen: Seen,
    /// What is in force from now on.
    pub level: Level,
    /// One line for people.
    pub why: String,
}

/// A policy from its start: the settings it was made with, the path as it was known then, and its decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// With the path that was given or measured.
    pub settings: Settings,
    /// In order.
    pub decisions: Vec<Decision>,
}

impl Record {
    /// The same settings with the same inputs, decided again.
    pub fn replay(&self) -> Self {
        let mut policy = None;
        let again = |decision: &Decision| {
            let policy = policy.get_or_insert_with(|| policy::of(&self.settings));
            let decided = policy.decide(&decision.seen);
            Decision { seen: decision.seen.clone(), level: decided.level, why: decided.why }
        };
        Self { settings: self.settings.clone(), decisions: self.decisions.iter().map(again).collect() }
    }
}
