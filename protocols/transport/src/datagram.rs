// SPDX-License-Identifier: Apache-2.0
//! Many datagrams per system call, for every transport that puts messages into datagrams: `recvmmsg` with kernel
//! time stamps, GRO trains and the IP header's ECN field, and GSO sending.
//!
//! Kernel stamps are `CLOCK_REALTIME`; they are moved to `CLOCK_MONOTONIC` with the difference of the two
//! clocks read beside each batch (the only clock that this crate reads).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};

use socket2::Socket;

use crate::socket::set_option;
use crate::{Result, TransportError};

/// Datagrams (or GRO trains) taken per call.
pub const BATCH: usize = 32;

/// Room for the control messages of one datagram: time stamp, GRO size and ECN field, with alignment to spare.
const CONTROL_WORDS: usize = 16;

/// Largest train that GRO hands over, in bytes.
pub const GRO_BYTES: usize = 65_536;

/// A stamp older than this against the clock is not believed (the wall clock was set meanwhile).
const OLDEST_STAMP_NS: i64 = 10_000_000_000;

/// Segments that one GSO call may carry on every kernel that has GSO (`UDP_MAX_SEGMENTS`).
pub const GSO_SEGMENTS: usize = 64;

/// Bytes that one GSO call may carry.
pub const GSO_BYTES: usize = 65_000;

/// Have the kernel stamp every arrival.
pub fn ask_for_stamps(socket: &Socket) -> Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
        .map_err(TransportError::io("ask for arrival time stamps"))
}

/// Let the kernel join UDP datagrams of one flow into trains.
pub fn join_trains(socket: &Socket) -> Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
        .map_err(TransportError::io("switch on UDP GRO"))
}

/// Buffers for `recvmmsg`, allocated once.
pub struct Batch {
    buffer: Vec<u8>,
    slot_bytes: usize,
    controls: Vec<[u64; CONTROL_WORDS]>,
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Batch").field("slot_bytes", &self.slot_bytes).finish_non_exhaustive()
    }
}

/// One datagram of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Contents; several datagrams of [`Self::segment_bytes`] when the kernel joined them.
    pub bytes: &'a [u8],
    /// Arrival, `CLOCK_MONOTONIC` ns; `None` without a credible stamp.
    pub arrived_ns: Option<i64>,
    /// Length of each datagram when the kernel joined several (GRO).
    pub segment_bytes: Option<usize>,
}

impl Batch {
    /// Buffers for datagrams of up to `slot_bytes`.
    pub fn new(slot_bytes: usize) -> Self {
        let mut buffer = vec![0_u8; slot_bytes * BATCH];
        let mut controls = vec![[0_u64; CONTROL_WORDS]; BATCH];
        let mut vectors: Vec<libc::iovec> = buffer
            .chunks_exact_mut(slot_bytes)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot_bytes })
            .collect();
        let headers = vectors
            .iter_mut()
            .zip(&mut controls)
            .map(|(vector, control)| {
                // SAFETY: all-zero bytes are a valid msghdr.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header
            })
            .collect();
        Self { buffer, slot_bytes, controls, headers, _vectors: vectors }
    }

    /// Take what is waiting, at most one batch; 0 when nothing is.
    pub fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        for header in &mut self.headers {
            header.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        // SAFETY: every header points into buffers owned by self, which live on the heap and never move.
        let count = unsafe {
            libc::recvmmsg(
                fd,
                self.headers.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count >= 0 {
            return Ok(count as usize);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        }
    }

    /// Datagram `index` of the last [`Self::receive`]. `real_minus_monotonic_ns` is of that moment.
    pub fn datagram(&self, index: usize, real_minus_monotonic_ns: i64, now_ns: i64) -> Received<'_> {
        let header = &self.headers[index];
        let start = index * self.slot_bytes;
        let length = (header.msg_len as usize).min(self.slot_bytes);
        let (mut stamp, mut segment_bytes) = (None, None);
        // SAFETY: the kernel filled the control buffer of this header up to msg_controllen; the CMSG macros stay
        // inside it, and both structures are read unaligned from the space that the kernel wrote.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(&header.msg_hdr);
            while !control.is_null() {
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time: libc::timespec =
                            libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                        stamp = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size: libc::c_int =
                            libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned();
                        segment_bytes = usize::try_from(size).ok().filter(|size| *size > 0);
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(&header.msg_hdr, control);
            }
        }
        debug_assert_eq!(self.controls.len(), self.headers.len());
        Received {
            bytes: &self.buffer[start..start + length],
            arrived_ns: stamp.and_then(|real_ns| credible(real_ns - real_minus_monotonic_ns, now_ns)),
            segment_bytes,
        }
    }
}

/// A stamp in the near past is believed, one just ahead of the clock is the clock, anything else is not.
fn credible(stamp_ns: i64, now_ns: i64) -> Option<i64> {
    match now_ns - stamp_ns {
        age if age.abs() > OLDEST_STAMP_NS => None,
        age if age < 0 => Some(now_ns),
        _ => Some(stamp_ns),
    }
}

/// `CLOCK_REALTIME` - `CLOCK_MONOTONIC` in ns, and the monotonic time it was read at.
pub fn clock_difference() -> (i64, i64) {
    let real_ns = read_clock(libc::CLOCK_REALTIME);
    let monotonic_ns = read_clock(libc::CLOCK_MONOTONIC);
    (real_ns - monotonic_ns, monotonic_ns)
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills a live timespec; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Send `bytes` as datagrams of `segment_bytes` each in one call (UDP GSO).
pub fn send_segmented(fd: RawFd, bytes: &[u8], segment_bytes: u16) -> io::Result<()> {
    let mut control = [0_u64; 4];
    let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the header points at live buffers for the length of the call; the control buffer is large enough for
    // one u16 control message and aligned for cmsghdr; sendmsg does not write through iov_base.
    let sent = unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = std::ptr::from_ref(&vector).cast_mut();
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as _) as _;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as _) as _;
        libc::CMSG_DATA(first).cast::<u16>().write_unaligned(segment_bytes);
        libc::sendmsg(fd, &header, libc::MSG_DONTWAIT)
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stamps_of_the_near_past_are_believed() {
        assert_eq!(credible(90, 100), Some(90));
        assert_eq!(credible(103, 100), Some(100));
        assert_eq!(credible(100, 100 + 2 * OLDEST_STAMP_NS), None);
        assert_eq!(credible(100 + 2 * OLDEST_STAMP_NS, 100), None);
    }
}
