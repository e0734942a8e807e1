// SPDX-License-Identifier: Apache-2.0
//! Both halves of the handshake over any datagrams, without a socket: what the fuzz target `transports` drives.

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::TOKEN_BYTES;

use crate::handshake::{Acceptor, Initiator};

pub use crate::handshake::{is_handshake, DATAGRAM_BYTES};

/// A server that was told `token`.
#[derive(Debug)]
pub struct Server(Acceptor);

impl Server {
    /// Hears `allowed_peer` only, if there is one.
    pub fn new(token: [u8; TOKEN_BYTES], allowed_peer: Option<IpAddr>) -> Self {
        Self(Acceptor::new(token, allowed_peer))
    }

    /// What it sends back to `from`, and whether that is the peer. `nonce` is what it draws if it draws one.
    pub fn hear(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        nonce: [u8; TOKEN_BYTES],
    ) -> (Option<[u8; DATAGRAM_BYTES]>, bool) {
        let verdict = self.0.on_datagram(bytes, from, &mut || nonce);
        (verdict.reply, verdict.proven)
    }
}

/// A client that was told `token`.
#[derive(Debug)]
pub struct Client(Initiator);

impl Client {
    /// It begins at 0 ns.
    pub fn new(token: [u8; TOKEN_BYTES]) -> Self {
        Self(Initiator::new(token, 0))
    }

    /// Whether it takes the datagram for the server's last word.
    pub fn hear(&mut self, bytes: &[u8], now_ns: i64) -> bool {
        self.0.on_datagram(bytes, now_ns)
    }

    /// What it sends at `now_ns`.
    pub fn say(&mut self, now_ns: i64) -> Option<[u8; DATAGRAM_BYTES]> {
        self.0.on_time(now_ns)
    }
}
