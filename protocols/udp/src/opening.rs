// SPDX-License-Identifier: Apache-2.0
//! How does an end get from a socket to an open flow? The handshake's datagrams over the socket, and what the way says.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket::is_unreachable;
use netjoule_sockets::{datagram, random};
use netjoule_transport::{Result, TransportError};
use socket2::Socket;

use crate::handshake::{Acceptor, Initiator, Token, DATAGRAM_BYTES};

/// Who waits for what.
enum Phase {
    Accepting(Acceptor),
    Initiating(Initiator),
    Open,
}

/// An end's way to its peer.
pub(crate) struct Opening {
    phase: Phase,
    /// The server's half stays after opening: a repeated PROOF means that our ACCEPTED was lost.
    acceptor: Option<Acceptor>,
    peer: Option<SocketAddr>,
}

impl Opening {
    /// The client's, whose socket is connected to `remote`.
    pub(crate) fn initiate(token: Token, remote: SocketAddr, now_ns: i64) -> Self {
        let phase = Phase::Initiating(Initiator::new(token, now_ns));
        Self { phase, acceptor: None, peer: Some(remote) }
    }

    /// The server's; only `allowed_peer` is accepted.
    pub(crate) fn accept(token: Token, allowed_peer: Option<IpAddr>) -> Self {
        Self { phase: Phase::Accepting(Acceptor::new(token, allowed_peer)), acceptor: None, peer: None }
    }

    /// The other end, as soon as it is known.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Whether the peer is proven.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether this is a server that is open.
    pub(crate) fn has_accepted(&self) -> bool {
        self.acceptor.is_some()
    }

    /// When [`Self::step`] has something to send.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        match &self.phase {
            Phase::Initiating(initiator) => Some(initiator.due_ns()),
            Phase::Accepting(_) | Phase::Open => None,
        }
    }

    /// Read and answer what is waiting.
    pub(crate) fn step(&mut self, socket: &Socket, now_ns: i64) -> Result<()> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Open) {
            Phase::Accepting(acceptor) => self.accept_step(socket, acceptor)?,
            Phase::Initiating(initiator) => self.initiate_step(socket, initiator, now_ns)?,
            Phase::Open => Phase::Open,
        };
        Ok(())
    }

    /// Read one datagram with its sender during the handshake.
    fn read_one(&self, socket: &Socket) -> Result<Option<([u8; DATAGRAM_BYTES + 1], usize, SocketAddr)>> {
        let mut bytes = [0_u8; DATAGRAM_BYTES + 1];
        match datagram::receive_one(socket.as_raw_fd(), &mut bytes) {
            Ok(received) => Ok(received.map(|one| (bytes, one.length, one.from))),
            Err(error) if is_unreachable(&error) => self.refused_while_connecting(&error).map(|()| None),
            Err(error) => Err(TransportError::io("receive a UDP datagram")(error)),
        }
    }

    fn accept_step(&mut self, socket: &Socket, mut acceptor: Acceptor) -> Result<Phase> {
        while let Some((bytes, length, from)) = self.read_one(socket)? {
            let verdict = acceptor.on_datagram(&bytes[..length], from, &mut random::bytes);
            if verdict.proven {
                socket.connect(&from.into()).map_err(TransportError::io(format!("connect UDP to {from}")))?;
                self.peer = Some(from);
                self.discard_waiting(socket)?;
                send_quietly(socket, verdict.reply.as_ref());
                self.acceptor = Some(acceptor);
                return Ok(Phase::Open);
            }
            if let Some(reply) = verdict.reply {
                // A lost reply is repeated when the client asks again.
                let _ = socket.send_to(&reply, &from.into());
            }
        }
        Ok(Phase::Accepting(acceptor))
    }

    /// Before the socket was connected anyone could have queued datagrams; the peer sends none before ACCEPTED.
    fn discard_waiting(&self, socket: &Socket) -> Result<()> {
        while self.read_one(socket)?.is_some() {}
        Ok(())
    }

    fn initiate_step(&mut self, socket: &Socket, mut initiator: Initiator, now_ns: i64) -> Result<Phase> {
        while let Some((bytes, length, _)) = self.read_one(socket)? {
            if initiator.on_datagram(&bytes[..length], now_ns) {
                return Ok(Phase::Open);
            }
        }
        if let Some(datagram) = initiator.on_time(now_ns) {
            if let Err(error) = socket.send(&datagram) {
                self.refused_while_connecting(&error)?;
            }
        }
        Ok(Phase::Initiating(initiator))
    }

    /// A closed port ends a client's attempt; any other trouble on the way may pass and is left to repetition.
    fn refused_while_connecting(&self, error: &io::Error) -> Result<()> {
        match self.peer {
            Some(peer) if self.acceptor.is_none() && error.raw_os_error() == Some(libc::ECONNREFUSED) => {
                Err(TransportError::Refused(format!("nobody listens on UDP {peer}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// A sending server reads what still comes of the handshake until its first message shows that the client is open.
    pub(crate) fn answer_waiting(&mut self, socket: &Socket) -> Result<()> {
        while let Some((bytes, length, _)) = self.read_one(socket)? {
            self.answer(socket, &bytes[..length]);
        }
        Ok(())
    }

    /// Answer a repeated datagram of the peer's.
    pub(crate) fn answer(&mut self, socket: &Socket, bytes: &[u8]) {
        let (Some(acceptor), Some(peer)) = (&mut self.acceptor, self.peer) else { return };
        let verdict = acceptor.on_datagram(bytes, peer, &mut random::bytes);
        send_quietly(socket, verdict.reply.as_ref());
    }
}

/// Send a handshake datagram; a failure is like a loss on the way and is repaired by repetition.
fn send_quietly(socket: &Socket, datagram: Option<&[u8; DATAGRAM_BYTES]>) {
    if let Some(datagram) = datagram {
        let _ = socket.send(datagram);
    }
}
