// SPDX-License-Identifier: Apache-2.0
//! Which machines come ready-made, and where do their numbers come from?

use super::lte::LteParams;
use super::params::{MachineDocument, MachineParams};
use super::quantity::{Seconds, Watts};
use super::umts::{DchTail, Drain, Pch, Promotion, Rise, UmtsParams};
use super::wifi::{Beacons, WifiParams};

/// Names of all presets.
pub const NAMES: [&str; 9] = [
    "energybox-s2",
    "aro-wifi",
    "n9-wlan",
    "mobisys12",
    "aro-lte",
    "aro-i997",
    "aro-inspire",
    "energybox-teliasonera",
    "n9-umts",
];

/// The preset of that name.
pub fn find(name: &str) -> Option<MachineDocument> {
    let (machine, source) = match name {
        "energybox-s2" => (MachineParams::Wifi(energybox_s2()), ENERGYBOX_S2),
        "aro-wifi" => (MachineParams::Wifi(aro_wifi()), ARO_WIFI),
        "n9-wlan" => (MachineParams::Wifi(n9_wlan()), N9_WLAN),
        "mobisys12" => (MachineParams::Lte(mobisys12()), MOBISYS12),
        "aro-lte" => (MachineParams::Lte(LteParams { base_w: Watts(1.2), ..mobisys12() }), ARO_LTE),
        "aro-i997" => (MachineParams::Umts(aro_i997()), ARO_I997),
        "aro-inspire" => (MachineParams::Umts(aro_inspire()), ARO_INSPIRE),
        "energybox-teliasonera" => (MachineParams::Umts(teliasonera()), TELIASONERA),
        "n9-umts" => (MachineParams::Umts(n9_umts()), N9_UMTS),
        _ => return None,
    };
    Some(MachineDocument { source: source.to_owned(), machine })
}

const ENERGYBOX_S2: &str = "Samsung Galaxy S2 of EnergyBox, rtslab/EnergyBox@150320e, config/";

fn energybox_s2() -> WifiParams {
    WifiParams {
        psm_w: Watts(0.03),
        cam_w: Watts(0.25),
        camh_w: Watts(0.45),
        tail_s: Seconds(0.22),
        window_s: Seconds(0.05),
        window_bytes: 3_000,
        beacons: None,
    }
}

const ARO_WIFI: &str =
    "AT&T ARO, attdevsupport/VideoOptimizer@d164529, WiFi.conf, which has one active state; the window \
                        is EnergyBox's";

fn aro_wifi() -> WifiParams {
    WifiParams {
        psm_w: Watts(0.02),
        cam_w: Watts(0.403),
        camh_w: Watts(0.403),
        tail_s: Seconds(0.25),
        ..energybox_s2()
    }
}

const N9_WLAN: &str =
    "Nokia N9 of the web-proxy study (Wang and Manner): above the phone's own idle, so PSM is 0 (ours); \
                       the window is EnergyBox's";

fn n9_wlan() -> WifiParams {
    WifiParams {
        psm_w: Watts(0.0),
        cam_w: Watts(0.31),
        camh_w: Watts(1.38),
        tail_s: Seconds(0.2),
        beacons: Some(Beacons { interval_s: Seconds(0.1), listen_interval: 1 }),
        ..energybox_s2()
    }
}

const MOBISYS12: &str = "Huang et al., A close examination of performance and power characteristics of 4G \
                         LTE networks, MobiSys 2012; DRX and paging as in AT&T ARO's lte.conf; IDLE between \
                         pagings 0 (ours)";
const ARO_LTE: &str =
    "AT&T ARO, attdevsupport/VideoOptimizer@d164529, lte.conf; IDLE between pagings 0 (ours)";

fn mobisys12() -> LteParams {
    LteParams {
        idle_w: Watts(0.0),
        paging_cycle_s: Seconds(1.28),
        paging_on_s: Seconds(0.043),
        paging_w: Watts(0.594),
        promotion_s: Seconds(0.26),
        promotion_w: Watts(1.21),
        base_w: Watts(1.288),
        up_j_per_mbit: 0.438_39,
        down_j_per_mbit: 0.051_97,
        inactivity_s: Seconds(0.1),
        short_drx_s: Seconds(0.02),
        short_cycle_s: Seconds(0.02),
        long_drx_s: Seconds(10.0),
        long_cycle_s: Seconds(0.04),
        on_s: Seconds(0.002),
        on_w: Watts(1.68),
        drx_w: Watts(1.06),
    }
}

const ARO_I997: &str = "Samsung i997 of AT&T ARO, attdevsupport/VideoOptimizer@d164529, i997.conf";
const ARO_INSPIRE: &str = "HTC Inspire of AT&T ARO, attdevsupport/VideoOptimizer@d164529, inspire.conf";

fn promotion(duration_s: f64, power_w: f64) -> Promotion {
    Promotion { duration_s: Seconds(duration_s), power_w: Watts(power_w) }
}

/// ARO's estimate for the network of AT&T.
const ARO_DRAIN: Drain = Drain { fixed_ms: 20.0, ms_per_byte: 1.6, ms_per_byte2: 0.0014 };

fn aro_i997() -> UmtsParams {
    UmtsParams {
        idle_w: Watts(0.0),
        fach_w: Watts(0.3),
        dch_w: Watts(1.3),
        dch_tail: None,
        dch_tail_s: Seconds(4.0),
        fach_tail_s: Seconds(10.0),
        pch: None,
        idle_rise: Rise::Dch(promotion(2.0, 0.65)),
        fach_to_dch: promotion(1.5, 0.8),
        up_threshold_bytes: 543,
        down_threshold_bytes: 475,
        drain: ARO_DRAIN,
    }
}

fn aro_inspire() -> UmtsParams {
    UmtsParams { fach_w: Watts(0.38), dch_w: Watts(0.6), ..aro_i997() }
}

const TELIASONERA: &str =
    "TeliaSonera's 3G of EnergyBox, rtslab/EnergyBox@150320e, config/; promotions have the power of \
                           the state below, and queues empty in 0.1 s (both ours)";

fn teliasonera() -> UmtsParams {
    UmtsParams {
        idle_w: Watts(0.2),
        fach_w: Watts(0.5),
        dch_tail_s: Seconds(4.1),
        fach_tail_s: Seconds(5.6),
        idle_rise: Rise::BySize {
            threshold_bytes: 1_000,
            fach: promotion(0.43, 0.2),
            dch: promotion(1.7, 0.2),
        },
        fach_to_dch: promotion(0.65, 0.5),
        up_threshold_bytes: 294,
        down_threshold_bytes: 515,
        drain: Drain { fixed_ms: 100.0, ms_per_byte: 0.0, ms_per_byte2: 0.0 },
        ..aro_i997()
    }
}

const N9_UMTS: &str =
    "Nokia N9 of the web-proxy study (Wang and Manner), above the phone's own idle; PCH 1 % of \
                       DCH; power of promotions, 0.1 s of transfer power after a packet, half an hour in PCH \
                       (all ours), queues empty as in AT&T ARO";

fn n9_umts() -> UmtsParams {
    UmtsParams {
        idle_w: Watts(0.0),
        fach_w: Watts(0.489),
        dch_w: Watts(1.47),
        dch_tail: Some(DchTail { active_s: Seconds(0.1), power_w: Watts(1.085) }),
        dch_tail_s: Seconds(3.0),
        fach_tail_s: Seconds(2.0),
        pch: Some(Pch { power_w: Watts(0.0147), tail_s: Seconds(1800.0), rise: None }),
        idle_rise: Rise::Fach(promotion(1.0, 0.489)),
        fach_to_dch: promotion(0.5, 0.489),
        up_threshold_bytes: 470,
        down_threshold_bytes: 470,
        drain: ARO_DRAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_given_as_a_document_too() {
        for name in NAMES {
            let preset = find(name).unwrap();
            assert!(preset.machine.radio(0).is_ok(), "{name}");
            let text = serde_json::to_string(&preset).unwrap();
            assert_eq!(serde_json::from_str::<MachineDocument>(&text).unwrap(), preset, "{name}");
        }
        assert_eq!(find("aro"), None);
    }

    #[test]
    fn a_document_that_cannot_be_is_refused_in_its_line() {
        let text = serde_json::to_string_pretty(&find("n9-umts").unwrap()).unwrap();
        for (old, new, expected) in [
            ("\"fach_w\": 0.489", "\"fach_w\": -1", "a power in W is -1; it must be 0 to 100 at line 6"),
            ("\"fach_w\": 0.489", "\"fach_w\": 0.489, \"fach_mw\": 489", "unknown field `fach_mw`"),
            ("\"fach\": {", "\"fach\": {\"x\": 1,", "unknown field `x`"),
            ("\"drain\": {", "\"drain\": {\"x\": 1,", "unknown field `x`"),
            ("\"umts\"", "\"gsm\"", "unknown variant `gsm`"),
        ] {
            assert!(text.contains(old), "{old} in {text}");
            let error = serde_json::from_str::<MachineDocument>(&text.replace(old, new)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.line() > 1, "{error}");
        }
    }

    #[test]
    fn parameters_that_do_not_fit_together_are_refused() {
        let of_lte = |change: &dyn Fn(&mut LteParams)| {
            let mut params = mobisys12();
            change(&mut params);
            MachineParams::Lte(params)
        };
        let of_beacons = |interval_s, listen_interval| {
            let beacons = Some(Beacons { interval_s: Seconds(interval_s), listen_interval });
            MachineParams::Wifi(WifiParams { beacons, ..n9_wlan() })
        };
        let drain = Drain { fixed_ms: -1.0, ..ARO_DRAIN };
        for (params, expected) in [
            (of_lte(&|lte| lte.on_s = Seconds(0.03)), "on_s is 0.03; it must be at most short_cycle_s, 0.02"),
            (of_lte(&|lte| lte.paging_on_s = Seconds(2.0)), "at most paging_cycle_s, 1.28"),
            (of_lte(&|lte| lte.long_cycle_s = Seconds(0.0)), "long_cycle_s is 0; it must be"),
            (of_lte(&|lte| lte.up_j_per_mbit = f64::NAN), "up_j_per_mbit is NaN"),
            (of_beacons(0.0, 1), "beacons.interval_s is 0"),
            (of_beacons(0.1, 0), "beacons.listen_interval is 0"),
            (MachineParams::Umts(UmtsParams { drain, ..n9_umts() }), "drain.fixed_ms is -1"),
        ] {
            let error = params.radio(0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        }
    }
}
