// SPDX-License-Identifier: Apache-2.0
//! Many datagrams in one call (`sendmmsg`, sendmmsg(2)), each with a launch time where that is wanted (`SCM_TXTIME`).
//!
//! Saves the entry into the kernel per message and nothing else: every datagram still goes through the stack by itself.

use std::io;
use std::os::fd::RawFd;

use crate::ancillary::{self, SENT_WORDS};

/// Control message type of asm-generic/socket.h, which libc lacks; the option `SO_TXTIME` has the same number.
pub(crate) const SCM_TXTIME: libc::c_int = 61;
/// Headers for `sendmmsg`, allocated once.
pub struct SendBatch {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    /// A launch time for each header; none without [`Self::with_launch_times`].
    controls: Vec<[u64; SENT_WORDS]>,
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SendBatch").field("messages", &self.headers.len()).finish()
    }
}

impl SendBatch {
    /// Room for `messages` per call.
    pub fn new(messages: usize) -> Self {
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut vectors = vec![empty; messages];
        let headers = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: all-zero bytes are a valid mmsghdr.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self { headers, vectors, controls: Vec::new() }
    }

    /// The same for [`Self::send_at`] alone.
    pub(crate) fn with_launch_times(messages: usize) -> Self {
        let mut batch = Self::new(messages);
        batch.controls = vec![[0; SENT_WORDS]; messages];
        batch
    }

    /// [`Self::send`] where message `index` leaves at `launch_ns(index)` (`CLOCK_MONOTONIC`), or at once when that has
    /// passed.
    pub(crate) fn send_at(
        &mut self,
        fd: RawFd,
        messages: &[u8],
        payload_bytes: usize,
        launch_ns: &dyn Fn(usize) -> i64,
    ) -> io::Result<usize> {
        debug_assert_eq!(self.controls.len(), self.headers.len());
        let count = messages.len().div_ceil(payload_bytes);
        for (index, (header, control)) in
            self.headers.iter_mut().zip(&mut self.controls).take(count).enumerate()
        {
            let launch_ns = launch_ns(index).max(0) as u64;
            let kind = (libc::SOL_SOCKET, SCM_TXTIME);
            ancillary::put(&mut header.msg_hdr, control, kind, launch_ns.to_ne_bytes());
        }
        self.send(fd, messages, payload_bytes)
    }

    /// Messages per call.
    pub fn room(&self) -> usize {
        self.headers.len()
    }

    /// Send messages of `payload_bytes`, the last perhaps shorter, that lie back to back over a connected socket; how many
    /// the kernel took, counted from the front. Messages beyond the room are left.
    ///
    /// # Errors
    /// Why the first message was not taken. The kernel keeps the reason for a later one to itself: offering the rest
    /// again tells it.
    pub fn send(&mut self, fd: RawFd, messages: &[u8], payload_bytes: usize) -> io::Result<usize> {
        let mut count = 0;
        for (vector, message) in self.vectors.iter_mut().zip(messages.chunks(payload_bytes)) {
            vector.iov_base = message.as_ptr().cast_mut().cast();
            vector.iov_len = message.len();
            count += 1;
        }
        // SAFETY: the first `count` headers point to vectors owned by self, which never move, and those to live messages;
        // sendmmsg does not write through iov_base.
        let sent = unsafe { libc::sendmmsg(fd, self.headers.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::receive_one;
    use crate::socket;
    use std::os::fd::AsRawFd;

    fn pair() -> (socket2::Socket, socket2::Socket) {
        let [near, far] = [(); 2].map(|()| socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap());
        near.connect(&far.local_addr().unwrap()).unwrap();
        (near, far)
    }

    fn arrived(far: &socket2::Socket) -> Vec<Vec<u8>> {
        let mut buffer = [0; 64];
        let mut found = Vec::new();
        while let Some(one) = receive_one(far.as_raw_fd(), &mut buffer).unwrap() {
            found.push(buffer[..one.length].to_vec());
        }
        found
    }

    #[test]
    fn every_message_is_a_datagram_of_its_own_and_what_finds_no_room_is_left() {
        let (near, far) = pair();
        let mut outgoing = SendBatch::new(3);
        let messages: Vec<u8> = (0..50).collect();
        assert_eq!(outgoing.send(near.as_raw_fd(), &messages, 10).unwrap(), 3);
        assert_eq!(outgoing.send(near.as_raw_fd(), &messages[30..], 10).unwrap(), 2);
        assert_eq!(arrived(&far), messages.chunks(10).map(<[u8]>::to_vec).collect::<Vec<_>>());
    }

    #[test]
    fn the_last_message_may_be_shorter() {
        let (near, far) = pair();
        assert_eq!(SendBatch::new(4).send(near.as_raw_fd(), &[7; 24], 10).unwrap(), 3);
        assert_eq!(arrived(&far), [vec![7; 10], vec![7; 10], vec![7; 4]]);
    }

    #[test]
    fn the_first_failure_is_told_and_a_later_one_cuts_the_batch() {
        let (near, far) = pair();
        let mut outgoing = SendBatch::new(4);
        // Longer than any UDP datagram.
        let error = outgoing.send(near.as_raw_fd(), &[0; 140_000], 70_000).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        assert_eq!(arrived(&far), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn nothing_to_send_is_nothing_sent() {
        let (near, _far) = pair();
        assert_eq!(SendBatch::new(4).send(near.as_raw_fd(), &[], 10).unwrap(), 0);
    }
}
