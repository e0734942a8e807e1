// SPDX-License-Identifier: Apache-2.0
//! Who of those that knock is the flow's peer?
//!
//! The first one that finishes a QUIC handshake (so it receives at its address) and shows the flow's
//! token. Others are turned away without harm to it, and get at most three times the bytes they sent
//! before their address is proven. quiche takes short Initials and counts no padding: both are seen to here.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Instant;

use netjoule_sockets::datagram::UDP_HEADER_BYTES;
use netjoule_transport::TOKEN_BYTES;

use crate::certificate::Identity;
use crate::config::Options;
use crate::driver::Driver;
use crate::endpoint::{Endpoint, READ_BATCH};
use crate::error::QuicError;
use crate::fingerprint::Fingerprint;
use crate::path::packet_io::{route_mtu_bytes, PacketIo, PACKET_BUFFER_BYTES};
use crate::path::packet_size::MIN_UDP_PAYLOAD_BYTES;
use crate::qlog::EventLog;
use crate::token_exchange::{Progress, TokenExchange};

/// How many may be in the middle of knocking; a further one replaces the oldest.
const MAX_CANDIDATES: usize = 8;

struct Candidate {
    driver: Driver,
    allowance: Allowance,
    token_exchange: TokenExchange,
    /// The token was right. With early data that is known before the handshake is done, which proves the address.
    is_proven: bool,
    log: Option<EventLog>,
}

/// A listening end.
pub(crate) struct Listener {
    wire: PacketIo,
    local: SocketAddr,
    allowed_peer: Option<IpAddr>,
    token: [u8; TOKEN_BYTES],
    connection_id: Vec<u8>,
    options: Options,
    identity: Identity,
    candidates: Vec<Candidate>,
    event_log: Option<PathBuf>,
}

impl Listener {
    /// Listens on `packet_io`'s address; `connection_id` goes into the peer's packets; the proven peer's connection is recorded in
    /// `event_log`.
    pub(crate) fn new(
        wire: PacketIo,
        allowed_peer: Option<IpAddr>,
        token: [u8; TOKEN_BYTES],
        connection_id: Vec<u8>,
        options: Options,
        event_log: Option<PathBuf>,
    ) -> Result<Self, QuicError> {
        let local = wire.local_address()?;
        let identity = Identity::generate()?;
        Ok(Self {
            wire,
            local,
            allowed_peer,
            token,
            connection_id,
            options,
            identity,
            candidates: Vec::new(),
            event_log,
        })
    }

    pub(crate) fn wire(&self) -> &PacketIo {
        &self.wire
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    pub(crate) fn wakeup_at(&self) -> Option<Instant> {
        self.candidates.iter().filter_map(|candidate| candidate.driver.timeout_at()).min()
    }

    /// Reads and answers; tells whether the peer has proven itself: then call `into_endpoint`.
    pub(crate) fn service(&mut self) -> Result<bool, QuicError> {
        let mut buffer = [0; PACKET_BUFFER_BYTES];
        for _ in 0..READ_BATCH {
            match self.wire.receive_one(&mut buffer) {
                Ok(Some((from, bytes))) => self.dispatch(&mut buffer[..bytes], from)?,
                Ok(None) => break,
                // Of somebody who has gone away meanwhile.
                Err(QuicError::NobodyListens | QuicError::NoPath { .. }) => (),
                Err(error) => return Err(error),
            }
        }
        let mut index = 0;
        while index < self.candidates.len() {
            match self.candidates[index].advance(&mut self.wire) {
                Progress::Done => {
                    self.candidates.swap(0, index);
                    return Ok(true);
                }
                Progress::Underway => index += 1,
                Progress::Wrong => drop(self.candidates.remove(index)),
            }
        }
        Ok(false)
    }

    /// The connection with the proven peer, after `service` said that there is one; else the listener.
    pub(crate) fn into_endpoint(mut self) -> Result<Result<Endpoint, Box<Self>>, QuicError> {
        if self.candidates.is_empty() {
            return Ok(Err(Box::new(self)));
        }
        let Candidate { mut driver, log, .. } = self.candidates.swap_remove(0);
        if let Some((log, stem)) = log.zip(self.event_log) {
            log.keep(&stem)?;
        }
        self.wire.connect(driver.peer())?;
        // What is waiting may be of others; from now on nothing of theirs comes.
        let mut packet = [0; PACKET_BUFFER_BYTES];
        while let Ok(Some((from, bytes))) = self.wire.receive_one(&mut packet) {
            if from == driver.peer() {
                driver.receive(&mut packet[..bytes]);
            }
        }
        let mut endpoint = Endpoint::new(driver, self.wire);
        endpoint.flush()?;
        Ok(Ok(endpoint))
    }

    fn dispatch(&mut self, packet: &mut [u8], from: SocketAddr) -> Result<(), QuicError> {
        let is_a_stranger = self.allowed_peer.is_some_and(|allowed| allowed != from.ip());
        if is_a_stranger || is_short_initial(packet) {
            return Ok(());
        }
        if let Some(known) = self.candidates.iter_mut().find(|candidate| candidate.driver.peer() == from) {
            known.hear(packet);
        } else if opens_a_connection(packet) {
            let mut driver = self.accept(from)?;
            let log = self.event_log.is_some().then(EventLog::held);
            if let Some(log) = &log {
                log.attach(&mut driver.quic, "server");
            }
            let (allowance, token_exchange) = (Allowance::default(), TokenExchange::server(self.token));
            let mut candidate = Candidate { driver, allowance, token_exchange, is_proven: false, log };
            candidate.hear(packet);
            if self.candidates.len() == MAX_CANDIDATES {
                self.candidates.remove(0);
            }
            self.candidates.push(candidate);
        }
        Ok(())
    }

    fn accept(&self, peer: SocketAddr) -> Result<Driver, QuicError> {
        let options = self.options.on_route(route_mtu_bytes(self.local, peer));
        Driver::accept(&options, &self.identity, &self.connection_id, self.local, peer)
    }
}

/// Whether `packet` is the first of a connection in a version that quiche speaks. Anything else is
/// dropped without an answer.
pub(crate) fn opens_a_connection(packet: &mut [u8]) -> bool {
    packet.len() >= MIN_UDP_PAYLOAD_BYTES
        && quiche::Header::from_slice(packet, 0).is_ok_and(|header| {
            header.ty == quiche::Type::Initial && quiche::version_is_supported(header.version)
        })
}

/// RFC 9000 section 14.1: a server must discard an Initial in a datagram of less than 1,200 bytes, whoever sends it.
fn is_short_initial(packet: &mut [u8]) -> bool {
    packet.len() < MIN_UDP_PAYLOAD_BYTES
        && quiche::Header::from_slice(packet, 0).is_ok_and(|header| header.ty == quiche::Type::Initial)
}

/// What may still be said to an address that is not proven (RFC 9000 section 8.1): three times what came from there.
#[derive(Debug, Default)]
struct Allowance {
    left_bytes: usize,
}

impl Allowance {
    const FACTOR: usize = 3;
    /// IPv6 and UDP: what is said pays for its headers, what came does not count them. So the limit holds whichever
    /// way a path's bytes are counted.
    const HEADER_BYTES: usize = 40 + UDP_HEADER_BYTES;

    fn hear(&mut self, datagram_bytes: usize) {
        self.left_bytes += Self::FACTOR * datagram_bytes;
    }

    fn say(&mut self, datagram_bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(datagram_bytes + Self::HEADER_BYTES);
    }

    /// Room for the next datagram in bytes, padding included; `None` when there is none for a whole one.
    fn room_bytes(&self) -> Option<usize> {
        self.left_bytes.checked_sub(Self::HEADER_BYTES).filter(|room| *room >= MIN_UDP_PAYLOAD_BYTES)
    }
}

impl Candidate {
    fn hear(&mut self, packet: &mut [u8]) {
        self.allowance.hear(packet.len());
        self.driver.receive(packet);
    }

    /// Does what is due.
    fn advance(&mut self, wire: &mut PacketIo) -> Progress {
        let Self { driver, token_exchange, is_proven, .. } = self;
        if driver.timeout_at().is_some_and(|at| at <= Instant::now()) {
            driver.on_timeout();
        }
        let mut progress = Progress::Underway;
        if !*is_proven && driver.carries_data() {
            progress = token_exchange.advance(&mut driver.quic).unwrap_or(Progress::Wrong);
            *is_proven = progress == Progress::Done;
        }
        if *is_proven {
            if driver.is_established() {
                // The rest is sent over the connected socket.
                return Progress::Done;
            }
            progress = Progress::Underway;
        }
        if progress == Progress::Wrong {
            driver.turn_away();
        }
        self.answer(wire);
        if self.driver.health().is_err() {
            return Progress::Wrong;
        }
        progress
    }

    /// Sends what the connection has to say, as far as its address may be told.
    fn answer(&mut self, wire: &mut PacketIo) {
        let Self { driver, allowance, .. } = self;
        let mut out = [0; PACKET_BUFFER_BYTES];
        loop {
            // The end of the handshake proves the address.
            let room = if driver.is_established() { Some(out.len()) } else { allowance.room_bytes() };
            let Some(room) = room else { return };
            let room = room.min(out.len());
            let Ok(Some(transmit)) = driver.transmit(&mut out[..room]) else { return };
            allowance.say(transmit.len);
            wire.send_to(&out[..transmit.len], driver.peer());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_to_an_address_stays_under_three_times_what_came_from_it() {
        for datagram_bytes in [1, 600, 1200, 1300, 1472] {
            let mut allowance = Allowance::default();
            let (mut heard, mut said, mut datagrams) = (0, 0, 0);
            for _ in 0..7 {
                allowance.hear(1200);
                heard += 1200;
                while allowance.room_bytes().is_some_and(|room| room >= datagram_bytes) {
                    allowance.say(datagram_bytes);
                    (said, datagrams) = (said + datagram_bytes, datagrams + 1);
                    assert!(datagrams * Allowance::HEADER_BYTES + said <= 3 * heard);
                }
            }
            assert!(datagrams * (Allowance::HEADER_BYTES + datagram_bytes) > 2 * heard, "{datagram_bytes}");
        }
    }

    #[test]
    fn without_room_for_a_whole_datagram_nothing_is_said() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.room_bytes(), None);
        allowance.hear(416);
        assert_eq!(allowance.room_bytes(), Some(1200));
        allowance.say(1);
        assert_eq!(allowance.room_bytes(), None);
    }
}
