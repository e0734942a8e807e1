// SPDX-License-Identifier: Apache-2.0
//! Where a flow's packets pass, and which of those that pass are its own.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs fills `first` with a list that stays valid until freeifaddrs; names end with a zero byte.
    unsafe {
        if libc::getifaddrs(&mut first) != 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut next = first;
        while let Some(entry) = next.as_ref() {
            if let Some(address) = ip_address(entry.ifa_addr) {
                found.push(Interface {
                    name: CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned(),
                    address,
                    is_loopback: entry.ifa_flags & libc::IFF_LOOPBACK as u32 != 0,
                });
            }
            next = entry.ifa_next;
        }
        libc::freeifaddrs(first);
        found
    }
}

/// # Safety
///
/// `address` is null or points to a socket address as long as its family's.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: see above; the family says which structure it is.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
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
