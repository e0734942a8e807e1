// SPDX-License-Identifier: Apache-2.0
//! What a carrier must do for the user-space stack: a socket that takes and gives DCCP packets.

use std::net::SocketAddr;

use netjoule_dccp::Carriage;
use netjoule_transport::Result;
use socket2::Socket;

/// A socket that carries the packets of one connection.
///
/// A listening end's socket hears everybody until [`Self::adopt`].
pub(crate) trait Carrier {
    /// Header between IP and DCCP, in bytes.
    const HEADER_BYTES: usize;

    /// Several packets of one size may leave, and arrive, in one call (sendmmsg, GSO, GRO).
    const TRAINS: bool;

    /// The IP header's ECN field is this stack's to read and set.
    const ECN: bool;

    /// The socket.
    fn socket(&self) -> &Socket;

    /// Address of this end; the port is DCCP's.
    fn local(&self) -> Result<SocketAddr>;

    /// How packets to and from `peer` are carried.
    fn carriage(&self, peer: SocketAddr) -> Result<Carriage>;

    /// The DCCP packet in what the socket gave; empty when there is none.
    fn packet<'a>(&self, bytes: &'a [u8]) -> &'a [u8];

    /// Who sent `packet`: the socket said `from`. The port is the one that tells peers apart.
    fn peer_of(&self, from: SocketAddr, packet: &[u8]) -> SocketAddr;

    /// From now on hear and call this peer only.
    fn adopt(&mut self, peer: SocketAddr) -> Result<()>;
}
