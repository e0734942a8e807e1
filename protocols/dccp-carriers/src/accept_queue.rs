// SPDX-License-Identifier: Apache-2.0
//! The serving end before a client has proved the flow's token.
//!
//! DCCP's own handshake proves the client's address. Who completes it is a candidate; when it names a wrong token, or
//! none in time, it is reset, and so is the oldest when there are too many. The socket stays unconnected until one has
//! named the right token, so that this works on one port.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::listener::Verdict as Handled;
use netjoule_dccp::{Connection, Listener};
use netjoule_sockets::{datagram, random};
use netjoule_transport::candidates::CANDIDATES;
use netjoule_transport::Result;

use crate::carrier::Carrier;
use crate::ecn;
use crate::link::{readable, Link};
use crate::token::{Message, Verdict, Verifier};

/// A candidate that has not proved the token after this long is reset, ns.
const PROOF_NS: i64 = 3_000_000_000;
/// Packets read per step, so that a flood does not keep the engine from its other business.
const PACKETS_PER_STEP: usize = 256;
/// Largest packet before data flows: header and token, with room to spare; longer ones are cut and then invalid.
const PACKET_BYTES: usize = 2_048;

#[derive(Debug)]
pub(crate) struct AcceptQueue {
    listener: Listener,
    allowed_peer: Option<IpAddr>,
    verifier: Verifier,
    /// The oldest first.
    candidates: Vec<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    connection: Box<Connection>,
    peer: SocketAddr,
    /// Where its packets come from and go to, which may name no port.
    from: SocketAddr,
    accepted_ns: i64,
}

/// A connection that proved the token.
#[derive(Debug)]
pub(crate) struct Proven {
    pub(crate) connection: Box<Connection>,
    pub(crate) peer: SocketAddr,
    /// What the client waits for.
    pub(crate) answer: Message,
}

/// What the socket gave, from anybody.
struct Packet<'a> {
    bytes: &'a [u8],
    from: SocketAddr,
    ecn: Ecn,
}

impl AcceptQueue {
    pub(crate) fn new(listener: Listener, allowed_peer: Option<IpAddr>, verifier: Verifier) -> Self {
        Self { listener, allowed_peer, verifier, candidates: Vec::new() }
    }

    /// When [`Self::step`] must be called without a packet.
    pub(crate) fn next_wakeup_ns(&self) -> Option<i64> {
        let due_ns = |candidate: &Candidate| {
            let patience_ns = candidate.accepted_ns + PROOF_NS;
            candidate.connection.next_wakeup_ns().map_or(patience_ns, |at| at.min(patience_ns))
        };
        self.candidates.iter().map(due_ns).min()
    }

    /// Read and answer what is waiting; the connection once it is proven.
    pub(crate) fn step<C: Carrier>(&mut self, link: &mut Link<C>, now_ns: i64) -> Result<Option<Proven>> {
        let mut buffer = [0; PACKET_BYTES];
        for _ in 0..PACKETS_PER_STEP {
            let Some(packet) = next(link, &mut buffer)? else { break };
            if self.allowed_peer.is_some_and(|peer| peer != packet.from.ip()) {
                continue;
            }
            if let Some(proven) = self.hear(link, &packet, now_ns)? {
                return Ok(Some(proven));
            }
        }
        self.serve_candidates(link, now_ns)?;
        Ok(None)
    }

    /// Give a packet to the candidate whose it is, else to the listener; the connection that it proves.
    fn hear<C: Carrier>(
        &mut self,
        link: &mut Link<C>,
        received: &Packet<'_>,
        now_ns: i64,
    ) -> Result<Option<Proven>> {
        let packet = link.carrier.packet(received.bytes);
        let peer = link.carrier.peer_of(received.from, packet);
        let known = self.candidates.iter().position(|candidate| candidate.peer == peer);
        let verdict = match known {
            Some(place) => {
                let payload = self.candidates[place].connection.handle(now_ns, received.ecn, packet);
                payload.map_or(Verdict::Other, |payload| self.verifier.on_message(payload))
            }
            None => self.meet(link, received, peer, now_ns)?,
        };
        // Who has just been met is the last.
        let place = known.unwrap_or(self.candidates.len().saturating_sub(1));
        match verdict {
            Verdict::Proven(answer) => {
                let Candidate { connection, peer, .. } = self.candidates.remove(place);
                return Ok(Some(Proven { connection, peer, answer }));
            }
            Verdict::Wrong => dismiss(self.candidates.remove(place), link, now_ns)?,
            Verdict::Other => {}
        }
        Ok(None)
    }

    /// A packet of nobody known; what it says about the token, where it makes its sender the newest candidate.
    fn meet<C: Carrier>(
        &mut self,
        link: &mut Link<C>,
        received: &Packet<'_>,
        peer: SocketAddr,
        now_ns: i64,
    ) -> Result<Verdict> {
        let Packet { from, ecn, .. } = *received;
        let packet = link.carrier.packet(received.bytes);
        match self.listener.handle(now_ns, ecn, peer, packet, &mut random::number) {
            Handled::Ignore => Ok(Verdict::Other),
            Handled::Reply(reply) => {
                link.send_queue.set_destination(Some(from));
                link.send(&reply)?;
                Ok(Verdict::Other)
            }
            Handled::Accept { connection, payload } => {
                if self.candidates.len() == CANDIDATES {
                    dismiss(self.candidates.remove(0), link, now_ns)?;
                }
                self.candidates.push(Candidate { connection, peer, from, accepted_ns: now_ns });
                Ok(payload.map_or(Verdict::Other, |payload| self.verifier.on_message(&payload)))
            }
        }
    }

    /// Send what the candidates have to say; forget those that are over or silent for too long.
    fn serve_candidates<C: Carrier>(&mut self, link: &mut Link<C>, now_ns: i64) -> Result<()> {
        let mut place = 0;
        while let Some(candidate) = self.candidates.get_mut(place) {
            candidate.transmit(link, now_ns)?;
            if candidate.connection.end().is_some() || now_ns >= candidate.accepted_ns + PROOF_NS {
                dismiss(self.candidates.remove(place), link, now_ns)?;
            } else {
                place += 1;
            }
        }
        Ok(())
    }
}

impl Candidate {
    fn transmit<C: Carrier>(&mut self, link: &mut Link<C>, now_ns: i64) -> Result<()> {
        link.send_queue.set_destination(Some(self.from));
        link.transmit(&mut self.connection, now_ns)
    }
}

/// The next packet that is waiting. Its ECN field counts here too: the client's Acks and its question leave as ECT(0).
fn next<'a, C: Carrier>(link: &Link<C>, buffer: &'a mut [u8]) -> Result<Option<Packet<'a>>> {
    let received = readable(datagram::receive_one(link.carrier.socket().as_raw_fd(), buffer))?;
    Ok(received.map(|one| Packet { bytes: &buffer[..one.length], from: one.from, ecn: ecn::field(one.ecn) }))
}

fn dismiss<C: Carrier>(mut candidate: Candidate, link: &mut Link<C>, now_ns: i64) -> Result<()> {
    candidate.connection.abort(now_ns);
    candidate.transmit(link, now_ns)
}

/// After [`Carrier::adopt`]: packets that queued up before, from anybody. The peer's go to its connection.
pub(crate) fn empty_queue<C: Carrier>(link: &Link<C>, proven: &mut Proven, now_ns: i64) -> Result<()> {
    let mut buffer = [0; PACKET_BYTES];
    while let Some(Packet { bytes, from, ecn }) = next(link, &mut buffer)? {
        let packet = link.carrier.packet(bytes);
        if link.carrier.peer_of(from, packet) == proven.peer {
            // Nothing but repeated questions can be in there: the client sends no message before the answer.
            let _ = proven.connection.handle(now_ns, ecn, packet);
        }
    }
    Ok(())
}
