// SPDX-License-Identifier: Apache-2.0
//! What does one QUIC connection want next? Bytes in, bytes out, next wake-up; no socket.
//!
//! quiche reads the clock itself, so this is sans-IO but not sans-clock: tests may rely on order and bytes,
//! never on simulated time.

use std::net::SocketAddr;
use std::time::Instant;

use crate::certificate::{Identity, Pin};
use crate::config::{self, Options};
use crate::error::QuicError;
use crate::fingerprint::Fingerprint;
use crate::path::pacer::Transmit;

/// One end of one connection.
pub(crate) struct Driver {
    pub(crate) quic: quiche::Connection,
    pin: Option<Pin>,
    /// Packets have times before which they do not leave.
    is_paced: bool,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Driver {
    /// The end that connects; it accepts the certificate with `fingerprint` only. `connection_id` is random
    /// (the caller's choice of source) and is what the peer's packets will carry.
    pub(crate) fn connect(
        options: &Options,
        fingerprint: Fingerprint,
        connection_id: &[u8],
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<Self, QuicError> {
        let (mut config, pin) = config::client(options, peer.is_ipv6(), fingerprint)?;
        let id = quiche::ConnectionId::from_ref(connection_id);
        let quic = quiche::connect(None, &id, local, peer, &mut config)
            .map_err(|source| QuicError::Library { doing: "starting the connection", source })?;
        Ok(Self { quic, pin: Some(pin), is_paced: options.choice.is_paced, local, peer })
    }

    /// The end that accepts; its first packet has yet to be given to `receive`.
    pub(crate) fn accept(
        options: &Options,
        identity: &Identity,
        connection_id: &[u8],
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<Self, QuicError> {
        let mut config = config::server(options, peer.is_ipv6(), identity)?;
        let id = quiche::ConnectionId::from_ref(connection_id);
        let quic = quiche::accept(&id, None, local, peer, &mut config)
            .map_err(|source| QuicError::Library { doing: "accepting the connection", source })?;
        Ok(Self { quic, pin: None, is_paced: options.choice.is_paced, local, peer })
    }

    /// The other end's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Takes one UDP payload that came from the peer (it is decrypted in place).
    ///
    /// A packet that is no part of the connection changes nothing. One that breaks the protocol closes the
    /// connection: `transmit` then yields the goodbye and `health` the reason.
    pub(crate) fn receive(&mut self, packet: &mut [u8]) {
        let info = quiche::RecvInfo { from: self.peer, to: self.local };
        // quiche keeps the error as the connection's local_error, from where `health` tells it.
        let _ = self.quic.recv(packet, info);
    }

    /// Writes the next packet into `out`, if there is one.
    pub(crate) fn transmit(&mut self, out: &mut [u8]) -> Result<Option<Transmit>, QuicError> {
        match self.quic.send(out) {
            Ok((len, info)) => Ok(Some(Transmit { len, at: self.is_paced.then_some(info.at) })),
            Err(quiche::Error::Done) => Ok(None),
            // The handshake may fail inside `send`; the pin knows better why.
            Err(source) => {
                Err(self.pin_refusal().unwrap_or(QuicError::Library { doing: "writing a packet", source }))
            }
        }
    }

    /// When `on_timeout` wants to be called; `None` for never.
    pub(crate) fn timeout_at(&self) -> Option<Instant> {
        self.quic.timeout_instant()
    }

    /// Runs the timers that are due.
    pub(crate) fn on_timeout(&mut self) {
        self.quic.on_timeout();
    }

    /// Whether both ends have finished the handshake (the client has then checked the certificate, or resumed a session with
    /// who showed it).
    pub(crate) fn is_established(&self) -> bool {
        self.quic.is_established()
    }

    /// Whether streams can be used: established, or before that with 0-RTT keys.
    pub(crate) fn carries_data(&self) -> bool {
        self.quic.is_established() || self.quic.is_in_early_data()
    }

    /// Before the first packet: resume `session`, which an earlier connection with the same server left.
    pub(crate) fn resume(&mut self, session: &[u8]) -> Result<(), QuicError> {
        self.quic
            .set_session(session)
            .map_err(|source| QuicError::Library { doing: "resuming the first connection", source })
    }

    /// Says goodbye; the packet comes with the next `transmit`.
    pub(crate) fn close(&mut self) {
        // Done means that it is closing already.
        let _ = self.quic.close(true, 0, b"end of flow");
    }

    /// Closes because the peer did not prove the flow's token.
    pub(crate) fn turn_away(&mut self) {
        let _ = self.quic.close(true, WRONG_TOKEN, b"the flow's token is wrong");
    }

    /// Nothing while the connection lives, else why it does not.
    pub(crate) fn health(&self) -> Result<(), QuicError> {
        let peer = self.peer;
        if let Some(refusal) = self.pin_refusal() {
            return Err(refusal);
        }
        if let Some(error) = self.quic.peer_error() {
            return Err(if error.is_app && error.error_code == 0 {
                QuicError::Closed { peer }
            } else {
                QuicError::ClosedByPeer { peer, reason: reason_text(error) }
            });
        }
        if self.quic.is_timed_out() {
            return Err(QuicError::TimedOut { peer });
        }
        match self.quic.local_error() {
            Some(error) if error.is_app && error.error_code == 0 => Err(QuicError::Closed { peer }),
            Some(error) => Err(QuicError::ProtocolViolation { peer, reason: reason_text(error) }),
            None if self.quic.is_closed() => Err(QuicError::Closed { peer }),
            None => Ok(()),
        }
    }

    fn pin_refusal(&self) -> Option<QuicError> {
        self.pin.as_ref().and_then(Pin::refusal)
    }
}

/// Application error code of a wrong token; 0 is the ordinary goodbye.
const WRONG_TOKEN: u64 = 1;

/// RFC 9001 section 4.8: TLS alerts are QUIC errors 0x0100 to 0x01ff; 42 is bad_certificate.
const TLS_BAD_CERTIFICATE: u64 = 0x012a;

fn reason_text(error: &quiche::ConnectionError) -> String {
    if !error.is_app && error.error_code == TLS_BAD_CERTIFICATE {
        return "it did not accept the certificate".to_owned();
    }
    let kind = if error.is_app { "application" } else { "transport" };
    let text = String::from_utf8_lossy(&error.reason);
    if text.is_empty() {
        format!("{kind} error {:#x}", error.error_code)
    } else {
        format!("{kind} error {:#x} ({text})", error.error_code)
    }
}

#[cfg(test)]
mod tests;
