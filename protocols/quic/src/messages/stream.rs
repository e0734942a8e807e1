// SPDX-License-Identifier: Apache-2.0
//! How do messages travel in the reliable stream, and when has all of it arrived?
//!
//! The sender ends its direction after the last message; the receiver, having read that end, ends its own.
//! A sender that has read the receiver's end therefore knows that everything arrived.

use netjoule_transport::deframer::Deframer;
use netjoule_transport::{BatchOutcome, Stop};

use crate::error::QuicError;
use crate::token_exchange::STREAM;

/// Bytes that may wait in the stream while no packet can leave (its time has not come, or the socket is full); a further
/// message is not accepted. As much as TCP lets wait (`TCP_NOTSENT_LOWAT`), and DATAGRAM frames.
const NOT_SENT_BYTES: usize = 128 << 10;

/// The sending end.
#[derive(Debug, Default)]
pub(crate) struct StreamSender {
    /// Bytes accepted since a packet waits; quiche, which bounds each portion by the congestion window, does not count them
    /// towards the next one.
    not_sent_bytes: usize,
    /// The rest of an accepted message that the congestion window had no room for.
    pending: Vec<u8>,
    is_finishing: bool,
    is_finished: bool,
    is_answered: bool,
}

impl StreamSender {
    /// Accepts messages of `payload_bytes` in order, each whole or not at all. `is_held_up`: a packet waits that cannot leave.
    pub(crate) fn offer(
        &mut self,
        quic: &mut quiche::Connection,
        batch: &[u8],
        payload_bytes: usize,
        is_held_up: bool,
    ) -> quiche::Result<BatchOutcome> {
        self.push_pending(quic)?;
        if !is_held_up {
            self.not_sent_bytes = 0;
        }
        let mut sent = 0;
        let room_bytes = NOT_SENT_BYTES.saturating_sub(self.not_sent_bytes);
        let fitting_bytes = batch.len().min(room_bytes.next_multiple_of(payload_bytes));
        if self.pending.is_empty() && fitting_bytes > 0 {
            let taken_bytes = write(quic, &batch[..fitting_bytes])?;
            sent = taken_bytes.div_ceil(payload_bytes);
            self.pending.extend_from_slice(&batch[taken_bytes..sent * payload_bytes]);
            self.not_sent_bytes += sent * payload_bytes;
        }
        let is_all = sent * payload_bytes == batch.len();
        Ok(BatchOutcome { sent, stop: if is_all { Stop::None } else { Stop::WouldBlock } })
    }

    /// Moves on what was left over, then the end of the stream.
    pub(crate) fn push_pending(&mut self, quic: &mut quiche::Connection) -> quiche::Result<()> {
        if !self.pending.is_empty() {
            let count = write(quic, &self.pending)?;
            self.pending.drain(..count);
        }
        if self.is_finishing && !self.is_finished && self.pending.is_empty() {
            quic.stream_send(STREAM, &[], true)?;
            self.is_finished = true;
        }
        Ok(())
    }

    /// No further message will be offered.
    pub(crate) fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// Looks whether the receiver ended its direction.
    pub(crate) fn watch(&mut self, quic: &mut quiche::Connection) -> quiche::Result<()> {
        let mut nothing_expected = [0; 16];
        while !self.is_answered {
            match read(quic, &mut nothing_expected)? {
                Some((_, true)) => self.is_answered = true,
                Some((_, false)) => (),
                None => break,
            }
        }
        Ok(())
    }

    /// Whether everything was sent and has arrived.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_finished && self.is_answered
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct StreamReceiver {
    deframer: Deframer,
    buffer: Vec<u8>,
    is_finished: bool,
}

/// Read from quiche at once, in bytes.
const READ_BYTES: usize = 64 << 10;

impl StreamReceiver {
    pub(crate) fn new(payload_bytes: usize) -> Self {
        Self { deframer: Deframer::new(payload_bytes), buffer: vec![0; READ_BYTES], is_finished: false }
    }

    /// Hands every message that is complete to `sink`; answers the end of the stream.
    pub(crate) fn collect(
        &mut self,
        quic: &mut quiche::Connection,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, QuicError> {
        let library = |source| QuicError::Library { doing: "using the stream", source };
        let mut messages = 0;
        while !self.is_finished {
            let Some((count, is_end)) = read(quic, &mut self.buffer).map_err(library)? else { break };
            messages += self.deframer.feed(&self.buffer[..count], sink)?;
            if is_end {
                self.is_finished = true;
                quic.stream_send(STREAM, &[], true).map_err(library)?;
            }
        }
        Ok(messages)
    }

    /// Bytes of a message that has not arrived whole.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.deframer.partial_bytes()
    }
}

fn write(quic: &mut quiche::Connection, bytes: &[u8]) -> quiche::Result<usize> {
    match quic.stream_send(STREAM, bytes, false) {
        Err(quiche::Error::Done) => Ok(0),
        outcome => outcome,
    }
}

fn read(quic: &mut quiche::Connection, into: &mut [u8]) -> quiche::Result<Option<(usize, bool)>> {
    match quic.stream_recv(STREAM, into) {
        Ok(outcome) => Ok(Some(outcome)),
        // The second: both directions have ended and quiche has forgotten the stream.
        Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
