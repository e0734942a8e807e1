// SPDX-License-Identifier: Apache-2.0
//! Flows in simulated time against what arithmetic says of them.

use netjoule_simulate::config::Asked;
use netjoule_simulate::outcome::Outcome;
use netjoule_simulate::world::simulate;
use serde_json::{json, Value};

/// The study's path: 100 Mb/s, then two links of 10 Mb/s, a quarter, a quarter and half of the delay.
fn path(rtt_ms: f64, queue_packets: u64, scaling: Value) -> Value {
    json!([
        {"rate_mbps": 100, "delay_ms": rtt_ms / 8.0},
        {"rate_mbps": 10, "queue_packets": queue_packets, "delay_ms": rtt_ms / 8.0, "direction": "up", "scaling": scaling},
        {"rate_mbps": 10, "queue_packets": queue_packets, "delay_ms": rtt_ms / 4.0},
    ])
}

fn run(elements: Value, flow: Value, seed: u64) -> Outcome {
    let document = json!({"id": 1, "seed": seed, "duration_s": 300, "interval_s": 20, "elements": elements, "flows": [flow]});
    simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap()
}

/// Throughput, service rate in Mb/s and switches from 20 s on.
fn figures(outcome: &Outcome) -> (f64, f64, u64) {
    let steps = &outcome.steps[1..];
    let acked: u64 = steps.iter().map(|step| step.acked_packets[0]).sum();
    let rate: f64 = steps.iter().map(|step| step.routers[0].mean_rate_mbps).sum();
    let switches = steps.iter().map(|step| step.routers[0].switches).sum();
    (acked as f64 * 12e3 / 280e6, rate / steps.len() as f64, switches)
}

#[test]
fn a_router_is_an_element_whose_rate_may_change_towards_the_receivers() {
    let varying = json!({"min_rate_mbps": 1, "max_rate_mbps": 8, "mean_interval_ms": 50});
    let elements = json!([
        {"rate_mbps": 100},
        {"rate_mbps": 10, "scaling": {"kind": "practra", "interval_ms": 10}},
        {"rate_mbps": 10, "direction": "down", "scaling": none()},
        {"varying": varying, "direction": "up"},
    ]);
    let outcome = run(elements, json!({}), 1);
    let told: Vec<_> = outcome.routers.iter().map(|router| (router.element, router.kind.as_str())).collect();
    assert_eq!(told, [(2, "practra"), (4, "varying")]);
    let rates: Vec<_> = outcome.steps[0].routers.iter().map(|router| router.max_rate_mbps).collect();
    assert_eq!(rates, [10.0, 8.0]);
}

fn none() -> Value {
    json!({"kind": "none"})
}

#[test]
fn a_sawtooth_over_half_a_bandwidth_delay_product_has_its_throughput() {
    // 83.3 packets are on their way and 42 in the queue at most: the window goes from 62.7 to 125.3. Below 83.3 the link is not
    // full: 20.7 round trips of 0.1 s with 73 packets each; above, 42 with 104.3 at the link's rate of 833 a second.
    let below = (20.7, 20.7 * 73.0 / 0.1 / 833.3 * 0.1);
    let full_s = 42.0 * 104.3 / 833.3;
    let expected_mbps = 10.0 * (below.1 + full_s) / (below.0 * 0.1 + full_s);
    let (throughput_mbps, rate_mbps, switches) =
        figures(&run(path(100.0, 42, none()), json!({"delayed_acks": false}), 1));
    assert!((throughput_mbps / expected_mbps - 1.0).abs() < 0.02, "{throughput_mbps} of {expected_mbps}");
    assert_eq!((rate_mbps, switches), (10.0, 0));
}

#[test]
fn a_short_path_is_full_with_and_without_scaling() {
    for scaling in [none(), json!({"kind": "practra", "interval_ms": 100})] {
        let (throughput_mbps, rate_mbps, _) = figures(&run(path(1.0, 10, scaling), json!({}), 1));
        assert!(throughput_mbps > 9.9 && rate_mbps > 9.9, "{throughput_mbps} {rate_mbps}");
    }
}

#[test]
fn scaling_takes_throughput_on_a_long_path_and_more_with_short_intervals() {
    let flow = || json!({"delayed_acks": true});
    let (alone_mbps, ..) = figures(&run(path(100.0, 42, none()), flow(), 1));
    let found = [10, 1000].map(|interval_ms| {
        let scaling = json!({"kind": "practra", "interval_ms": interval_ms});
        figures(&run(path(100.0, 42, scaling), flow(), 1))
    });
    let [short, long] = found;
    assert!(short.0 < long.0 && long.0 < alone_mbps, "{found:?} {alone_mbps}");
    assert!(short.1 < long.1 && long.1 < 10.0, "{found:?}");
    assert!(short.2 > long.2 && long.2 > 0, "{found:?}");
}

#[test]
fn cubic_fills_a_long_path_better_than_newreno_and_loses_less_to_practra() {
    let throughput = |control: &str, scaling: Value| {
        let flow = json!({"congestion_control": control, "sack": true});
        figures(&run(path(100.0, 42, scaling), flow, 1)).0
    };
    let practra = || json!({"kind": "practra", "interval_ms": 10, "phase_ms": 5});
    let [newreno, cubic] =
        ["newreno", "cubic"].map(|control| (throughput(control, none()), throughput(control, practra())));
    assert!(cubic.0 > newreno.0, "{cubic:?} {newreno:?}");
    assert!(1.0 - cubic.1 / cubic.0 < 1.0 - newreno.1 / newreno.0, "{cubic:?} {newreno:?}");
}

/// Goodput of packets of 1484 B, a flow of DCCP, from 20 s on, Mb/s.
fn dccp_mbps(ccid: u8, elements: Value) -> f64 {
    let flow = json!({"transport": "dccp", "ccid": ccid, "payload_bytes": 1440});
    figures(&run(elements, flow, 1)).0 * 1484.0 / 1500.0
}

#[test]
fn dccp_fills_a_path_with_either_ccid() {
    for ccid in [2, 3] {
        for (rtt_ms, queue_packets, least_mbps) in [(10.0, 10, 9.5), (100.0, 42, 9.3), (100.0, 83, 9.9)] {
            let mbps = dccp_mbps(ccid, path(rtt_ms, queue_packets, none()));
            assert!((least_mbps..10.0).contains(&mbps), "CCID {ccid}, {rtt_ms} ms: {mbps}");
        }
    }
}

#[test]
fn scaling_takes_throughput_from_ccid_2_as_from_tcp_and_hardly_any_from_ccid_3() {
    let taken = |ccid| {
        let practra = json!({"kind": "practra", "interval_ms": 10, "phase_ms": 5});
        1.0 - dccp_mbps(ccid, path(100.0, 42, practra)) / dccp_mbps(ccid, path(100.0, 42, none()))
    };
    let (window, rate) = (taken(2), taken(3));
    assert!(window > 0.05 && rate < 0.02, "{window} {rate}");
}

#[test]
fn ccid_3_follows_the_throughput_equation_under_random_loss() {
    // RFC 5348, section 3.1, t_RTO = 4 R: within 10 %, as losses within a round trip are one loss event, so that events are fewer.
    for p in [0.001f64, 0.003, 0.01] {
        let rtt_s = 0.1;
        let per_round = (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
        let expected_mbps = 1484.0 * 8e-6 / (rtt_s * per_round);
        let router = json!({"rate_mbps": 1000, "scaling": none(), "direction": "up"});
        let elements = json!([{"delay_ms": 50}, {"loss_ratio": p, "queue_packets": 1000}, router]);
        let mbps = dccp_mbps(3, elements);
        assert!((mbps / expected_mbps - 1.0).abs() < 0.1, "{p}: {mbps} of {expected_mbps}");
    }
}

#[test]
fn tcp_and_dccp_share_a_path_and_a_lost_request_is_sent_again() {
    let flows = json!([{}, {"transport": "dccp", "ccid": 2}, {"transport": "dccp", "ccid": 3, "start_s": 5}]);
    let document = json!({"id": 1, "seed": 2, "duration_s": 300, "interval_s": 20, "flows": flows,
        "elements": [{"loss_ratio": 0.01}, {"rate_mbps": 10, "queue_packets": 42, "delay_ms": 25}]});
    let outcome = simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap();
    for flow in &outcome.flows {
        assert!(flow.acked_packets > 10_000 && flow.recoveries > 50, "{flow:?}");
        assert!(flow.sent_packets > flow.acked_packets, "{flow:?}");
    }
    let elements = json!([{"loss_ratio": 0.5}, {"rate_mbps": 10, "delay_ms": 5}]);
    let lossy = run(elements, json!({"transport": "dccp"}), 3).flows[0];
    assert!(lossy.acked_packets > 100 && lossy.timeouts > 0, "{lossy:?}");
}

#[test]
fn each_flow_crosses_its_own_access_before_and_after_what_all_share() {
    let access: Vec<_> = [5, 20, 45].map(|delay_ms| json!({"rate_mbps": 100, "delay_ms": delay_ms})).into();
    let alone = |index: usize| {
        let mut elements = vec![access[index].clone()];
        elements.push(json!({"rate_mbps": 10, "queue_packets": 42, "delay_ms": 5}));
        let document = json!({"id": 1, "seed": 1, "duration_s": 60, "interval_s": 20, "flows": [{}], "elements": elements});
        simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap()
    };
    let shared = |access: &[Value], flows: usize| {
        let flows = vec![json!({}); flows];
        let elements = json!([{"rate_mbps": 10, "queue_packets": 42, "delay_ms": 5}]);
        let document = json!({"id": 1, "seed": 1, "duration_s": 60, "interval_s": 20, "flows": flows, "access": access,
            "elements": elements});
        simulate(&serde_json::from_value::<Asked>(document).unwrap())
    };
    // Of one flow it does not matter whose the first element is.
    for index in 0..3 {
        assert_eq!(shared(&access[index..=index], 1).unwrap(), alone(index));
    }
    // Of several, the one with the shortest round trip has most.
    let outcome = shared(&access, 3).unwrap();
    let acked: Vec<_> = outcome.flows.iter().map(|flow| flow.acked_packets).collect();
    assert!(acked[0] > acked[1].max(acked[2]) && acked[1].min(acked[2]) > 1000, "{acked:?}");
    let mbps = acked.iter().sum::<u64>() as f64 * 12e3 / 60e6;
    assert!(mbps > 9.0 && mbps < 10.0, "{mbps}");
    let error = shared(&access, 2).unwrap_err().to_string();
    assert_eq!(error, "access has an element for each flow: 2, not 3");
    let error = shared(&[json!({"delay_ms": -1})], 1).unwrap_err().to_string();
    assert!(error.starts_with("access[0]: delay_ms"), "{error}");
}

#[test]
fn a_flow_has_the_fields_of_its_transport_alone() {
    for (flow, part) in [
        (json!({"transport": "dccp", "sack": true}), "unknown field `sack`"),
        (json!({"ccid": 2}), "unknown field `ccid`"),
        (json!({"transport": "udp"}), "transport of a flow must be tcp or dccp"),
    ] {
        let document =
            json!({"id": 1, "seed": 1, "duration_s": 1, "interval_s": 1, "flows": [flow], "elements": []});
        let error = serde_json::from_value::<Asked>(document).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for (field, value, part) in
        [("ccid", 4, "flows[0]: ccid"), ("payload_bytes", 1441, "payload_bytes"), ("ip_version", 5, "4 or 6")]
    {
        let mut flow = json!({"transport": "dccp"});
        flow[field] = json!(value);
        let document = json!({"id": 1, "seed": 1, "duration_s": 1, "interval_s": 1, "flows": [flow],
            "elements": [{"rate_mbps": 10}]});
        let error = simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn headroom_takes_less_throughput_than_practra_where_it_saves_as_much() {
    // Bursts and a varying bottleneck; practRA's delay limit is shortened until it saves no more than headroom does.
    let mean = |scaling: fn(f64) -> Value| {
        let runs = (0..10u32).map(|index| {
            let mut elements = path(100.0, 42, scaling(f64::from(index) + 0.5));
            elements[1]["bursts"] = json!({"mean_burst_ms": 100, "cycle_ms": 1000, "rate_mbps": 5});
            let varying = json!({"min_rate_mbps": 1, "max_rate_mbps": 10, "mean_interval_ms": 50});
            elements[2] = json!({"varying": varying, "queue_packets": 42, "delay_ms": 25, "direction": "up"});
            figures(&run(elements, json!({}), u64::from(index) + 1))
        });
        runs.fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / 10.0, sum.1 + one.1 / 10.0))
    };
    let practra = mean(
        |phase_ms| json!({"kind": "practra", "interval_ms": 10, "phase_ms": phase_ms, "delay_limit_ms": 9}),
    );
    let headroom = mean(|phase_ms| json!({"kind": "headroom", "interval_ms": 10, "phase_ms": phase_ms}));
    assert!(headroom.1 <= practra.1 && headroom.0 > practra.0, "{headroom:?} {practra:?}");
}

#[test]
fn a_seed_repeats_and_another_has_other_phases() {
    let scaled =
        |seed| run(path(100.0, 42, json!({"kind": "practra", "interval_ms": 1000})), json!({}), seed);
    assert_eq!(scaled(1), scaled(1));
    assert_ne!(scaled(1), scaled(2));
}

#[test]
fn everything_sent_is_acknowledged_dropped_or_on_its_way() {
    let outcome = run(path(50.0, 21, none()), json!({}), 3);
    let flow = outcome.flows[0];
    let router = |count: fn(&netjoule_link_model::path::told::RouterStep) -> u64| -> u64 {
        outcome.steps.iter().map(|step| count(&step.routers[0])).sum()
    };
    let dropped = router(|step| step.flows_dropped_packets);
    assert!(flow.sent_packets - router(|step| step.flows_arrived_packets) < 200);
    assert!(dropped > 0 && flow.resent_packets >= dropped, "{flow:?} {dropped}");
    assert!(flow.sent_packets - flow.resent_packets - flow.acked_packets < 200, "{flow:?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let scaling = json!({"kind": "practra", "interval_ms": 10, "delay_limit_ms": 55.5});
    let document = json!({"id": 1, "seed": 1, "duration_s": 1, "interval_s": 1, "flows": [{}], "elements": path(100.0, 42, scaling)});
    let error = simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("elements[1]: the rate could never rise from 9 to 10 Mb/s"), "{error}");
    for (elements, interval_s, part) in [
        (json!([{"delay_ms": 10}]), 1.0, "no element has a rate"),
        (json!([{"rate_mbps": 10}]), 0.7, "a whole number of steps"),
    ] {
        let document = json!({"id": 1, "seed": 1, "duration_s": 1, "interval_s": interval_s, "flows": [{}], "elements": elements});
        let error = simulate(&serde_json::from_value::<Asked>(document).unwrap()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
