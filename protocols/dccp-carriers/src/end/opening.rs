// SPDX-License-Identifier: Apache-2.0
//! How does an end get from a socket to an open flow? DCCP's handshake, then the token.

use std::net::{IpAddr, SocketAddr};

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::{Config, Connection, Listener, State as Stage};
use netjoule_sockets::datagram::{self, GRO_BYTES};
use netjoule_sockets::random;
use netjoule_transport::{FlowSpec, Result, Role};

use super::{End, Entry};
use crate::accept_queue::{self, AcceptQueue, Proven};
use crate::carrier::Carrier;
use crate::link::Link;
use crate::options::Choice;
use crate::token::{self, Prover, Verifier};
use crate::{queue_length, SERVICE_CODE};

/// Longest DCCP header (RFC 4340 section 5.1: Data Offset is one byte of words) and longest IPv4 header, in bytes.
const HEADER_BYTES: usize = 1_020 + 60;
/// First guess at the MTU, before the socket knows the way.
const USUAL_MTU_BYTES: u32 = 1_500;
/// First Sequence Window; the connection adapts it to the rate.
const SEQUENCE_WINDOW: u64 = 1_000;
/// Half-open connections kept; beyond that the listener answers statelessly.
const BACKLOG: usize = 8;

impl<C: Carrier> End<C> {
    pub(crate) fn connect(
        carrier: C,
        remote: SocketAddr,
        flow: &FlowSpec,
        choice: Choice,
        now_ns: i64,
    ) -> Result<Self> {
        let link = link(carrier, flow, choice.ecn)?;
        let config = config(&link, remote, flow, choice.ccid)?;
        let connection = Connection::connect(config, now_ns, &mut random::number);
        let mut end = Self::new(link, Entry::Proving(Prover::new(flow.token, now_ns)), flow, choice.ccid);
        end.connection = Some(Box::new(connection));
        end.peer = Some(remote);
        end.allow_trains()?;
        Ok(end)
    }

    pub(crate) fn listen(
        carrier: C,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
        choice: Choice,
    ) -> Result<Self> {
        let link = link(carrier, flow, choice.ecn)?;
        let local = link.carrier.local()?;
        let config = config(&link, local, flow, choice.ccid)?;
        let listener = Listener::new(config, vec![SERVICE_CODE], BACKLOG, random::bytes());
        let verifier = Verifier::new(flow.token);
        let accept_queue = Box::new(AcceptQueue::new(listener, allowed_peer, verifier.clone()));
        let mut end = Self::new(link, Entry::Receiving(accept_queue), flow, choice.ccid);
        end.verifier = Some(verifier);
        Ok(end)
    }

    /// The socket is connected: all that arrives is the peer's, and may come in trains.
    fn allow_trains(&self) -> Result<()> {
        if C::TRAINS && self.gso && self.role == Role::Receiver {
            datagram::enable_gro(self.link.carrier.socket())?;
        }
        Ok(())
    }

    /// Server: this is the client.
    pub(super) fn welcome(&mut self, mut proven: Proven, now_ns: i64) -> Result<()> {
        self.link.carrier.adopt(proven.peer)?;
        self.link.send_queue.set_destination(None);
        accept_queue::empty_queue(&self.link, &mut proven, now_ns)?;
        self.peer = Some(proven.peer);
        self.allow_trains()?;
        if let Some(mtu_bytes) = self.link.mtu_bytes() {
            proven.connection.set_mtu_bytes(mtu_bytes);
        }
        say(&mut proven.connection, &proven.answer, now_ns);
        self.connection = Some(proven.connection);
        self.entry = Entry::Done;
        Ok(())
    }

    /// Client: ask until the server accepts the token.
    pub(super) fn prove(&mut self, now_ns: i64) -> Result<()> {
        let (Entry::Proving(prover), Some(connection)) = (&mut self.entry, &mut self.connection) else {
            return Ok(());
        };
        let mut accepted = false;
        self.link.read(connection, 1, false, &mut |arrival| {
            accepted |= prover.on_message(arrival.bytes);
            Ok(())
        })?;
        // The question travels in the packet that completes the handshake, or later ones.
        if !accepted && matches!(connection.state(), Stage::PartOpen | Stage::Open) {
            if let Some(question) = prover.on_time(now_ns) {
                say(connection, &question, now_ns);
            }
        }
        if accepted {
            self.entry = Entry::Done;
        }
        Ok(())
    }

    /// Client: the handshake has come far enough to carry the question.
    pub(super) fn can_ask(&self) -> bool {
        let stage = self.connection.as_ref().map(|connection| connection.state());
        matches!(stage, Some(Stage::PartOpen | Stage::Open))
    }
}

/// The link of a flow. Only messages, and trains of them, need big buffers to arrive in.
fn link<C: Carrier>(carrier: C, flow: &FlowSpec, ecn: bool) -> Result<Link<C>> {
    let slot_bytes = match flow.role {
        Role::Receiver if C::TRAINS && flow.gso => GRO_BYTES,
        Role::Receiver => HEADER_BYTES + flow.payload_bytes.max(token::MESSAGE_BYTES),
        Role::Sender => HEADER_BYTES + token::MESSAGE_BYTES,
    };
    Link::new(carrier, flow, slot_bytes, ecn)
}

/// How to connect to, or listen beside, `remote` (at a listener: any address of the right IP version).
fn config<C: Carrier>(link: &Link<C>, remote: SocketAddr, flow: &FlowSpec, ccid: Ccid) -> Result<Config> {
    Ok(Config {
        carriage: link.carrier.carriage(remote)?,
        local_port: link.carrier.local()?.port(),
        remote_port: remote.port(),
        service_code: SERVICE_CODE,
        ccids: vec![ccid],
        mtu_bytes: link.mtu_bytes().unwrap_or(USUAL_MTU_BYTES),
        queue_messages: queue_length::messages(flow),
        //= rfc6773#3.5
        //# A DCCP-UDP endpoint SHOULD follow the procedures of DCCP-STD in [RFC4340], Section 12
        //= rfc6773#3.5
        //# Implementations that do not support ECN MUST follow the procedures of DCCP-STD in [RFC4340],
        //# Section 12.1 with regard to implementations that are not ECN capable.
        ecn: link.ecn,
        checksum_coverage: 0,
        sequence_window: SEQUENCE_WINDOW,
    })
}

/// Send a message about the token. When it cannot go now, the client's repetition brings it back.
pub(super) fn say(connection: &mut Connection, message: &token::Message, now_ns: i64) {
    let _ = connection.send(now_ns, message);
}
