// SPDX-License-Identifier: Apache-2.0
//! What the fuzz target `connection` asserts: any bytes, cut into packets, into a listener and a client.
//!
//! Input: the first byte chooses client or server; then packets, each with a length byte and a step of time byte before it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::connection::{Carriage, Config};
use netjoule_dccp::listener::Verdict;
use netjoule_dccp::{Connection, Listener};

const MS: i64 = 1_000_000;

fn config() -> Config {
    Config {
        carriage: Carriage::Udp { ip_version: 4 },
        local_port: 1,
        remote_port: 2,
        service_code: 3,
        ccids: vec![Ccid::TcpLike, Ccid::Tfrc],
        ..Config::default()
    }
}

/// Everything that is due leaves, and that ends.
fn drain(connection: &mut Connection, now_ns: i64) {
    let mut out = Vec::new();
    for turn in 0.. {
        assert!(turn < 1_000, "poll_transmit never ends");
        out.clear();
        if connection.poll_transmit(now_ns, &mut out).is_none() {
            break;
        }
        assert!(!out.is_empty());
    }
}

/// Run one input.
pub(crate) fn connection(input: &[u8]) {
    let Some((&first, mut rest)) = input.split_first() else {
        return;
    };
    let mut now_ns = 1_000 * MS;
    // The numbers are known to the input: they start at 1.
    let mut random = || 1;
    let mut connection = (first & 1 == 0).then(|| Connection::connect(config(), now_ns, &mut random));
    let backlog = usize::from(first & 2 == 0);
    let mut listener = Listener::new(config(), vec![3], backlog, [1; 16]);
    let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
    if let Some(connection) = &mut connection {
        drain(connection, now_ns);
    }
    while let Some((&[length, step], packets)) = rest.split_first_chunk::<2>() {
        let (packet, after) = packets.split_at(packets.len().min(usize::from(length)));
        rest = after;
        now_ns += i64::from(step) * MS;
        if let Some(connection) = &mut connection {
            connection.handle(now_ns, Ecn::NotEct, packet);
            let _ = connection.send(now_ns, b"message");
            drain(connection, now_ns);
            continue;
        }
        match listener.handle(now_ns, Ecn::NotEct, peer, packet, &mut random) {
            Verdict::Ignore => {}
            Verdict::Reply(reply) => assert!(reply.len() <= 3 * input.len()),
            Verdict::Accept { connection: mut accepted, .. } => {
                drain(&mut accepted, now_ns);
                connection = Some(*accepted);
            }
        }
    }
}
