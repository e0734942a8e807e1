// SPDX-License-Identifier: Apache-2.0
//! The server's side of getting connected, for every transport whose kernel accepts connections: of all who connect, the
//! one that proves the flow's token. The protocol's own handshake has proved the client's address by then.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::{PollFd, Result, TransportError};

/// Connections that may wait for their proof at once; one more takes the place of the oldest.
pub const CANDIDATES: usize = 8;

/// What a candidate has said so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not enough to tell.
    More,
    /// It is the flow's peer.
    Proven,
    /// It is somebody else, or gone.
    Wrong,
}

/// A connection that is not proven.
#[derive(Debug)]
pub struct Candidate {
    /// Non-blocking.
    pub socket: Socket,
    /// Its address.
    pub from: SocketAddr,
    /// For whoever judges: what it has said, where that comes in pieces.
    pub said: Vec<u8>,
}

/// A listening socket and those that have connected.
#[derive(Debug)]
pub struct Candidates {
    socket: Socket,
    allowed_peer: Option<IpAddr>,
    /// The oldest first.
    candidates: Vec<Candidate>,
}

impl Candidates {
    /// Listen with `socket`, which is bound and non-blocking; with `allowed_peer` only that address is accepted.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(socket: Socket, allowed_peer: Option<IpAddr>) -> io::Result<Self> {
        socket.listen(CANDIDATES as i32)?;
        Ok(Self { socket, allowed_peer, candidates: Vec::new() })
    }

    /// The listening socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Every descriptor to wait for.
    pub fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let candidates = self.candidates.iter().map(|candidate| &candidate.socket);
        let sockets = std::iter::once(&self.socket).chain(candidates);
        fds.extend(sockets.map(|socket| PollFd { fd: socket.as_raw_fd(), read: true, write: false }));
    }

    /// Take in who knocked and have each judged; the one that is proven, if there is one. Wrong ones are dropped.
    ///
    /// # Errors
    /// The system's.
    pub fn step(&mut self, judge: &mut dyn FnMut(&mut Candidate) -> Verdict) -> Result<Option<Candidate>> {
        let mut index = 0;
        loop {
            // A newcomer is judged before the next one may take its place: it may have said everything already.
            if index == self.candidates.len() && !self.accept()? {
                return Ok(None);
            }
            index = index.min(self.candidates.len() - 1);
            match judge(&mut self.candidates[index]) {
                Verdict::Proven => return Ok(Some(self.candidates.remove(index))),
                Verdict::More => index += 1,
                Verdict::Wrong => drop(self.candidates.remove(index)),
            }
        }
    }

    /// Take in the next who may knock, as the last; false when nobody waits.
    fn accept(&mut self) -> Result<bool> {
        loop {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let Some(from) = from.as_socket() else { continue };
                    let welcome = self.allowed_peer.is_none_or(|peer| peer == from.ip());
                    if welcome && socket.set_nonblocking(true).is_ok() {
                        if self.candidates.len() == CANDIDATES {
                            self.candidates.remove(0);
                        }
                        self.candidates.push(Candidate { socket, from, said: Vec::new() });
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(TransportError::io("accept a connection")(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn listening(allowed_peer: Option<IpAddr>) -> (Candidates, SocketAddr) {
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = netjoule_sockets::socket::stream(local).unwrap();
        socket.bind(&local.into()).unwrap();
        let listening = Candidates::listen(socket, allowed_peer).unwrap();
        let address = listening.socket().local_addr().unwrap().as_socket().unwrap();
        (listening, address)
    }

    #[test]
    fn wrong_ones_make_room_and_the_proven_one_comes_out() {
        let (mut listening, address) = listening(None);
        let streams: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        let second = streams[1].local_addr().unwrap();
        let mut heard = 0;
        let nobody = listening.step(&mut |_| {
            heard += 1;
            Verdict::More
        });
        assert!(nobody.unwrap().is_none() && heard == 3);
        let proven = listening.step(&mut |candidate| match candidate.from == second {
            true => Verdict::Proven,
            false => Verdict::Wrong,
        });
        assert_eq!(proven.unwrap().unwrap().from, second);
        let mut fds = Vec::new();
        listening.poll_fds(&mut fds);
        assert!(fds.len() < 4);
    }

    #[test]
    fn the_oldest_makes_room_and_who_is_not_allowed_takes_none() {
        let (mut open, address) = listening(None);
        let mut all = Vec::new();
        for _ in 0..3 {
            // The backlog holds so many.
            all.extend((0..CANDIDATES / 2).map(|_| TcpStream::connect(address).unwrap()));
            assert!(open.step(&mut |_| Verdict::More).unwrap().is_none());
        }
        let from = |stream: &TcpStream| stream.local_addr().unwrap();
        let mut waiting = Vec::new();
        let last = from(&all[all.len() - 1]);
        let proven = open.step(&mut |candidate| {
            waiting.push(candidate.from);
            if candidate.from == last {
                Verdict::Proven
            } else {
                Verdict::More
            }
        });
        assert_eq!(proven.unwrap().unwrap().from, last);
        assert_eq!(waiting, all[all.len() - CANDIDATES..].iter().map(from).collect::<Vec<_>>());
        let (mut closed, address) = listening(Some("127.0.0.2".parse().unwrap()));
        let _stream = TcpStream::connect(address).unwrap();
        assert!(closed.step(&mut |_| Verdict::Proven).unwrap().is_none());
    }

    #[test]
    fn who_has_said_everything_is_heard_before_those_behind_it_are_let_in() {
        let (mut listening, address) = listening(None);
        let streams: Vec<_> = (0..CANDIDATES).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(listening.step(&mut |_| Verdict::More).unwrap().is_none());
        let true_one = TcpStream::connect(address).unwrap().local_addr().unwrap();
        let _more: Vec<_> = streams.iter().map(|_| TcpStream::connect(address).unwrap()).collect();
        let proven = listening.step(&mut |candidate| match candidate.from == true_one {
            true => Verdict::Proven,
            false => Verdict::More,
        });
        assert_eq!(proven.unwrap().unwrap().from, true_one);
    }
}
