// SPDX-License-Identifier: Apache-2.0
//! What stands beside the bytes of a call: read, what the kernel tells (time stamps, size of a train's datagrams, ECN field);
//! sent, what it is told (size of a train's datagrams, launch time).

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use socket2::SockAddr;

use crate::socket::set_option;
use crate::timestamps::wide;
use crate::{Result, TransportError};

/// Room for the control messages of one datagram: time stamp, GRO size, ECN field and overflows, with alignment to spare.
pub(crate) const CONTROL_WORDS: usize = 16;

/// `SO_TIMESTAMPNS_NEW` (include/uapi/asm-generic/socket.h): seconds of 64 bits on every machine. Linux 5.1.
const STAMP: libc::c_int = 64;

/// `SO_TIMESTAMPNS_OLD`: seconds as the machine's `long`.
const STAMP_BEFORE_5_1: libc::c_int = 35;

/// `SO_TIMESTAMPING_NEW` and, before Linux 5.1, `_OLD`: stamps of departures.
pub(crate) const STAMPING: libc::c_int = 65;
pub(crate) const STAMPING_BEFORE_5_1: libc::c_int = 37;

/// `SCM_TSTAMP_SND` (include/uapi/linux/errqueue.h): the device took it.
const LEFT: u32 = 0;

/// Have the kernel stamp every arrival, by software when the packet enters the network stack. Packets that it joins
/// (GRO) on their way there have one stamp.
pub fn enable_rx_timestamps(socket: &impl AsRawFd) -> Result<()> {
    let ask = |name| set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, 1);
    ask(STAMP).or_else(|_| ask(STAMP_BEFORE_5_1)).map_err(TransportError::io("ask for arrival time stamps"))
}

/// What the kernel tells beside a datagram, or in an entry of the error queue.
#[derive(Debug, Default)]
pub(crate) struct Ancillary {
    /// `CLOCK_REALTIME` of its arrival or departure, ns.
    pub(crate) stamp_ns: Option<i64>,
    /// Length of each datagram of a train (GRO).
    pub(crate) segment_bytes: Option<usize>,
    /// ECN field of the IP header.
    pub(crate) ecn: u8,
    /// Packets that found no room in the socket's buffer so far, when this one came (`SO_RXQ_OVFL`).
    pub(crate) overflows: u32,
    /// Number of the call of which this stamps the departure.
    pub(crate) departed: Option<u32>,
}

impl Ancillary {
    /// Read the control messages of `header`.
    ///
    /// # Safety
    ///
    /// `msg_control` points to a live buffer that the kernel filled up to `msg_controllen`.
    pub(crate) unsafe fn of(header: &libc::msghdr) -> Self {
        let mut ancillary = Self::default();
        // SAFETY: the CMSG macros stay inside the buffer (see above), and every value is read unaligned, in the type
        // that the kernel writes for this kind of message, from the space that it wrote.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let data = libc::CMSG_DATA(control);
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    // A departure has three times: software, a deprecated one, hardware.
                    (libc::SOL_SOCKET, STAMP | STAMPING) => {
                        let [seconds, ns] = data.cast::<[i64; 2]>().read_unaligned();
                        ancillary.stamp_ns = stamp_ns(seconds, ns);
                    }
                    (libc::SOL_SOCKET, STAMP_BEFORE_5_1 | STAMPING_BEFORE_5_1) => {
                        let [seconds, ns] = data.cast::<[libc::c_long; 2]>().read_unaligned();
                        ancillary.stamp_ns = stamp_ns(wide(seconds), wide(ns));
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        ancillary.overflows = data.cast::<u32>().read_unaligned();
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size = data.cast::<libc::c_int>().read_unaligned();
                        ancillary.segment_bytes = usize::try_from(size).ok().filter(|size| *size > 0);
                    }
                    // One byte over IPv4, an int over IPv6; DSCP is in the upper bits.
                    (libc::IPPROTO_IP, libc::IP_TOS) => ancillary.ecn = data.read() & 3,
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        ancillary.ecn = (data.cast::<libc::c_int>().read_unaligned() & 3) as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                        let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                        let is_stamp = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                        ancillary.departed = (is_stamp && error.ee_info == LEFT).then_some(error.ee_data);
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        ancillary
    }
}

/// Nanoseconds of a kernel stamp; a packet that was not stamped has 0.
fn stamp_ns(seconds: i64, ns: i64) -> Option<i64> {
    seconds.checked_mul(1_000_000_000)?.checked_add(ns).filter(|stamp_ns| *stamp_ns > 0)
}

/// What one call read.
pub(crate) struct Read {
    /// Bytes.
    pub(crate) length: usize,
    /// `msg_flags` (recvmsg(2)).
    pub(crate) flags: libc::c_int,
    pub(crate) ancillary: Ancillary,
}

/// One `recvmsg` that does not wait, and who sent it.
///
/// # Errors
/// The system's, `WouldBlock` when nothing is waiting.
pub(crate) fn read_from(fd: RawFd, buffer: &mut [u8]) -> io::Result<(Read, SockAddr)> {
    // SAFETY: the address is the kernel's to write, in the room and with the length that are given.
    unsafe {
        SockAddr::try_init(|name, name_bytes| {
            let (read, length) = read_with(fd, buffer, name.cast(), *name_bytes)?;
            *name_bytes = length;
            Ok(read)
        })
    }
}

/// The same on a connected socket.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<Read> {
    // SAFETY: no address is asked for.
    unsafe { read_with(fd, buffer, std::ptr::null_mut(), 0).map(|(read, _)| read) }
}

/// # Safety
///
/// `name` is null, or points to `name_bytes` bytes that the kernel may write.
unsafe fn read_with(
    fd: RawFd,
    buffer: &mut [u8],
    name: *mut libc::c_void,
    name_bytes: libc::socklen_t,
) -> io::Result<(Read, libc::socklen_t)> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_name = name;
    header.msg_namelen = name_bytes;
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to live buffers of the lengths it tells; of the address the caller says so.
    let length = unsafe { libc::recvmsg(fd, &mut header, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled the control buffer above up to msg_controllen.
    let ancillary = unsafe { Ancillary::of(&header) };
    Ok((Read { length, flags: header.msg_flags, ancillary }, header.msg_namelen))
}

/// Room for one control message that is sent.
pub(crate) const SENT_WORDS: usize = 4;

/// Point `header` at one control message, `value` of this level and kind, that is written into `control`.
pub(crate) fn put<const VALUE_BYTES: usize>(
    header: &mut libc::msghdr,
    control: &mut [u64; SENT_WORDS],
    (level, kind): (libc::c_int, libc::c_int),
    value: [u8; VALUE_BYTES],
) {
    const { assert!(VALUE_BYTES <= size_of::<u64>(), "the control buffer has room for this") };
    // SAFETY: the control buffer is large enough for one control message of 8 bytes and aligned for cmsghdr.
    unsafe {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(VALUE_BYTES as _) as _;
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = level;
        (*first).cmsg_type = kind;
        (*first).cmsg_len = libc::CMSG_LEN(VALUE_BYTES as _) as _;
        libc::CMSG_DATA(first).cast::<[u8; VALUE_BYTES]>().write_unaligned(value);
    }
}

/// One `sendmsg` on a connected socket that does not wait, with one control message.
///
/// # Errors
/// The system's.
pub(crate) fn send_with<const VALUE_BYTES: usize>(
    fd: RawFd,
    bytes: &[u8],
    kind: (libc::c_int, libc::c_int),
    value: [u8; VALUE_BYTES],
) -> io::Result<()> {
    let mut control = [0_u64; SENT_WORDS];
    let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the header points at live buffers for the length of the call; sendmsg does not write through iov_base.
    let sent = unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = std::ptr::from_ref(&vector).cast_mut();
        header.msg_iovlen = 1;
        put(&mut header, &mut control, kind, value);
        libc::sendmsg(fd, &header, libc::MSG_DONTWAIT)
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The address as one of IP.
pub(crate) fn ip_address(address: &SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(|| io::Error::other("a datagram came from an address that is not IP"))
}
