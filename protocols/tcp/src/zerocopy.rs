// SPDX-License-Identifier: Apache-2.0
//! Sending without a copy into the kernel (MSG_ZEROCOPY, Documentation/networking/msg_zerocopy.rst).
//!
//! The kernel sends from this process' pages and says on the socket's error queue when it is done with them, and whether it
//! copied after all (loopback, veth and devices without scatter-gather do). Until then the pages must not change: messages
//! are laid into buffers of a pool. A buffer that comes back keeps its filler, so only the headers are written anew.

use std::collections::VecDeque;
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

use netjoule_transport::message::HEADER_BYTES;
use netjoule_transport::Values;
use socket2::Socket;

/// Memory that may wait for acknowledgements; what goes beyond it is copied. Four times Linux' largest send buffer.
const POOL_BYTES: usize = 16 << 20;
/// include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

/// What became of zero-copy calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Calls that the kernel accepted as such.
    pub(crate) calls: u64,
    /// Of those, completed.
    pub(crate) completed: u64,
    /// Of those, copied all the same.
    pub(crate) copied_anyway: u64,
    /// Calls made with a copy for want of memory to lock (ENOBUFS) or of a free buffer.
    pub(crate) not_tried: u64,
}

/// Which buffer each open call has; calls are numbered by the kernel from 0 on, modulo 2^32. Pure.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Number of the oldest open call.
    oldest: u32,
    /// Buffers of it and of those after it; `None` once completed.
    calls: VecDeque<Option<usize>>,
}

impl Ledger {
    /// The next call was made from `buffer`.
    fn sent(&mut self, buffer: usize) {
        self.calls.push_back(Some(buffer));
    }

    /// Calls `first` to `last` are completed; their buffers go to `free`. Returns how many there were.
    fn completed(&mut self, first: u32, last: u32, mut free: impl FnMut(usize)) -> u64 {
        let mut count = 0;
        let calls = last.wrapping_sub(first) as usize + 1;
        let place = first.wrapping_sub(self.oldest) as usize;
        for call in self.calls.iter_mut().skip(place).take(calls) {
            if let Some(buffer) = call.take() {
                count += 1;
                free(buffer);
            }
        }
        while self.calls.front().is_some_and(Option::is_none) {
            self.calls.pop_front();
            self.oldest = self.oldest.wrapping_add(1);
        }
        count
    }
}

/// Messages that the kernel may be sending from.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where in `bytes` headers are: at its multiples.
    payload_bytes: usize,
    /// Calls not yet completed.
    open_calls: usize,
}

impl Buffer {
    /// Take over messages of `payload_bytes`. What is already filler stays.
    fn load(&mut self, messages: &[u8], payload_bytes: usize) {
        if payload_bytes != self.payload_bytes {
            // Headers stood elsewhere: nothing of it is filler.
            self.bytes.clear();
            self.payload_bytes = payload_bytes;
        }
        let known = self.bytes.len().min(messages.len());
        let both = self.bytes.chunks_mut(payload_bytes).zip(messages.chunks(payload_bytes));
        for (mine, message) in both {
            let header = HEADER_BYTES.min(message.len()).min(mine.len());
            mine[..header].copy_from_slice(&message[..header]);
        }
        self.bytes.extend_from_slice(&messages[known..]);
    }
}

/// Sends from a pool of buffers.
#[derive(Debug, Default)]
pub(crate) struct ZeroCopy {
    buffers: Vec<Buffer>,
    free: Vec<usize>,
    pool_bytes: usize,
    ledger: Ledger,
    /// Rest of a message that the kernel took in part.
    pending: Option<(usize, Range<usize>)>,
    counters: Counters,
}

impl ZeroCopy {
    /// Offer whole messages; returns how many were accepted (the last perhaps in part). `None`: no buffer is free, send
    /// them with a copy.
    pub(crate) fn offer(
        &mut self,
        socket: &Socket,
        messages: &[u8],
        payload_bytes: usize,
    ) -> io::Result<Option<usize>> {
        let Some(index) = self.buffer(socket.as_raw_fd(), messages.len())? else {
            self.counters.not_tried += 1;
            return Ok(None);
        };
        let before = self.buffers[index].bytes.capacity();
        self.buffers[index].load(messages, payload_bytes);
        self.pool_bytes += self.buffers[index].bytes.capacity() - before;
        let took = match self.send(socket, index, 0..messages.len()) {
            Ok(took) => took,
            Err(error) => {
                self.put_back(index);
                return if error.kind() == io::ErrorKind::WouldBlock { Ok(Some(0)) } else { Err(error) };
            }
        };
        let accepted = took.div_ceil(payload_bytes);
        let end = accepted * payload_bytes;
        if took < end {
            self.pending = Some((index, took..end));
        } else {
            self.put_back(index);
        }
        Ok(Some(accepted))
    }

    /// Move on what was left over; true when nothing is.
    pub(crate) fn push_pending(&mut self, socket: &Socket) -> io::Result<bool> {
        while let Some((index, range)) = self.pending.clone() {
            match self.send(socket, index, range.clone()) {
                Ok(took) if took < range.len() => self.pending = Some((index, range.start + took..range.end)),
                Ok(_) => {
                    self.pending = None;
                    self.put_back(index);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Take in what the kernel is done with.
    pub(crate) fn reclaim(&mut self, fd: RawFd) -> io::Result<()> {
        let Self { buffers, free, ledger, counters, pending, .. } = self;
        let held = pending.as_ref().map(|(index, _)| *index);
        while let Some((first, last, copied)) = next_completion(fd)? {
            let count = ledger.completed(first, last, |index| {
                buffers[index].open_calls -= 1;
                if buffers[index].open_calls == 0 && held != Some(index) {
                    free.push(index);
                }
            });
            counters.completed += count;
            counters.copied_anyway += if copied { count } else { 0 };
        }
        Ok(())
    }

    /// Whether a message is left in part.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the kernel is done with every page.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending.is_none() && self.ledger.calls.is_empty()
    }

    /// For the report.
    pub(crate) fn values(&self) -> Values {
        let Counters { calls, completed, copied_anyway, not_tried } = self.counters;
        Values::from_iter([
            ("zerocopy_calls".to_owned(), calls.into()),
            ("zerocopy_calls_completed".to_owned(), completed.into()),
            ("zerocopy_calls_copied_anyway".to_owned(), copied_anyway.into()),
            ("zerocopy_calls_not_tried".to_owned(), not_tried.into()),
        ])
    }

    /// A buffer that is nobody's, from the pool or new.
    fn buffer(&mut self, fd: RawFd, bytes: usize) -> io::Result<Option<usize>> {
        if self.free.is_empty() {
            self.reclaim(fd)?;
        }
        if let Some(index) = self.free.pop() {
            return Ok(Some(index));
        }
        if self.pool_bytes + bytes > POOL_BYTES {
            return Ok(None);
        }
        self.buffers.push(Buffer::default());
        Ok(Some(self.buffers.len() - 1))
    }

    /// Nothing more will be sent from `index`: free once the kernel is done with it.
    fn put_back(&mut self, index: usize) {
        if self.buffers[index].open_calls == 0 {
            self.free.push(index);
        }
    }

    fn send(&mut self, socket: &Socket, index: usize, range: Range<usize>) -> io::Result<usize> {
        let bytes = &self.buffers[index].bytes[range];
        match socket.send_with_flags(bytes, libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY) {
            Ok(took) => {
                self.buffers[index].open_calls += 1;
                self.ledger.sent(index);
                self.counters.calls += 1;
                Ok(took)
            }
            // No memory may be locked any more (RLIMIT_MEMLOCK) or the error queue is full (net.core.optmem_max).
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.counters.not_tried += 1;
                socket.send_with_flags(bytes, libc::MSG_NOSIGNAL)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for ZeroCopy {
    fn drop(&mut self) {
        if !self.ledger.calls.is_empty() {
            // The kernel may still send from these pages: another owner would have its bytes sent.
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
    }
}

/// One entry of the error queue: first and last call completed, and whether they were copied. `None` when it is empty;
/// entries that tell of something else are skipped.
fn next_completion(fd: RawFd) -> io::Result<Option<(u32, u32, bool)>> {
    loop {
        let mut control = [MaybeUninit::<u64>::uninit(); 32];
        // SAFETY: an all-zero msghdr is valid: no address, no data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[u64; 32]>() as _;
        // SAFETY: the header points at live memory of the length it gives.
        if unsafe { libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) } < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            };
        }
        // SAFETY: the kernel filled the control buffer as far as msg_controllen says.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(&message) };
        while !next.is_null() {
            // SAFETY: the pointer is one that CMSG_FIRSTHDR or CMSG_NXTHDR gave for this message; RECVERR messages begin
            // with a sock_extended_err, read without assuming its alignment.
            unsafe {
                if is_receive_error(&*next) {
                    let error = libc::CMSG_DATA(next).cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin == ORIGIN_ZEROCOPY && error.ee_errno == 0 {
                        return Ok(Some((error.ee_info, error.ee_data, error.ee_code == CODE_COPIED)));
                    }
                }
                next = libc::CMSG_NXTHDR(&message, next);
            }
        }
    }
}

fn is_receive_error(header: &libc::cmsghdr) -> bool {
    let kind = (header.cmsg_level, header.cmsg_type);
    kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the order and the ranges in which calls complete, every buffer comes back exactly once.
        #[test]
        fn every_buffer_comes_back_once(
            start in prop_oneof![Just(0_u32), Just(u32::MAX - 3), any::<u32>()],
            count in 1_usize..60,
            cuts in proptest::collection::vec(1_u32..7, 60),
            order in any::<u64>(),
        ) {
            let mut ledger = Ledger { oldest: start, calls: VecDeque::new() };
            (0..count).for_each(|buffer| ledger.sent(buffer));
            let mut ranges = Vec::new();
            let mut first = 0;
            for cut in cuts {
                if first < count as u32 {
                    let last = (first + cut - 1).min(count as u32 - 1);
                    ranges.push((start.wrapping_add(first), start.wrapping_add(last)));
                    first = last + 1;
                }
            }
            let mut freed = Vec::new();
            let mut completed = 0;
            while !ranges.is_empty() {
                let (first, last) = ranges.swap_remove((order % ranges.len() as u64) as usize);
                completed += ledger.completed(first, last, |buffer| freed.push(buffer));
                // What is told twice counts once.
                completed += ledger.completed(first, last, |buffer| freed.push(buffer));
            }
            freed.sort_unstable();
            prop_assert_eq!(freed, (0..count).collect::<Vec<_>>());
            prop_assert_eq!(completed, count as u64);
            prop_assert!(ledger.calls.is_empty());
            prop_assert_eq!(ledger.oldest, start.wrapping_add(count as u32));
        }

        /// A buffer that is used again has the new headers, and filler of some message behind them.
        #[test]
        fn a_used_buffer_has_the_new_headers(
            rounds in proptest::collection::vec((1_usize..9, prop_oneof![Just(16_usize), Just(40), 16_usize..60]), 1..9),
        ) {
            let mut buffer = Buffer::default();
            for (round, (count, payload_bytes)) in rounds.into_iter().enumerate() {
                let mut messages = vec![0xf1; count * payload_bytes];
                messages.chunks_mut(payload_bytes).for_each(|message| message[..HEADER_BYTES].fill(round as u8));
                buffer.load(&messages, payload_bytes);
                prop_assert_eq!(&buffer.bytes[..messages.len()], &messages[..]);
            }
        }
    }
}
