// SPDX-License-Identifier: Apache-2.0
//! The serving end before a client has proved the flow's token.
//!
//! DCCP's own handshake proves the client's address. The first connection that completes it is the candidate; when it
//! names a wrong token, or none in time, it is reset and the next one is heard. The socket stays unconnected until
//! then, so that this works on one port.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::listener::Verdict as Heard;
use netjoule_dccp::{Connection, Listener};
use netjoule_transport::{datagram, random, Result};

use crate::carrier::Carrier;
use crate::ecn;
use crate::link::{readable, Link};
use crate::token::{Judge, Message, Verdict};

/// A candidate that has not proved the token after this long makes room for another, ns.
const PROOF_NS: i64 = 3_000_000_000;
/// Packets read per step, so that a flood does not keep the engine from its other business.
const PACKETS_PER_STEP: usize = 256;
/// Largest packet before data flows: header and token, with room to spare; longer ones are cut and then invalid.
const PACKET_BYTES: usize = 2_048;

#[derive(Debug)]
pub(crate) struct Reception {
    listener: Listener,
    allowed_peer: Option<IpAddr>,
    judge: Judge,
    candidate: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    connection: Box<Connection>,
    peer: SocketAddr,
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

impl Reception {
    pub(crate) fn new(listener: Listener, allowed_peer: Option<IpAddr>, judge: Judge) -> Self {
        Self { listener, allowed_peer, judge, candidate: None }
    }

    /// When [`Self::step`] must be called without a packet.
    pub(crate) fn next_wakeup_ns(&self) -> Option<i64> {
        let candidate = self.candidate.as_ref()?;
        let patience_ns = candidate.accepted_ns + PROOF_NS;
        Some(candidate.connection.next_wakeup_ns().map_or(patience_ns, |at| at.min(patience_ns)))
    }

    /// Read and answer what is waiting; the connection once it is proven.
    pub(crate) fn step<C: Carrier>(&mut self, link: &mut Link<C>, now_ns: i64) -> Result<Option<Proven>> {
        let mut buffer = [0; PACKET_BYTES];
        for _ in 0..PACKETS_PER_STEP {
            let Some(packet) = next(link, &mut buffer)? else { break };
            let from = packet.from;
            if self.allowed_peer.is_some_and(|peer| peer != from.ip()) {
                continue;
            }
            let verdict = self.hear(link, &packet, now_ns)?;
            match (verdict, self.candidate.take()) {
                (Verdict::Proven(answer), Some(Candidate { connection, peer, .. })) => {
                    return Ok(Some(Proven { connection, peer, answer }));
                }
                (Verdict::Wrong, Some(candidate)) => dismiss(candidate, link, now_ns)?,
                (_, candidate) => self.candidate = candidate,
            }
        }
        self.serve_candidate(link, now_ns)?;
        Ok(None)
    }

    /// Give a packet to the candidate when it is the candidate's, else to the listener; what it says about the token.
    fn hear<C: Carrier>(&mut self, link: &mut Link<C>, heard: &Packet<'_>, now_ns: i64) -> Result<Verdict> {
        let Packet { from, ecn, .. } = *heard;
        let packet = link.carrier.packet(heard.bytes);
        let peer = link.carrier.peer_of(from, packet);
        if let Some(candidate) = &mut self.candidate {
            if candidate.peer != peer {
                return Ok(Verdict::Other);
            }
            let payload = candidate.connection.handle(now_ns, ecn, packet);
            return Ok(payload.map_or(Verdict::Other, |payload| self.judge.on_message(payload)));
        }
        match self.listener.handle(now_ns, ecn, peer, packet, &mut random::number) {
            Heard::Ignore => Ok(Verdict::Other),
            Heard::Reply(reply) => {
                link.outbox.set_destination(Some(from));
                link.send(&reply)?;
                Ok(Verdict::Other)
            }
            Heard::Accept { connection, payload } => {
                link.outbox.set_destination(Some(from));
                self.candidate = Some(Candidate { connection, peer, accepted_ns: now_ns });
                Ok(payload.map_or(Verdict::Other, |payload| self.judge.on_message(&payload)))
            }
        }
    }

    /// Send what the candidate has to say; forget it when it is over or silent for too long.
    fn serve_candidate<C: Carrier>(&mut self, link: &mut Link<C>, now_ns: i64) -> Result<()> {
        let Some(candidate) = &mut self.candidate else { return Ok(()) };
        link.transmit(&mut candidate.connection, now_ns)?;
        let over = candidate.connection.end().is_some();
        if over || now_ns >= candidate.accepted_ns + PROOF_NS {
            if let Some(candidate) = self.candidate.take() {
                dismiss(candidate, link, now_ns)?;
            }
        }
        Ok(())
    }
}

/// The next packet that is waiting. Its ECN field counts here too: the client's Acks and its question leave as ECT(0).
fn next<'a, C: Carrier>(link: &Link<C>, buffer: &'a mut [u8]) -> Result<Option<Packet<'a>>> {
    let received = readable(datagram::receive_one(link.carrier.socket().as_raw_fd(), buffer))?;
    Ok(received.map(|one| Packet { bytes: &buffer[..one.length], from: one.from, ecn: ecn::field(one.ecn) }))
}

fn dismiss<C: Carrier>(mut candidate: Candidate, link: &mut Link<C>, now_ns: i64) -> Result<()> {
    candidate.connection.abort(now_ns);
    link.transmit(&mut candidate.connection, now_ns)
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
