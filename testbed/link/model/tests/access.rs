// SPDX-License-Identifier: Apache-2.0
//! A station behind an access network: the link keeps what the radio alone would do.

mod rig;

use std::collections::BTreeMap;

use netjoule_link_model::access::AccessConfig;
use netjoule_link_model::port::Port;
use netjoule_link_model::radio_states::packet::{Direction, Packet};
use netjoule_link_model::radio_states::presets::{find, NAMES};
use netjoule_link_model::radio_states::replay::{replay, Arrival};
use netjoule_link_model::rng::Rng;
use rig::{Link, Rig, S_NS};

const CLIENT: Port = Port::Station(0);
const SERVER: Port = Port::Wired(0);
const MS: u64 = 1_000_000;

fn access(radio_states: &str, rate_mbps: Option<f64>) -> AccessConfig {
    AccessConfig { radio_states: radio_states.to_owned(), rate_mbps, queue_packets: 1000 }
}

fn behind(config: &AccessConfig) -> Rig {
    let link = Link { subframe_limit: 32, ..Link::default() };
    let mut rig = Rig::new(&link, 1);
    rig.model.change_access(0, 0, Some(config)).unwrap();
    rig
}

/// When each packet of a trace is delivered, by its number.
fn times(rig: &mut Rig, trace: &[(u64, Port, u32)], until_ns: u64) -> BTreeMap<u64, u64> {
    for (at_ns, from, ip_bytes) in trace {
        rig.run_until(*at_ns);
        rig.send(*at_ns, *from, if *from == CLIENT { SERVER } else { CLIENT }, *ip_bytes);
    }
    rig.run_until(until_ns);
    rig.delivered.iter().map(|departure| (departure.packet, departure.at_ns)).collect()
}

/// Time in s and energy in J of each state, all intervals together.
fn by_state(rig: &Rig) -> BTreeMap<String, (f64, f64)> {
    let mut sums = BTreeMap::new();
    for access in rig.lines.iter().map(|line| line.access.as_ref().unwrap()) {
        for (state, told) in &access.states {
            let sum: &mut (f64, f64) = sums.entry(state.clone()).or_default();
            *sum = (sum.0 + told.time_s, sum.1 + told.energy_j);
        }
    }
    sums
}

fn energy_j(rig: &Rig) -> f64 {
    rig.lines.iter().map(|line| line.access.as_ref().unwrap().energy_j).sum()
}

fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-3 * expected, "{actual} is not {expected}");
}

#[test]
fn a_promotion_holds_the_first_packet_of_an_idle_flow_and_no_other() {
    let trace = [(S_NS, CLIENT, 1500), (2 * S_NS, CLIENT, 1500), (30 * S_NS, SERVER, 1500)];
    let plain = times(&mut Rig::new(&Link::default(), 1), &trace, 50 * S_NS);
    let mut rig = behind(&access("mobisys12", None));
    let held = times(&mut rig, &trace, 50 * S_NS);
    // Back-off is drawn anew, so a packet may be some slots of 9 us earlier or later.
    let late_ms: Vec<_> = (0..3).map(|packet| (held[&packet] - plain[&packet] + MS / 2) / MS).collect();
    assert_eq!(late_ms, [260, 0, 260]);
    let lines: Vec<_> = rig.lines.iter().map(|line| line.access.as_ref().unwrap()).collect();
    let sum = |of: &dyn Fn(usize) -> u64| (0..lines.len()).map(of).sum::<u64>();
    assert_eq!((sum(&|at| lines[at].packets), sum(&|at| lines[at].held_packets)), (3, 2));
    // Asleep, promoted within 1 s to 1.26 s, in its tail, asleep again 11.4 s after the second packet.
    let state = |at_s: f64| lines[(at_s * 10.0) as usize].state.as_str();
    assert_eq!([0.5, 1.1, 1.9, 11.0, 12.2].map(state), ["idle", "promotion", "long_drx", "long_drx", "idle"]);
}

#[test]
fn a_radio_that_dozes_for_less_than_a_step_is_not_idle() {
    // Awake for 0.2 s after each packet up: asleep from 1.21 s to 1.31 s, a step's length but no whole step.
    let mut rig = behind(&access("energybox-s2", None));
    times(&mut rig, &[(S_NS + 10 * MS, CLIENT, 100), (S_NS + 310 * MS, CLIENT, 100)], 3 * S_NS);
    let states: Vec<_> = rig.lines.iter().map(|line| line.access.as_ref().unwrap().state.as_str()).collect();
    assert_eq!(states[12], "psm");
    assert!(
        states[9] == "idle" && states[10..16].iter().all(|state| *state != "idle") && states[17] == "idle"
    );
}

#[test]
fn energies_of_one_packet_are_those_of_the_closed_form() {
    // LTE: a promotion, 0.1 s of continuous reception, half of 20 ms and of 10 s of cycles; pagings before and after.
    let mut rig = behind(&access("mobisys12", None));
    times(&mut rig, &[(S_NS, CLIENT, 1250)], 20 * S_NS);
    let found = by_state(&rig);
    for (state, time_s, expected_j) in [
        ("PROMOTION", 0.26, 0.26 * 1.21),
        ("CR", 0.1, 0.1 * 1.288 + 0.01 * 0.438_39),
        ("SHORT_DRX", 0.02, 0.002 * 1.68 + 0.018 * 1.06),
        ("LONG_DRX", 10.0, 250.0 * (0.002 * 1.68 + 0.038 * 1.06)),
        ("IDLE", 20.0 - 10.38, (1.0 + 7.0) * 0.043 * 0.594),
    ] {
        assert_near(found[state].0, time_s);
        assert_near(found[state].1, expected_j);
    }
    // Wi-Fi: a packet down waits for the beacon at 1.1 s, then one tail of 0.2 s above the phone's idle.
    let mut rig = behind(&access("n9-wlan", None));
    let at_ns = times(&mut rig, &[(S_NS + 20 * MS, SERVER, 1250)], 2 * S_NS)[&0];
    assert!((1_100 * MS..1_101 * MS).contains(&at_ns), "{at_ns}");
    assert_near(energy_j(&rig), 0.2 * 0.31);
    // UMTS: straight to DCH in 2 s, 4 s there, 10 s in FACH.
    let mut rig = behind(&access("aro-i997", None));
    times(&mut rig, &[(S_NS, CLIENT, 1250)], 20 * S_NS);
    assert_near(energy_j(&rig), 2.0 * 0.65 + 4.0 * 1.3 + 10.0 * 0.3);
}

/// Bursts of both directions with pauses from 10 ms to 20 s.
fn web_like() -> Vec<(u64, Port, u32)> {
    let (mut rng, mut at_ns, mut trace) = (Rng::new(7, 7), S_NS, Vec::new());
    for burst in 0..60 {
        at_ns += (10 << (burst % 12)) * MS;
        trace.push((at_ns, CLIENT, 450));
        for _ in 0..20 {
            at_ns += 3 * MS;
            trace.push((at_ns, if rng.chance(0.2) { CLIENT } else { SERVER }, 1400));
        }
    }
    trace
}

#[test]
fn every_radio_spends_in_the_link_what_it_spends_on_the_trace_alone() {
    let trace = web_like();
    let arrivals: Vec<_> = trace
        .iter()
        .map(|(at_ns, from, ip_bytes)| {
            let direction = if *from == CLIENT { Direction::Up } else { Direction::Down };
            Arrival { at_ns: *at_ns, packet: Packet { direction, ip_bytes: *ip_bytes } }
        })
        .collect();
    let end_ns = trace.last().unwrap().0 + 60 * S_NS;
    let end_ns = end_ns - end_ns % rig::INTERVAL_NS;
    for name in NAMES {
        let mut rig = behind(&access(name, None));
        let delivered = times(&mut rig, &trace, end_ns);
        assert_eq!(delivered.len(), trace.len(), "{name}");
        let alone = replay(&find(name).unwrap().machine, &arrivals, Some(end_ns)).unwrap();
        assert_near(energy_j(&rig), alone.energy_j);
        let time_s: f64 = by_state(&rig).values().map(|(time_s, _)| time_s).sum();
        assert!((time_s - end_ns as f64 / 1e9).abs() < 1e-6, "{name}: {time_s} s");
    }
}

#[test]
fn wifi_carries_130_mbps_both_ways_and_an_old_phone_its_rate() {
    let wifi = access("energybox-s2", None);
    let pps = 131e6 / 8.0 / 1472.0;
    let up = behind(&wifi).offer_up(1500, pps, 3 * S_NS);
    assert_eq!(up.drops, 0);
    assert!(up.delivered_pps * 1472.0 * 8.0 >= 130e6, "{} packets a second up", up.delivered_pps);
    let down_pps = behind(&wifi).saturate(SERVER, CLIENT, 1472, 3 * S_NS);
    assert!(down_pps * 1472.0 * 8.0 >= 130e6, "{down_pps} packets a second down");
    let old = behind(&access("energybox-s2", Some(20.0))).offer_up(1500, pps, 3 * S_NS);
    // What waits at the end of the load, 1,000 packets, comes behind it.
    let mbps = (old.delivered_pps - 1000.0 / 3.0) * 1500.0 * 8.0 / 1e6;
    assert!((19.9..20.1).contains(&mbps), "{mbps} Mb/s");
    assert_eq!(old.offered - old.drops, (old.delivered_pps * 3.0).round() as u64);
}

#[test]
fn a_full_queue_drops_while_a_promotion_lasts_and_a_change_loses_nothing() {
    let config = AccessConfig { queue_packets: 10, ..access("mobisys12", Some(40.0)) };
    let mut rig = behind(&config);
    let burst: Vec<_> = (0..30).map(|_| (S_NS, CLIENT, 1500)).collect();
    assert_eq!(times(&mut rig, &burst, S_NS + 250 * MS).len(), 0);
    // Ten find room, the one that is being sent among them.
    assert_eq!((rig.model.held(), rig.model.totals(0).drops_tx), (10, 20));
    assert_eq!(rig.model.change_access(S_NS + 250 * MS, 0, None), Ok(()));
    rig.run_until(2 * S_NS);
    assert_eq!((rig.delivered.len(), rig.model.held()), (10, 0));
    assert!(rig.delivered.windows(2).all(|pair| pair[0].packet < pair[1].packet));
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let mut rig = behind(&access("aro-lte", None));
    for (config, words) in [
        (access("lte", None), "radio_states \"lte\" is not known; use one of energybox-s2, "),
        (access("aro-lte", Some(0.0)), "rate_mbps is 0; it must be"),
        (AccessConfig { queue_packets: 0, ..access("aro-lte", None) }, "queue_packets is 0; it must be"),
    ] {
        let message = rig.model.change_access(0, 0, Some(&config)).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}
