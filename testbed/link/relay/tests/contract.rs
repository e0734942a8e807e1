// SPDX-License-Identifier: Apache-2.0
//! Configuration and statistics against protocols/contracts, in both directions.

use std::collections::BTreeSet;

use netjoule_link::config::{Config, Told};
use netjoule_link::routers::Routers;
use netjoule_link_model::access::AccessConfig;
use netjoule_link_model::mcs::{Phy, Standard};
use netjoule_link_model::model::Model;
use netjoule_link_model::path::Service;
use netjoule_link_model::presets;
use netjoule_link_model::radio_states;
use netjoule_link_model::stats::{Counters, StationLine};
use serde_json::{json, Value};

fn contract(path: &str) -> Value {
    let path = format!("{}/../../../protocols/contracts/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::validator_for(schema).unwrap()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// A document that uses every property of the contract.
fn full() -> Value {
    let overrides = json!({
        "standard": "vht", "mcs": 9, "streams": 2, "width_mhz": 80, "guard_interval_ns": 400, "subframe_limit": 64,
        "min_mpdu_spacing_us": 0.25, "mpdu_error_ratio": 0.1, "retry_limit": 3, "packet_rate_cap_pps": 12000.0,
        "queue_packets": 100,
    });
    let router = json!({
        "delay_ms": 1.5, "rate_mbps": 10, "loss_ratio": 0.5, "queue_packets": 42, "queue_bytes": 60_000, "direction": "up",
        "bursts": {"mean_burst_ms": 100, "cycle_ms": 1000, "rate_mbps": 5},
        "scaling": {"kind": "headroom", "utilisation": 0.9, "interval_ms": 10, "rates_mbps": [5, 10], "weight": 0.5, "window_ms": 20,
                    "delta_ms": 0.5, "delay_limit_ms": 40, "delay_limit_ratio": 0.9, "phase_ms": 3},
    });
    let bottleneck = json!({"varying": {"min_rate_mbps": 1, "max_rate_mbps": 10, "mean_interval_ms": 50}});
    let sleeper = json!({"rate_mbps": 100, "scaling": {"kind": "sleep", "sleep_us": 200, "wake_us": 30.5,
                                                       "collect_packets": 10, "collect_us": 1000}});
    let link = json!({"rate_mbps": 10, "scaling": {"kind": "fixed", "rate_mbps": 6}});
    json!({
        "schema_version": 2, "preset": "seed-like", "overrides": overrides, "seed": 9, "io": "packet",
        "stats_socket": "/run/link.sock",
        "stations": [{"name": "client", "netns": "pid:4", "ifname": "wlan0", "addresses": ["10.77.0.2/24"],
                      "mtu": 1400, "overrides": overrides}],
        "wired": [{"name": "server", "netns": "self", "ifname": "eth0", "addresses": ["10.77.0.1/24", "fd77::1/64"],
                   "mtu": 1500, "elements": [router, bottleneck, link, sleeper]}],
    })
}

#[test]
fn the_program_takes_every_property_of_the_contract_and_no_other() {
    let schema = contract("schemas/link_config.schema.json");
    let properties = &schema["properties"];
    let station = &properties["stations"]["items"]["properties"];
    let document = full();
    assert_eq!(keys(properties), keys(&document));
    assert_eq!(keys(station), keys(&document["stations"][0]));
    let wired = &properties["wired"]["items"]["properties"];
    assert_eq!(keys(wired), keys(&document["wired"][0]));
    let element = &wired["elements"]["items"]["properties"];
    let elements = document["wired"][0]["elements"].as_array().unwrap();
    assert_eq!(keys(element), elements.iter().flat_map(keys).collect());
    assert_eq!(keys(&element["bursts"]["properties"]), keys(&elements[0]["bursts"]));
    assert_eq!(keys(&element["varying"]["properties"]), keys(&elements[1]["varying"]));
    assert_eq!(keys(&element["scaling"]["oneOf"][1]["properties"]), keys(&elements[2]["scaling"]));
    assert_eq!(keys(&element["scaling"]["oneOf"][2]["properties"]), keys(&elements[0]["scaling"]));
    assert_eq!(keys(&element["scaling"]["oneOf"][3]["properties"]), keys(&elements[3]["scaling"]));
    for overrides in [&properties["overrides"], &station["overrides"]] {
        assert_eq!(keys(&overrides["properties"]), keys(&document["overrides"]));
    }
    assert!(validator(&schema).is_valid(&document));
    let config = Config::parse(&document.to_string()).unwrap();
    assert!((config.stations[0].params.framing.phy().rate_mbps() - 866.667).abs() < 0.001);
    let params = &config.wired[0].elements;
    assert!(matches!(params[0].service, Service::PractRa(_)) && params[0].bursts.is_some());
    assert!(
        matches!(params[1].service, Service::Varying(_)) && matches!(params[2].service, Service::Scaled(_))
    );
    let mut other = document;
    other["wired"][0]["jitter_ms"] = json!(1);
    assert!(!validator(&schema).is_valid(&other) && Config::parse(&other.to_string()).is_err());
}

#[test]
fn every_preset_is_in_the_contract_and_fits_it() {
    let schema = contract("schemas/link_config.schema.json");
    let names: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(schema["properties"]["preset"]["enum"], json!(names));
    for preset in presets::PRESETS {
        let mut document = full();
        document["overrides"] = Value::Object(presets::radio(&preset));
        assert!(validator(&schema).is_valid(&document), "{}", preset.name);
    }
}

#[test]
fn ranges_of_contract_and_program_agree() {
    let schema = contract("schemas/link_config.schema.json");
    let validator = validator(&schema);
    let wrong = [
        ("/overrides", "mcs", json!(32)),
        ("/overrides", "streams", json!(5)),
        ("/overrides", "width_mhz", json!(160)),
        ("/overrides", "guard_interval_ns", json!(600)),
        ("/overrides", "subframe_limit", json!(0)),
        ("/overrides", "min_mpdu_spacing_us", json!(3)),
        ("/overrides", "mpdu_error_ratio", json!(1.01)),
        ("/overrides", "retry_limit", json!(256)),
        ("/overrides", "packet_rate_cap_pps", json!(0)),
        ("/overrides", "queue_packets", json!(0)),
        ("/wired/0", "mtu", json!(2297)),
        ("/wired/0/elements/0", "delay_ms", json!(-1)),
        ("/wired/0/elements/0", "loss_ratio", json!(2)),
        ("/wired/0", "addresses", json!([])),
        ("/wired/0", "ifname", json!("much-too-long-name")),
        ("", "seed", json!(1u64 << 53)),
        ("", "stations", json!([])),
        ("", "wired", json!([])),
        ("", "schema_version", json!(1)),
    ];
    for (place, name, value) in wrong {
        let mut document = full();
        document["stations"][0].as_object_mut().unwrap().remove("overrides");
        assert!(validator.is_valid(&document) && Config::parse(&document.to_string()).is_ok());
        document.pointer_mut(place).unwrap()[name] = value;
        assert!(!validator.is_valid(&document), "contract takes {name}");
        assert!(Config::parse(&document.to_string()).is_err(), "program takes {name}");
    }
}

#[test]
fn a_statistics_line_has_exactly_the_contract_s_fields() {
    let schema = contract("schemas/link_stats.schema.json");
    let phy = Phy::new(Standard::Vht, 9, Some(2), 80, 400).unwrap();
    let line = StationLine::new("client", (0, 100_000_000), Counters::default(), (1, 2), &phy);
    assert!(validator(&schema).is_valid(&serde_json::to_value(&line).unwrap()));
    let config: AccessConfig = serde_json::from_value(json!({"radio_states": "aro-lte"})).unwrap();
    let step = config.open::<()>(0).unwrap().step(100_000_000);
    let line = serde_json::to_value(StationLine { access: Some(step), ..line }).unwrap();
    assert!(validator(&schema).is_valid(&line));
    assert_eq!(keys(&schema["properties"]), keys(&line));
    let access = &schema["properties"]["access"]["properties"];
    assert_eq!(keys(access), keys(&line["access"]));
    let state = &access["states"]["additionalProperties"]["properties"];
    assert_eq!(keys(state), keys(&line["access"]["states"]["IDLE"]));
    // What the radio table takes over is named alike on both sides.
    let table = contract("tables/radio.table.json");
    let columns: BTreeSet<&str> =
        table["fields"].as_array().unwrap().iter().filter_map(|field| field["name"].as_str()).collect();
    for name in
        ["phy_rate_mbps", "mcs", "streams", "width_mhz", "guard_interval_ns", "retries", "airtime_tx_s"]
    {
        assert!(columns.contains(name) && line.get(name).is_some(), "{name}");
    }
}

#[test]
fn the_factor_access_knows_every_radio_and_its_presets_can_be_opened() {
    let factors = contract("factors.json");
    let factors = factors["factors"].as_array().unwrap();
    let access = factors.iter().find(|factor| factor["name"] == "access").unwrap();
    assert_eq!(access["value"]["properties"]["radio_states"]["enum"], json!(radio_states::presets::NAMES));
    let presets = access["presets"].as_object().unwrap();
    assert!(presets.contains_key("wifi") && presets.contains_key("lte"));
    for (name, preset) in presets {
        let config: AccessConfig = serde_json::from_value(preset.clone()).unwrap();
        assert!(config.open::<()>(0).is_ok(), "{name}");
        let told = serde_json::to_value(&config).unwrap();
        assert!(keys(&told).is_subset(&keys(&access["value"]["properties"])), "{told}");
    }
}

#[test]
fn a_line_of_a_router_has_exactly_the_contract_s_fields_and_a_ruled_one_its_ticks() {
    let router =
        |scaling: Value| json!({"rate_mbps": 10, "queue_packets": 42, "direction": "up", "scaling": scaling});
    let practra = router(json!({"kind": "practra", "interval_ms": 10, "phase_ms": 10}));
    let path =
        json!({"host": "server", "elements": [{"delay_ms": 1}, router(json!({"kind": "none"})), practra]});
    let Ok(Told::Path(0, doc, params)) = Told::parse(&path.to_string(), &[], &["server".to_owned()]) else {
        panic!("a path")
    };
    let mut model: Model<()> = Model::new(1, Vec::new(), &[params], 0, 100_000_000);
    let routers = Routers::new([("server", &*doc.elements)].into_iter());
    // Asked 5 ms and 1 ms late, the third time for the tick at 30 ms.
    for now_ns in [15_000_000, 21_000_000, 25_000_000] {
        model.woke(now_ns);
        model.advance(now_ns);
    }
    let lines: Vec<Value> = routers
        .lines(&mut model, 25_000_000)
        .iter()
        .map(|line| serde_json::to_value(line).unwrap())
        .collect();
    let schema = contract("schemas/link_router.schema.json");
    assert!(lines.iter().all(|line| validator(&schema).is_valid(line)), "{lines:?}");
    let [still, ruled] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(keys(&schema["properties"]), keys(ruled));
    assert_eq!(
        (&still["element"], &still["scaling"], &still["ticks"]),
        (&json!(2), &json!("none"), &Value::Null)
    );
    assert_eq!((&ruled["element"], &ruled["ticks"]), (&json!(3), &json!(2)));
    assert_eq!((&ruled["tick_late_mean_us"], &ruled["tick_late_max_us"]), (&json!(3000.0), &json!(5000.0)));
    // What routers.csv takes over is named alike on both sides.
    let table = contract("tables/routers.table.json");
    let columns: BTreeSet<String> = table["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect();
    let renamed = ["schema_version", "kind", "scaling", "t_start_ns", "t_end_ns"].map(str::to_owned);
    let same: BTreeSet<String> = keys(ruled).into_iter().filter(|name| !renamed.contains(name)).collect();
    assert!(same.is_subset(&columns), "{:?}", same.difference(&columns));
}
