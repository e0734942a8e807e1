// SPDX-License-Identifier: Apache-2.0
//! When ports run out: the refusal says so, and the server lives on.

use std::net::{TcpListener, UdpSocket};

use crate::harness::network::in_own_network;
use crate::harness::{assert_honest, send, transports, Server};

#[test]
fn a_data_port_that_another_program_has_is_refused_by_number() {
    let taken = (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = [taken.0.local_addr().unwrap().port(), taken.1.local_addr().unwrap().port()];
    for transport in transports() {
        let port = ports[usize::from(transport == "tcp")].to_string();
        let mut server = Server::start("127.0.0.1", &["--data-port", &port]);
        let refused = send(&["--transport", transport, "--to", &server.control, "-b", "1M", "-t", "0.1"]);
        assert_eq!(refused.code, 1, "{transport}: {}", refused.stderr);
        assert!(refused.stderr.contains("has no port for the data"), "{transport}: {}", refused.stderr);
        assert!(refused.stderr.contains(&port), "{transport}: {}", refused.stderr);
        assert_eq!(refused.events.last().unwrap()["code"], "refused");
        assert_eq!(server.expect("flow_failed")["code"], "refused");
        assert!(server.child.try_wait().unwrap().is_none());
    }
}

/// Has every port of the range for itself.
fn take_all<T>(bind: impl Fn() -> std::io::Result<T>) -> Vec<T> {
    std::iter::from_fn(|| bind().ok()).collect()
}

#[test]
fn a_host_without_a_free_port_is_told_and_serves_again_when_there_is_one() {
    in_own_network("ports::a_host_without_a_free_port_is_told_and_serves_again_when_there_is_one", || {
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "50000 50007").unwrap();
        // Otherwise the port of a flow that ended a second ago is used again, though nobody else can have it.
        std::fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "0").unwrap();
        let server = Server::start("127.0.0.1", &[]);
        let args = ["--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"];
        let taken = take_all(|| UdpSocket::bind("127.0.0.1:0"));
        assert!(!taken.is_empty());
        let refused = send(&args);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("ip_local_port_range"), "{}", refused.stderr);
        drop(taken);
        assert_honest(send(&args).report());
        // Without a TCP port the client does not even reach the server.
        let taken = take_all(|| TcpListener::bind("0.0.0.0:0"));
        let unreached = send(&args);
        assert_eq!(unreached.code, 1, "{}", unreached.stderr);
        assert!(unreached.stderr.contains("no local port is free"), "{}", unreached.stderr);
        drop(taken);
        assert_honest(send(&args).report());
    });
}
