// SPDX-License-Identifier: Apache-2.0
//! Transfers in simulated time: every byte, the rates that windows and round trips allow, energy, decisions.

use netjoule_link_model::range::ParameterError;
use netjoule_simulate::transfer::config::Asked;
use netjoule_simulate::transfer::run::{transfer, Outcome};
use serde_json::{json, Value};

/// 100 Mb/s and 290 ms with a queue of one bandwidth-delay product.
fn document(files: &Value, settings: &Value) -> Value {
    json!({
        "id": 7, "seed": 1, "interval_s": 1, "limit_s": 10_000,
        "elements": [{"rate_mbps": 100, "queue_packets": 2416, "delay_ms": 145}],
        "transfer": {
            "files": files,
            "settings": settings,
            "power": {"base_w": 0.5, "share_per_rate": 0.075, "share_per_connection": 0.015},
        },
    })
}

fn path() -> Value {
    json!({"bandwidth_bytes_per_s": 12_500_000, "rtt_ns": 290_000_000, "buffer_bytes": 2_097_152})
}

fn fixed(concurrency: u32, parallelism: u32) -> Value {
    json!({"algorithm": "fixed", "concurrency": concurrency, "parallelism": parallelism, "max_connections": 64})
}

fn run(document: Value) -> Outcome {
    let asked: Asked = serde_json::from_value(document).unwrap();
    transfer(&asked).unwrap()
}

fn refused(document: Value) -> String {
    let told = serde_json::from_value::<Asked>(document)
        .map_err(|error| error.to_string())
        .and_then(|asked| transfer(&asked).map_err(|ParameterError(sentence)| sentence));
    told.unwrap_err()
}

fn throughput_mbps(outcome: &Outcome) -> f64 {
    outcome.bytes as f64 * 8e3 / outcome.end_ns as f64
}

fn html() -> Value {
    json!([[131_072, 300]])
}

#[test]
fn every_byte_comes_and_steps_and_energy_add_up() {
    let outcome = run(document(&json!([[131_072, 100], [0, 3], [5_000_001, 2]]), &fixed(8, 2)));
    assert!(outcome.is_whole);
    assert_eq!((outcome.id, outcome.bytes), (7, 100 * 131_072 + 10_000_002));
    assert_eq!(outcome.steps.iter().map(|step| step.bytes).sum::<u64>(), outcome.bytes);
    let energy_j: f64 = outcome.steps.iter().map(|step| step.energy_j).sum();
    assert!((energy_j - outcome.energy_j).abs() < 1e-9 * energy_j, "{energy_j} {}", outcome.energy_j);
    assert!(outcome.connections_opened_n <= 16, "{}", outcome.connections_opened_n);
}

#[test]
fn energy_is_time_connections_and_megabits() {
    let outcome = run(document(&json!([[50_000_000, 1]]), &fixed(1, 1)));
    let (time_s, mbit) = (outcome.end_ns as f64 / 1e9, 400.0);
    let expected_j = 0.5 * (time_s * 1.015 + 0.075 * mbit);
    assert!((outcome.energy_j - expected_j).abs() < 1e-6 * expected_j, "{} {expected_j}", outcome.energy_j);
}

#[test]
fn one_connection_moves_a_window_a_round_trip() {
    // 1 MiB in 290 ms is 28.9 Mb/s; slow start takes a part of the first seconds.
    let outcome = run(document(&json!([[100_000_000, 1]]), &fixed(1, 1)));
    let rate_mbps = throughput_mbps(&outcome);
    assert!((26.0..28.9).contains(&rate_mbps), "{rate_mbps}");
    let four = run(document(&json!([[100_000_000, 1]]), &fixed(1, 4)));
    assert!(throughput_mbps(&four) > 2.2 * rate_mbps, "{}", throughput_mbps(&four));
}

#[test]
fn small_files_gain_from_each_doubling_of_concurrency_and_not_from_parallelism() {
    let at =
        |concurrency, parallelism| throughput_mbps(&run(document(&html(), &fixed(concurrency, parallelism))));
    let rates: Vec<f64> = [1, 2, 4, 8, 16].into_iter().map(|concurrency| at(concurrency, 1)).collect();
    for pair in rates.windows(2) {
        assert!((1.7..2.1).contains(&(pair[1] / pair[0])), "{rates:?}");
    }
    assert!(at(1, 8) < 1.05 * rates[0]);
}

#[test]
fn tls_costs_each_connection_a_round_trip() {
    let whole_s = |tls: bool| {
        let mut asked = document(&json!([[1000, 1]]), &fixed(1, 1));
        asked["transfer"]["connection"] = json!({"tls": tls});
        run(asked).end_ns as f64 / 1e9
    };
    assert!((whole_s(false) - 2.0 * 0.29).abs() < 0.01, "{}", whole_s(false));
    assert!((whole_s(true) - 3.0 * 0.29).abs() < 0.01, "{}", whole_s(true));
}

#[test]
fn losses_both_ways_cost_time_and_no_byte() {
    let mut asked = document(&json!([[131_072, 60], [3_000_000, 3]]), &fixed(6, 2));
    asked["elements"][0]["loss_ratio"] = json!(0.02);
    let lossy = run(asked.clone());
    assert!(lossy.is_whole);
    assert_eq!(lossy.bytes, 60 * 131_072 + 9_000_000);
    assert_eq!(run(asked), lossy, "the same seed");
}

#[test]
fn auto_and_eht_decide_from_what_they_see_and_would_again() {
    for algorithm in ["auto", "eht", "lowe", "hat"] {
        let settings =
            json!({"algorithm": algorithm, "max_connections": 64, "path": path(), "objective": "efficiency"});
        let outcome = run(document(&json!([[131_072, 1500], [160_000_000, 4]]), &settings));
        assert!(outcome.is_whole);
        for record in &outcome.records {
            assert_eq!(&record.replay(), record, "{algorithm}");
        }
    }
}

#[test]
fn a_transfer_that_takes_too_long_is_told_as_far_as_it_came() {
    let mut asked = document(&json!([[100_000_000, 1]]), &fixed(1, 1));
    asked["limit_s"] = json!(10);
    let outcome = run(asked);
    assert!(!outcome.is_whole);
    assert_eq!((outcome.end_ns, outcome.steps.len()), (10_000_000_000, 10));
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let mut streams = document(&html(), &fixed(1, 1));
    streams["transfer"]["settings"]["streams"] = json!(4);
    assert!(refused(streams).contains("streams must be 1"));
    assert!(refused(document(&html(), &fixed(32, 4))).contains("concurrency is 32"));
    let mut endless = document(&html(), &fixed(1, 1));
    endless["elements"][0]["rate_mbps"] = Value::Null;
    assert!(refused(endless).contains("rate"));
    assert!(refused(document(&json!([]), &fixed(1, 1))).contains("number of files"));
}
