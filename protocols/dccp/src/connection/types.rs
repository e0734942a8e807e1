// SPDX-License-Identifier: Apache-2.0
//! What users of a connection say and hear.

use std::net::{IpAddr, Ipv4Addr};

use crate::ccid::{Ccid, Ecn};
use crate::reset::ResetCode;

/// Connection states (RFC 4340 section 4.3); a listening socket's LISTEN, LISTEN1 and INVITED are [`crate::Listener`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection any more.
    Closed,
    /// Client: Request sent.
    Request,
    /// Server: Response sent.
    Respond,
    /// Client: Response received, waiting for proof that the server knows.
    PartOpen,
    /// Data flows.
    Open,
    /// Server: asked the client to close.
    CloseReq,
    /// Close sent, waiting for Reset.
    Closing,
    /// Waits 2 MSL after the end.
    TimeWait,
}

impl State {
    /// OPEN or later (the order of RFC 4340 section 8.5: `S.state >= OPEN`), not over yet.
    pub const fn is_established(self) -> bool {
        matches!(self, Self::Open | Self::CloseReq | Self::Closing)
    }

    /// No packets of the connection any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Closed | Self::TimeWait)
    }
}

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// IP protocol 33: the checksum covers the pseudo header.
    Ip {
        /// This end's address.
        local: IpAddr,
        /// The peer's address.
        remote: IpAddr,
    },
    /// UDP encapsulation (RFC 6773): DCCP's checksum is 0 and ignored, UDP's protects.
    Udp {
        /// IP version, for the maximum packet size.
        ip_version: u8,
    },
}

impl Carriage {
    /// Bytes of the path's MTU that are not DCCP's: IP header and, when encapsulated, UDP header.
    pub const fn overhead_bytes(self) -> usize {
        match self {
            Self::Ip { local: IpAddr::V4(_), .. } => 20,
            Self::Ip { .. } => 40,
            // RFC 6773 section 3.7: the UDP header shrinks the maximum packet size.
            //= rfc6773#3.7
            //# DCCP-UDP implementations MUST follow DCCP-STD [RFC4340], Section 14 with regard to
            //# determining the maximum packet size
            Self::Udp { ip_version: 6 } => 48,
            Self::Udp { .. } => 28,
        }
    }
}

/// How to be one end of a connection. `Default` gives CCID 3, service code 0, MTU 1500, ECN-incapable.
#[derive(Debug, Clone)]
pub struct Config {
    /// Carrier and checksum.
    pub carriage: Carriage,
    /// This end's DCCP port.
    pub local_port: u16,
    /// The peer's DCCP port.
    pub remote_port: u16,
    /// Service code (client: what it asks for; server: taken from the Request).
    //= rfc4340#8.1.2
    //# Each active socket MUST have exactly one Service Code.
    pub service_code: u32,
    /// Congestion controls that this end accepts, best first, for both directions.
    pub ccids: Vec<Ccid>,
    /// Path MTU in bytes, IP header included.
    pub mtu_bytes: u32,
    /// Most messages waiting for congestion control.
    pub queue_messages: usize,
    /// Data packets may carry ECT marks and the carrier reports received ones.
    pub ecn: bool,
    /// CsCov of data packets (RFC 4340 section 9.2), 0 covers all.
    pub checksum_coverage: u8,
    /// First Sequence Window (feature 3).
    pub sequence_window: u64,
}

impl Default for Config {
    fn default() -> Self {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            carriage: Carriage::Ip { local: any, remote: any },
            local_port: 0,
            remote_port: 0,
            service_code: 0,
            ccids: vec![Ccid::Tfrc],
            mtu_bytes: 1500,
            queue_messages: 64,
            ecn: false,
            checksum_coverage: 0,
            sequence_window: 1000,
        }
    }
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue is full: congestion control does not let it go now.
    #[error("the send queue is full")]
    QueueFull,
    /// Larger than [`crate::Connection::max_payload_bytes`].
    #[error("the message is larger than the maximum packet size")]
    TooLarge,
    /// Not in a state that carries data.
    #[error("the connection is not open")]
    NotOpen,
}

/// How to hand a packet to IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Length of the packet that was appended.
    pub bytes: usize,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

impl Transmit {
    /// A packet of the handshake, or a Reset.
    pub(crate) const fn not_ect(bytes: usize) -> Self {
        Self { bytes, ecn: Ecn::NotEct }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Close handshake finished.
    Closed,
    /// The peer sent a Reset with this code (not Closed after our Close).
    ResetByPeer(ResetCode),
    /// This end sent a Reset.
    ResetHere(ResetCode),
    /// The peer does not answer (handshake, Close: back-off exhausted).
    TimedOut,
}
