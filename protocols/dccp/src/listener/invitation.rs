// SPDX-License-Identifier: Apache-2.0
//! Simultaneous open (RFC 5596): the server's Listens.

use std::net::SocketAddr;

use crate::checksum;
use crate::connection::{Carriage, Config};
use crate::packet::{Packet, PacketType, WireSeq};
use crate::seqno::Seq48;

/// Between two Listens, and after the last one (section 2.2.2).
const INTERVAL_NS: i64 = 200_000_000;
/// The first and two repetitions.
const LISTENS: u8 = 3;

/// Peer (UDP or IP address) and its DCCP port.
pub(super) type Key = (SocketAddr, u16);

/// A client in state INVITED; afterwards (LISTEN1) it is expected like any other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Invitation {
    peer: SocketAddr,
    remote_port: u16,
    service_code: u32,
    sent: u8,
    due_ns: i64,
}

impl Invitation {
    /// The first Listen is due at once.
    pub(super) fn new(now_ns: i64, peer: SocketAddr, remote_port: u16, service_code: u32) -> Self {
        Self { peer, remote_port, service_code, sent: 0, due_ns: now_ns }
    }

    pub(super) fn key(&self) -> Key {
        (self.peer, self.remote_port)
    }

    pub(super) fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// LISTEN1: three Listens were sent, and the last one's time has passed.
    pub(super) fn is_over(&self, now_ns: i64) -> bool {
        self.sent == LISTENS && self.due_ns <= now_ns
    }

    //= rfc5596#2.2.2
    //# The server SHOULD repeat sending a DCCP-Listen packet while in the INVITED state, at a 200-millisecond interval with up to
    //# at most 2 repetitions
    /// Append a Listen, if one is due; its length.
    pub(super) fn send(&mut self, now_ns: i64, config: &Config, out: &mut Vec<u8>) -> Option<usize> {
        if self.due_ns > now_ns || self.sent == LISTENS {
            return None;
        }
        self.sent += 1;
        self.due_ns = now_ns.saturating_add(INTERVAL_NS);
        let start = out.len();
        //= rfc5596#2.2.1
        //# The value of X MUST be set to 1.
        //= rfc5596#2.2.1
        //# A DCCP server SHOULD set the high and low bits of the Sequence Number field to 0.
        //= rfc5596#2.2.1
        //# CCVal MUST be zero (a connection has not been established).
        //= rfc5596#2.2.1
        //# CsCov MUST be zero (use of the CsCov feature cannot be negotiated).
        //= rfc5596#2.2.1
        //# This value MUST correspond to a Service Code that the server is actually offering for a connection identified by the
        //# same source IP address and the same source port as that of the DCCP-Listen packet.
        let packet = Packet {
            source_port: config.local_port,
            destination_port: self.remote_port,
            ccval: 0,
            checksum_coverage: 0,
            checksum: 0,
            kind: PacketType::Listen,
            seq: WireSeq::Long(Seq48::new(0)),
            ack: None,
            service_code: Some(self.service_code),
            reset: None,
            option_bytes: &[],
            payload: &[],
        };
        packet.emit(out);
        if let Carriage::Ip { local, .. } = config.carriage {
            let sum = checksum::header_checksum(local, self.peer.ip(), &out[start..])?;
            out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
        }
        Some(out.len() - start)
    }
}
