// SPDX-License-Identifier: Apache-2.0
//! The passive end before a connection exists: LISTEN (RFC 4340 section 8.1), Init Cookies (section 8.1.4), and
//! simultaneous open (RFC 5596).
//!
//! | question | module |
//! | --- | --- |
//! | what about this packet? | here |
//! | what does an Init Cookie say, and is it ours? | `cookie` |
//! | whom do we invite? (RFC 5596) | `invitation` |

mod cookie;
mod invitation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::ccid::Ecn;
use crate::checksum;
use crate::connection::{
    stray_reset, Addressing, Carriage, Ccids, Config, Connection, State, Transmit, MSL_NS, SECOND_NS,
};
use crate::options::DccpOption;
use crate::packet::{Packet, PacketType, WireSeq};
use crate::reset::ResetCode;
use crate::seqno::Seq48;
use cookie::{Cookie, Secret};
use invitation::{Invitation, Key};

/// A server may leave RESPOND after 4 MSL (RFC 4340 section 8.1.3).
const RESPOND_NS: i64 = 4 * MSL_NS;
/// Resets a second (RFC 4340 section 8.1.3).
const MAX_RESETS_PER_SECOND: u32 = 1024;
/// Before an address is proven, no more than this many times the bytes that came from it are sent to it.
const AMPLIFICATION: usize = 3;
/// No service has this code (RFC 4340 section 8.1.2).
const INVALID_SERVICE_CODE: u32 = u32::MAX;
/// Expiries of handshakes that are over, kept beyond twice the backlog.
const SPARE_EXPIRIES: usize = 16;
/// Most invitations at a time.
const MAX_INVITATIONS: usize = 64;

/// What to do about a packet.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing.
    Ignore,
    /// Send this packet back to where the other came from (Response with a cookie, Reset).
    Reply(Vec<u8>),
    /// The handshake is complete, the peer's address is proven: give its further packets to this connection and call its
    /// `poll_transmit` at once. The packet that completed it may have carried data.
    Accept {
        /// The connection, in state OPEN.
        connection: Box<Connection>,
        /// Application data of the packet just handled.
        payload: Option<Vec<u8>>,
    },
}

#[derive(Debug)]
struct HalfOpen {
    connection: Connection,
    received_bytes: usize,
    sent_bytes: usize,
}

impl HalfOpen {
    /// What may still be sent to the unproven address.
    fn budget_bytes(&self) -> usize {
        (self.received_bytes.saturating_mul(AMPLIFICATION)).saturating_sub(self.sent_bytes)
    }
}

/// A listening end. Keeps at most [`Self::new`]'s `backlog` half-open connections; beyond that it answers
/// statelessly with Init Cookies.
#[derive(Debug)]
pub struct Listener {
    config: Config,
    service_codes: Vec<u32>,
    backlog: usize,
    secret: Secret,
    half_open: BTreeMap<Key, HalfOpen>,
    /// When half-open connections expire, in order of age; entries of gone ones stay until their time.
    expiries: VecDeque<(i64, Key, Seq48)>,
    invitations: Vec<Invitation>,
    /// Resets for half-open connections that expired, and since when they are due.
    farewells: VecDeque<(i64, SocketAddr, Vec<u8>)>,
    second_ns: i64,
    resets_this_second: u32,
}

/// A packet being judged.
#[derive(Debug, Clone, Copy)]
struct Arrival<'p, 'a> {
    arrived_ns: i64,
    ecn: Ecn,
    peer: SocketAddr,
    bytes: &'a [u8],
    packet: &'p Packet<'a>,
}

impl Arrival<'_, '_> {
    fn key(&self) -> Key {
        //= rfc6773#3.8
        //# A DCCP-UDP server MUST therefore demultiplex a DCCP-UDP flow using both the UDP source and
        //# destination port numbers and the encapsulated DCCP ports.
        (self.peer, self.packet.source_port)
    }
}

impl Listener {
    //= rfc4340#8.1.2
    //# Endpoints MUST associate a Service Code with every DCCP socket, both actively and passively opened.
    /// `config.remote_port` and `config.carriage`'s remote address are ignored: packets say them. `service_codes`: which are
    /// served. `secret` keys the cookies.
    pub fn new(config: Config, service_codes: Vec<u32>, backlog: usize, secret: [u8; 16]) -> Self {
        Self {
            config,
            service_codes,
            backlog,
            secret: Secret::new(secret),
            half_open: BTreeMap::new(),
            expiries: VecDeque::new(),
            invitations: Vec::new(),
            farewells: VecDeque::new(),
            second_ns: i64::MIN,
            resets_this_second: 0,
        }
    }

    /// Connections whose handshake is not complete.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Judge a packet from `peer` (IP address; port: UDP port when encapsulated, else the DCCP port) that belongs to no
    /// known connection.
    pub fn handle(
        &mut self,
        arrived_ns: i64,
        ecn: Ecn,
        peer: SocketAddr,
        bytes: &[u8],
        random: &mut dyn FnMut() -> u64,
    ) -> Verdict {
        self.expire(arrived_ns);
        let Ok(packet) = Packet::parse(bytes) else {
            return Verdict::Ignore;
        };
        if packet.destination_port != self.config.local_port || !self.checksum_ok(peer, bytes) {
            return Verdict::Ignore;
        }
        let arrival = Arrival { arrived_ns, ecn, peer, bytes, packet: &packet };
        if self.half_open.contains_key(&arrival.key()) {
            return self.continue_handshake(&arrival);
        }
        match packet.kind {
            PacketType::Request => self.on_request(&arrival, random),
            // RFC 5596 section 2.2.2: server endpoints SHOULD ignore Listens. Never a Reset for a Reset.
            PacketType::Listen | PacketType::Reset => Verdict::Ignore,
            _ => self.on_stranger(&arrival),
        }
    }

    fn checksum_ok(&self, peer: SocketAddr, bytes: &[u8]) -> bool {
        match self.config.carriage {
            Carriage::Ip { local, .. } => checksum::verify(peer.ip(), local, bytes),
            //= rfc6773#3.3
            //# On receipt, the DCCP Checksum field MUST be ignored.
            Carriage::Udp { .. } => true,
        }
    }

    /// A packet of a half-open connection.
    fn continue_handshake(&mut self, arrival: &Arrival<'_, '_>) -> Verdict {
        let key = arrival.key();
        let Some(entry) = self.half_open.get_mut(&key) else {
            return Verdict::Ignore;
        };
        entry.received_bytes = entry.received_bytes.saturating_add(arrival.bytes.len());
        entry.connection.limit_packets(Some(entry.budget_bytes()));
        let payload =
            entry.connection.handle(arrival.arrived_ns, arrival.ecn, arrival.bytes).map(<[u8]>::to_vec);
        if entry.connection.state() == State::Respond {
            return reply(entry, arrival.arrived_ns);
        }
        let Some(mut entry) = self.half_open.remove(&key) else {
            return Verdict::Ignore;
        };
        if entry.connection.state() != State::Open {
            return reply(&mut entry, arrival.arrived_ns);
        }
        accept(entry.connection, payload)
    }

    fn on_request(&mut self, arrival: &Arrival<'_, '_>, random: &mut dyn FnMut() -> u64) -> Verdict {
        let code = arrival.packet.service_code.unwrap_or(INVALID_SERVICE_CODE);
        //= rfc4340#8.1.2
        //# If the DCCP-Request's Service Code doesn't equal any of the server's Service Codes for the given port, the server MUST
        //# reject the request by sending a DCCP-Reset packet with Reset Code 8, "Bad Service Code".
        //= rfc4340#8.1.2
        //# Servers MUST reject any DCCP-Request with this Service Code value by sending a DCCP-Reset packet with Reset Code 8, "Bad
        //# Service Code".
        if code == INVALID_SERVICE_CODE || !self.service_codes.contains(&code) {
            return self.refuse(arrival, ResetCode::BadServiceCode);
        }
        let WireSeq::Long(isr) = arrival.packet.seq else {
            return Verdict::Ignore;
        };
        self.invitations.retain(|invitation| invitation.key() != arrival.key());
        let config = self.config_for(arrival, code);
        if self.half_open.len() >= self.backlog {
            return self.respond_statelessly(arrival, config, isr);
        }
        let iss = Seq48::new(random());
        let connection = Connection::respond(config, arrival.arrived_ns, iss, isr, Ccids::default());
        let entry = HalfOpen { connection, received_bytes: 0, sent_bytes: 0 };
        let expires_ns = arrival.arrived_ns.saturating_add(RESPOND_NS);
        self.half_open.insert(arrival.key(), entry);
        self.expiries.push_back((expires_ns, arrival.key(), iss));
        self.compact();
        self.continue_handshake(arrival)
    }

    fn config_for(&self, arrival: &Arrival<'_, '_>, service_code: u32) -> Config {
        let carriage = match self.config.carriage {
            Carriage::Ip { local, .. } => Carriage::Ip { local, remote: arrival.peer.ip() },
            Carriage::Udp { .. } => Carriage::Udp { ip_version: if arrival.peer.is_ipv6() { 6 } else { 4 } },
        };
        Config { carriage, remote_port: arrival.packet.source_port, service_code, ..self.config.clone() }
    }

    fn place(&self, arrival: &Arrival<'_, '_>, service_code: u32) -> cookie::Place {
        cookie::Place {
            peer: arrival.peer,
            remote_port: arrival.packet.source_port,
            local_port: self.config.local_port,
            service_code,
        }
    }

    /// The table is full: a Response whose Init Cookie holds the state instead.
    fn respond_statelessly(&mut self, arrival: &Arrival<'_, '_>, config: Config, isr: Seq48) -> Verdict {
        let place = self.place(arrival, config.service_code);
        let iss = self.secret.response_number(&place, isr);
        let mut entry = HalfOpen {
            connection: Connection::respond(config, arrival.arrived_ns, iss, isr, Ccids::default()),
            received_bytes: arrival.bytes.len(),
            sent_bytes: 0,
        };
        entry.connection.limit_packets(Some(entry.budget_bytes()));
        entry.connection.handle(arrival.arrived_ns, arrival.ecn, arrival.bytes);
        if entry.connection.state() == State::Respond {
            let cookie = Cookie::of(&entry.connection, arrival.arrived_ns);
            let sealed = self.secret.seal(&cookie, &place, iss);
            entry.connection.set_cookie(&sealed);
        }
        reply(&mut entry, arrival.arrived_ns)
    }

    /// Not a Request, from nobody known: an Init Cookie's echo, or a mistake.
    fn on_stranger(&mut self, arrival: &Arrival<'_, '_>) -> Verdict {
        if arrival.packet.kind != PacketType::Data {
            if let Some(verdict) = self.on_cookie(arrival) {
                return verdict;
            }
        }
        self.refuse(arrival, ResetCode::NoConnection)
    }

    fn on_cookie(&mut self, arrival: &Arrival<'_, '_>) -> Option<Verdict> {
        let echoed = arrival.packet.options().find_map(|option| match option {
            DccpOption::InitCookie(cookie) => Some(cookie),
            _ => None,
        })?;
        let Some(WireSeq::Long(iss)) = arrival.packet.ack else {
            return None;
        };
        let opened = self.service_codes.iter().find_map(|&service_code| {
            let place = self.place(arrival, service_code);
            let cookie = self.secret.open(echoed, &place, iss)?;
            Some((service_code, self.secret.request_number(&place, iss), cookie))
        });
        let fresh = opened.filter(|(_, _, cookie)| cookie.is_fresh(arrival.arrived_ns));
        let Some((service_code, isr, cookie)) = fresh else {
            //= rfc4340#8.1.4
            //# it SHOULD respond to a tampered Init Cookie option by resetting the connection with Reset Code 10, "Bad Init
            //# Cookie".
            return Some(self.refuse(arrival, ResetCode::BadInitCookie));
        };
        let config = self.config_for(arrival, service_code);
        let mut connection = Connection::respond(config, arrival.arrived_ns, iss, isr, Ccids::default());
        cookie.restore(&mut connection, arrival.arrived_ns);
        let payload = connection.handle(arrival.arrived_ns, arrival.ecn, arrival.bytes).map(<[u8]>::to_vec);
        if connection.state() == State::Open {
            return Some(accept(connection, payload));
        }
        let mut entry = HalfOpen { connection, received_bytes: arrival.bytes.len(), sent_bytes: 0 };
        Some(reply(&mut entry, arrival.arrived_ns))
    }

    /// Answer with a Reset, not too many a second.
    fn refuse(&mut self, arrival: &Arrival<'_, '_>, code: ResetCode) -> Verdict {
        let now_ns = arrival.arrived_ns;
        if now_ns < self.second_ns || now_ns.saturating_sub(self.second_ns) >= SECOND_NS {
            self.second_ns = now_ns;
            self.resets_this_second = 0;
        }
        self.resets_this_second += 1;
        if self.resets_this_second > MAX_RESETS_PER_SECOND {
            return Verdict::Ignore;
        }
        let config = self.config_for(arrival, 0);
        let addressing = Addressing {
            carriage: config.carriage,
            local_port: config.local_port,
            remote_port: config.remote_port,
            service_code: 0,
        };
        let mut out = Vec::new();
        addressing.write_stray(&stray_reset(arrival.packet, code), &mut out);
        if out.is_empty() || out.len() > arrival.bytes.len() * AMPLIFICATION {
            return Verdict::Ignore;
        }
        Verdict::Reply(out)
    }

    /// Forget half-open connections that are too old; a Reset cleans up at the client.
    fn expire(&mut self, now_ns: i64) {
        while let Some(&(expires_ns, key, iss)) = self.expiries.front() {
            let gone = self.half_open.get(&key).is_none_or(|entry| entry.connection.first_sent() != iss);
            if !gone && expires_ns > now_ns {
                return;
            }
            self.expiries.pop_front();
            if gone {
                continue;
            }
            if let Some(mut entry) = self.half_open.remove(&key) {
                entry.connection.limit_packets(Some(entry.budget_bytes()));
                entry.connection.abort(now_ns);
                if let (Verdict::Reply(packet), true) =
                    (reply(&mut entry, now_ns), self.farewells.len() < self.backlog)
                {
                    self.farewells.push_back((expires_ns, key.0, packet));
                }
            }
        }
    }

    /// Entries of handshakes that are over must not pile up behind one that is not.
    fn compact(&mut self) {
        if self.expiries.len() <= 2 * self.backlog + SPARE_EXPIRIES {
            return;
        }
        let half_open = &self.half_open;
        self.expiries.retain(|(_, key, iss)| {
            half_open.get(key).is_some_and(|entry| entry.connection.first_sent() == *iss)
        });
    }

    /// Invite a client (RFC 5596): send it up to three Listens, so that middleboxes on this side let its Request in.
    pub fn invite(&mut self, now_ns: i64, peer: SocketAddr, remote_port: u16, service_code: u32) {
        if self.invitations.len() < MAX_INVITATIONS && self.service_codes.contains(&service_code) {
            self.invitations.push(Invitation::new(now_ns, peer, remote_port, service_code));
        }
    }

    /// Append the next packet that is due of its own accord (a Listen of [`Self::invite`], a Reset for a handshake that was
    /// never completed) to `out` and say whither. Call until `None`.
    pub fn poll_transmit(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<(SocketAddr, Transmit)> {
        self.expire(now_ns);
        if let Some((_, peer, packet)) = self.farewells.pop_front() {
            out.extend_from_slice(&packet);
            return Some((peer, Transmit::not_ect(packet.len())));
        }
        self.invitations.retain(|invitation| !invitation.is_over(now_ns));
        let config = &self.config;
        self.invitations.iter_mut().find_map(|invitation| {
            let bytes = invitation.send(now_ns, config, out)?;
            Some((invitation.key().0, Transmit::not_ect(bytes)))
        })
    }

    /// When [`Self::poll_transmit`] has something to say.
    pub fn next_wakeup_ns(&self) -> Option<i64> {
        let farewell = self.farewells.front().map(|&(due_ns, ..)| due_ns);
        let expiry = self.expiries.front().map(|&(expires_ns, ..)| expires_ns);
        let invitation = self.invitations.iter().map(Invitation::due_ns).min();
        [farewell, expiry, invitation].into_iter().flatten().min()
    }
}

/// The next packet of a connection whose peer is not proven, within its budget.
fn reply(entry: &mut HalfOpen, now_ns: i64) -> Verdict {
    let mut out = Vec::new();
    let made = entry.connection.poll_transmit(now_ns, &mut out).is_some();
    if !made || out.len() > entry.budget_bytes() {
        return Verdict::Ignore;
    }
    entry.sent_bytes += out.len();
    Verdict::Reply(out)
}

fn accept(mut connection: Connection, payload: Option<Vec<u8>>) -> Verdict {
    connection.limit_packets(None);
    Verdict::Accept { connection: Box::new(connection), payload }
}
