// SPDX-License-Identifier: Apache-2.0
//! The server's side of getting connected: of all who connect, the one whose first message has the token. SCTP's own
//! handshake has proved the client's address by then (RFC 9260 section 5.1.3, the state cookie).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_transport::{PollFd, Result, TransportError, TOKEN_BYTES};
use socket2::Socket;

use crate::kernel::{self, Read};

const MAGIC: &[u8; 4] = b"NJSC";
/// What the server answers to a right token.
pub(crate) const ACCEPTED: &[u8; 4] = b"NJOK";
/// Associations that may wait for their first message at once; more are turned away.
const CANDIDATES: usize = 8;

/// The client's first message.
pub(crate) fn preface(token: &[u8; TOKEN_BYTES]) -> Vec<u8> {
    [MAGIC.as_slice(), token].concat()
}

/// A listening socket and the associations that have said nothing yet.
pub(crate) struct Listener {
    socket: Socket,
    expected: Vec<u8>,
    allowed_peer: Option<IpAddr>,
    candidates: Vec<(Socket, SocketAddr)>,
}

impl Listener {
    /// Listen with `socket`, which is bound, for a client that knows `token`.
    pub(crate) fn new(
        socket: Socket,
        allowed_peer: Option<IpAddr>,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Self> {
        socket.listen(CANDIDATES as i32).map_err(TransportError::io("listen on an SCTP port"))?;
        Ok(Self { socket, expected: preface(token), allowed_peer, candidates: Vec::new() })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Every descriptor to wait for.
    pub(crate) fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let candidates = self.candidates.iter().map(|(socket, _)| socket);
        let sockets = std::iter::once(&self.socket).chain(candidates);
        fds.extend(sockets.map(|socket| PollFd { fd: socket.as_raw_fd(), read: true, write: false }));
    }

    /// Take in who knocked; the one that is proven, if there is one.
    pub(crate) fn step(&mut self) -> Result<Option<(Socket, SocketAddr)>> {
        self.accept_waiting()?;
        let mut index = 0;
        while index < self.candidates.len() {
            match self.judge(index) {
                Some(true) => return Ok(Some(self.candidates.swap_remove(index))),
                Some(false) => drop(self.candidates.swap_remove(index)),
                None => index += 1,
            }
        }
        Ok(None)
    }

    fn accept_waiting(&mut self) -> Result<()> {
        loop {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let Some(from) = from.as_socket() else { continue };
                    let welcome = self.allowed_peer.is_none_or(|peer| peer == from.ip());
                    if welcome && self.candidates.len() < CANDIDATES && socket.set_nonblocking(true).is_ok() {
                        self.candidates.push((socket, from));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(TransportError::io("accept an SCTP association")(error)),
            }
        }
    }

    /// Whether a candidate is proven; `None` while it has said nothing. The first message must be the preface, whole.
    fn judge(&self, index: usize) -> Option<bool> {
        let mut bytes = [0; MAGIC.len() + TOKEN_BYTES];
        match kernel::receive(&self.candidates[index].0, &mut bytes) {
            Ok(Read::Nothing) => None,
            Ok(Read::Bytes(length, ends)) => Some(ends && bytes[..length] == self.expected),
            Ok(Read::End) | Err(_) => Some(false),
        }
    }
}
