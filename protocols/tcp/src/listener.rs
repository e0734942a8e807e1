// SPDX-License-Identifier: Apache-2.0
//! The server's side of getting connected: of all who connect, the one whose preface has the token.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_transport::{PollFd, Result, TransportError, TOKEN_BYTES};
use socket2::Socket;

use crate::flavour::Flavour;
use crate::preface::{self, Verdict};

/// Connections that may wait for their preface at once; more are turned away.
const CANDIDATES: usize = 8;

/// A listening socket and the connections whose preface is not complete.
pub(crate) struct Listener {
    socket: Socket,
    expected: Vec<u8>,
    allowed_peer: Option<IpAddr>,
    candidates: Vec<Candidate>,
}

struct Candidate {
    socket: Socket,
    from: SocketAddr,
    read: Vec<u8>,
}

impl Listener {
    /// Listen on `local` for a client that knows `token`.
    pub(crate) fn bind(
        flavour: Flavour,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Self> {
        let (socket, name) = (flavour.open(local)?, flavour.name());
        socket.set_reuse_address(true).map_err(TransportError::io("set SO_REUSEADDR"))?;
        socket.bind(&local.into()).map_err(TransportError::io(format!("bind {name} {local}")))?;
        socket.listen(CANDIDATES as i32).map_err(TransportError::io(format!("listen on {name} {local}")))?;
        let expected = preface::encode(token).to_vec();
        Ok(Self { socket, expected, allowed_peer, candidates: Vec::new() })
    }

    /// The listening socket.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Every descriptor to wait for.
    pub(crate) fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let candidates = self.candidates.iter().map(|candidate| &candidate.socket);
        let sockets = std::iter::once(&self.socket).chain(candidates);
        fds.extend(sockets.map(|socket| PollFd { fd: socket.as_raw_fd(), read: true, write: false }));
    }

    /// Take in who knocked; the one that is proven, if there is one.
    pub(crate) fn step(&mut self) -> Result<Option<(Socket, SocketAddr)>> {
        self.accept_waiting()?;
        Ok(self.proven())
    }

    fn accept_waiting(&mut self) -> Result<()> {
        loop {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let Some(from) = from.as_socket() else { continue };
                    let welcome = self.allowed_peer.is_none_or(|peer| peer == from.ip());
                    if welcome && self.candidates.len() < CANDIDATES && socket.set_nonblocking(true).is_ok() {
                        self.candidates.push(Candidate { socket, from, read: Vec::new() });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(TransportError::io("accept a TCP connection")(error)),
            }
        }
    }

    /// Read what the candidates have sent, drop the wrong ones, return the right one.
    fn proven(&mut self) -> Option<(Socket, SocketAddr)> {
        let mut index = 0;
        while index < self.candidates.len() {
            let candidate = &mut self.candidates[index];
            match candidate.judge(&self.expected) {
                Verdict::Proven => {
                    let candidate = self.candidates.swap_remove(index);
                    return Some((candidate.socket, candidate.from));
                }
                Verdict::More => index += 1,
                Verdict::Wrong => {
                    self.candidates.swap_remove(index);
                }
            }
        }
        None
    }
}

impl Candidate {
    fn judge(&mut self, expected: &[u8]) -> Verdict {
        let mut bytes = [0; preface::PREFACE_BYTES];
        let wanted = expected.len() - self.read.len();
        match (&self.socket).read(&mut bytes[..wanted]) {
            Ok(0) => Verdict::Wrong,
            Ok(length) => {
                self.read.extend_from_slice(&bytes[..length]);
                preface::judge(&self.read, expected)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Verdict::More,
            Err(_) => Verdict::Wrong,
        }
    }
}
