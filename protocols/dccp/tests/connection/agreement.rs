// SPDX-License-Identifier: Apache-2.0
//! Whatever two ends want and whatever the path loses: they agree, or part with a Reset that says why.

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{Config, End};
use netjoule_dccp::{ResetCode, State};

use crate::world::{client_config, server_config, Path, World, SECOND};

const LISTS: [&[Ccid]; 4] =
    [&[Ccid::TcpLike], &[Ccid::Tfrc], &[Ccid::TcpLike, Ccid::Tfrc], &[Ccid::Tfrc, Ccid::TcpLike]];

/// The server's first choice that the client has too.
fn expected(client: &[Ccid], server: &[Ccid]) -> Option<Ccid> {
    server.iter().copied().find(|ccid| client.contains(ccid))
}

fn run(client: &[Ccid], server: &[Ccid], seed: u64, backlog: usize) {
    let path = Path { loss: 0.2, duplicate: 0.05, reorder: 0.2, ..Path::default() };
    let bit = |at: u64| seed >> at & 1 == 1;
    let coverage = if bit(2) { 3 } else { 0 };
    let wants = |ccids: &[Ccid], ecn, window, config| Config {
        ccids: ccids.to_vec(),
        ecn,
        checksum_coverage: coverage,
        sequence_window: window,
        ..config
    };
    let what = format!("{client:?} {server:?} {seed} {backlog}");
    let agreed = expected(client, server);
    let client = wants(client, bit(0), 100, client_config());
    let server = wants(server, bit(1), if bit(3) { 32 } else { 1 << 40 }, server_config());
    let mut world = World::with_backlog(client, server, path, seed, backlog);
    world.run_until_true(300 * SECOND, |world| world.connected() || world.client.state().is_over());
    let Some(agreed) = agreed else {
        assert!(world.client.state().is_over(), "{what}");
        let end = world.client.end().cloned();
        // The Reset that says why can be lost; the next Request draws another.
        let codes = [ResetCode::MandatoryError, ResetCode::NoConnection].map(End::ResetByPeer);
        assert!(end.as_ref().is_some_and(|end| codes.contains(end)), "{what}: {end:?}");
        return;
    };
    assert!(world.connected(), "{what} {:?}", world.client.end());
    // Long enough for timeouts that back off: some seeds lose many packets in a row.
    for number in 0..80_u32 {
        let now = world.now_ns;
        let _ = world.client.send(now, &number.to_be_bytes());
        let _ = world.server().send(now, &number.to_be_bytes());
        world.run_for(SECOND);
    }
    assert_eq!(world.client.ccids(), Some((agreed, agreed)), "{what}");
    assert_eq!(world.server().ccids(), Some((agreed, agreed)), "{what}");
    let ends = (world.client.end().cloned(), world.server().end().cloned());
    assert!(world.connected(), "{what} {ends:?}");
    let arrived = (world.to_server.len(), world.to_client.len());
    assert!(arrived.0 > 8 && arrived.1 > 8, "{what}: {arrived:?}");
    let now = world.now_ns;
    if bit(4) {
        world.client.close(now);
    } else {
        world.server().close(now);
    }
    world.run_for(2_000 * SECOND);
    assert_eq!((world.client.state(), world.server().state()), (State::Closed, State::Closed), "{what}");
}

#[test]
fn every_pair_of_requests_on_a_bad_path() {
    for client in LISTS {
        for server in LISTS {
            for seed in 0..32 {
                run(client, server, seed, 8);
            }
        }
    }
}

#[test]
fn every_pair_of_requests_through_init_cookies() {
    for client in LISTS {
        for server in LISTS {
            for seed in 0..32 {
                run(client, server, seed, 0);
            }
        }
    }
}
