// SPDX-License-Identifier: Apache-2.0
//! Paths that lose, reorder and duplicate.

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{Config, End};
use netjoule_dccp::{PacketType, State};

use crate::world::{client_config, server_config, Path, Way, World, MS, SECOND};

fn configs(ccid: Ccid) -> (Config, Config) {
    let ccids = vec![ccid];
    (Config { ccids: ccids.clone(), ..client_config() }, Config { ccids, ..server_config() })
}

/// Handshake, 100 messages and close, whatever the path does to them.
#[test]
fn rough_paths_are_survived() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        for seed in 0..20 {
            let path = Path { loss: 0.05, duplicate: 0.02, reorder: 0.1, ..Path::default() };
            let (client, server) = configs(ccid);
            let mut world = World::new(client, server, path, seed);
            world.connect();
            world.client_sends(100, 500, 300 * SECOND);
            world.run_for(2 * SECOND);
            let arrived = world.to_server.len();
            assert!(arrived >= 80, "{ccid:?} {seed}: {arrived}");
            let now = world.now_ns;
            world.client.close(now);
            world.run_for(200 * SECOND);
            assert!(world.client.state() != State::Closing, "{ccid:?} {seed}");
            assert_eq!(world.server().state(), State::Closed, "{ccid:?} {seed}");
            assert_eq!(world.server().end(), Some(&End::Closed), "{ccid:?} {seed}");
        }
    }
}

/// The first packets of the handshake, lost one at a time.
#[test]
fn any_packet_of_the_handshake_may_be_lost() {
    for (way, number) in [(Way::ToServer, 1), (Way::ToClient, 1), (Way::ToServer, 2), (Way::ToClient, 2)] {
        let (client, server) = configs(Ccid::Tfrc);
        let mut world = World::new(client, server, Path::default(), 3);
        world.lose.push((way, number));
        world.connect();
        world.client_sends(20, 100, 60 * SECOND);
        world.run_for(5 * SECOND);
        assert!(world.connected(), "{way:?} {number}");
        assert!(world.to_server.len() >= 15, "{way:?} {number}: {}", world.to_server.len());
        let requests = world.count(Way::ToServer, PacketType::Request);
        let responses = world.count(Way::ToClient, PacketType::Response);
        assert!(responses <= requests, "one Response per Request");
    }
}

/// The Ack that confirms the server's features is lost, and messages follow it at once: a server that opens with one of them
/// needs the Confirms by then, or it refuses data (ECN Incapable, RFC 4340 section 12.1), or, Linux, the connection.
#[test]
fn messages_that_overtake_the_first_ack_bring_the_confirms() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        for bytes in [100, 1_000, 1_440] {
            let (client, server) = configs(ccid);
            let mut world = World::new(client, server, Path::default(), 8);
            world.lose.push((Way::ToServer, 2));
            let begun = world.run_until_true(SECOND, |world| world.client.state() == State::PartOpen);
            assert!(begun);
            for _ in 0..4 {
                let now = world.now_ns;
                world.client.send(now, &vec![5; bytes]).expect("taken in PARTOPEN");
            }
            world.run_for(2 * SECOND);
            assert!(world.connected());
            assert_eq!(World::figure(world.server(), "data_refused"), 0.0, "{ccid:?} {bytes}");
            assert_eq!(world.to_server.len(), 4, "{ccid:?} {bytes}");
        }
    }
}

/// More packets lost in a row than the Sequence Window tolerates: Sync and SyncAck bring both ends back together.
#[test]
fn a_burst_of_loss_beyond_the_window_ends_in_sync() {
    let (mut client, server) = configs(Ccid::TcpLike);
    client.sequence_window = 100;
    let mut world = World::new(client, server, Path::default(), 4);
    world.connect();
    world.client_sends(400, 100, 60 * SECOND);
    world.run_for(SECOND);
    // Everything is lost until the client has sent far more than the window.
    world.path.loss = 1.0;
    let deadline = world.now_ns + 100_000 * SECOND;
    let mut lost = 0;
    while lost < 60 && world.now_ns < deadline {
        let now = world.now_ns;
        if world.client.queued() == 0 && world.client.send(now, &[7; 50]).is_ok() {
            lost += 1;
        }
        world.run_for(500 * MS);
        if world.count(Way::ToServer, PacketType::Data) > 2_000 {
            break;
        }
    }
    world.path.loss = 0.0;
    let before = world.to_server.len();
    let now = world.now_ns;
    let _ = world.client.send(now, &[8; 50]);
    world.run_for(300 * SECOND);
    assert!(world.connected());
    world.client_sends(50, 100, 600 * SECOND);
    world.run_for(SECOND);
    assert!(world.to_server.len() >= before + 50, "{} {before}", world.to_server.len());
}

/// Fast and far: 2,000 packets a round trip do not stall into Syncs, because the Sequence Window follows.
#[test]
fn the_sequence_window_follows_the_speed() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let (mut client, mut server) = configs(ccid);
        client.sequence_window = 100;
        client.queue_messages = 4_000;
        server.sequence_window = 100;
        let path = Path { delay_ns: 25 * MS, ..Path::default() };
        let mut world = World::new(client, server, path, 5);
        world.connect();
        world.client_sends(30_000, 1_000, 120 * SECOND);
        world.run_for(SECOND);
        assert_eq!(world.to_server.len(), 30_000, "{ccid:?}");
        let window = World::figure(&world.client, "sequence_window_packets");
        assert!(window >= 2_000.0, "{ccid:?}: {window}");
        assert_eq!(World::figure(&world.client, "syncs_received"), 0.0, "{ccid:?}");
        assert_eq!(World::figure(world.server(), "syncs_sent"), 0.0, "{ccid:?}");
    }
}

/// Both ends send at once; neither waits for the other.
#[test]
fn data_both_ways() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let (client, server) = configs(ccid);
        let mut world = World::new(client, server, Path::default(), 6);
        world.connect();
        for round in 0..300_u32 {
            let now = world.now_ns;
            let _ = world.client.send(now, &round.to_be_bytes());
            let _ = world.server().send(now, &round.to_be_bytes());
            world.run_for(20 * MS);
        }
        world.run_for(5 * SECOND);
        assert!(world.to_server.len() >= 250, "{ccid:?} {}", world.to_server.len());
        assert!(world.to_client.len() >= 250, "{ccid:?} {}", world.to_client.len());
        assert_eq!(World::figure(&world.client, "resets_sent"), 0.0);
        assert_eq!(World::figure(world.server(), "resets_sent"), 0.0);
    }
}

/// An idle connection says nothing and wakes nobody.
#[test]
fn idle_is_silent() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let (client, server) = configs(ccid);
        let mut world = World::new(client, server, Path::default(), 7);
        world.connect();
        world.client_sends(20, 100, 60 * SECOND);
        world.run_for(60 * SECOND);
        let (packets, polls) = (world.seen.len(), world.polls());
        world.run_for(600 * SECOND);
        assert!(world.seen.len() <= packets + 20, "{ccid:?} {}", world.seen.len() - packets);
        assert!(world.polls() <= polls + 200, "{ccid:?} {}", world.polls() - polls);
    }
}
