// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a QUIC flow, each in one sentence that says what to do.

use std::net::SocketAddr;

use netjoule_transport::deframer::FramingError;
use netjoule_transport::TransportError;

use crate::fingerprint::{BadFingerprint, Fingerprint};

/// Failure of a QUIC flow or of its set-up.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// What came over the control channel is no fingerprint.
    #[error(transparent)]
    BadFingerprint(#[from] BadFingerprint),
    /// Key or certificate could not be made or loaded.
    #[error("the TLS library refused the key or certificate: {0}")]
    Certificate(#[from] boring::error::ErrorStack),
    /// The server showed another certificate than the control channel announced.
    #[error(
        "the server's certificate ({shown}) is not the one announced over the control channel ({announced}): \
         something else answers on the data path; check --to and --control"
    )]
    WrongCertificate {
        /// Fingerprint that the control channel carried.
        announced: Fingerprint,
        /// Fingerprint of the certificate that came over the data path.
        shown: Fingerprint,
    },
    /// The MTU leaves less than QUIC's least datagram.
    #[error("an MTU of {mtu_bytes} bytes cannot carry QUIC: 1200 bytes of UDP payload are needed")]
    MtuTooSmall {
        /// The MTU asked for, in bytes.
        mtu_bytes: usize,
    },
    /// The message does not fit one DATAGRAM frame.
    #[error(
        "a message of {payload_bytes} bytes does not fit one QUIC datagram: the limit on this path is \
         {limit_bytes} bytes; choose a smaller -l or the stream transport \"quic\""
    )]
    MessageTooLarge {
        /// Size of the message in bytes.
        payload_bytes: usize,
        /// Largest size that fits, in bytes.
        limit_bytes: usize,
    },
    /// The peer never announced the DATAGRAM extension.
    #[error("the peer does not accept QUIC datagrams (RFC 9221)")]
    DatagramsRefused,
    /// The peer closed the connection with an error.
    #[error("{peer} closed the QUIC connection: {reason}")]
    ClosedByPeer {
        /// The other end.
        peer: SocketAddr,
        /// Its reason, or the error code when it gave none.
        reason: String,
    },
    /// This end closed the connection because the peer broke the protocol.
    #[error("{peer} broke the QUIC protocol: {reason}")]
    ProtocolViolation {
        /// The other end.
        peer: SocketAddr,
        /// The rule that was broken.
        reason: String,
    },
    /// The connection ended without anybody saying why.
    #[error("the QUIC connection with {peer} timed out: no packet came for longer than the idle time-out")]
    TimedOut {
        /// The other end.
        peer: SocketAddr,
    },
    /// The connection is over.
    #[error("the QUIC connection with {peer} is closed")]
    Closed {
        /// The other end.
        peer: SocketAddr,
    },
    /// The host knows no way to the peer.
    #[error("no route to {peer}: {source}")]
    Unreachable {
        /// The other end.
        peer: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The peer's host answered that nothing listens on the port.
    #[error("nothing listens on the other end's QUIC port; is its server still running?")]
    NobodyListens,
    /// The host, or one on the way, has no way to the peer (any more).
    #[error("the other end cannot be reached: {source}")]
    NoPath {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A packet is larger than the path's MTU.
    #[error(
        "the path's MTU has become too small for a QUIC packet of {packet_bytes} bytes; start the flow again"
    )]
    PacketTooLarge {
        /// UDP payload in bytes.
        packet_bytes: usize,
    },
    /// The control channel did not bring the certificate's fingerprint.
    #[error(
        "the server offered no certificate fingerprint over the control channel; both ends need the same \
         version of netjoule"
    )]
    NoFingerprint,
    /// The other end did not answer the token as agreed.
    #[error("{peer} did not greet as a netjoule server")]
    BadGreeting {
        /// The other end.
        peer: SocketAddr,
    },
    /// The record of the connection's events could not be written.
    #[error("cannot write {path}: {source}; name another folder with --qlog")]
    EventLog {
        /// The file.
        path: std::path::PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// What came over the stream are no messages of this flow.
    #[error(transparent)]
    FramingError(#[from] FramingError),
    /// quiche refused.
    #[error("QUIC failed while {doing}: {source}")]
    Library {
        /// What was being done.
        doing: &'static str,
        /// The library's error.
        source: quiche::Error,
    },
    /// The operating system refused a call on the UDP socket.
    #[error("{doing} failed: {source}")]
    Socket {
        /// What was being done.
        doing: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl From<QuicError> for TransportError {
    fn from(error: QuicError) -> Self {
        match error {
            QuicError::Socket { doing, source } => Self::Io { context: doing.to_owned(), source },
            QuicError::EventLog { path, source } => {
                Self::Io { context: format!("write {} (--qlog names the folder)", path.display()), source }
            }
            QuicError::MtuTooSmall { .. }
            | QuicError::MessageTooLarge { .. }
            | QuicError::DatagramsRefused
            | QuicError::PacketTooLarge { .. } => Self::Unsupported(error.to_string()),
            QuicError::TimedOut { .. }
            | QuicError::Closed { .. }
            | QuicError::FramingError(_)
            | QuicError::ProtocolViolation { .. } => Self::Lost(error.to_string()),
            QuicError::BadFingerprint(_)
            | QuicError::Certificate(_)
            | QuicError::WrongCertificate { .. }
            | QuicError::ClosedByPeer { .. }
            | QuicError::Unreachable { .. }
            | QuicError::NobodyListens
            | QuicError::NoPath { .. }
            | QuicError::NoFingerprint
            | QuicError::BadGreeting { .. }
            | QuicError::Library { .. } => Self::Refused(error.to_string()),
        }
    }
}
