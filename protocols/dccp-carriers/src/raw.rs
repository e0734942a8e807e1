// SPDX-License-Identifier: Apache-2.0
//! DCCP straight over IP, protocol 33, through a raw socket (CAP_NET_RAW).
//!
//! A filter in the kernel lets only packets with this end's own ports through, so that nothing else is seen, and nothing
//! else answered. No port is reserved anywhere: it is drawn at random from the ephemeral range.

use std::io;
use std::net::{IpAddr, SocketAddr};

use netjoule_dccp::Carriage;
use netjoule_sockets::{random, socket};
use netjoule_transport::{IpVersion, Result, TransportError};
use socket2::{Domain, Protocol, Socket, Type};

use crate::carrier::Carrier;
use crate::filter;

/// IP protocol number of DCCP.
pub(crate) const PROTOCOL: i32 = 33;

/// First ephemeral port (RFC 6335); the range ends with 65535.
const FIRST_PORT: u16 = 49_152;

#[derive(Debug)]
pub(crate) struct RawCarrier {
    socket: Socket,
    /// This end's address with its DCCP port.
    local: SocketAddr,
    /// The address above is one of this host, not "any".
    knows_local: bool,
}

impl RawCarrier {
    pub(crate) fn connect(local: Option<IpAddr>, remote: SocketAddr) -> Result<Self> {
        let local = local.map_or_else(|| socket::unspecified_like(remote), |ip| SocketAddr::new(ip, 0));
        let mut carrier = Self::open(local)?;
        carrier.adopt(remote)?;
        Ok(carrier)
    }

    pub(crate) fn listen(local: SocketAddr) -> Result<Self> {
        Self::open(local)
    }

    fn open(local: SocketAddr) -> Result<Self> {
        let socket = open_socket(local)?;
        socket::prepare_datagram(&socket, local)?;
        let port = if local.port() == 0 { ephemeral_port() } else { local.port() };
        let mut at = local;
        at.set_port(port);
        // Before binding: nothing that is not for this port may queue up.
        filter::admit_ports(&socket, IpVersion::of(local.ip()), port, None)
            .map_err(TransportError::io("attach a filter to the raw socket"))?;
        let mut host = local;
        host.set_port(0);
        socket
            .bind(&host.into())
            .map_err(TransportError::io(format!("bind a raw socket to {}", local.ip())))?;
        Ok(Self { socket, local: at, knows_local: !local.ip().is_unspecified() })
    }
}

fn ephemeral_port() -> u16 {
    FIRST_PORT + (random::number() % u64::from(u16::MAX - FIRST_PORT + 1)) as u16
}

fn open_socket(family_of: SocketAddr) -> Result<Socket> {
    let protocol = Protocol::from(PROTOCOL);
    let socket =
        Socket::new(Domain::for_address(family_of), Type::RAW, Some(protocol)).map_err(
            |error| match error {
                error if error.kind() == io::ErrorKind::PermissionDenied => TransportError::HostLacks(
                    "DCCP over raw IP needs the privilege CAP_NET_RAW (run as root, or use --carrier udp)"
                        .into(),
                ),
                error => TransportError::io("open a raw socket for IP protocol 33")(error),
            },
        )?;
    socket.set_nonblocking(true).map_err(TransportError::io("make a socket non-blocking"))?;
    Ok(socket)
}

/// Whether a raw socket can be had, and if not, why.
pub(crate) fn available() -> Result<()> {
    open_socket(SocketAddr::from(([127, 0, 0, 1], 0))).map(drop)
}

impl Carrier for RawCarrier {
    const HEADER_BYTES: usize = 0;
    const TRAINS: bool = false;
    // Its peer may be Linux's DCCP, which declares itself ECN-incapable.
    const ECN: bool = false;

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn local(&self) -> Result<SocketAddr> {
        Ok(self.local)
    }

    fn carriage(&self, peer: SocketAddr) -> Result<Carriage> {
        if !self.knows_local {
            return Err(TransportError::Unsupported(
                "DCCP over raw IP needs to know its own address: name one with --bind".into(),
            ));
        }
        Ok(Carriage::Ip { local: self.local.ip(), remote: peer.ip() })
    }

    fn packet<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if self.local.is_ipv6() {
            return bytes;
        }
        let header_bytes = bytes.first().map_or(0, |first| 4 * usize::from(first & 0xf));
        bytes.get(header_bytes..).unwrap_or_default()
    }

    fn peer_of(&self, from: SocketAddr, packet: &[u8]) -> SocketAddr {
        let port = packet.get(..2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut peer = from;
        peer.set_port(port);
        peer
    }

    fn adopt(&mut self, peer: SocketAddr) -> Result<()> {
        let version = IpVersion::of(peer.ip());
        filter::admit_ports(&self.socket, version, self.local.port(), Some(peer.port()))
            .map_err(TransportError::io("attach a filter to the raw socket"))?;
        let mut host = peer;
        host.set_port(0);
        self.socket
            .connect(&host.into())
            .map_err(TransportError::io(format!("reach {} over raw IP", peer.ip())))?;
        let local = self.socket.local_addr().map_err(TransportError::io("read the raw socket's address"))?;
        if let Some(local) = local.as_socket() {
            self.local.set_ip(local.ip());
            self.knows_local = true;
        }
        Ok(())
    }
}
