// SPDX-License-Identifier: Apache-2.0
//! Where control connections wait until they have said who they are and what they want, and a place is free for them.
//!
//! All of them are served by one thread that never waits for one. What strangers can take is bounded: connections,
//! their time, the bytes that are kept of them. Who is turned away is told why and given a moment to read it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use netjoule_transport::PollFd;

use super::peer_counts::{self, PeerCounts};
use crate::control::greeting::{Greeting, Guest, Step};
use crate::control::secret::Secret;
use crate::control::{self, Message};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;

/// How long a client may take for its whole greeting, ns.
pub(crate) const GREETING_NS: i64 = 5_000_000_000;
/// How long a client waits for a flow that is just ending before it is told that the server is busy, ns.
const PATIENCE_NS: i64 = 1_000_000_000;
/// How long who was turned away may take to go, ns.
const LEAVING_NS: i64 = 1_000_000_000;
/// How many bytes of it are read meanwhile, so that the refusal is not lost with a reset.
const LEAVING_BYTES: usize = 1 << 20;
/// Most bytes that are kept of all who greet or have greeted: 4,096 clients that mean it take 20 MB.
const KEPT_BYTES: usize = 32 << 20;
/// New connections taken at once before the others are looked at again.
const ACCEPTS: usize = 64;
/// How long the door stays shut when the system has no descriptors or memory left, ns.
const SHUT_NS: i64 = 100_000_000;

/// A client that may come in, and its connection.
pub(crate) struct Entry {
    pub(crate) stream: TcpStream,
    pub(crate) peer: IpAddr,
    pub(crate) guest: Guest,
}

/// The listener and everybody who waits, in order of arrival.
pub(crate) struct AcceptQueue {
    listener: Option<TcpListener>,
    pending: Vec<Pending>,
    most: usize,
    secret: Option<Secret>,
    /// Given up for a moment to turn somebody away when no other descriptor is left.
    spare: Option<File>,
    shut_until_ns: i64,
}

struct Pending {
    stream: TcpStream,
    peer: IpAddr,
    stage: Stage,
    deadline_ns: i64,
}

enum Stage {
    Greeting(Greeting),
    /// Has said all; waits for a place.
    Ready(Box<Guest>),
    /// Was turned away; bytes read since.
    Leaving(usize),
}

impl AcceptQueue {
    /// Let up to `most` connections wait. Who does not know `secret` does not come in.
    pub(crate) fn open(listener: TcpListener, most: usize, secret: Option<Secret>) -> Outcome<Self> {
        listener.set_nonblocking(true).map_err(Failure::system("prepare the control port"))?;
        let spare = File::open("/dev/null").map_err(Failure::system("keep a descriptor in reserve"))?;
        Ok(Self {
            listener: Some(listener),
            pending: Vec::new(),
            most,
            secret,
            spare: Some(spare),
            shut_until_ns: 0,
        })
    }

    /// Close the door and everything behind it.
    pub(crate) fn close(&mut self) {
        self.listener = None;
        self.pending.clear();
        self.spare = None;
    }

    /// Descriptors to wait for: the door, then each client in order.
    pub(crate) fn poll_fds(&self, now_ns: i64, fds: &mut Vec<PollFd>) {
        let Some(listener) = &self.listener else { return };
        let door = PollFd { fd: listener.as_raw_fd(), read: now_ns >= self.shut_until_ns, write: false };
        let pending = self.pending.iter().map(|client| PollFd {
            fd: client.stream.as_raw_fd(),
            // What a ready one says early stays in its connection; its end is told in any case.
            read: !matches!(client.stage, Stage::Ready(_)),
            write: false,
        });
        fds.extend(std::iter::once(door).chain(pending));
    }

    /// When [`Self::serve`] has something to do though nobody speaks.
    pub(crate) fn next_deadline_ns(&self, now_ns: i64) -> Option<i64> {
        let door = (self.shut_until_ns > now_ns).then_some(self.shut_until_ns);
        self.pending.iter().map(|client| client.deadline_ns).chain(door).min()
    }

    /// Hear who has spoken, turn away whose time is up, let new ones in. `ready` is of [`Self::poll_fds`]'s descriptors.
    pub(crate) fn serve(&mut self, now_ns: i64, ready: &dyn Fn(usize) -> bool) {
        let secret = self.secret.as_ref();
        let mut place = 0;
        self.pending.retain_mut(|client| {
            place += 1;
            (!ready(place) || client.hear(now_ns, secret)) && client.keeps_time(now_ns)
        });
        while self.pending.iter().map(Pending::held_bytes).sum::<usize>() > KEPT_BYTES {
            self.turn_biggest_away(now_ns);
        }
        if ready(0) && now_ns >= self.shut_until_ns {
            self.accept(now_ns);
        }
    }

    /// The first who is ready and may have a place.
    pub(crate) fn take(&mut self, may_enter: impl Fn(IpAddr, &Guest) -> bool) -> Option<Entry> {
        let waits = |client: &Pending| match &client.stage {
            Stage::Ready(guest) => may_enter(client.peer, guest),
            _ => false,
        };
        let Pending { stream, peer, stage, .. } = self.pending.remove(self.pending.iter().position(waits)?);
        match stage {
            Stage::Ready(guest) => Some(Entry { stream, peer, guest: *guest }),
            _ => None,
        }
    }

    fn accept(&mut self, now_ns: i64) {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, from)) => self.admit(stream, peer_counts::host_of(from.ip()), now_ns),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if is_exhaustion(&error) => {
                    self.turn_next_away();
                    self.shut_until_ns = now_ns + SHUT_NS;
                    return;
                }
                // Somebody who has gone again (accept(2) tells the new socket's errors, too).
                Err(_) => {}
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: IpAddr, now_ns: i64) {
        if self.pending.len() >= self.most {
            self.make_room(now_ns);
        }
        if stream.set_nonblocking(true).is_ok() {
            let deadline_ns = now_ns + GREETING_NS;
            let stage = Stage::Greeting(Greeting::default());
            self.pending.push(Pending { stream, peer, stage, deadline_ns });
        }
    }

    /// Where the queue is full, room is made: the oldest who is leaving anyway, else the oldest of the host that has most.
    fn make_room(&mut self, now_ns: i64) {
        let leaving = self.pending.iter().position(|client| matches!(client.stage, Stage::Leaving(_)));
        let place = leaving.or_else(|| {
            let counts: PeerCounts = self.pending.iter().map(|client| client.peer).collect();
            let greatest = counts.greatest()?;
            self.pending.iter().position(|client| client.peer == greatest)
        });
        if let Some(place) = place {
            let mut client = self.pending.remove(place);
            client.turn_away(&busy("too many control connections wait at this server"), now_ns);
        }
    }

    fn turn_biggest_away(&mut self, now_ns: i64) {
        if let Some(client) = self.pending.iter_mut().max_by_key(|client| client.held_bytes()) {
            client.turn_away(&busy("this server keeps too many long greetings"), now_ns);
        }
    }

    /// Tell the next one in the queue that nothing is left, with the descriptor that was kept for it.
    fn turn_next_away(&mut self) {
        self.spare = None;
        if let Some(Ok((mut stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            let _ = stream.set_nonblocking(true);
            tell(&mut stream, &control::failure_message(&busy("this server can open no further file")));
        }
        self.spare = File::open("/dev/null").ok();
    }
}

impl Pending {
    fn held_bytes(&self) -> usize {
        match &self.stage {
            Stage::Greeting(greeting) => greeting.held_bytes(),
            Stage::Ready(guest) => guest.held_bytes(),
            Stage::Leaving(_) => 0,
        }
    }

    /// Read once; false when it has gone.
    fn hear(&mut self, now_ns: i64, secret: Option<&Secret>) -> bool {
        let mut bytes = [0; 16 << 10];
        let length = match self.stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(length) => length,
            Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        match &mut self.stage {
            Stage::Greeting(greeting) => {
                let mut fresh_nonce =
                    || host::random_bytes().map_err(Failure::system("draw a nonce for a client"));
                match greeting.hear(&bytes[..length], secret, &mut fresh_nonce) {
                    Ok(Step::More) => {}
                    Ok(Step::Say(message)) => return tell(&mut self.stream, &message),
                    Ok(Step::Enter(guest)) => {
                        self.stage = Stage::Ready(guest);
                        self.deadline_ns = now_ns + PATIENCE_NS;
                    }
                    Err(failure) => self.turn_away(&failure, now_ns),
                }
                true
            }
            Stage::Leaving(read) => {
                *read += length;
                *read < LEAVING_BYTES
            }
            // It was told to wait, and its end or its impatience is the same.
            Stage::Ready(_) => false,
        }
    }

    /// False when its time is over for good.
    fn keeps_time(&mut self, now_ns: i64) -> bool {
        if now_ns < self.deadline_ns {
            return true;
        }
        let failure = match &self.stage {
            Stage::Greeting(_) => Failure::new(
                Code::Timeout,
                format!("no complete greeting within {} s", GREETING_NS / 1_000_000_000),
            ),
            Stage::Ready(_) => busy("the server is busy with another flow"),
            Stage::Leaving(_) => return false,
        };
        self.turn_away(&failure, now_ns);
        true
    }

    fn turn_away(&mut self, failure: &Failure, now_ns: i64) {
        tell(&mut self.stream, &control::failure_message(failure));
        let _ = self.stream.shutdown(Shutdown::Write);
        self.stage = Stage::Leaving(0);
        self.deadline_ns = now_ns + LEAVING_NS;
    }
}

/// Say something short to somebody who has heard little so far; false when it cannot be said without waiting.
pub(crate) fn tell(stream: &mut TcpStream, message: &Message) -> bool {
    let line = control::encode(message);
    stream.write(line.as_bytes()).is_ok_and(|length| length == line.len())
}

fn busy(why: &str) -> Failure {
    Failure::new(Code::Busy, format!("{why}; try again later"))
}

/// Whether accepting failed because this host has run out of something.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests;
