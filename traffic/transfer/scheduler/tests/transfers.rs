// SPDX-License-Identifier: Apache-2.0
//! Transfers over a toy path: every byte once, limits kept, decisions repeated, levels found.

mod toy;

use netjoule_scheduler::dispatch::{Action, Ended};
use netjoule_scheduler::objective::Objective;
use netjoule_scheduler::path::Path;
use netjoule_scheduler::scheduler::Scheduler;
use netjoule_scheduler::settings::{Algorithm, Settings};
use proptest::prelude::*;
use toy::{run, Toy};

const SYDNEY: Path = Path { bandwidth_bytes_per_s: 12_500_000, rtt_ns: 290_000_000, buffer_bytes: 2_097_152 };
const FRANKFURT: Path =
    Path { bandwidth_bytes_per_s: 12_500_000, rtt_ns: 115_000_000, buffer_bytes: 2_097_152 };
const CHAMELEON: Path =
    Path { bandwidth_bytes_per_s: 16_250_000, rtt_ns: 59_000_000, buffer_bytes: 2_097_152 };
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Fixed,
    Algorithm::Lowe,
    Algorithm::LoweSequential,
    Algorithm::Hat,
    Algorithm::Eht,
    Algorithm::Auto,
];

fn html(bytes: u64) -> Vec<u64> {
    vec![131_072; usize::try_from(bytes / 131_072).unwrap()]
}

/// `mixed-2` of the paper, so often that it has this many bytes.
fn mixed(bytes: u64) -> Vec<u64> {
    let once: Vec<u64> = [(1500, 114_688), (60, 2_831_155), (4, 159_383_552)]
        .iter()
        .flat_map(|(count, size)| vec![*size; *count])
        .collect();
    let whole: u64 = once.iter().sum();
    once.repeat(usize::try_from(bytes.div_ceil(whole)).unwrap())
}

fn settings(algorithm: Algorithm, path: Path) -> Settings {
    Settings {
        algorithm,
        path: Some(path),
        max_connections: 64,
        objective: Objective::Efficiency,
        ..Settings::default()
    }
}

/// Throughput / E_d of a whole transfer; bytes squared by joule seconds.
fn efficiency(toy: &Toy) -> f64 {
    let bytes = toy.bytes as f64;
    bytes * bytes / (toy.energy_j * toy.time_s())
}

fn fixed_efficiency(concurrency: u32, parallelism: u32, path: Path, sizes: &[u64]) -> f64 {
    let level = Settings { concurrency, parallelism, ..settings(Algorithm::Fixed, path) };
    efficiency(&run(&level, path, sizes))
}

fn best_fixed(path: Path, sizes: &[u64]) -> f64 {
    let levels = [1, 2, 4, 8, 16, 32, 64].into_iter().flat_map(|cc| [1, 2, 4, 8].map(|p| (cc, p)));
    levels
        .filter(|(cc, p)| cc * p <= 64)
        .map(|(cc, p)| fixed_efficiency(cc, p, path, sizes))
        .fold(0.0, f64::max)
}

#[test]
fn auto_is_within_5_percent_of_the_best_level_and_not_below_eht_on_three_paths() {
    for path in [SYDNEY, FRANKFURT, CHAMELEON] {
        for sizes in [html(2 << 30), mixed(2 << 30)] {
            let best = best_fixed(path, &sizes);
            let auto = efficiency(&run(&settings(Algorithm::Auto, path), path, &sizes));
            let eht = efficiency(&run(&settings(Algorithm::Eht, path), path, &sizes));
            assert!(auto >= 0.95 * best, "{path:?}, {} files: {}", sizes.len(), auto / best);
            assert!(auto >= eht, "{path:?}, {} files: {} of EHT", sizes.len(), auto / eht);
        }
    }
}

#[test]
fn auto_without_a_path_finds_its_level_too_and_survives_a_path_that_gets_slower() {
    let unknown = Settings { path: None, interval_ns: 2_000_000_000, ..settings(Algorithm::Auto, SYDNEY) };
    let sizes = html(4 << 30);
    let auto = efficiency(&run(&unknown, SYDNEY, &sizes));
    let best = best_fixed(SYDNEY, &sizes);
    assert!(auto >= 0.9 * best, "{}", auto / best);

    let slower = Path { bandwidth_bytes_per_s: 2_500_000, ..SYDNEY };
    let mut toy = Toy::new(&settings(Algorithm::Auto, SYDNEY), SYDNEY, &html(1 << 30));
    toy.advance_to(20.0);
    toy.path = slower;
    toy.finish();
    let whole_s = (1 << 30) as f64 / 2_500_000.0;
    assert!(toy.time_s() < 1.1 * whole_s, "{} of {whole_s} s", toy.time_s());
}

#[test]
fn one_large_file_goes_over_as_many_connections_as_pay() {
    let sizes = [1 << 30];
    let one = run(&Settings { max_connections: 1, ..settings(Algorithm::Auto, SYDNEY) }, SYDNEY, &sizes);
    let many = run(&settings(Algorithm::Auto, SYDNEY), SYDNEY, &sizes);
    assert!(many.time_s() * 2.5 < one.time_s(), "{} against {} s", many.time_s(), one.time_s());
}

#[test]
fn a_replay_takes_the_same_decisions() {
    for algorithm in ALGORITHMS {
        let toy = run(&settings(algorithm, SYDNEY), SYDNEY, &mixed(1 << 30));
        let record = toy.scheduler.records().next().unwrap().clone();
        let text = serde_json::to_string(&record).unwrap();
        let read: netjoule_scheduler::log::Record = serde_json::from_str(&text).unwrap();
        assert_eq!(read.replay(), record, "{algorithm:?}");
    }
}

#[test]
fn more_watts_at_a_level_make_eht_stay_with_another_one() {
    let toy = run(&settings(Algorithm::Eht, SYDNEY), SYDNEY, &html(8 << 30));
    let record = toy.scheduler.records().next().unwrap().clone();
    let stays = record.decisions.iter().position(|decision| decision.why.contains("were the best")).unwrap();
    let chosen = record.decisions[stays].level.connections();
    let mut changed = record.clone();
    let mut extra_uj = 0;
    let mut before_uj = 0;
    for decision in &mut changed.decisions {
        let now_uj = decision.seen.energy_uj.unwrap();
        // While the chosen level and its neighbours above were probed, the meter showed three times as much.
        if decision.level.connections() >= chosen {
            extra_uj += 2 * (now_uj - before_uj);
        }
        before_uj = now_uj;
        decision.seen.energy_uj = Some(now_uj + extra_uj);
    }
    let again = changed.replay().decisions[stays].level.connections();
    assert!(again < chosen, "{again} and {chosen}");
}

#[test]
fn a_meter_that_falls_silent_is_missed_and_holds_nothing_up() {
    for algorithm in [Algorithm::Eht, Algorithm::Auto] {
        for objective in [Objective::Efficiency, Objective::Energy] {
            let asked = Settings { objective, interval_ns: 2_000_000_000, ..settings(algorithm, SYDNEY) };
            let alone = Settings { objective: Objective::Frugal, ..asked.clone() };
            let longest_s = [&asked, &alone].map(|one| run(one, SYDNEY, &html(1 << 30)).time_s());
            let longest_s = 1.1 * longest_s[0].max(longest_s[1]);
            for silent_from_s in [0.0, 9.0, 40.0] {
                let mut toy = Toy::new(&asked, SYDNEY, &html(1 << 30));
                toy.silent_from_s = silent_from_s;
                toy.finish();
                let time_s = toy.time_s();
                assert!(
                    time_s < longest_s,
                    "{algorithm:?} {objective:?}: {time_s} s after {silent_from_s} s"
                );
                let record = toy.scheduler.records().next().unwrap();
                assert_eq!(record.decisions.last().unwrap().seen.energy_uj, None);
                assert_eq!(&record.replay(), record);
            }
        }
    }
}

#[test]
fn lowe_and_hat_give_the_connections_of_their_formulae() {
    let level = |algorithm| {
        let limits = Settings { max_connections: 32, ..settings(algorithm, SYDNEY) };
        let toy = run(&limits, SYDNEY, &mixed(1));
        let decisions = toy.scheduler.records().next().unwrap().decisions.clone();
        let level = &decisions[0].level;
        level.shares.iter().map(|share| (level.files(*share), share.parallelism)).collect::<Vec<_>>()
    };
    // BDP 3,625,000: small files ask for 32, get ceil(33 / 2); then ceil(17 / 2) bounds 2; then 1; buffer 2 MiB: p 2.
    assert_eq!(level(Algorithm::Lowe), [(17, 1), (2, 2), (1, 2)]);
    assert_eq!(level(Algorithm::LoweSequential), [(17, 1), (0, 0), (0, 0)]);
    // 11, 11, 10 from large to small; four videos over 2 each use 8, the others get the rest.
    assert_eq!(level(Algorithm::Hat), [(12, 1), (6, 2), (4, 2)]);
}

#[test]
fn files_without_a_size_come_in_one_part_or_after_a_first_one_in_many() {
    let one =
        Settings { concurrency: 2, parallelism: 1, max_connections: 8, ..settings(Algorithm::Fixed, SYDNEY) };
    let mut scheduler = Scheduler::new(&one, &[None, None, None]).unwrap();
    let starts = scheduler.poll(0);
    assert_eq!(starts.len(), 2);
    assert!(matches!(starts[0], Action::Start { file: 0, first: 0, end: None, .. }));
    scheduler.learn(0, 1000, true);
    assert_eq!(scheduler.received(0, 1000), 1000);
    scheduler.ended(0, Ended::Done);
    assert!(scheduler.is_over(0));

    let four = Settings { concurrency: 1, parallelism: 4, ..one };
    let mut scheduler = Scheduler::new(&four, &[None]).unwrap();
    assert!(matches!(scheduler.poll(0)[..], [Action::Start { file: 0, first: 0, end: Some(262_144), .. }]));
    scheduler.learn(0, 10 << 20, true);
    assert_eq!(scheduler.poll(0).len(), 3);
    // A server without ranges answers the first part with all.
    let mut scheduler = Scheduler::new(&four, &[None]).unwrap();
    scheduler.poll(0);
    scheduler.learn(0, 10 << 20, false);
    assert_eq!(scheduler.poll(0), []);
    assert_eq!(scheduler.received(0, 10 << 20), 10 << 20);
    scheduler.ended(0, Ended::Done);
    assert!(scheduler.is_finished());
}

#[test]
fn each_file_of_a_fixed_level_comes_in_as_many_parts_as_were_asked_for() {
    let level =
        Settings { concurrency: 1, parallelism: 4, max_connections: 4, ..settings(Algorithm::Fixed, SYDNEY) };
    let mut scheduler = Scheduler::new(&level, &[Some(4 << 20); 3]).unwrap();
    let starts = scheduler.poll(0);
    let ends: Vec<_> = starts
        .iter()
        .map(|start| match start {
            Action::Start { file, end, .. } => (*file, *end),
            Action::Limit { .. } => panic!("{start:?}"),
        })
        .collect();
    assert_eq!(ends, [(0, Some(1 << 20)), (0, Some(2 << 20)), (0, Some(3 << 20)), (0, Some(4 << 20))]);
}

#[test]
fn what_is_there_is_not_asked_for_again_and_a_changed_file_begins_anew() {
    let level = Settings { concurrency: 4, max_connections: 4, ..settings(Algorithm::Fixed, SYDNEY) };
    let mut scheduler = Scheduler::new(&level, &[Some(1000), Some(500)]).unwrap();
    scheduler.resume(0, 1000, &[0..300, 400..900]);
    scheduler.resume(1, 500, std::slice::from_ref(&(0..500)));
    assert!(scheduler.is_over(1));
    assert_eq!(scheduler.left_bytes(), 200);
    let starts = scheduler.poll(0);
    assert!(matches!(starts[..], [Action::Start { file: 0, first: 300, end: Some(400), .. }]), "{starts:?}");
    scheduler.ended(0, Ended::Failed);
    scheduler.restart(0, Some(1200));
    let starts = scheduler.poll(0);
    assert!(matches!(starts[..], [Action::Start { file: 0, first: 0, end: Some(1200), .. }]), "{starts:?}");
    assert_eq!(scheduler.left_bytes(), 1200);
    scheduler.give_up(0);
    assert!(scheduler.is_finished());
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let wrong = Settings { concurrency: 8, parallelism: 4, ..settings(Algorithm::Fixed, SYDNEY) };
    let wrong = Settings { max_connections: 16, ..wrong };
    let error = Scheduler::new(&wrong, &[]).err().unwrap();
    assert_eq!(error.field, "concurrency");
    let error = Scheduler::new(&Settings { streams: 0, ..Settings::default() }, &[]).err().unwrap();
    assert_eq!((error.field, error.found.as_str()), ("streams", "0"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the files, the algorithm and what fails on the way: every byte comes once, and no limit is passed.
    #[test]
    fn every_byte_comes_once(
        sizes in prop::collection::vec(0_u64..6_000_000, 0..40),
        which in 0_usize..6,
        max_connections in 1_u32..40,
        streams in 1_u32..4,
        is_known in any::<bool>(),
        fails_each in 2_u32..20,
    ) {
        let limits = Settings {
            max_connections,
            streams,
            concurrency: 1.max(max_connections / 2),
            parallelism: 2.min(max_connections),
            least_part_bytes: 100_000,
            path: is_known.then_some(SYDNEY),
            ..settings(ALGORITHMS[which], SYDNEY)
        };
        let mut toy = Toy::new(&limits, SYDNEY, &sizes);
        toy.fails_each = Some(fails_each);
        toy.finish();
        prop_assert_eq!(toy.bytes, sizes.iter().sum::<u64>());
        prop_assert!(toy.most_parts <= max_connections * streams);
        toy.assert_whole(&sizes);
    }
}
