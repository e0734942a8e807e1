// SPDX-License-Identifier: Apache-2.0
//! How does an end get from a socket to an open flow where the kernel makes the connection? Its handshake, then the token and
//! its answer.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::candidates::{Candidate, Candidates, Verdict};
use crate::preface::{self, Preface, ACCEPTED, PREFACE_BYTES};
use crate::{PollFd, Result, TransportError, TOKEN_BYTES};

/// What differs between the protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The protocol's name in error sentences.
    pub name: &'static str,
    /// What the protocol calls a connection.
    pub connection: &'static str,
    /// Names the protocol in the client's preface.
    pub magic: &'static [u8; 4],
    /// What a socket says to who sends before the kernel's handshake is done, apart from "would block".
    pub under_way: &'static [i32],
}

/// An end that is not open.
#[derive(Debug)]
pub enum Opening {
    /// Server: waiting for a connection with the right preface.
    Listening {
        /// Who has knocked.
        candidates: Candidates,
        /// What the true one says.
        expected: Preface,
    },
    /// Client: waiting for the kernel's handshake.
    Connecting {
        /// The connection.
        socket: Socket,
        /// Its peer.
        remote: SocketAddr,
        /// What to say next.
        preface: Preface,
    },
    /// Client: preface written, waiting for the answer.
    Asking {
        /// The connection.
        socket: Socket,
        /// Its peer.
        remote: SocketAddr,
        /// The answer so far.
        answer: Vec<u8>,
    },
}

/// What one step came to.
#[derive(Debug)]
pub enum Step {
    /// Nothing yet.
    Waiting(Opening),
    /// A server's connection with its peer, who waits for [`Stream::welcome`].
    Proven(Socket, SocketAddr),
    /// A client's connection with its peer, which accepted it.
    Open(Socket, SocketAddr),
}

impl Stream {
    /// Listen with `socket` on `local` for a client that knows `token`.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(
        &self,
        socket: Socket,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Opening> {
        self.bind(&socket, local)?;
        let candidates = Candidates::listen(socket, allowed_peer)
            .map_err(TransportError::io(format!("listen on {} {local}", self.name)))?;
        Ok(Opening::Listening { candidates, expected: preface::encode(self.magic, token) })
    }

    /// Connect `socket` to `remote`, from the address `local` where one is asked for.
    ///
    /// # Errors
    /// The system's, and [`TransportError::Refused`].
    pub fn connect(
        &self,
        socket: Socket,
        local: Option<IpAddr>,
        remote: SocketAddr,
        token: &[u8; TOKEN_BYTES],
    ) -> Result<Opening> {
        if let Some(ip) = local {
            self.bind(&socket, SocketAddr::new(ip, 0))?;
        }
        match socket.connect(&remote.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(self.refused(remote, &error)),
        }
        Ok(Opening::Connecting { socket, remote, preface: preface::encode(self.magic, token) })
    }

    /// Tell the peer that it is proven.
    ///
    /// # Errors
    /// [`TransportError::Lost`].
    pub fn welcome(&self, socket: &Socket, peer: SocketAddr) -> Result<()> {
        // Four bytes into an empty send buffer: the kernel takes them whole or the connection is gone.
        let sent = socket.send_with_flags(ACCEPTED, libc::MSG_NOSIGNAL);
        sent.map(drop).map_err(|error| self.lost(peer, &error))
    }

    /// An open connection failed.
    pub fn lost(&self, peer: SocketAddr, error: &io::Error) -> TransportError {
        TransportError::Lost(format!("the {} {} with {peer} broke: {error}", self.name, self.connection))
    }

    /// There is no connection yet.
    pub fn none(&self) -> TransportError {
        TransportError::Lost(format!("the {} flow has no {} yet", self.name, self.connection))
    }

    fn bind(&self, socket: &Socket, local: SocketAddr) -> Result<()> {
        socket.bind(&local.into()).map_err(TransportError::io(format!("bind {} {local}", self.name)))
    }

    fn refused(&self, remote: SocketAddr, error: &io::Error) -> TransportError {
        TransportError::Refused(format!("cannot connect to {} {remote}: {error}", self.name))
    }

    fn ask(&self, socket: Socket, remote: SocketAddr, preface: Preface) -> Result<Step> {
        let failed = socket.take_error().map_err(TransportError::io("ask for the socket's error"))?;
        if let Some(error) = failed {
            return Err(self.refused(remote, &error));
        }
        match socket.send_with_flags(&preface, libc::MSG_NOSIGNAL) {
            Ok(length) if length == preface.len() => {
                Ok(Step::Waiting(Opening::Asking { socket, remote, answer: Vec::new() }))
            }
            Ok(_) => Err(TransportError::Lost("the kernel took only a part of the preface".into())),
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    || error.raw_os_error().is_some_and(|code| self.under_way.contains(&code)) =>
            {
                Ok(Step::Waiting(Opening::Connecting { socket, remote, preface }))
            }
            Err(error) => Err(self.refused(remote, &error)),
        }
    }

    fn read_answer(&self, socket: Socket, remote: SocketAddr, mut answer: Vec<u8>) -> Result<Step> {
        let mut bytes = [0; ACCEPTED.len()];
        let wanted = ACCEPTED.len() - answer.len();
        match read(&socket, &mut bytes[..wanted]) {
            Ok(0) => Err(TransportError::Refused(format!(
                "{remote} closed the {} without accepting the flow",
                self.connection
            ))),
            Ok(length) => {
                answer.extend_from_slice(&bytes[..length]);
                match preface::judge(&answer, ACCEPTED) {
                    Verdict::Proven => Ok(Step::Open(socket, remote)),
                    Verdict::More => Ok(Step::Waiting(Opening::Asking { socket, remote, answer })),
                    Verdict::Wrong => {
                        Err(TransportError::Refused(format!("{remote} is not a netjoule server")))
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(Step::Waiting(Opening::Asking { socket, remote, answer }))
            }
            // The preface was taken before the handshake was done.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(self.refused(remote, &error))
            }
            Err(error) => Err(self.lost(remote, &error)),
        }
    }
}

impl Opening {
    /// The socket that has this end's address.
    pub fn socket(&self) -> &Socket {
        match self {
            Self::Listening { candidates, .. } => candidates.socket(),
            Self::Connecting { socket, .. } | Self::Asking { socket, .. } => socket,
        }
    }

    /// Every descriptor to wait for.
    pub fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let fd = self.socket().as_raw_fd();
        match self {
            Self::Listening { candidates, .. } => candidates.poll_fds(fds),
            Self::Connecting { .. } => fds.push(PollFd { fd, read: false, write: true }),
            Self::Asking { .. } => fds.push(PollFd { fd, read: true, write: false }),
        }
    }

    /// Do what can be done now.
    ///
    /// # Errors
    /// The system's, [`TransportError::Refused`] and [`TransportError::Lost`].
    pub fn step(self, stream: &Stream) -> Result<Step> {
        match self {
            Self::Listening { mut candidates, expected } => {
                let proven = candidates.step(&mut |candidate| read_preface(candidate, &expected))?;
                let Some(Candidate { socket, from, .. }) = proven else {
                    return Ok(Step::Waiting(Self::Listening { candidates, expected }));
                };
                Ok(Step::Proven(socket, from))
            }
            Self::Connecting { socket, remote, preface } => stream.ask(socket, remote, preface),
            Self::Asking { socket, remote, answer } => stream.read_answer(socket, remote, answer),
        }
    }
}

/// Read of a candidate's preface what is there, never more: messages may follow.
fn read_preface(candidate: &mut Candidate, expected: &Preface) -> Verdict {
    let mut bytes = [0; PREFACE_BYTES];
    let wanted = expected.len() - candidate.said.len();
    match read(&candidate.socket, &mut bytes[..wanted]) {
        Ok(0) => Verdict::Wrong,
        Ok(length) => {
            candidate.said.extend_from_slice(&bytes[..length]);
            preface::judge(&candidate.said, expected)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Verdict::More,
        Err(_) => Verdict::Wrong,
    }
}

/// Read what is there; 0 bytes at the end of the connection.
///
/// # Errors
/// The system's.
pub fn read(mut socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
    match socket.read(into) {
        // An SCTP association that has ended in peace; an opened TCP connection never says it.
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(0),
        outcome => outcome,
    }
}
