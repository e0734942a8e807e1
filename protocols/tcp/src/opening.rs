// SPDX-License-Identifier: Apache-2.0
//! How does an end get from a socket to an open flow? TCP's handshake, then the token and its answer.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_transport::candidates::{Candidate, Candidates, Verdict};
use netjoule_transport::preface::{self, Preface, ACCEPTED, PREFACE_BYTES};
use netjoule_transport::{PollFd, Result, TransportError, TOKEN_BYTES};
use socket2::Socket;

use crate::flavour::Flavour;

const MAGIC: &[u8; 4] = b"NJTC";

/// An end that is not open.
pub(crate) enum Opening {
    /// Server: waiting for a connection with the right preface.
    Listening { candidates: Candidates, expected: Preface },
    /// Client: waiting for TCP's handshake.
    Connecting { socket: Socket, remote: SocketAddr, preface: Preface },
    /// Client: preface written, waiting for the answer.
    Asking { socket: Socket, remote: SocketAddr, answer: Vec<u8> },
}

/// What one step came to.
pub(crate) enum Step {
    Waiting(Opening),
    /// A server's connection with its peer, who waits for [`welcome`].
    Proven(Socket, SocketAddr),
    /// A client's connection with its peer, which accepted it.
    Open(Socket, SocketAddr),
}

impl Opening {
    /// Listen on `local` for a client that knows `token`.
    pub(crate) fn listen(
        flavour: Flavour,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Self> {
        let (socket, name) = (flavour.open(local)?, flavour.name());
        socket.set_reuse_address(true).map_err(TransportError::io("set SO_REUSEADDR"))?;
        socket.bind(&local.into()).map_err(TransportError::io(format!("bind {name} {local}")))?;
        let candidates = Candidates::listen(socket, allowed_peer)
            .map_err(TransportError::io(format!("listen on {name} {local}")))?;
        Ok(Self::Listening { candidates, expected: preface::encode(MAGIC, token) })
    }

    /// Connect `socket` to `remote`.
    pub(crate) fn connect(
        flavour: Flavour,
        socket: Socket,
        remote: SocketAddr,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Self> {
        match socket.connect(&remote.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(refused(flavour, remote, &error)),
        }
        Ok(Self::Connecting { socket, remote, preface: preface::encode(MAGIC, token) })
    }

    /// The socket that has this end's address.
    pub(crate) fn socket(&self) -> &Socket {
        match self {
            Self::Listening { candidates, .. } => candidates.socket(),
            Self::Connecting { socket, .. } | Self::Asking { socket, .. } => socket,
        }
    }

    /// Every descriptor to wait for.
    pub(crate) fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let fd = self.socket().as_raw_fd();
        match self {
            Self::Listening { candidates, .. } => candidates.poll_fds(fds),
            Self::Connecting { .. } => fds.push(PollFd { fd, read: false, write: true }),
            Self::Asking { .. } => fds.push(PollFd { fd, read: true, write: false }),
        }
    }

    /// Do what can be done now.
    pub(crate) fn step(self, flavour: Flavour) -> Result<Step> {
        match self {
            Self::Listening { mut candidates, expected } => {
                let proven = candidates.step(&mut |candidate| read_preface(candidate, &expected))?;
                let Some(Candidate { socket, from, .. }) = proven else {
                    return Ok(Step::Waiting(Self::Listening { candidates, expected }));
                };
                Ok(Step::Proven(socket, from))
            }
            Self::Connecting { socket, remote, preface } => ask(flavour, socket, remote, preface),
            Self::Asking { socket, remote, answer } => read_answer(socket, remote, answer),
        }
    }
}

/// Tell the peer that it is proven.
pub(crate) fn welcome(socket: &Socket, peer: SocketAddr) -> Result<()> {
    // Four bytes into an empty send buffer: the kernel takes them whole or the connection is gone.
    let sent = socket.send_with_flags(ACCEPTED, libc::MSG_NOSIGNAL);
    sent.map(drop).map_err(|error| lost(peer, &error))
}

/// Read of a candidate's preface what is there, never more: messages may follow.
fn read_preface(candidate: &mut Candidate, expected: &Preface) -> Verdict {
    let mut bytes = [0; PREFACE_BYTES];
    let wanted = expected.len() - candidate.said.len();
    match (&candidate.socket).read(&mut bytes[..wanted]) {
        Ok(0) => Verdict::Wrong,
        Ok(length) => {
            candidate.said.extend_from_slice(&bytes[..length]);
            preface::judge(&candidate.said, expected)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Verdict::More,
        Err(_) => Verdict::Wrong,
    }
}

fn ask(flavour: Flavour, socket: Socket, remote: SocketAddr, preface: Preface) -> Result<Step> {
    if let Some(error) = socket.take_error().map_err(TransportError::io("ask for the socket's error"))? {
        return Err(refused(flavour, remote, &error));
    }
    match socket.send_with_flags(&preface, libc::MSG_NOSIGNAL) {
        Ok(length) if length == preface.len() => {
            Ok(Step::Waiting(Opening::Asking { socket, remote, answer: Vec::new() }))
        }
        Ok(_) => Err(TransportError::Lost("the kernel took only a part of the preface".into())),
        Err(error)
            if error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOTCONN) =>
        {
            Ok(Step::Waiting(Opening::Connecting { socket, remote, preface }))
        }
        Err(error) => Err(refused(flavour, remote, &error)),
    }
}

fn read_answer(socket: Socket, remote: SocketAddr, mut answer: Vec<u8>) -> Result<Step> {
    let mut bytes = [0; ACCEPTED.len()];
    let wanted = ACCEPTED.len() - answer.len();
    match (&socket).read(&mut bytes[..wanted]) {
        Ok(0) => {
            Err(TransportError::Refused(format!("{remote} closed the connection without accepting the flow")))
        }
        Ok(length) => {
            answer.extend_from_slice(&bytes[..length]);
            match preface::judge(&answer, ACCEPTED) {
                Verdict::Proven => Ok(Step::Open(socket, remote)),
                Verdict::More => Ok(Step::Waiting(Opening::Asking { socket, remote, answer })),
                Verdict::Wrong => Err(TransportError::Refused(format!("{remote} is not a netjoule server"))),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Ok(Step::Waiting(Opening::Asking { socket, remote, answer }))
        }
        Err(error) => Err(lost(remote, &error)),
    }
}

/// An open connection failed.
pub(crate) fn lost(peer: SocketAddr, error: &io::Error) -> TransportError {
    TransportError::Lost(format!("the TCP connection with {peer} broke: {error}"))
}

fn refused(flavour: Flavour, remote: SocketAddr, error: &io::Error) -> TransportError {
    TransportError::Refused(format!("cannot connect to {} {remote}: {error}", flavour.name()))
}
