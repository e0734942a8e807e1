// SPDX-License-Identifier: Apache-2.0
//! Which links come ready-made, and where do their numbers come from?

use serde::Serialize;
use serde_json::{json, Map, Value};

/// A named set of radio parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Preset {
    /// Name in the configuration.
    pub name: &'static str,
    /// What it is; begins with "fitted:" when a value is fitted and not from the standard.
    pub description: &'static str,
    /// True when a value is fitted to published behaviour.
    pub fitted: bool,
}

/// All presets.
pub const PRESETS: [Preset; 2] = [
    Preset {
        name: "ideal-216",
        description: "802.11n, 40 MHz, two streams, MCS 13, long guard interval: 216 Mb/s; A-MPDU of up to 32 \
                      subframes, 8 us MPDU spacing, no loss, hosts faster than the air",
        fitted: false,
    },
    Preset {
        name: "seed-like",
        description: "fitted: as ideal-216, but each station moves at most 12,000 packets a second in each \
                      direction; the cap is fitted to the 64-byte saturation of hosts of the 6-12 kpps class, \
                      it is not measured",
        fitted: true,
    },
];

/// The preset of that name.
pub fn find(name: &str) -> Option<Preset> {
    PRESETS.into_iter().find(|preset| preset.name == name)
}

/// Radio parameters of a preset, by the names of the configuration.
pub fn radio(preset: &Preset) -> Map<String, Value> {
    let cap_pps = if preset.name == "seed-like" { json!(12_000.0) } else { Value::Null };
    let parameters = json!({
        "standard": "ht", "mcs": 13, "streams": null, "width_mhz": 40, "guard_interval_ns": 800,
        "subframe_limit": 32, "min_mpdu_spacing_us": 8.0, "mpdu_error_ratio": 0.0, "retry_limit": 7,
        "packet_rate_cap_pps": cap_pps, "queue_packets": 512,
    });
    match parameters {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_presets_say_so_first() {
        for preset in PRESETS {
            assert_eq!(preset.fitted, preset.description.starts_with("fitted:"), "{}", preset.name);
        }
        assert_eq!(radio(&find("seed-like").unwrap())["packet_rate_cap_pps"], 12_000.0);
        assert_eq!(find("ideal"), None);
    }
}
