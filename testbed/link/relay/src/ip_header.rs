// SPDX-License-Identifier: Apache-2.0
//! Where does an IP packet want to go?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The destination address of an IPv4 or IPv6 packet; `None` when it is neither or cut short.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let bytes: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(bytes)))
        }
        6 => {
            let bytes: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let mut v4 = [0u8; 20];
        v4[0] = 0x45;
        v4[16..20].copy_from_slice(&[10, 77, 0, 2]);
        assert_eq!(destination(&v4), Some("10.77.0.2".parse().unwrap()));
        let mut v6 = [0u8; 40];
        v6[0] = 0x60;
        v6[24] = 0xfd;
        v6[25] = 0x77;
        v6[39] = 2;
        assert_eq!(destination(&v6), Some("fd77::2".parse().unwrap()));
    }

    #[test]
    fn anything_else_is_none() {
        assert_eq!(destination(&[]), None);
        assert_eq!(destination(&[0x45; 19]), None);
        assert_eq!(destination(&[0x60; 39]), None);
        assert_eq!(destination(&[0x10; 60]), None);
    }
}
