// SPDX-License-Identifier: Apache-2.0
//! What holds for every radio and every trace.

use netjoule_link_model::radio_states::lte::LteParams;
use netjoule_link_model::radio_states::packet::{Direction, Packet};
use netjoule_link_model::radio_states::params::MachineParams;
use netjoule_link_model::radio_states::presets::{find, NAMES};
use netjoule_link_model::radio_states::quantity::{Seconds, Watts};
use netjoule_link_model::radio_states::replay::{replay, Arrival, Replay};
use netjoule_link_model::radio_states::umts::{DchTail, Drain, Pch, Promotion, Rise, UmtsParams};
use netjoule_link_model::radio_states::wifi::{Beacons, WifiParams};
use netjoule_link_model::radio_states::Machine;
use proptest::prelude::*;

fn s(value: f64) -> Seconds {
    Seconds::try_from(value).unwrap()
}

fn w(value: f64) -> Watts {
    Watts::try_from(value).unwrap()
}

/// Times that are often equal, and often 0.
fn times() -> impl Strategy<Value = Seconds> {
    prop_oneof![Just(0.0), (1u32..40).prop_map(|tens| f64::from(tens) * 0.01), 0.0f64..2.0].prop_map(s)
}

fn powers() -> impl Strategy<Value = Watts> {
    prop_oneof![Just(0.0), 0.0f64..2.0].prop_map(w)
}

fn wifi() -> impl Strategy<Value = MachineParams> {
    let beacons =
        prop::option::of((0.001f64..0.3, 1u32..4).prop_map(|(interval_s, listen_interval)| Beacons {
            interval_s: s(interval_s),
            listen_interval,
        }));
    ((powers(), powers(), powers()), times(), times(), 0u32..10_000, beacons).prop_map(
        |((psm_w, cam_w, camh_w), tail_s, window_s, window_bytes, beacons)| {
            MachineParams::Wifi(WifiParams { psm_w, cam_w, camh_w, tail_s, window_s, window_bytes, beacons })
        },
    )
}

fn lte() -> impl Strategy<Value = MachineParams> {
    let cycle = || (0.01f64..0.3).prop_map(s);
    (
        (powers(), powers(), powers(), powers(), powers(), powers()),
        (0.1f64..2.0, times(), times(), times(), times()),
        (cycle(), cycle(), 0.0f64..0.01),
        (0.0f64..1.0, 0.0f64..1.0),
    )
        .prop_map(|(powers, times, cycles, per_mbit)| {
            MachineParams::Lte(LteParams {
                idle_w: powers.0,
                paging_cycle_s: s(times.0),
                paging_on_s: s(times.0 / 3.0),
                paging_w: powers.1,
                promotion_s: times.1,
                promotion_w: powers.2,
                base_w: powers.3,
                up_j_per_mbit: per_mbit.0,
                down_j_per_mbit: per_mbit.1,
                inactivity_s: times.2,
                short_drx_s: times.3,
                short_cycle_s: cycles.0,
                long_drx_s: times.4,
                long_cycle_s: cycles.1,
                on_s: s(cycles.2),
                on_w: powers.4,
                drx_w: powers.5,
            })
        })
}

fn promotions() -> impl Strategy<Value = Promotion> {
    (times(), powers()).prop_map(|(duration_s, power_w)| Promotion { duration_s, power_w })
}

fn rises() -> impl Strategy<Value = Rise> {
    prop_oneof![
        promotions().prop_map(Rise::Fach),
        promotions().prop_map(Rise::Dch),
        (0u32..1_500, promotions(), promotions()).prop_map(|(threshold_bytes, fach, dch)| Rise::BySize {
            threshold_bytes,
            fach,
            dch
        }),
    ]
}

fn umts() -> impl Strategy<Value = MachineParams> {
    let dch_tail =
        prop::option::of((times(), powers()).prop_map(|(active_s, power_w)| DchTail { active_s, power_w }));
    let pch = prop::option::of(
        (powers(), times(), prop::option::of(rises())).prop_map(|(power_w, tail_s, rise)| Pch {
            power_w,
            tail_s,
            rise,
        }),
    );
    let drain = (0.0f64..300.0, 0.0f64..2.0, 0.0f64..0.002)
        .prop_map(|(fixed_ms, ms_per_byte, ms_per_byte2)| Drain { fixed_ms, ms_per_byte, ms_per_byte2 });
    (
        (powers(), powers(), powers()),
        (dch_tail, times(), times(), pch),
        (rises(), promotions()),
        (0u32..1_000, 0u32..1_000, drain),
    )
        .prop_map(|(powers, tails, ups, queues)| {
            MachineParams::Umts(UmtsParams {
                idle_w: powers.0,
                fach_w: powers.1,
                dch_w: powers.2,
                dch_tail: tails.0,
                dch_tail_s: tails.1,
                fach_tail_s: tails.2,
                pch: tails.3,
                idle_rise: ups.0,
                fach_to_dch: ups.1,
                up_threshold_bytes: queues.0,
                down_threshold_bytes: queues.1,
                drain: queues.2,
            })
        })
}

fn machines() -> impl Strategy<Value = MachineParams> {
    let presets = prop::sample::select(NAMES.to_vec()).prop_map(|name| find(name).unwrap().machine);
    prop_oneof![wifi(), lte(), umts(), presets]
}

/// Packets in order of time: often at once, close to each other, or after all tails.
fn traces() -> impl Strategy<Value = Vec<Arrival>> {
    let wait_ns = prop_oneof![
        Just(0u64),
        1u64..5_000_000,
        (0u64..60).prop_map(|tens| tens * 10_000_000),
        0u64..20_000_000_000
    ];
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    prop::collection::vec((wait_ns, direction, 1u32..1_600), 0..40).prop_map(|steps| {
        let mut at_ns = 0;
        let arrival = |(wait_ns, direction, ip_bytes): (u64, Direction, u32)| {
            at_ns += wait_ns;
            Arrival { at_ns, packet: Packet { direction, ip_bytes } }
        };
        steps.into_iter().map(arrival).collect()
    })
}

fn passes(trace: &[Arrival], played: &Replay) -> Vec<u64> {
    trace.iter().zip(&played.delays_ns).map(|(arrival, delay_ns)| arrival.at_ns + delay_ns).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn states_add_up_to_the_whole_time_and_to_all_energy(machine in machines(), trace in traces()) {
        let played = replay(&machine, &trace, None).unwrap();
        let mut at_ns = 0;
        for interval in &played.intervals {
            prop_assert_eq!(interval.start_ns, at_ns);
            prop_assert!(interval.end_ns > at_ns);
            at_ns = interval.end_ns;
        }
        prop_assert_eq!(at_ns, played.end_ns);
        prop_assert_eq!(played.spent.values().map(|spent| spent.time_ns).sum::<u64>(), played.end_ns);
        let sum_j: f64 = played.spent.values().map(|spent| spent.energy_j).sum();
        prop_assert!((sum_j - played.energy_j).abs() <= 1e-9 * (1.0 + sum_j));
        for (state, spent) in &played.spent {
            let in_state = played.intervals.iter().filter(|interval| interval.state == *state);
            prop_assert_eq!(in_state.map(|each| each.end_ns - each.start_ns).sum::<u64>(), spent.time_ns);
            prop_assert!(spent.energy_j >= 0.0);
        }
    }

    #[test]
    fn every_packet_passes_in_order_and_not_before_it_came(machine in machines(), trace in traces()) {
        let played = replay(&machine, &trace, None).unwrap();
        prop_assert_eq!(played.delays_ns.len(), trace.len());
        let passes = passes(&trace, &played);
        prop_assert!(passes.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert_eq!(played.tail_j.is_some(), !trace.is_empty());
        prop_assert!(played.tail_j.is_none_or(|tail_j| tail_j >= -1e-9));
    }

    #[test]
    fn wifi_is_at_every_moment_in_the_state_of_its_definition(machine in wifi(), trace in traces()) {
        let MachineParams::Wifi(params) = &machine else { unreachable!("a strategy for Wi-Fi") };
        let played = replay(&machine, &trace, None).unwrap();
        let passes = passes(&trace, &played);
        let within = |at_ns: u64, length: Seconds| {
            let of_late = passes.iter().zip(&trace).filter(move |(pass_ns, _)| {
                **pass_ns <= at_ns && at_ns < **pass_ns + length.ns()
            });
            of_late.map(|(_, arrival)| u64::from(arrival.packet.ip_bytes)).sum::<u64>()
        };
        for interval in &played.intervals {
            for at_ns in [interval.start_ns, interval.start_ns.midpoint(interval.end_ns), interval.end_ns - 1] {
                let state = if within(at_ns, params.window_s) > params.window_bytes.into() {
                    "CAMH"
                } else if within(at_ns, params.tail_s) > 0 {
                    "CAM"
                } else {
                    "PSM"
                };
                prop_assert_eq!(interval.state, state, "at {} ns", at_ns);
            }
        }
    }

    #[test]
    fn what_is_said_of_a_packet_when_it_comes_holds_unless_an_up_packet_comes_in_between(
        machine in machines(),
        trace in traces(),
    ) {
        let passes = passes(&trace, &replay(&machine, &trace, None).unwrap());
        let mut live = Machine::new(&machine, 0).unwrap();
        for (index, Arrival { at_ns, packet }) in trace.iter().enumerate() {
            let said_ns = live.arrive(*at_ns, packet.direction, packet.ip_bytes);
            let mut later = trace[index + 1..].iter().take_while(|later| later.at_ns <= said_ns);
            if later.any(|later| later.packet.direction == Direction::Up) {
                prop_assert!(passes[index] <= said_ns);
            } else {
                prop_assert_eq!(passes[index], said_ns);
            }
        }
    }

    #[test]
    fn when_it_is_asked_changes_nothing(
        machine in machines(),
        trace in traces(),
        pauses in prop::collection::vec(10_000_000u64..5_000_000_000, 1..50),
    ) {
        let end_ns = trace.last().map_or(0, |last| last.at_ns) + 30_000_000_000;
        let played = replay(&machine, &trace, Some(end_ns)).unwrap();
        let mut live = Machine::new(&machine, 0).unwrap();
        let (mut now_ns, mut asked, mut before_j) = (0, 0, 0.0);
        for (at_ns, packet) in trace.iter().map(|each| (each.at_ns, Some(each.packet))).chain([(end_ns, None)]) {
            while let Some(next_ns) = Some(now_ns + pauses[asked % pauses.len()]).filter(|next_ns| *next_ns < at_ns) {
                live.advance(next_ns);
                let energy_j = live.energy_j();
                prop_assert!(energy_j >= before_j - 1e-9);
                (now_ns, asked, before_j) = (next_ns, asked + 1, energy_j);
            }
            now_ns = at_ns;
            if let Some(packet) = packet {
                live.arrive(at_ns, packet.direction, packet.ip_bytes);
            }
        }
        live.advance(end_ns);
        let passed: Vec<_> = std::iter::from_fn(|| live.poll()).collect();
        prop_assert_eq!(passed, passes(&trace, &played));
        prop_assert_eq!(live.spent(), played.spent);
        prop_assert_eq!(live.energy_j(), played.energy_j);
        prop_assert_eq!(live.state(), played.intervals.last().unwrap().state);
    }

    #[test]
    fn traces_between_which_the_radio_rests_add_up(
        machine in machines(),
        first in traces(),
        second in traces(),
    ) {
        let mut pause_ns = replay(&machine, &first, None).unwrap().end_ns;
        if let MachineParams::Wifi(wifi) = &machine {
            // The window knows what passed of late, and beacons are those of one clock.
            let period_ns = wifi.beacons.map_or(1, |each| each.interval_s.ns() * u64::from(each.listen_interval));
            pause_ns = (pause_ns + wifi.window_s.ns()).next_multiple_of(period_ns);
        }
        let later = second.iter().map(|each| Arrival { at_ns: each.at_ns + pause_ns, ..*each });
        let both: Vec<_> = first.iter().copied().chain(later).collect();
        let first_j = replay(&machine, &first, Some(pause_ns)).unwrap().energy_j;
        let second = replay(&machine, &second, None).unwrap();
        let both = replay(&machine, &both, Some(pause_ns + second.end_ns)).unwrap();
        prop_assert!((first_j + second.energy_j - both.energy_j).abs() <= 1e-9 * (1.0 + both.energy_j));
        prop_assert!(both.delays_ns.ends_with(&second.delays_ns));
    }
}
