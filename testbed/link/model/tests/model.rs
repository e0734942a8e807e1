// SPDX-License-Identifier: Apache-2.0
//! The model in simulated time, against computed saturation values and its own invariants.

mod rig;

use netjoule_link_model::mcs::{Phy, Standard};
use netjoule_link_model::path::ElementParams;
use netjoule_link_model::port::Port;
use netjoule_link_model::saturation::saturation;
use rig::{delayed, Link, Rig, S_NS};

fn ht(mcs: u8) -> Phy {
    Phy::new(Standard::Ht, mcs, None, 40, 800).unwrap()
}

fn vht80_780() -> Phy {
    Phy::new(Standard::Vht, 9, Some(2), 80, 800).unwrap()
}

/// Computed saturation, packets per second (three digits where the source gives kpps), and Mb/s:
/// PHY, subframe limit, spacing in ns, payload, pps, Mb/s.
type Case = (Phy, usize, u64, u32, f64, f64);

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut column = |phy: Phy, limit, spacing_ns, values: [(u32, f64, f64); 5]| {
        cases.extend(values.map(|(payload, pps, mbps)| (phy, limit, spacing_ns, payload, pps, mbps)));
    };
    column(
        ht(13),
        1,
        8_000,
        [(64, 4938., 2.5), (256, 4751., 9.7), (512, 4577., 18.7), (1024, 4193., 34.3), (1470, 3929., 46.2)],
    );
    column(
        ht(13),
        64,
        8_000,
        [
            (64, 89.6e3, 45.9),
            (256, 63.1e3, 129.),
            (512, 39.4e3, 162.),
            (1024, 22.4e3, 183.),
            (1470, 16.0e3, 188.),
        ],
    );
    column(
        ht(12),
        64,
        8_000,
        [
            (64, 89.1e3, 45.6),
            (256, 49.7e3, 102.),
            (512, 30.5e3, 125.),
            (1024, 17.1e3, 140.),
            (1470, 12.3e3, 144.),
        ],
    );
    column(
        ht(10),
        64,
        8_000,
        [
            (64, 55.1e3, 28.2),
            (256, 27.0e3, 55.2),
            (512, 16.0e3, 65.6),
            (1024, 8.7e3, 71.),
            (1470, 6.2e3, 72.7),
        ],
    );
    column(
        vht80_780(),
        64,
        8_000,
        [
            (64, 89.1e3, 45.6),
            (256, 89.1e3, 182.),
            (512, 89.1e3, 365.),
            (1024, 66.9e3, 548.),
            (1470, 48.0e3, 565.),
        ],
    );
    cases.push((vht80_780(), 64, 0, 64, 211.6e3, 108.));
    cases
}

fn assert_within(measured: f64, expected: f64, ratio: f64, what: &str) {
    assert!((measured / expected - 1.0).abs() <= ratio, "{what}: {measured} instead of {expected}");
}

#[test]
fn saturation_matches_the_computed_table() {
    for (phy, limit, spacing_ns, payload, pps, mbps) in cases() {
        let what = format!("{} Mb/s, limit {limit}, {payload} B", phy.rate_mbps());
        let link = Link { phy, subframe_limit: limit, spacing_ns, ..Link::default() };
        let closed = saturation(&link.framing(), payload, None);
        assert_within(closed.packets_per_s, pps, 0.01, &format!("closed form, {what}"));
        assert_within(closed.goodput_mbps, mbps, 0.02, &format!("closed form, {what}"));
        let measured_pps = Rig::new(&link, 1).saturate_up(payload, 4 * S_NS);
        assert_within(measured_pps, pps, 0.02, &format!("model, {what}"));
        assert_within(measured_pps * f64::from(payload) * 8e-6, mbps, 0.02, &format!("model, {what}"));
    }
}

#[test]
fn the_access_point_saturates_like_a_station() {
    let link = Link::default();
    let up = Rig::new(&link, 1).saturate(Port::Station(0), Port::Wired(0), 1470, 4 * S_NS);
    let down = Rig::new(&link, 2).saturate(Port::Wired(0), Port::Station(0), 1470, 4 * S_NS);
    assert_within(down, up, 0.01, "downlink against uplink");
}

#[test]
fn the_cap_holds_and_a_slower_load_passes_under_it() {
    let link = Link { cap_gap_ns: 83_333, ..Link::default() };
    assert_within(Rig::new(&link, 1).saturate_up(64, 2 * S_NS), 12_000., 0.01, "cap");
    let offered = Rig::new(&link, 1).offer_up(92, 11_000., 2 * S_NS);
    assert_within(offered.delivered_pps, 11_000., 0.001, "load below the cap");
    assert_eq!(offered.drops, 0);
}

#[test]
fn a_small_load_is_not_aggregated() {
    let mut rig = Rig::new(&Link::default(), 1);
    rig.offer_up(92, 1_000., S_NS);
    let totals = rig.model.totals(0);
    assert_eq!((totals.frames_tx, totals.ppdus_tx), (totals.packets_tx, totals.packets_tx));
    // 2 symbols and the preamble each, answered by an ACK each.
    assert_eq!(totals.airtime_tx_ns, totals.packets_tx * 48_000);
    assert_eq!(totals.airtime_rx_ns, totals.packets_tx * 28_000);
}

#[test]
fn aggregation_grows_with_the_load() {
    let mean_burst = |pps| {
        let mut rig = Rig::new(&Link::default(), 1);
        rig.offer_up(92, pps, S_NS);
        let totals = rig.model.totals(0);
        totals.frames_tx as f64 / totals.ppdus_tx as f64
    };
    let bursts = [1_000., 10_000., 40_000., 80_000.].map(mean_burst);
    assert!(bursts.is_sorted() && bursts[0] == 1.0 && bursts[3] > 10.0, "{bursts:?}");
}

#[test]
fn retries_follow_the_error_rate() {
    let link = Link { mpdu_error_ratio: 0.1, retry_limit: 7, ..Link::default() };
    let mut rig = Rig::new(&link, 3);
    rig.saturate_up(512, 4 * S_NS);
    let totals = rig.model.totals(0);
    // Every MPDU is sent 1 / (1 - p) times on average; nothing is given up at p^8 = 1e-8.
    assert_within(totals.retries_tx as f64 / totals.frames_tx as f64, 0.1, 0.03, "retries per frame");
    assert!(totals.frames_tx > 50_000);
}

#[test]
fn the_retry_limit_leaves_a_residual_loss() {
    let link = Link { mpdu_error_ratio: 0.5, retry_limit: 2, ..Link::default() };
    let mut rig = Rig::new(&link, 3);
    let offered = rig.offer_up(92, 2_000., 10 * S_NS);
    assert_within(offered.drops as f64 / offered.offered as f64, 0.125, 0.05, "p^3");
}

#[test]
fn a_full_queue_drops_the_tail_and_keeps_order() {
    let link = Link { queue_packets: 50, ..Link::default() };
    let mut rig = Rig::new(&link, 1);
    (0..200).for_each(|_| rig.send(0, Port::Station(0), Port::Wired(0), 1498));
    rig.run_until(S_NS);
    assert_eq!(
        rig.delivered.iter().map(|departure| departure.packet).collect::<Vec<_>>(),
        (0..50).collect::<Vec<_>>()
    );
    assert_eq!(rig.model.totals(0).drops_tx, 150);
}

#[test]
fn losses_never_reorder() {
    let link = Link { mpdu_error_ratio: 0.3, ..Link::default() };
    let mut rig = Rig::new(&link, 5);
    rig.saturate_up(512, S_NS);
    assert!(rig.delivered.is_sorted_by_key(|departure| departure.packet));
    assert!(rig.delivered.is_sorted_by_key(|departure| departure.at_ns));
}

#[test]
fn a_seed_repeats_to_the_nanosecond() {
    let trace = |seed| {
        let link = Link { stations: 3, mpdu_error_ratio: 0.05, ..Link::default() };
        let mut rig = Rig::new(&link, seed);
        rig.saturate_all(512, S_NS / 4);
        rig.delivered.iter().map(|departure| (departure.at_ns, departure.packet)).collect::<Vec<_>>()
    };
    assert_eq!(trace(11), trace(11));
    assert_ne!(trace(11), trace(12));
}

/// Bianchi's fixed point for saturated stations with window doubling to 1023.
fn bianchi_collision_probability(stations: i32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p: f64 = (low + high) / 2.0;
        let doublings: f64 = (0..6).map(|i| (2.0 * p).powi(i)).sum();
        let tau = 2.0 / (1.0 + 16.0 + p * 16.0 * doublings);
        if 1.0 - (1.0 - tau).powi(stations - 1) > p {
            low = p;
        } else {
            high = p;
        }
    }
    low
}

#[test]
fn collisions_of_saturated_stations_follow_bianchi() {
    for stations in [2, 5, 10] {
        let link = Link { stations, subframe_limit: 1, retry_limit: 50, ..Link::default() };
        let mut rig = Rig::new(&link, 9);
        rig.saturate_all(1470, 20 * S_NS);
        let (sent, retries) = (0..stations)
            .map(|i| rig.model.totals(i))
            .fold((0, 0), |sum, totals| (sum.0 + totals.frames_tx, sum.1 + totals.retries_tx));
        let expected = bianchi_collision_probability(stations as i32);
        assert_within(retries as f64 / sent as f64, expected, 0.08, &format!("{stations} stations"));
    }
}

#[test]
fn saturated_stations_share_fairly() {
    let mut rig = Rig::new(&Link { stations: 4, ..Link::default() }, 1);
    rig.saturate_all(1470, 10 * S_NS);
    let shares: Vec<f64> = (0..4).map(|i| rig.model.totals(i).packets_tx as f64).collect();
    let mean = shares.iter().sum::<f64>() / 4.0;
    assert!(shares.iter().all(|share| (share / mean - 1.0).abs() < 0.1), "{shares:?}");
}

#[test]
fn two_saturated_stations_have_the_channel_of_one() {
    let alone_pps = Rig::new(&Link::default(), 1).saturate_up(1470, 4 * S_NS);
    let mut rig = Rig::new(&Link { stations: 2, ..Link::default() }, 1);
    rig.saturate_all(1470, 4 * S_NS);
    let both_pps =
        [0, 1].map(|station| rig.model.totals(station).packets_tx as f64 / 4.0).iter().sum::<f64>();
    // Two back-offs at once end sooner than one, and some opportunities collide.
    assert!(both_pps > 0.85 * alone_pps && both_pps < 1.02 * alone_pps, "{both_pps} of {alone_pps}");
}

#[test]
fn acknowledgements_of_a_stream_cost_air_time() {
    // One small packet down for every two large ones up: contends for its own opportunities.
    let link = Link { queue_packets: 256, ..Link::default() };
    let mut alone = Rig::new(&link, 1);
    let alone_pps = alone.saturate_up(1448, 4 * S_NS);
    let mut stream = Rig::new(&link, 1);
    let stream_pps = stream.stream_up(1448, 128, 4 * S_NS);
    let totals = stream.model.totals(0);
    assert!(stream_pps < 0.99 * alone_pps && stream_pps > 0.7 * alone_pps, "{stream_pps} of {alone_pps}");
    assert_within(totals.packets_rx as f64, totals.packets_tx as f64 / 2.0, 0.01, "acknowledgements");
    assert!(stream.model.collisions() > 0 && totals.airtime_rx_ns > 0 && totals.drops_tx == 0);
}

#[test]
fn air_time_never_exceeds_time_and_intervals_add_up() {
    let mut rig = Rig::new(&Link { stations: 2, mpdu_error_ratio: 0.1, ..Link::default() }, 4);
    rig.saturate_all(512, 2 * S_NS);
    assert_eq!(rig.lines.len(), 2 * 20);
    for line in &rig.lines {
        let counters = line.counters;
        assert!(counters.airtime_tx_ns + counters.airtime_rx_ns <= 100_000_001, "{line:?}");
        assert_eq!(line.t_end_ns - line.t_start_ns, 100_000_000);
    }
    for (index, name) in ["s0", "s1"].iter().enumerate() {
        let mine = || rig.lines.iter().filter(|line| line.station == *name);
        let totals = rig.model.totals(index);
        assert!(mine().zip(mine().skip(1)).all(|(a, b)| a.t_end_ns == b.t_start_ns));
        assert!(mine().map(|line| line.counters.frames_tx).sum::<u64>() <= totals.frames_tx);
        let closed_ns: u64 = mine().map(|line| line.counters.airtime_tx_ns).sum();
        assert!(totals.airtime_tx_ns.abs_diff(closed_ns) < 5_000_000);
    }
}

#[test]
fn stations_reach_each_other_through_the_access_point() {
    let mut rig = Rig::new(&Link { stations: 2, ..Link::default() }, 1);
    rig.send(0, Port::Station(0), Port::Station(1), 100);
    rig.run_until(S_NS);
    assert_eq!(rig.delivered.len(), 1);
    assert_eq!(rig.delivered[0].to, Port::Station(1));
    assert_eq!((rig.model.totals(0).frames_tx, rig.model.totals(1).frames_rx), (1, 1));
}

#[test]
fn the_wired_path_delays_both_directions() {
    // Two elements are one with the delay of both.
    let path = vec![delayed(2), delayed(3)];
    let mut rig = Rig::new(&Link { paths: vec![path], ..Link::default() }, 1);
    rig.send(0, Port::Station(0), Port::Wired(0), 92);
    rig.send(0, Port::Wired(0), Port::Station(0), 92);
    rig.run_until(S_NS);
    // Up: AIFS, PPDU, then the delay. Down: the delay, the next slot boundary, PPDU.
    let at_ns =
        |to| rig.delivered.iter().find(|departure| departure.to == to).map(|departure| departure.at_ns);
    assert_eq!(at_ns(Port::Wired(0)), Some(43_000 + 48_000 + 5_000_000));
    let down_ns = at_ns(Port::Station(0)).unwrap();
    assert!((5_048_000..5_048_000 + 9_000).contains(&down_ns), "{down_ns}");
}

#[test]
fn a_path_that_changes_takes_what_is_on_its_way_along_in_order() {
    let slow = delayed(50);
    let mut rig = Rig::new(&Link { paths: vec![vec![slow.clone(), slow]], ..Link::default() }, 1);
    (0..3).for_each(|packet| rig.send(packet * 30_000_000, Port::Wired(0), Port::Station(0), 92));
    rig.run_until(60_000_000);
    assert_eq!((rig.delivered.len(), rig.model.held()), (0, 3));
    rig.model.change_path(60_000_000, 0, &[delayed(5)]);
    rig.run_until(70_000_000);
    assert_eq!(rig.delivered.iter().map(|departure| departure.packet).collect::<Vec<_>>(), [0, 1, 2]);
    rig.model.change_path(70_000_000, 0, &[]);
    rig.send(70_000_000, Port::Wired(0), Port::Station(0), 92);
    rig.run_until(71_000_000);
    assert_eq!((rig.delivered.len(), rig.model.held()), (4, 0), "no element is in the way");
}

#[test]
fn each_host_has_a_path_of_its_own_and_two_hosts_are_as_far_apart_as_both_paths() {
    let far = delayed(20);
    let near = delayed(1);
    let mut rig = Rig::new(&Link { paths: vec![vec![near], vec![far]], ..Link::default() }, 1);
    rig.send(0, Port::Station(0), Port::Wired(0), 92);
    rig.send(0, Port::Station(0), Port::Wired(1), 92);
    rig.send(0, Port::Wired(1), Port::Wired(0), 92);
    rig.run_until(S_NS);
    let arrived: Vec<_> =
        rig.delivered.iter().map(|departure| (departure.packet, departure.at_ns / 1_000_000)).collect();
    assert_eq!(arrived, [(0, 1), (1, 20), (2, 21)]);
    rig.model.change_path(S_NS, 1, &[ElementParams { loss_ratio: 1.0, ..ElementParams::default() }]);
    rig.send(S_NS, Port::Wired(1), Port::Wired(0), 92);
    rig.send(S_NS, Port::Station(0), Port::Wired(0), 92);
    rig.run_until(2 * S_NS);
    assert_eq!((rig.model.wired_drops(0).lost, rig.model.wired_drops(1).lost), (0, 1));
    assert_eq!(rig.delivered.len(), 4);
}
