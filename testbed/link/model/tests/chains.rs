// SPDX-License-Identifier: Apache-2.0
//! What holds for every chain of elements and every sequence of packets.

use netjoule_link_model::path::bursts::BurstParams;
use netjoule_link_model::path::chain::{Chain, Traffic};
use netjoule_link_model::path::serialiser::QueueLimit;
use netjoule_link_model::path::sleeper::SleepParams;
use netjoule_link_model::path::{Acts, ElementParams, Service};
use netjoule_link_model::scaling::fixed::FixedParams;
use netjoule_link_model::scaling::practra::PractRaParams;
use netjoule_link_model::scaling::varying::VaryingParams;
use netjoule_link_model::scaling::Record;
use netjoule_link_model::tally::Tally;
use proptest::prelude::*;

/// Wait for so long, then so many packets of this size.
type Step = (u64, usize, u32);

fn services() -> impl Strategy<Value = Service> {
    let varying = (0.5f64..5.0, 0.0f64..20.0, 1_000_000u64..100_000_000).prop_map(|(low, more, mean)| {
        Service::Varying(VaryingParams {
            min_rate_mbps: low,
            max_rate_mbps: low + more,
            mean_interval_ns: mean,
        })
    });
    let shares = (prop::option::of(0.01f64..1.0), prop::option::of(0.5f64..1.0));
    let practra = (2usize..10, 0.1f64..1.0, 2_000_000u64..50_000_000, 0u64..1_500_000, shares).prop_map(
        |(rates, weight, interval_ns, stall_ns, (phase, utilisation))| {
            Service::PractRa(PractRaParams {
                rates_mbps: (1..=rates).map(|rate| rate as f64).collect(),
                weight,
                window_ns: interval_ns,
                interval_ns,
                stall_ns,
                delay_limit_ns: 2_000_000 + interval_ns,
                phase_ns: phase.map(|phase| (interval_ns as f64 * phase) as u64),
                utilisation,
            })
        },
    );
    let fixed = (0.5f64..20.0).prop_map(Service::Fixed);
    let scaled =
        (0.5f64..5.0).prop_map(|rate_mbps| Service::Scaled(FixedParams { rate_mbps, max_rate_mbps: 5.0 }));
    let sleep = (0u64..300_000, 0u64..50_000, 1usize..12, 0u64..2_000_000).prop_map(
        |(sleep_ns, wake_ns, collect_packets, collect_ns)| {
            Service::Sleep(SleepParams { rate_mbps: 10.0, sleep_ns, wake_ns, collect_packets, collect_ns })
        },
    );
    prop_oneof![Just(Service::Unlimited), fixed, scaled, varying, practra, sleep]
}

fn elements() -> impl Strategy<Value = ElementParams> {
    let queue = prop_oneof![
        (1usize..30).prop_map(QueueLimit::packets),
        (1usize..30, 1_500u64..60_000).prop_map(|(packets, bytes)| QueueLimit { packets, bytes })
    ];
    let bursts = (1_000_000u64..200_000_000, 0.5f64..100.0).prop_map(|(mean_burst_ns, rate_mbps)| {
        BurstParams { mean_burst_ns, cycle_ns: 100_000_000, rate_mbps, ip_bytes: 1500 }
    });
    let delay_ns = prop_oneof![Just(0u64), 1u64..30_000_000];
    let loss_ratio = prop_oneof![Just(0.0), 0.0f64..0.3];
    (loss_ratio, prop::option::weighted(0.2, bursts), queue, services(), delay_ns).prop_map(
        |(loss_ratio, bursts, queue, service, delay_ns)| ElementParams {
            loss_ratio,
            bursts,
            queue,
            service,
            delay_ns,
            acts: Acts::Both,
        },
    )
}

fn chain(params: &[ElementParams], seed: u64, start_ns: u64) -> Chain<u64> {
    let each = params.iter().zip(0u64..);
    Chain::new(each.flat_map(|(params, index)| params.elements(seed, index << 16, start_ns)).collect())
}

/// What came of it: when each packet was through, the traffic of flows and of the path, and the records.
type Course = (Vec<(u64, u64)>, Traffic, Traffic, Tally, Vec<Record>);

/// Drives a chain as its user does; asserts that time never goes back and that nothing happens before its time.
fn drive(params: &[ElementParams], steps: &[Step], seed: u64) -> Course {
    let mut chain = chain(params, seed, 0);
    let (mut through, mut now_ns, mut packet) = (Vec::new(), 0, 0);
    let least_ns: u64 = params.iter().map(|element| element.delay_ns).sum();
    let mut sent_ns = Vec::new();
    for (wait_ns, count, ip_bytes) in steps {
        let until_ns = now_ns + wait_ns;
        while let Some(at_ns) = chain.next_event_ns().filter(|at_ns| *at_ns <= until_ns) {
            assert!(at_ns >= now_ns, "an event of the past");
            now_ns = at_ns;
            chain.advance(now_ns);
            assert!(chain.next_event_ns().is_none_or(|next_ns| next_ns > now_ns), "what was due is done");
        }
        now_ns = until_ns;
        for _ in 0..*count {
            chain.enqueue(now_ns, packet, *ip_bytes);
            sent_ns.push(now_ns);
            packet += 1;
        }
        while let Some((at_ns, packet)) = chain.poll() {
            assert!(at_ns <= now_ns && at_ns >= sent_ns[packet as usize] + least_ns);
            through.push((at_ns, packet));
        }
    }
    let records = chain.records(now_ns);
    (through, chain.flows(), chain.own(), chain.held(), records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_is_lost_or_made_and_a_seed_repeats(
        params in prop::collection::vec(elements(), 0..5),
        steps in prop::collection::vec((0u64..20_000_000, 0usize..20, 40u32..1500), 1..60),
        seed in any::<u64>(),
    ) {
        let (through, flows, own, held, records) = drive(&params, &steps, seed);
        let sum = |traffic: Traffic| traffic.left.plus(traffic.lost).plus(traffic.full);
        prop_assert_eq!(flows.entered.plus(own.entered), sum(flows).plus(sum(own)).plus(held));
        prop_assert_eq!(flows.left.packets, through.len() as u64);
        prop_assert!(through.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        for record in &records {
            // The mean of cubes is at least the cube of the mean, and at most the mean.
            let linear = record.mean_rate_mbps / record.max_rate_mbps;
            prop_assert!(linear.powi(3) <= record.mean_cubic + 1e-9 && record.mean_cubic <= linear + 1e-9);
            prop_assert!(record.dropped.packets <= record.arrived.packets);
        }
        prop_assert_eq!(drive(&params, &steps, seed), (through, flows, own, held, records));
    }

    #[test]
    fn a_change_takes_every_packet_along(
        before in prop::collection::vec(elements(), 0..4),
        after in prop::collection::vec(elements(), 0..4),
        count in 1u64..40,
        seed in any::<u64>(),
    ) {
        let mut chain = chain(&before, seed, 0);
        (0..count).for_each(|packet| chain.enqueue(packet * 1_000_000, packet, 1000));
        let now_ns = count * 1_000_000;
        chain.change(now_ns, after.iter().zip(100u64..).flat_map(|(params, index)| {
            params.elements(seed, index << 16, now_ns)
        }).collect());
        chain.advance(now_ns + 60_000_000_000);
        let through: Vec<_> = std::iter::from_fn(|| chain.poll()).collect();
        prop_assert!(through.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        let flows = chain.flows();
        prop_assert_eq!(flows.left.packets + flows.lost.packets + flows.full.packets, count);
    }
}
