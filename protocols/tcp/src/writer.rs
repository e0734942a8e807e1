// SPDX-License-Identifier: Apache-2.0
//! How messages get into the socket: copied or not, whole or with a rest that follows when there is room.

use std::io;
use std::os::fd::AsRawFd;

use netjoule_transport::Values;
use socket2::Socket;

use crate::zerocopy::ZeroCopy;

/// The writing side of one connection.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Rest of a message that the kernel took in part.
    pending: Vec<u8>,
    zero_copy: Option<ZeroCopy>,
}

impl Writer {
    /// A writer for a socket that has SO_ZEROCOPY set, if `zero_copy`.
    pub(crate) fn new(zero_copy: bool) -> Self {
        Self { pending: Vec::new(), zero_copy: zero_copy.then(ZeroCopy::default) }
    }

    /// Offer whole messages in one call; returns how many were accepted, of the last perhaps only a part: its rest waits
    /// here. Only while nothing waits.
    pub(crate) fn offer(
        &mut self,
        socket: &Socket,
        messages: &[u8],
        payload_bytes: usize,
    ) -> io::Result<usize> {
        debug_assert!(!self.has_pending());
        if let Some(zero_copy) = &mut self.zero_copy {
            if let Some(accepted) = zero_copy.offer(socket, messages, payload_bytes)? {
                return Ok(accepted);
            }
        }
        let took = match socket.send_with_flags(messages, libc::MSG_NOSIGNAL) {
            Ok(took) => took,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let accepted = took.div_ceil(payload_bytes);
        self.pending.extend_from_slice(&messages[took..accepted * payload_bytes]);
        Ok(accepted)
    }

    /// Write what waits; true when nothing is left.
    pub(crate) fn push_pending(&mut self, socket: &Socket) -> io::Result<bool> {
        while !self.pending.is_empty() {
            match socket.send_with_flags(&self.pending, libc::MSG_NOSIGNAL) {
                Ok(length) => drop(self.pending.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.zero_copy.as_mut().map_or(Ok(true), |zero_copy| zero_copy.push_pending(socket))
    }

    /// Hear what the kernel is done with.
    pub(crate) fn service(&mut self, socket: &Socket) -> io::Result<()> {
        self.zero_copy.as_mut().map_or(Ok(()), |zero_copy| zero_copy.reclaim(socket.as_raw_fd()))
    }

    /// Whether a rest waits.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.zero_copy.as_ref().is_some_and(ZeroCopy::has_pending)
    }

    /// Whether nothing waits and the kernel holds no page of this process.
    pub(crate) fn is_clear(&self) -> bool {
        self.pending.is_empty() && self.zero_copy.as_ref().is_none_or(ZeroCopy::is_complete)
    }

    /// For the report.
    pub(crate) fn values(&self) -> Values {
        self.zero_copy.as_ref().map_or_else(Values::new, ZeroCopy::values)
    }
}
