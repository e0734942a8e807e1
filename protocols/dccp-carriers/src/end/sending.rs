// SPDX-License-Identifier: Apache-2.0
//! How do messages leave, and when are acknowledgements read that make room for them?

use netjoule_dccp::connection::{SendError, Spacing};
use netjoule_transport::{BatchOutcome, Result, Role, Stop, TransportError};

use super::{End, Entry};
use crate::carrier::Carrier;

/// A message that is due within this time is "soon": acknowledgements wait for it, ns.
const SOON_NS: i64 = 50_000_000;
/// A sender that is not held up reads acknowledgements at most this often, ns.
const READ_NS: i64 = 1_000_000;
/// One that is held up looks again when the last look is older than this, ns.
const READ_AGAIN_NS: i64 = 50_000;

impl<C: Carrier> End<C> {
    /// Whether this end can wait for acknowledgements until it sends its next message.
    pub(super) fn reads_when_sending(&self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let last_look_ns = self.read_ns.saturating_add(SOON_NS);
        self.role == Role::Sender
            && matches!(self.entry, Entry::Done)
            && connection.queued() == 0
            && self.next_send_ns.is_some_and(|at_ns| at_ns <= last_look_ns)
    }

    /// What was offered leaves now.
    fn hand_over(&mut self) -> Result<()> {
        self.link.flush()?;
        if let Some(connection) = &mut self.connection {
            self.link.heed_mtu(connection);
        }
        Ok(())
    }

    /// Offer the first messages of `batch` to the connection: how many were taken, and why not more if none were.
    /// `may_read`: acknowledgements may be waiting in the socket that make room.
    fn offer(
        &mut self,
        batch: &mut [u8],
        spacing: Spacing,
        now_ns: i64,
        may_read: &mut bool,
    ) -> Result<BatchOutcome> {
        loop {
            let Some(connection) = &mut self.connection else { return Err(not_open()) };
            let sent = self.link.send_train(connection, batch, spacing, now_ns)?;
            if sent > 0 {
                return Ok(BatchOutcome { sent, stop: Stop::None });
            }
            if !std::mem::take(may_read) {
                let Spacing { headroom_bytes, payload_bytes } = spacing;
                return match connection.send(now_ns, &batch[headroom_bytes..][..payload_bytes]) {
                    Ok(()) => Ok(BatchOutcome { sent: 1, stop: Stop::None }),
                    Err(SendError::QueueFull) => Ok(BatchOutcome { sent: 0, stop: Stop::QueueFull }),
                    Err(SendError::TooLarge) => Err(too_large(payload_bytes, connection.max_payload_bytes())),
                    Err(SendError::NotOpen) => Err(not_open()),
                };
            }
            self.read(now_ns)?;
            if let Some(connection) = &mut self.connection {
                self.link.transmit(connection, now_ns)?;
            }
        }
    }

    /// [`Transport::send_batch`].
    pub(super) fn send_spaced(
        &mut self,
        batch: &mut [u8],
        spacing: Spacing,
        now_ns: i64,
    ) -> Result<BatchOutcome> {
        if !std::mem::replace(&mut self.any_message, true) {
            self.link.send_queue.forget_counts();
        }
        let since_read_ns = now_ns.saturating_sub(self.read_ns);
        let mut may_read = since_read_ns > READ_AGAIN_NS && since_read_ns < READ_NS;
        if since_read_ns >= READ_NS {
            self.read(now_ns)?;
            if let Some(connection) = &mut self.connection {
                self.link.transmit(connection, now_ns)?;
            }
        }
        let stride = (spacing.headroom_bytes + spacing.payload_bytes).max(1);
        self.link.expect(batch.len() / stride, spacing.payload_bytes, now_ns);
        let (mut sent, mut stop) = (0, Stop::None);
        while stop == Stop::None && batch.len() >= (sent + 1) * stride {
            if self.link.send_queue.is_blocked() {
                self.link.flush()?;
            }
            let outcome = if self.link.send_queue.is_blocked() {
                BatchOutcome { sent: 0, stop: Stop::QueueFull }
            } else {
                self.offer(&mut batch[sent * stride..], spacing, now_ns, &mut may_read)?
            };
            (sent, stop) = (sent + outcome.sent, outcome.stop);
        }
        self.hand_over()?;
        Ok(BatchOutcome { sent, stop })
    }
}

fn not_open() -> TransportError {
    TransportError::Lost("the DCCP connection is not open".into())
}

fn too_large(payload_bytes: usize, most_bytes: usize) -> TransportError {
    TransportError::Unsupported(format!(
        "a message of {payload_bytes} bytes does not fit a DCCP packet on this path: the limit is {most_bytes} bytes"
    ))
}
