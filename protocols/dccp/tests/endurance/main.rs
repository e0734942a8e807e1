// SPDX-License-Identifier: Apache-2.0
//! Long lives, changing paths, wake-ups.

mod world;

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::{Config, State};
use world::{App, Path, World, MS, S};

const BOTH: [Ccid; 2] = [Ccid::TcpLike, Ccid::Tfrc];
const START_NS: i64 = 1_000 * S;

fn config(ccid: Ccid) -> Config {
    Config { ccids: vec![ccid], ..Config::default() }
}

fn opened(ccid: Ccid, path: Path) -> World {
    let mut world = World::new(&config(ccid), path, 1, 0x1234_5678, START_NS);
    world.connect();
    world
}

fn every(bytes: usize, gap_ns: i64, from_ns: i64) -> Option<App> {
    Some(App { bytes, gap_ns, next_ns: from_ns, until_ns: i64::MAX })
}

#[test]
fn who_has_nothing_to_send_sleeps() {
    for seed in 0..60 {
        for ccid in BOTH {
            let mut world = World::new(&config(ccid), Path::clean(10 * MS), seed, seed, START_NS);
            world.path.loss = [0.0, 0.01, 0.1, 0.4][world.random() as usize % 4];
            for step in 0..12 {
                let random = world.random();
                let now_ns = world.now_ns;
                match random % 8 {
                    0 => world.path.delay_ns = [20_000, MS, 25 * MS, 300 * MS][(random >> 8) as usize % 4],
                    1 => world.path.loss = [0.0, 0.02, 0.3, 1.0][(random >> 8) as usize % 4],
                    2 => world.path.rate_bps = [None, Some(1e6), Some(2e7)][(random >> 8) as usize % 3],
                    3 => world.ends.iter_mut().for_each(|end| end.app = None),
                    _ => {
                        let gap_ns = [0, 10_000, 3 * MS, 200 * MS][(random >> 8) as usize % 4];
                        let bytes = [0, 1, 300, 1440][(random >> 16) as usize % 4];
                        let end = (random >> 24) as usize % world.ends.len();
                        let until_ns = now_ns + 400 * MS;
                        world.ends[end].app = Some(App { bytes, gap_ns, next_ns: now_ns, until_ns });
                    }
                }
                world.run_for(500 * MS);
                if step == 10 {
                    let end = (random >> 32) as usize % world.ends.len();
                    let now_ns = world.now_ns;
                    if random & 1 << 40 == 0 {
                        world.ends[end].connection.close(now_ns);
                    } else {
                        world.ends[end].connection.abort(now_ns);
                    }
                }
            }
            world.path.loss = 0.0;
            world.run_for(1_000 * S);
        }
    }
}

#[test]
fn idle_for_a_minute_wakes_nobody() {
    for ccid in BOTH {
        let mut world = opened(ccid, Path::clean(5 * MS));
        world.ends[0].app = Some(App { bytes: 300, gap_ns: 0, next_ns: 0, until_ns: world.now_ns + S });
        world.run_for(3 * S);
        let (wakeups, sent) = (world.ends.iter().map(|end| end.wakeups).sum::<u64>(), world.sent);
        world.run_for(60 * S);
        let wakeups = world.ends.iter().map(|end| end.wakeups).sum::<u64>() - wakeups;
        println!("{ccid:?}: {wakeups} wake-ups, {} packets", world.sent - sent);
        assert!(wakeups <= 2 && world.sent - sent <= 2);
    }
}

#[test]
fn a_slow_flow_wakes_its_sender_once_a_packet() {
    for ccid in BOTH {
        for rtt_ms in [1, 10, 100] {
            let mut world = opened(ccid, Path::clean(rtt_ms * MS / 2));
            world.ends[0].app = every(300, 36_923_077, world.now_ns);
            world.run_for(5 * S);
            let count = |world: &World| {
                [0, 1].map(|index| {
                    let end = &world.ends[index];
                    [end.wakeups, end.polls, end.data_sent, end.others_sent]
                })
            };
            let before = count(&world);
            world.run_for(60 * S);
            let after = count(&world);
            let per = |end: usize, what: usize| (after[end][what] - before[end][what]) as f64;
            let data = per(0, 2);
            println!(
                "{ccid:?} {rtt_ms} ms: data {data}, client own wake-ups {} polls {} others {}; server own wake-ups {} polls {} acks {}",
                per(0, 0), per(0, 1) / data, per(0, 3), per(1, 0), per(1, 1) / data, per(1, 3)
            );
            assert_eq!(world.ends[0].refused, 0);
        }
    }
}

#[test]
fn ten_minutes_at_30_mbps_across_the_wrap() {
    for ccid in BOTH {
        let path = Path { rate_bps: Some(30e6), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
        // 42 949.67296 s: where a 32-bit clock of 10 us wraps.
        let start_ns = (1_i64 << 32) * 10_000 - 20 * S;
        let mut world = World::new(&config(ccid), path, 2, (1 << 48) - 20_000, start_ns);
        world.connect();
        world.ends[0].app = every(1440, 0, 0);
        for minute in 0..10 {
            let mbps = world.goodput(60 * S) / 1e6;
            println!("{ccid:?} minute {minute}: {mbps:.2} Mb/s");
            assert!(mbps > 24.0);
        }
        assert!(world.ends.iter().all(|end| end.connection.state() == State::Open));
    }
}

#[test]
fn paths_change() {
    for ccid in BOTH {
        for both_ways in [false, true] {
            let path = Path { rate_bps: Some(20e6), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
            let mut world = opened(ccid, path);
            world.ends[0].app = every(1440, 0, 0);
            if both_ways {
                world.ends[1].app = every(1440, 0, 0);
            }
            let mut report = vec![("start", world.goodput(20 * S))];
            world.path.delay_ns = 50 * MS;
            report.push(("rtt x10, first 10 s", world.goodput(10 * S)));
            report.push(("rtt x10", world.goodput(60 * S)));
            world.path.delay_ns = 5 * MS;
            report.push(("rtt back, first 10 s", world.goodput(10 * S)));
            report.push(("rtt back", world.goodput(20 * S)));
            for blackout in [5, 60] {
                world.path.loss = 1.0;
                world.run_for(blackout * S);
                world.path.loss = 0.0;
                let mut waited = 0;
                while world.goodput(S) < 1e6 && waited < 300 {
                    waited += 1;
                }
                println!("{ccid:?} {both_ways}: blackout {blackout} s, {waited} s more to 1 Mb/s");
                report.push(("after", world.goodput(20 * S)));
                report.push(("later", world.goodput(20 * S)));
            }
            world.ends.iter_mut().for_each(|end| end.app = None);
            world.run_for(30 * S);
            world.ends[0].app = every(1440, 0, 0);
            report.push(("idle 30 s, first second", world.goodput(S)));
            report.push(("next", world.goodput(10 * S)));
            let now = world.now_ns;
            world.ends.iter_mut().for_each(|end| end.connection.set_mtu_bytes(600));
            world.ends[0].app = every(500, 0, now);
            world.ends[1].app = None;
            report.push(("mtu 600", world.goodput(10 * S)));
            for (what, bps) in &report {
                println!("{ccid:?} {both_ways} {what}: {:.2} Mb/s", bps / 1e6);
            }
            assert!(world.ends.iter().all(|end| end.connection.state() == State::Open));
        }
    }
}
