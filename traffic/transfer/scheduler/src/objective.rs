// SPDX-License-Identifier: Apache-2.0
//! What makes one level better than another, from what was seen while it was in force.

use serde::{Deserialize, Serialize};

/// Loss of a connection's worth without a meter: `throughput / 1.02^connections`, as the Falcon optimisers score.
const A_CONNECTION: f64 = 1.02;

/// What is to be best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Objective {
    /// Bytes a second.
    Throughput,
    /// Dynamic energy a byte, the least; needs a meter.
    Energy,
    /// Throughput / E_d of a fixed volume, which is throughput squared by dynamic power; needs a meter.
    Efficiency,
    /// `throughput / 1.02^connections`: what stands in for efficiency where nobody reads a meter.
    #[default]
    Frugal,
    /// Throughput, as long as the rest of the transfer stays within this many joules; needs a meter.
    Battery {
        /// Dynamic energy that the whole transfer may take.
        budget_j: f64,
    },
}

/// What a level gave, after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// Connections that it used.
    pub connections: u32,
    /// Bytes.
    pub bytes: f64,
    /// Dynamic energy, joules, of a meter or a device model; none where it said nothing meanwhile.
    pub energy_j: Option<f64>,
    /// Whether there is such a meter.
    pub has_meter: bool,
    /// Seconds.
    pub time_s: f64,
    /// Bytes that are left of the transfer.
    pub left_bytes: f64,
    /// Dynamic energy of the transfer so far, joules.
    pub spent_j: f64,
}

impl Objective {
    /// What counts now: one that needs a meter is taken as [`Objective::Frugal`] without one. By it levels are compared,
    /// those of before too.
    #[must_use]
    pub fn with_meter(self, has_meter: bool) -> Self {
        match self {
            Self::Energy | Self::Efficiency | Self::Battery { .. } if !has_meter => Self::Frugal,
            other => other,
        }
    }

    /// The greater, the better; compared within one objective only. Where energy counts, a level that a meter said
    /// nothing of is worse than any other.
    pub fn score(&self, given: &Given) -> f64 {
        let rate = given.bytes / given.time_s.max(1e-9);
        let a_byte_j = given.energy_j.map(|energy_j| (energy_j / given.bytes.max(1.0)).max(1e-15));
        match (self, a_byte_j) {
            (Self::Throughput, _) => rate,
            (Self::Frugal, _) => rate / A_CONNECTION.powi(given.connections.try_into().unwrap_or(i32::MAX)),
            (_, None) => f64::MIN,
            (Self::Energy, Some(a_byte_j)) => 1.0 / a_byte_j,
            (Self::Efficiency, Some(a_byte_j)) => rate / a_byte_j,
            (Self::Battery { budget_j }, Some(a_byte_j)) => {
                let left_j = budget_j - given.spent_j;
                // Outside the budget every level is worse than any inside, and the cheapest is the best.
                if a_byte_j * given.left_bytes <= left_j {
                    rate
                } else {
                    -a_byte_j
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(connections: u32, bytes: f64, energy_j: f64) -> Given {
        Given {
            connections,
            bytes,
            energy_j: Some(energy_j),
            has_meter: true,
            time_s: 1.0,
            left_bytes: 1e8,
            spent_j: 5.0,
        }
    }

    #[test]
    fn each_objective_prefers_what_it_says() {
        let (slow_cheap, fast_dear) = (given(2, 5e6, 1.0), given(16, 1e7, 4.0));
        let better = |objective: Objective| objective.score(&fast_dear) > objective.score(&slow_cheap);
        assert!(better(Objective::Throughput));
        assert!(!better(Objective::Energy));
        // 25e12 against 25e12 J: equal; a little less energy decides.
        assert!(Objective::Efficiency.score(&given(16, 1e7, 3.9)) > Objective::Efficiency.score(&slow_cheap));
        assert!(better(Objective::Frugal));
        assert!(Objective::Frugal.score(&given(64, 1.1e7, 4.0)) < Objective::Frugal.score(&fast_dear));
        // The rest costs 40 J fast and 20 J slow, beside the 5 J that are spent.
        assert!(better(Objective::Battery { budget_j: 50.0 }));
        assert!(!better(Objective::Battery { budget_j: 30.0 }));
        assert!(!better(Objective::Battery { budget_j: 10.0 }));
    }
}
