// SPDX-License-Identifier: Apache-2.0
//! Which end does a packet go to? Each by its addresses, everything else to the first host behind the access point.

use std::collections::HashMap;
use std::net::IpAddr;

use netjoule_link_model::port::Port;

use crate::ip_header::destination;

/// Addresses of the ends.
#[derive(Debug)]
pub struct Routes {
    ends: HashMap<IpAddr, Port>,
}

impl Routes {
    /// Each end with its addresses.
    pub fn new<'a>(ends: impl Iterator<Item = (Port, &'a [(IpAddr, u8)])>) -> Self {
        let each = |(port, list): (Port, &'a [(IpAddr, u8)])| list.iter().map(move |(ip, _)| (*ip, port));
        Self { ends: ends.flat_map(each).collect() }
    }

    /// Where a packet from `from` goes; `None` for what the link does not carry: group and link-local
    /// traffic, what is not IP, and packets that would go back where they came from.
    pub fn find(&self, from: Port, packet: &[u8]) -> Option<Port> {
        let to = destination(packet)?;
        let local = match to {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_multicast() || ip.is_unicast_link_local(),
        };
        let port = *self.ends.get(&to).unwrap_or(&Port::Wired(0));
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
    fn ends_by_address_and_the_rest_to_the_first_wired_host() {
        let a = [("10.77.0.2".parse().unwrap(), 24), ("fd77::2".parse().unwrap(), 64)];
        let b = [("10.77.0.3".parse().unwrap(), 24)];
        let origin = [("10.77.0.8".parse().unwrap(), 24)];
        let ends = [(Port::Station(0), &a[..]), (Port::Station(1), &b[..]), (Port::Wired(1), &origin[..])];
        let routes = Routes::new(ends.into_iter());
        let find = |from, to| routes.find(from, &packet(to));
        assert_eq!(find(Port::Station(0), "10.77.0.1"), Some(Port::Wired(0)));
        assert_eq!(find(Port::Wired(0), "10.77.0.8"), Some(Port::Wired(1)));
        assert_eq!(find(Port::Station(0), "10.77.0.3"), Some(Port::Station(1)));
        assert_eq!(find(Port::Wired(1), "fd77::2"), Some(Port::Station(0)));
        for (from, to) in [
            (Port::Wired(0), "10.77.0.9"),
            (Port::Station(0), "10.77.0.2"),
            (Port::Station(0), "224.0.0.22"),
            (Port::Station(0), "255.255.255.255"),
            (Port::Station(0), "ff02::16"),
            (Port::Station(0), "fe80::1"),
        ] {
            assert_eq!(find(from, to), None, "{to}");
        }
        assert_eq!(routes.find(Port::Wired(0), &[0; 40]), None);
    }
}
