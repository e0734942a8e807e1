// SPDX-License-Identifier: Apache-2.0
//! Connect, exchange data, close.

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::connection::{Config, End};
use netjoule_dccp::{PacketType, State};

use crate::world::{client_config, server_config, Path, Way, World, MS, SECOND};

fn with_ccid(config: Config, ccid: Ccid) -> Config {
    Config { ccids: vec![ccid], ..config }
}

fn world(ccid: Ccid, path: Path) -> World {
    World::new(with_ccid(client_config(), ccid), with_ccid(server_config(), ccid), path, 1)
}

#[test]
fn handshake_takes_four_packets() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let mut world = world(ccid, Path::default());
        world.run_for(100 * MS);
        assert!(world.connected());
        assert_eq!(
            world.kinds()[..4],
            [
                (Way::ToServer, PacketType::Request),
                (Way::ToClient, PacketType::Response),
                (Way::ToServer, PacketType::Ack),
                (Way::ToClient, PacketType::Ack),
            ]
        );
        assert_eq!(world.client.ccids(), Some((ccid, ccid)));
        assert_eq!(world.server().ccids(), Some((ccid, ccid)));
        assert_eq!(world.client.rtt_ns(), Some(20 * MS));
        assert_eq!(world.server().rtt_ns(), Some(20 * MS));
    }
}

#[test]
fn data_flows_and_the_client_closes() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let mut world = world(ccid, Path::default());
        world.connect();
        world.client_sends(200, 1000, 60 * SECOND);
        world.run_for(SECOND);
        assert_eq!(world.to_server.len(), 200, "{ccid:?}");
        let now = world.now_ns;
        world.client.close(now);
        world.run_for(SECOND);
        assert_eq!(world.client.state(), State::TimeWait);
        assert_eq!(world.client.end(), Some(&End::Closed));
        assert_eq!(world.server().state(), State::Closed);
        assert_eq!(world.server().end(), Some(&End::Closed));
        world.run_for(240 * SECOND);
        assert_eq!(world.client.state(), State::Closed);
        assert_eq!(world.count(Way::ToServer, PacketType::Close), 1);
        assert_eq!(world.count(Way::ToClient, PacketType::Reset), 1);
    }
}

#[test]
fn the_server_closes_with_close_req() {
    let mut world = world(Ccid::Tfrc, Path::default());
    world.connect();
    let now = world.now_ns;
    world.server().close(now);
    assert_eq!(world.server().state(), State::CloseReq);
    world.run_for(SECOND);
    assert_eq!(world.client.state(), State::TimeWait);
    assert_eq!(world.client.end(), Some(&End::Closed));
    assert_eq!(world.server().state(), State::Closed);
    assert_eq!(world.server().end(), Some(&End::Closed));
    assert_eq!(world.count(Way::ToClient, PacketType::CloseReq), 1);
}
