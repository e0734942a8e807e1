// SPDX-License-Identifier: Apache-2.0
//! The calls by which datagrams leave that are there together.

use std::io;
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::datagram::{send_segmented, GSO_BYTES, GSO_SEGMENTS};
use crate::send_batch::SendBatch;

/// How they leave.
#[derive(Debug)]
pub enum SendCall {
    /// One `send` each.
    Single,
    /// One `sendmmsg` for all.
    Batched(SendBatch),
    /// One GSO train for all.
    Train,
}

impl SendCall {
    /// The shared call without GSO.
    pub fn batched() -> Self {
        Self::Batched(SendBatch::new(GSO_SEGMENTS))
    }

    /// Its name in the flow's statistics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Single => "send",
            Self::Batched(_) => "sendmmsg",
            Self::Train => "gso",
        }
    }

    /// Send over a connected socket datagrams of `datagram_bytes`, the last perhaps shorter, that lie back to back; how many the
    /// kernel took from the front, at least one.
    ///
    /// # Errors
    /// Why it took none. What `is_refused` knows as the refusal of a train is no error: from then on datagrams go together
    /// without.
    pub fn send(
        &mut self,
        socket: &Socket,
        datagrams: &[u8],
        datagram_bytes: usize,
        is_refused: fn(&io::Error) -> bool,
    ) -> io::Result<usize> {
        let fd = socket.as_raw_fd();
        let train = match self {
            Self::Batched(batch) if datagrams.len() > datagram_bytes => {
                return batch.send(fd, datagrams, datagram_bytes)
            }
            Self::Train => train(datagrams, datagram_bytes),
            Self::Single | Self::Batched(_) => None,
        };
        let Some((train, segment_bytes)) = train else {
            let first = &datagrams[..datagram_bytes.min(datagrams.len())];
            return socket.send_with_flags(first, libc::MSG_DONTWAIT).map(|_| 1);
        };
        match send_segmented(fd, train, segment_bytes) {
            Ok(()) => Ok(train.len().div_ceil(datagram_bytes)),
            Err(error) if is_refused(&error) => {
                *self = Self::batched();
                self.send(socket, datagrams, datagram_bytes, is_refused)
            }
            Err(error) => Err(error),
        }
    }
}

/// The longest train at the front and its segment size; `None` where a train would be one datagram.
fn train(datagrams: &[u8], datagram_bytes: usize) -> Option<(&[u8], u16)> {
    let whole = if datagrams.len() <= GSO_BYTES { GSO_SEGMENTS } else { GSO_BYTES / datagram_bytes };
    let bytes = (whole.min(GSO_SEGMENTS) * datagram_bytes).min(datagrams.len());
    let segment_bytes = u16::try_from(datagram_bytes).ok()?;
    (bytes > datagram_bytes).then(|| (&datagrams[..bytes], segment_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_has_what_one_call_may_carry() {
        let messages = vec![0; 6400];
        assert_eq!(train(&messages, 64), Some((&messages[..4096], 64)));
        assert_eq!(train(&messages[..128], 64), Some((&messages[..128], 64)));
        assert_eq!(train(&messages[..100], 64), Some((&messages[..100], 64)));
        assert_eq!(train(&messages[..64], 64), None);
        let long = vec![0; 130_000];
        assert_eq!(train(&long, 1440).map(|(train, _)| train.len()), Some(45 * 1440));
        assert_eq!(train(&long, 40_000), None);
    }
}
