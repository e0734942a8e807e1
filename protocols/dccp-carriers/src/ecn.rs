// SPDX-License-Identifier: Apache-2.0
//! The ECN field of the IP header that carries a packet: whether a socket reads and sets it, and its two bits.

use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ecn;
use netjoule_sockets::{datagram, socket};
use netjoule_transport::IpVersion;
use socket2::Socket;

/// Bits of a field (RFC 3168 section 5).
pub(crate) fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// The field with these bits.
pub(crate) fn field(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Have `socket` tell the field of every arrival; whether it does, and also sets that of what it sends. A platform that has
/// one of the two only counts as having none: marks that nobody reads, or that nobody can set, are good for nothing.
pub(crate) fn switch_on(socket: &Socket, ip_version: IpVersion) -> bool {
    let sets = socket::set_ecn(socket.as_raw_fd(), ip_version, bits(Ecn::NotEct)).is_ok();
    sets && datagram::enable_rx_ecn(socket, ip_version).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_rfc_3168() {
        for (ecn, code) in [(Ecn::NotEct, 0b00), (Ecn::Ect1, 0b01), (Ecn::Ect0, 0b10), (Ecn::Ce, 0b11)] {
            assert_eq!((bits(ecn), field(code)), (code, ecn));
        }
    }

    #[test]
    fn a_udp_socket_has_it_and_what_lacks_the_options_has_not() {
        let udp = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(switch_on(&udp, IpVersion::V4));
        // An IPv4 socket knows no options of IPv6, as a platform without them would not.
        assert!(!switch_on(&udp, IpVersion::V6));
    }
}
