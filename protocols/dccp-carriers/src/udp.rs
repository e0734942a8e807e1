// SPDX-License-Identifier: Apache-2.0
//! DCCP inside UDP (RFC 6773): no privileges, any address translator.
//!
//! Each connection has a UDP socket and port of its own at both ends, so that one UDP 4-tuple is one connection.
//! The kernel computes UDP checksums and drops datagrams whose checksum is wrong.
//!
//! A datagram over IPv4 with checksum zero, which means none, would reach a UDP socket all the same: [`filter`] keeps it out.

use std::net::{IpAddr, SocketAddr};

use netjoule_dccp::Carriage;
use netjoule_sockets::socket;
use netjoule_transport::{IpVersion, Result, TransportError};
use socket2::Socket;

use crate::carrier::Carrier;
use crate::filter;

#[derive(Debug)]
pub(crate) struct UdpCarrier {
    socket: Socket,
}

impl UdpCarrier {
    pub(crate) fn connect(local: Option<IpAddr>, remote: SocketAddr) -> Result<Self> {
        let local = local.map_or_else(|| socket::unspecified_like(remote), |ip| SocketAddr::new(ip, 0));
        //= rfc6773#3.1
        //# The UDP checksum MUST NOT be zero for a UDP packet that carries DCCP-UDP.
        //= rfc6773#3.3
        //# The UDP checksum MUST NOT be zero for a UDP packet that is sent using DCCP-UDP.
        let mut carrier = Self::listen(local)?;
        carrier.adopt(remote)?;
        Ok(carrier)
    }

    pub(crate) fn listen(local: SocketAddr) -> Result<Self> {
        let socket = socket::datagram(local)?;
        filter::admit_encapsulated(&socket)
            .map_err(TransportError::io("attach a filter to the UDP socket"))?;
        Ok(Self { socket })
    }
}

impl Carrier for UdpCarrier {
    const HEADER_BYTES: usize = 8;
    const TRAINS: bool = true;
    const ECN: bool = true;

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn local(&self) -> Result<SocketAddr> {
        socket::local_address(&self.socket, "UDP")
    }

    fn carriage(&self, peer: SocketAddr) -> Result<Carriage> {
        Ok(Carriage::Udp { ip_version: IpVersion::of(peer.ip()).number() })
    }

    fn packet<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
    }

    fn peer_of(&self, from: SocketAddr, _packet: &[u8]) -> SocketAddr {
        from
    }

    fn adopt(&mut self, peer: SocketAddr) -> Result<()> {
        self.socket.connect(&peer.into()).map_err(TransportError::io(format!("reach {peer} over UDP")))
    }
}
