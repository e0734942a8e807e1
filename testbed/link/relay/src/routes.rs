// SPDX-License-Identifier: Apache-2.0
//! Which end does a packet go to? Stations by their addresses, everything else up the wire.

use std::collections::HashMap;
use std::net::IpAddr;

use netjoule_link_model::port::Port;

use crate::ip_header::destination;

/// Addresses of the stations.
#[derive(Debug)]
pub struct Routes {
    stations: HashMap<IpAddr, usize>,
}

impl Routes {
    /// `addresses[i]`: those of station i.
    pub fn new<'a>(addresses: impl Iterator<Item = &'a [(IpAddr, u8)]>) -> Self {
        let each = |(index, list): (usize, &'a [(IpAddr, u8)])| list.iter().map(move |(ip, _)| (*ip, index));
        Self { stations: addresses.enumerate().flat_map(each).collect() }
    }

    /// Where a packet from `from` goes; `None` for what the link does not carry: group and link-local
    /// traffic, what is not IP, and packets that would go back where they came from.
    pub fn find(&self, from: Port, packet: &[u8]) -> Option<Port> {
        let to = destination(packet)?;
        let local = match to {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_multicast() || ip.is_unicast_link_local(),
        };
        let port = self.stations.get(&to).map_or(Port::Wired, |station| Port::Station(*station));
        (!local && port != from).then_some(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(to: &str) -> Vec<u8> {
        let mut bytes = vec![0u8; 40];
        match to.parse().unwrap() {
            IpAddr::V4(ip) => {
                bytes[0] = 0x45;
                bytes[16..20].copy_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes[0] = 0x60;
                bytes[24..40].copy_from_slice(&ip.octets());
            }
        }
        bytes
    }

    #[test]
    fn stations_by_address_and_the_rest_up_the_wire() {
        let a = [("10.77.0.2".parse().unwrap(), 24), ("fd77::2".parse().unwrap(), 64)];
        let b = [("10.77.0.3".parse().unwrap(), 24)];
        let routes = Routes::new([&a[..], &b[..]].into_iter());
        let find = |from, to| routes.find(from, &packet(to));
        assert_eq!(find(Port::Station(0), "10.77.0.1"), Some(Port::Wired));
        assert_eq!(find(Port::Station(0), "10.77.0.3"), Some(Port::Station(1)));
        assert_eq!(find(Port::Wired, "fd77::2"), Some(Port::Station(0)));
        for (from, to) in [
            (Port::Wired, "10.77.0.9"),
            (Port::Station(0), "10.77.0.2"),
            (Port::Station(0), "224.0.0.22"),
            (Port::Station(0), "255.255.255.255"),
            (Port::Station(0), "ff02::16"),
            (Port::Station(0), "fe80::1"),
        ] {
            assert_eq!(find(from, to), None, "{to}");
        }
        assert_eq!(routes.find(Port::Wired, &[0; 40]), None);
    }
}
