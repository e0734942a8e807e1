// SPDX-License-Identifier: Apache-2.0
//! Every wrong configuration ends in one sentence that names the place.

use serde_json::json;

use super::*;
use crate::end::NetnsRef;
use netjoule_link_model::path::Service;

fn document() -> Value {
    json!({
        "schema_version": 2, "preset": "ideal-216", "seed": 7, "stats_socket": "/tmp/stats.sock",
        "stations": [{"name": "client", "netns": "pid:12", "ifname": "wlan0",
                      "addresses": ["10.77.0.2/24", "fd77::2/64"]}],
        "wired": [{"name": "server", "netns": "self", "ifname": "eth0", "addresses": ["10.77.0.1/24", "fd77::1/64"],
                   "elements": [{"delay_ms": 2.5, "rate_mbps": 1000, "loss_ratio": 0.01}]}],
    })
}

fn changed(pointer: &str, key: &str, value: Value) -> Value {
    let mut document = document();
    document.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
    document
}

fn message(document: &Value) -> String {
    let error = Config::parse(&document.to_string()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn a_plain_document_gets_preset_and_defaults() {
    let config = Config::parse(&document().to_string()).unwrap();
    assert_eq!((config.seed, config.io, config.wired[0].end.name.as_str()), (7, Io::Auto, "server"));
    assert_eq!(config.stations[0].params.framing.phy().rate_mbps(), 216.0);
    assert_eq!(config.stations[0].end.mtu, 1500);
    assert_eq!(config.stations[0].end.netns, NetnsRef::Path("/proc/12/ns/net".into()));
    assert_eq!(config.wired[0].elements[0].delay_ns, 2_500_000);
}

#[test]
fn overrides_come_from_the_top_then_from_the_station() {
    let mut document = changed("", "overrides", json!({"mcs": 10}));
    assert_eq!(
        Config::parse(&document.to_string()).unwrap().stations[0].params.framing.phy().rate_mbps(),
        81.0
    );
    document["stations"][0]["overrides"] = json!({"mcs": 12});
    document["preset"] = json!("seed-like");
    let config = Config::parse(&document.to_string()).unwrap();
    assert_eq!(config.stations[0].params.framing.phy().rate_mbps(), 162.0);
    assert_eq!(config.stations[0].params.limits.packet_gap_ns, 83_333);
    document["overrides"]["packet_rate_cap_pps"] = Value::Null;
    let config = Config::parse(&document.to_string()).unwrap();
    assert_eq!(config.stations[0].params.limits.packet_gap_ns, 0);
}

#[test]
fn wrong_documents_are_refused_with_their_place() {
    let cases = [
        (changed("", "speed", json!(1)), "config, speed: unknown field `speed`"),
        (
            changed("", "preset", json!("fast")),
            "config: preset \"fast\" is not known; use one of ideal-216, seed-like",
        ),
        (changed("", "schema_version", json!(1)), "config: schema_version 1 is not known; use 2"),
        (changed("", "io", json!("raw")), "config, io: unknown variant `raw`"),
        (changed("", "stations", json!([])), "number of stations is 0"),
        (
            changed("", "overrides", json!({"mcs": "13"})),
            "config, stations[0], overrides, mcs: invalid type: string",
        ),
        (
            changed("", "overrides", json!({"mcs": 40})),
            "config, radio of \"client\": mcs 40 does not exist in HT",
        ),
        (changed("", "overrides", json!({"subframe_limit": 65})), "subframe_limit is 65; it must be 1 to 64"),
        (
            changed("", "overrides", json!({"mpdu_error_ratio": 1.5})),
            "mpdu_error_ratio is 1.5; it must be 0 to 1",
        ),
        (changed("", "overrides", json!({"min_mpdu_spacing_us": 3})), "min_mpdu_spacing_us must be one of"),
        (changed("/stations/0", "netns", json!("pid:x")), "config, stations[0]: netns \"pid:x\""),
        (changed("/stations/0", "ifname", json!("a/b")), "config, stations[0]: ifname \"a/b\""),
        (changed("/stations/0", "addresses", json!(["10.77.0.2"])), "stations[0]: address \"10.77.0.2\""),
        (changed("/stations/0", "addresses", json!(["10.77.0.1/24"])), "address 10.77.0.1 is given twice"),
        (
            changed("/stations/0", "mtu", json!(1000)),
            "config, stations[0]: mtu is 1000; it must be 1280 to 2296",
        ),
        (changed("/stations/0", "name", json!("server")), "two ends are named \"server\""),
        (
            changed("/wired/0/elements/0", "loss_ratio", json!(-0.1)),
            "config, wired[0], elements[0]: loss_ratio is -0.1",
        ),
        (
            changed("/wired/0/elements/0", "rate_mbps", json!(-1)),
            "config, wired[0], elements[0]: rate_mbps is -1",
        ),
        (
            changed("", "overrides", json!({"speed": 1})),
            "config, stations[0], overrides, speed: unknown field",
        ),
        (changed("/wired/0", "mcs", json!(3)), "config, wired[0].mcs: unknown field `mcs`"),
        (changed("", "wired", json!([])), "number of wired hosts is 0"),
    ];
    for (document, part) in cases {
        let message = message(&document);
        assert!(message.contains(part) && !message.contains('\n'), "{message:?} lacks {part:?}");
    }
    assert!(Config::parse("{").unwrap_err().to_string().starts_with("config is not JSON"));
    assert_eq!(Config::parse("[]").unwrap_err().to_string(), "config must be a JSON object");
}

#[test]
fn a_command_gives_elements_and_a_wrong_one_is_told_with_its_place() {
    let hosts = ["server", "origin"].map(str::to_owned);
    let parse = |command: &str| Told::parse(command, &["client".to_owned()], &hosts);
    let command =
        r#"{"host": "origin", "elements": [{"delay_ms": 20}, {"rate_mbps": 5, "queue_packets": 7}]}"#;
    let Ok(Told::Path(1, doc, params)) = parse(command) else { panic!("a path to the second host") };
    assert_eq!((params[0].delay_ns, params[1].queue.packets), (20_000_000, 7));
    assert_eq!((&params[0].service, &params[1].service), (&Service::Unlimited, &Service::Fixed(5.0)));
    let told = json!([{"delay_ms": 20.0, "rate_mbps": null, "loss_ratio": 0.0, "queue_packets": 1000},
                      {"delay_ms": 0.0, "rate_mbps": 5.0, "loss_ratio": 0.0, "queue_packets": 7}]);
    assert_eq!(serde_json::to_value(&doc.elements).unwrap(), told);
    let many = json!({"host": "server", "elements": vec![json!({}); 33]}).to_string();
    for (command, part) in [
        ("{", "command is not JSON"),
        ("{}", "path: missing field `host`"),
        (r#"{"host": "proxy", "elements": []}"#, "no host is called \"proxy\"; use one of server, origin"),
        (
            r#"{"host": "server", "elements": [{"speed": 1}]}"#,
            "path, elements[0].speed: unknown field `speed`",
        ),
        (r#"{"host": "server", "elements": [{"delay_ms": -1}]}"#, "path, elements[0]: delay_ms is -1"),
        (&many, "number of elements is 33"),
        (
            r#"{"station": "phone", "access": null}"#,
            "access: no station is called \"phone\"; use one of client",
        ),
        (
            r#"{"station": "client", "access": {"radio_states": "lte", "rate": 1}}"#,
            "access, access.rate: unknown field `rate`",
        ),
    ] {
        let message = parse(command).unwrap_err().to_string();
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    let Ok(Told::Access(0, doc)) = parse(r#"{"station": "client", "access": {"radio_states": "aro-lte"}}"#)
    else {
        panic!("an access network")
    };
    assert_eq!(doc.access.unwrap().queue_packets, 1000);
}
