// SPDX-License-Identifier: Apache-2.0
//! What holds for every link and every sequence of packets.

mod rig;

use netjoule_link_model::mcs::{Phy, Standard};
use netjoule_link_model::path::serialiser::QueueLimit;
use netjoule_link_model::path::{ElementParams, Service};
use netjoule_link_model::port::Port;
use proptest::prelude::*;
use rig::{Link, Rig};

/// One step: wait, then send this many packets of this size between two ends.
type Step = (u64, usize, usize, usize, u32);

fn phys() -> impl Strategy<Value = Phy> {
    let ht = (0u8..16, prop_oneof![Just(20u16), Just(40)], prop_oneof![Just(400u16), Just(800)])
        .prop_map(|(mcs, width, gi)| Phy::new(Standard::Ht, mcs, None, width, gi).unwrap());
    let vht = (0u8..9, 1u8..=2)
        .prop_map(|(mcs, streams)| Phy::new(Standard::Vht, mcs, Some(streams), 80, 800).unwrap());
    prop_oneof![ht, vht]
}

fn links() -> impl Strategy<Value = Link> {
    let wired = (0u64..3_000_000, prop::option::of(1.0f64..100.0), 0.0f64..0.2, 1usize..20).prop_map(
        |(delay_ns, rate_mbps, loss_ratio, queue_packets)| ElementParams {
            delay_ns,
            service: rate_mbps.map_or(Service::Unlimited, Service::Fixed),
            loss_ratio,
            queue: QueueLimit::packets(queue_packets),
            ..ElementParams::default()
        },
    );
    let radio = (1usize..=64, prop_oneof![Just(0u64), Just(8_000)], prop_oneof![Just(0u64), 1u64..200_000]);
    let queue = (1usize..100, 0u32..8, 0.0f64..0.9);
    let paths = prop::collection::vec(prop::collection::vec(wired, 0..4), 1..3);
    (1usize..4, phys(), radio, queue, paths).prop_map(|(stations, phy, radio, queue, paths)| Link {
        stations,
        phy,
        subframe_limit: radio.0,
        spacing_ns: radio.1,
        cap_gap_ns: radio.2,
        queue_packets: queue.0,
        retry_limit: queue.1,
        mpdu_error_ratio: queue.2,
        paths,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0u64..2_000_000, 0usize..5, 0usize..5, 1usize..40, 28u32..1500), 1..60)
}

fn port(index: usize, link: &Link) -> Port {
    match index % (link.stations + link.paths.len()) {
        station if station < link.stations => Port::Station(station),
        host => Port::Wired(host - link.stations),
    }
}

/// Drives a rig through steps; gives back each packet's ends, and the last moment.
fn drive(rig: &mut Rig, link: &Link, steps: &[Step]) -> (Vec<(Port, Port)>, u64) {
    let (mut ends, mut now_ns) = (Vec::new(), 0);
    for (wait_ns, from, to, count, ip_bytes) in steps {
        now_ns += wait_ns;
        rig.run_until(now_ns);
        if wait_ns % 7 == 0 {
            // Fewer elements, all of them, or none: what is inside stays inside.
            let host = *count % link.paths.len();
            let path = &link.paths[host];
            rig.model.change_path(now_ns, host, &path[..(wait_ns % 5) as usize % (path.len() + 1)]);
        }
        let (from, to) = (port(*from, link), port(*to, link));
        for _ in 0..if from == to { 0 } else { *count } {
            rig.send(now_ns, from, to, *ip_bytes);
            ends.push((from, to));
        }
    }
    (ends, now_ns)
}

fn dropped(rig: &Rig, link: &Link) -> u64 {
    let wired = (0..link.paths.len()).map(|host| rig.model.wired_drops(host));
    let wired: u64 = wired.map(|drops| drops.lost + drops.full).sum();
    let air = (0..link.stations).map(|station| rig.model.totals(station));
    air.map(|totals| totals.drops_tx + totals.drops_rx).sum::<u64>() + wired
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_packet_is_delivered_dropped_or_inside(link in links(), steps in steps(), seed in any::<u64>()) {
        let mut rig = Rig::new(&link, seed);
        let (_, now_ns) = drive(&mut rig, &link, &steps);
        prop_assert_eq!(rig.sent, rig.delivered.len() as u64 + dropped(&rig, &link) + rig.model.held() as u64);
        // Left alone long enough, nothing stays inside and nothing happens any more.
        rig.run_until(now_ns + 3_600_000_000_000);
        prop_assert_eq!(rig.model.held(), 0);
        prop_assert_eq!(rig.model.next_wake_ns(), None);
        prop_assert_eq!(rig.sent, rig.delivered.len() as u64 + dropped(&rig, &link));
    }

    #[test]
    fn packets_go_where_they_should_once_and_in_order(link in links(), steps in steps(), seed in any::<u64>()) {
        let mut rig = Rig::new(&link, seed);
        let (ends, now_ns) = drive(&mut rig, &link, &steps);
        rig.run_until(now_ns + 3_600_000_000_000);
        let mut last = std::collections::HashMap::new();
        for departure in &rig.delivered {
            let (from, to) = ends[departure.packet as usize];
            prop_assert_eq!(departure.to, to);
            let before = last.insert((format!("{from:?}"), format!("{to:?}")), departure.packet);
            prop_assert!(before.is_none_or(|before| before < departure.packet));
        }
    }

    #[test]
    fn air_time_fits_into_time(link in links(), steps in steps(), seed in any::<u64>()) {
        let mut rig = Rig::new(&link, seed);
        drive(&mut rig, &link, &steps);
        for line in &rig.lines {
            let counters = line.counters;
            prop_assert!(counters.airtime_tx_ns + counters.airtime_rx_ns <= 100_000_001);
            prop_assert!(counters.retries_tx <= counters.frames_tx && counters.ppdus_tx <= counters.frames_tx);
        }
    }
}
