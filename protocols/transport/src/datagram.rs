// SPDX-License-Identifier: Apache-2.0
//! Many datagrams per system call, for every transport that puts messages into datagrams: `recvmmsg` with kernel
//! time stamps, GRO trains and the IP header's ECN field, and GSO sending.
//!
//! Kernel stamps are `CLOCK_REALTIME`; they are moved to `CLOCK_MONOTONIC` with the difference of the two
//! clocks read beside each batch (the only clock that this crate reads).

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use socket2::{SockAddr, Socket};

use crate::socket::set_option;
use crate::{IpVersion, Result, TransportError};

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

/// Have the kernel tell the ECN field of every arrival. An IPv6 socket is asked for IPv6 only, as
/// [`crate::socket`] opens them.
pub fn ask_for_ecn(socket: &Socket, ip_version: IpVersion) -> Result<()> {
    let (level, name) = match ip_version {
        IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_RECVTOS),
        IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    };
    set_option(socket.as_raw_fd(), level, name, 1)
        .map_err(TransportError::io("ask for the ECN field of arrivals"))
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
    /// ECN field of the IP header (RFC 3168 section 5), 0 to 3; 0 unless [`ask_for_ecn`] was called. The kernel joins
    /// only datagrams of one field.
    pub ecn: u8,
}

/// What the kernel tells beside a datagram.
#[derive(Debug, Default)]
struct Beside {
    /// `CLOCK_REALTIME` of its arrival, ns.
    stamp_ns: Option<i64>,
    segment_bytes: Option<usize>,
    ecn: u8,
}

impl Beside {
    /// Read the control messages of `header`.
    ///
    /// # Safety
    ///
    /// `msg_control` points to a live buffer that the kernel filled up to `msg_controllen`.
    unsafe fn of(header: &libc::msghdr) -> Self {
        let mut beside = Self::default();
        // SAFETY: the CMSG macros stay inside the buffer (see above), and every value is read unaligned, in the type
        // that the kernel writes for this kind of message, from the space that it wrote.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let data = libc::CMSG_DATA(control);
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        beside.stamp_ns = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size = data.cast::<libc::c_int>().read_unaligned();
                        beside.segment_bytes = usize::try_from(size).ok().filter(|size| *size > 0);
                    }
                    // One byte over IPv4, an int over IPv6; DSCP is in the upper bits.
                    (libc::IPPROTO_IP, libc::IP_TOS) => beside.ecn = data.read() & 3,
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        beside.ecn = (data.cast::<libc::c_int>().read_unaligned() & 3) as u8;
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        beside
    }
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
        // SAFETY: the kernel filled the control buffer of this header, which self owns, up to msg_controllen.
        let beside = unsafe { Beside::of(&header.msg_hdr) };
        debug_assert_eq!(self.controls.len(), self.headers.len());
        Received {
            bytes: &self.buffer[start..start + length],
            arrived_ns: beside
                .stamp_ns
                .and_then(|real_ns| credible(real_ns - real_minus_monotonic_ns, now_ns)),
            segment_bytes: beside.segment_bytes,
            ecn: beside.ecn,
        }
    }
}

/// As [`crate::socket::receive_from`], with the ECN field (see [`Received::ecn`]).
pub fn receive_from(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr, u8)>> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to live buffers of the lengths it tells; the kernel writes an address and its length.
    let outcome = unsafe {
        SockAddr::try_init(|name, name_bytes| {
            header.msg_name = name.cast();
            header.msg_namelen = *name_bytes;
            let length = libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_DONTWAIT);
            *name_bytes = header.msg_namelen;
            usize::try_from(length).map_err(|_| io::Error::last_os_error())
        })
    };
    match outcome {
        Ok((length, from)) => {
            // SAFETY: the kernel filled the control buffer above up to msg_controllen.
            let beside = unsafe { Beside::of(&header) };
            from.as_socket()
                .map(|from| Some((length, from, beside.ecn)))
                .ok_or_else(|| io::Error::other("a datagram came from an address that is not IP"))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
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

/// `CLOCK_MONOTONIC` in ns: when something was read that has no kernel stamp. A time from before the read would let a
/// message arrive before it was sent, where the reader was held up in between.
pub fn now_ns() -> i64 {
    read_clock(libc::CLOCK_MONOTONIC)
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
    use crate::socket;

    #[test]
    fn only_stamps_of_the_near_past_are_believed() {
        assert_eq!(credible(90, 100), Some(90));
        assert_eq!(credible(103, 100), Some(100));
        assert_eq!(credible(100, 100 + 2 * OLDEST_STAMP_NS), None);
        assert_eq!(credible(100 + 2 * OLDEST_STAMP_NS, 100), None);
    }

    /// Sockets of one address family, the first connected to the second, which tells ECN fields.
    fn pair(address: &str) -> (Socket, Socket, IpVersion) {
        let address: SocketAddr = address.parse().unwrap();
        let version = IpVersion::of(address.ip());
        let [near, far] = [(); 2].map(|()| socket::datagram(address).unwrap());
        near.connect(&far.local_addr().unwrap()).unwrap();
        ask_for_stamps(&far).unwrap();
        ask_for_ecn(&far, version).unwrap();
        (near, far, version)
    }

    #[test]
    fn the_ecn_field_is_told_over_both_ip_versions() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, far, version) = pair(address);
            for field in [0, 1, 2, 3, 0] {
                socket::set_ecn(near.as_raw_fd(), version, field).unwrap();
                near.send(&[field; 30]).unwrap();
            }
            let mut buffer = [9; 64];
            let (length, from, field) = receive_from(&far, &mut buffer).unwrap().unwrap();
            assert_eq!((length, Some(from), field), (30, near.local_addr().unwrap().as_socket(), 0));
            let mut batch = Batch::new(64);
            assert_eq!(batch.receive(far.as_raw_fd()).unwrap(), 4, "{address}");
            let (difference_ns, now_ns) = clock_difference();
            for (index, field) in [1, 2, 3, 0].into_iter().enumerate() {
                let received = batch.datagram(index, difference_ns, now_ns);
                assert_eq!((received.bytes, received.ecn), (&[field; 30][..], field), "{address}");
                assert!(received.arrived_ns.is_some());
            }
            assert_eq!(receive_from(&far, &mut buffer).unwrap(), None);
        }
    }

    #[test]
    fn a_train_has_the_field_of_its_datagrams() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, far, version) = pair(address);
            join_trains(&far).unwrap();
            for field in [2, 3] {
                socket::set_ecn(near.as_raw_fd(), version, field).unwrap();
                send_segmented(near.as_raw_fd(), &[field; 300], 100).unwrap();
            }
            let mut batch = Batch::new(GRO_BYTES);
            let count = batch.receive(far.as_raw_fd()).unwrap();
            let told: Vec<_> = (0..count).map(|index| batch.datagram(index, 0, 0)).collect();
            assert_eq!(told.iter().map(|received| received.bytes.len()).sum::<usize>(), 600);
            assert!(told.iter().all(|received| received.bytes.iter().all(|byte| *byte == received.ecn)));
            assert!(told.iter().any(|received| received.segment_bytes == Some(100)), "{address}: no train");
        }
    }
}
