// SPDX-License-Identifier: Apache-2.0
//! Long lives, changing paths, wake-ups. The world holds every end to its word all the time: who has nothing to send must not
//! want to be called again at once.

mod world;

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::{Config, State};
use world::{App, Path, World, MS, S};

const BOTH: [Ccid; 2] = [Ccid::TcpLike, Ccid::Tfrc];
const START_NS: i64 = 1_000 * S;
const MBPS: f64 = 1e6;

fn config(ccid: Ccid) -> Config {
    Config { ccids: vec![ccid], ..Config::default() }
}

fn opened(ccid: Ccid, path: Path) -> World {
    let mut world = World::new(&config(ccid), path, 1, 0x1234_5678, START_NS);
    world.connect();
    world
}

/// Messages from now on: one each `gap_ns`, or with a gap of 0 as many as are taken.
fn every(bytes: usize, gap_ns: i64, world: &World) -> Option<App> {
    Some(App { bytes, gap_ns, next_ns: world.now_ns, until_ns: i64::MAX })
}

fn assert_open(world: &World) {
    assert!(world.ends.iter().all(|end| end.connection.state() == State::Open), "{:?}", world.ends);
}

/// Change the path or what the applications do, at random.
fn stir(world: &mut World) {
    let random = world.random();
    let now_ns = world.now_ns;
    let pick = (random >> 8) as usize;
    match random % 8 {
        0 => world.path.delay_ns = [20_000, MS, 25 * MS, 300 * MS][pick % 4],
        1 => world.path.loss = [0.0, 0.02, 0.3, 1.0][pick % 4],
        2 => world.path.rate_bps = [1e5, 1e6, 2e7].get(pick % 3).copied(),
        3 => world.ends.iter_mut().for_each(|end| end.app = None),
        _ => {
            let gap_ns = [0, 10_000, 3 * MS, 200 * MS][pick % 4];
            let bytes = [0, 1, 300, 1440][(random >> 16) as usize % 4];
            let end = (random >> 24) as usize % world.ends.len();
            let until_ns = now_ns + 400 * MS;
            world.ends[end].app = Some(App { bytes, gap_ns, next_ns: now_ns, until_ns });
        }
    }
}

#[test]
fn who_has_nothing_to_send_sleeps_in_every_state() {
    for seed in 0..60 {
        for ccid in BOTH {
            let path = Path { rate_bps: Some(5e6), ..Path::clean(10 * MS) };
            // A clock's origin may lie anywhere.
            let start_ns = if seed & 1 == 0 { START_NS } else { -4 * S };
            let mut world = World::new(&config(ccid), path, seed, seed, start_ns);
            world.path.loss = [0.0, 0.01, 0.1, 0.4][world.random() as usize % 4];
            for _ in 0..12 {
                stir(&mut world);
                world.run_for(500 * MS);
            }
            let random = world.random();
            let (end, now_ns) = (random as usize % world.ends.len(), world.now_ns);
            if random & 1 << 40 == 0 {
                world.ends[end].connection.close(now_ns);
            } else {
                world.ends[end].connection.abort(now_ns);
            }
            stir(&mut world);
            world.run_for(5 * S);
            world.path.loss = 0.0;
            world.run_for(1_000 * S);
            let closed = &world.ends[end].connection;
            assert_eq!(closed.state(), State::Closed, "{ccid:?} {seed}: {closed:?}");
            assert_eq!(closed.next_wakeup_ns(), None);
        }
    }
}

/// All features are agreed and data flows although the clock shows negative times.
#[test]
fn a_clock_below_zero() {
    for ccid in BOTH {
        let path = Path { rate_bps: Some(20.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
        let mut world = World::new(&config(ccid), path, 3, 7, -1_000 * S);
        world.connect();
        world.ends[0].app = every(1440, 0, &world);
        world.run_for(5 * S);
        let mbps = world.goodput(10 * S) / MBPS;
        assert!(mbps > 18.0, "{ccid:?}: {mbps}");
    }
}

#[test]
fn a_minute_without_messages_wakes_nobody() {
    for ccid in BOTH {
        let mut world = opened(ccid, Path { rate_bps: Some(1e7), ..Path::clean(5 * MS) });
        world.ends[0].app = every(300, 0, &world);
        world.run_for(S);
        world.ends[0].app = None;
        world.run_for(2 * S);
        let wakeups = |world: &World| world.ends.iter().map(|end| end.wakeups).sum::<u64>();
        let before = (wakeups(&world), world.sent);
        world.run_for(60 * S);
        assert_eq!((wakeups(&world), world.sent), before, "{ccid:?}");
    }
}

/// 65 kb/s of 300-byte messages: the message wakes the sender, the packet wakes the receiver, an acknowledgement wakes the
/// sender again; no timer in between, and no more acknowledgements than messages.
#[test]
fn a_slow_flow_costs_no_wake_ups_of_its_own() {
    for ccid in BOTH {
        for rtt_ms in [1, 10, 100] {
            let mut world = opened(ccid, Path::clean(rtt_ms * MS / 2));
            world.ends[0].app = every(300, 36_923_077, &world);
            world.run_for(5 * S);
            let count = |world: &World| {
                let [client, server] = [&world.ends[0], &world.ends[1]];
                [client.wakeups + server.wakeups, client.data_sent, client.others_sent, server.others_sent]
            };
            let before = count(&world);
            let polls = world.ends[0].polls + world.ends[1].polls;
            world.run_for(60 * S);
            let after = count(&world);
            let [wakeups, data, others, acks] = [0, 1, 2, 3].map(|what| after[what] - before[what]);
            assert_eq!((wakeups, others, world.ends[0].refused), (0, 0, 0), "{ccid:?} {rtt_ms} ms");
            assert!((1_620..=1_630).contains(&data) && acks <= data, "{ccid:?} {rtt_ms} ms: {data} {acks}");
            let polls = world.ends[0].polls + world.ends[1].polls - polls;
            assert!(polls <= 5 * data + 5, "{ccid:?} {rtt_ms} ms: {polls}");
        }
    }
}

/// Both circles close on the way: sequence numbers, and clocks of 32 bits of 10 us.
#[test]
fn ten_minutes_at_30_mbps_across_the_wraps() {
    for ccid in BOTH {
        let path = Path { rate_bps: Some(30.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
        let start_ns = (1_i64 << 32) * 10_000 - 20 * S;
        let mut world = World::new(&config(ccid), path, 2, (1 << 48) - 20_000, start_ns);
        world.connect();
        world.ends[0].app = every(1440, 0, &world);
        for minute in 0..10 {
            let mbps = world.goodput(60 * S) / MBPS;
            assert!(mbps > 28.0, "{ccid:?} minute {minute}: {mbps}");
        }
        assert_open(&world);
    }
}

#[test]
fn a_round_trip_ten_times_longer_and_back() {
    for ccid in BOTH {
        for both_ways in [false, true] {
            let path = Path { rate_bps: Some(20.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
            let mut world = opened(ccid, path);
            world.ends[0].app = every(1440, 0, &world);
            world.ends[1].app = both_ways.then(|| every(1440, 0, &world)).flatten();
            for (delay_ms, least) in [(5, 15.0), (50, 8.0), (50, 11.0), (5, 15.0)] {
                world.path.delay_ns = delay_ms * MS;
                let mbps = world.goodput(20 * S) / MBPS;
                assert!(mbps > least, "{ccid:?} {both_ways} {delay_ms} ms: {mbps}");
            }
            assert_open(&world);
        }
    }
}

#[test]
fn blackouts_end() {
    for ccid in BOTH {
        // The least rate is a packet in 64 s.
        for (blackout_s, most_s) in [(5, 10), (60, 80)] {
            let path = Path { rate_bps: Some(20.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
            let mut world = opened(ccid, path);
            world.ends[0].app = every(1440, 0, &world);
            world.run_for(10 * S);
            world.path.loss = 1.0;
            world.run_for(blackout_s * S);
            world.path.loss = 0.0;
            world.run_for(most_s * S);
            let mbps = world.goodput(20 * S) / MBPS;
            assert!(mbps > 15.0, "{ccid:?} {most_s} s after {blackout_s} s: {mbps}");
            assert_open(&world);
        }
    }
}

#[test]
fn a_burst_after_half_a_minute_of_silence() {
    for ccid in BOTH {
        let path = Path { rate_bps: Some(20.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
        let mut world = opened(ccid, path);
        for round in 0..3 {
            world.ends[0].app = every(1440, 0, &world);
            let mbps = world.goodput(2 * S) / MBPS;
            assert!(mbps > 15.0, "{ccid:?} {round}: {mbps}");
            world.ends[0].app = None;
            world.run_for(30 * S);
        }
    }
}

/// CCID 3 counts bytes, and its average message size lags behind.
#[test]
fn messages_that_become_smaller_do_not_stall_the_flow() {
    for ccid in BOTH {
        for (bytes, mtu_bytes, least) in [(500, 600, 15.0), (100, 1500, 8.0), (20, 1500, 2.0), (0, 1500, 0.0)]
        {
            let path = Path { rate_bps: Some(20.0 * MBPS), queue_ns: 50 * MS, ..Path::clean(5 * MS) };
            let mut world = opened(ccid, path);
            world.ends[0].app = every(1440, 0, &world);
            world.run_for(20 * S);
            world.ends.iter_mut().for_each(|end| end.connection.set_mtu_bytes(mtu_bytes));
            world.ends[0].app = every(bytes, 0, &world);
            world.run_for(2 * S);
            let mbps = world.goodput(10 * S) / MBPS;
            assert!(mbps >= least, "{ccid:?} {bytes} bytes: {mbps}");
            world.ends.iter_mut().for_each(|end| end.connection.set_mtu_bytes(1500));
            world.ends[0].app = every(1440, 0, &world);
            world.run_for(2 * S);
            let mbps = world.goodput(10 * S) / MBPS;
            assert!(mbps > 15.0, "{ccid:?} after {bytes} bytes: {mbps}");
        }
    }
}
