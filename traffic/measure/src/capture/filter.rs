// SPDX-License-Identifier: Apache-2.0
//! Where a flow's packets pass, and which of those that pass are its own.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Both ends of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// Number in the IP header.
    pub(super) ip_protocol: u8,
}

impl Flow {
    /// A libpcap filter (pcap-filter(7)) for the packets of both directions.
    ///
    /// Its word `port` knows TCP and UDP. DCCP has its ports in the same place (RFC 4340 section 5.1), directly behind
    /// the IP header: an IPv6 packet with extension headers is not matched.
    pub(super) fn filter(&self) -> String {
        let (near, far) = (self.local.ip().to_canonical(), self.peer.ip().to_canonical());
        let (near_port, far_port) = (self.local.port(), self.peer.port());
        let hosts = format!("host {near} and host {far}");
        let (name, port) = match (self.ip_protocol, far) {
            (TCP, _) => ("tcp".to_owned(), None),
            (UDP, _) => ("udp".to_owned(), None),
            (number, IpAddr::V4(_)) => (format!("ip proto {number}"), Some("ip[((ip[0] & 0xf) << 2)")),
            (number, IpAddr::V6(_)) => (format!("ip6 proto {number}"), Some("ip6[40")),
        };
        match port {
            None => format!("{name} and {hosts} and port {near_port} and port {far_port}"),
            Some(place) => {
                let ports = |source, destination| {
                    format!("({place}:2] = {source} and {place} + 2:2] = {destination})")
                };
                let (there, back) = (ports(near_port, far_port), ports(far_port, near_port));
                format!("{name} and {hosts} and ({there} or {back})")
            }
        }
    }
}

/// Name of the interface by which packets between these addresses pass; `None` when `local` is none of this host's.
pub(super) fn interface_towards(local: IpAddr, peer: IpAddr) -> Option<String> {
    let interfaces = interfaces();
    let of =
        |wanted: IpAddr| interfaces.iter().find(|one| one.address.to_canonical() == wanted.to_canonical());
    // What this host sends to itself goes by loopback, whatever the address.
    if peer.is_loopback() || of(peer).is_some() {
        return interfaces.iter().find(|one| one.is_loopback).map(|one| one.name.clone());
    }
    of(local).map(|one| one.name.clone())
}

struct Interface {
    name: String,
    address: IpAddr,
    is_loopback: bool,
}

fn interfaces() -> Vec<Interface> {
    let addresses = getifaddrs().into_iter().flatten();
    addresses
        .filter_map(|entry| {
            Some(Interface {
                address: ip_address(&entry.address?)?,
                name: entry.interface_name,
                is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            })
        })
        .collect()
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(local: &str, peer: &str, ip_protocol: u8) -> String {
        Flow { local: local.parse().unwrap(), peer: peer.parse().unwrap(), ip_protocol }.filter()
    }

    #[test]
    fn only_the_flows_addresses_and_ports_pass() {
        assert_eq!(
            filter("10.0.0.1:1000", "10.0.0.2:2000", 17),
            "udp and host 10.0.0.1 and host 10.0.0.2 and port 1000 and port 2000"
        );
        assert_eq!(
            filter("[fd77::1]:1000", "[fd77::2]:2000", 6),
            "tcp and host fd77::1 and host fd77::2 and port 1000 and port 2000"
        );
        assert_eq!(
            filter("[fd77::1]:1000", "[fd77::2]:2000", 33),
            "ip6 proto 33 and host fd77::1 and host fd77::2 and \
             ((ip6[40:2] = 1000 and ip6[40 + 2:2] = 2000) or (ip6[40:2] = 2000 and ip6[40 + 2:2] = 1000))"
        );
        assert!(filter("10.0.0.1:1", "10.0.0.2:2", 33).contains("(ip[((ip[0] & 0xf) << 2):2] = 1 and"));
    }

    #[test]
    fn what_a_host_sends_to_itself_passes_by_loopback() {
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(interface_towards(here, here).as_deref(), Some("lo"));
        let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(interface_towards(elsewhere, elsewhere), None);
    }
}
