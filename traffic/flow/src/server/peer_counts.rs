// SPDX-License-Identifier: Apache-2.0
//! Who has how much of what is shared out by peer. Pure.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// What counts as one host: an IPv4 address, or the network that an IPv6 host draws its addresses from (/64, RFC 4291
/// section 2.5.4), so that changing addresses inside it gains nothing.
pub(crate) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

/// How many of something each host has.
#[derive(Debug, Default)]
pub(crate) struct PeerCounts(HashMap<IpAddr, usize>);

impl FromIterator<IpAddr> for PeerCounts {
    fn from_iter<T: IntoIterator<Item = IpAddr>>(hosts: T) -> Self {
        let mut counts = Self::default();
        for host in hosts {
            *counts.0.entry(host).or_default() += 1;
        }
        counts
    }
}

impl PeerCounts {
    /// The host that has most; of several, the one with the greatest address.
    pub(crate) fn greatest(&self) -> Option<IpAddr> {
        self.0.iter().max_by_key(|(host, count)| (**count, **host)).map(|(host, _)| *host)
    }

    /// How many this host has.
    pub(crate) fn count(&self, host: IpAddr) -> usize {
        self.0.get(&host).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> IpAddr {
        host_of(text.parse().unwrap())
    }

    #[test]
    fn a_host_is_an_ipv4_address_or_an_ipv6_network() {
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
        assert_eq!(host("fd77::1"), host("fd77::9999:1"));
        assert_ne!(host("fd77::1"), host("fd77:0:0:1::1"));
        assert_eq!(host("::1"), "::1".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn who_has_most_is_found() {
        let counts: PeerCounts = ["10.0.0.1", "10.0.0.2", "10.0.0.2"].into_iter().map(host).collect();
        assert_eq!(counts.greatest(), Some(host("10.0.0.2")));
        assert_eq!((counts.count(host("10.0.0.1")), counts.count(host("10.0.0.9"))), (1, 0));
        assert_eq!(PeerCounts::default().greatest(), None);
    }
}
