// SPDX-License-Identifier: Apache-2.0
//! Who of those that knock is the flow's peer?
//!
//! The first one that finishes a QUIC handshake (so it receives at its address) and shows the flow's
//! token. Others are turned away without harm to it, and get at most three times the bytes they sent
//! before their address is proven (RFC 9000 section 8.1, kept by quiche).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Instant;

use netjoule_transport::TOKEN_BYTES;

use crate::certificate::{Fingerprint, Identity};
use crate::config::Options;
use crate::driver::Driver;
use crate::endpoint::{Endpoint, PACKET_BUFFER_BYTES, READ_BATCH};
use crate::error::QuicError;
use crate::greeting::{Greeting, Progress};
use crate::qlog::EventLog;
use crate::wire::{route_mtu_bytes, Wire};

/// How many may be in the middle of knocking; a further one replaces the oldest.
const MAX_CANDIDATES: usize = 8;

struct Candidate {
    driver: Driver,
    greeting: Greeting,
    /// The token was right. With early data that is known before the handshake is done, which proves the address.
    is_proven: bool,
    log: Option<EventLog>,
}

/// A listening end.
pub(crate) struct Listener {
    wire: Wire,
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
    /// Listens on `wire`'s address; `connection_id` goes into the peer's packets; the proven peer's connection is recorded in
    /// `event_log`.
    pub(crate) fn new(
        wire: Wire,
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

    pub(crate) fn wire(&self) -> &Wire {
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
            match self.wire.receive(&mut buffer) {
                Ok(Some(received)) => self.dispatch(&mut buffer[..received.len], received.from)?,
                Ok(None) => break,
                // Of somebody who has gone away meanwhile.
                Err(QuicError::NobodyListens | QuicError::NoPath { .. }) => (),
                Err(error) => return Err(error),
            }
        }
        let mut index = 0;
        while index < self.candidates.len() {
            match advance(&mut self.candidates[index], &mut self.wire) {
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
        let Candidate { driver, log, .. } = self.candidates.swap_remove(0);
        if let Some((log, stem)) = log.zip(self.event_log) {
            log.keep(&stem)?;
        }
        self.wire.connect(driver.peer())?;
        let mut endpoint = Endpoint::new(driver, self.wire);
        endpoint.flush()?;
        Ok(Ok(endpoint))
    }

    fn dispatch(&mut self, packet: &mut [u8], from: SocketAddr) -> Result<(), QuicError> {
        if self.allowed_peer.is_some_and(|allowed| allowed != from.ip()) {
            return Ok(());
        }
        if let Some(known) = self.candidates.iter_mut().find(|candidate| candidate.driver.peer() == from) {
            known.driver.receive(packet);
        } else if opens_a_connection(packet) {
            let mut driver = self.accept(from)?;
            let log = self.event_log.is_some().then(EventLog::held);
            if let Some(log) = &log {
                log.attach(&mut driver.quic, "server");
            }
            driver.receive(packet);
            if self.candidates.len() == MAX_CANDIDATES {
                self.candidates.remove(0);
            }
            let greeting = Greeting::server(self.token);
            self.candidates.push(Candidate { driver, greeting, is_proven: false, log });
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
    quiche::Header::from_slice(packet, 0).is_ok_and(|header| {
        header.ty == quiche::Type::Initial && quiche::version_is_supported(header.version)
    })
}

/// Does for one candidate what is due.
fn advance(candidate: &mut Candidate, wire: &mut Wire) -> Progress {
    let Candidate { driver, greeting, is_proven, .. } = candidate;
    if driver.timeout_at().is_some_and(|at| at <= Instant::now()) {
        driver.on_timeout();
    }
    let mut progress = Progress::Underway;
    if !*is_proven && driver.carries_data() {
        progress = greeting.advance(&mut driver.quic).unwrap_or(Progress::Wrong);
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
    let mut out = [0; PACKET_BUFFER_BYTES];
    while let Ok(Some(transmit)) = driver.transmit(&mut out) {
        wire.send_to(&out[..transmit.len], driver.peer());
    }
    if driver.health().is_err() {
        return Progress::Wrong;
    }
    progress
}
