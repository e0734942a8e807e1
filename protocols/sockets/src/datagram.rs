// SPDX-License-Identifier: Apache-2.0
//! Many datagrams per system call, for every transport that puts messages into datagrams: `recvmmsg` with kernel
//! time stamps, GRO trains and the IP header's ECN field, and GSO sending.
//!
//! Kernel stamps come beside each datagram, without a call of their own; the clocks are looked at once per batch to move
//! them to `CLOCK_MONOTONIC` (see [`crate::timestamps`]).

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use socket2::Socket;

use crate::ancillary::{self, Ancillary, Read, CONTROL_WORDS};
use crate::socket::set_option;
use crate::timestamps::{ClockReading, TimestampClock, TimestampCounts};
use crate::{IpVersion, Result, TransportError};

pub use crate::ancillary::enable_rx_timestamps;
pub use crate::timestamps::now_ns;

/// Length of the UDP header in bytes (RFC 768).
pub const UDP_HEADER_BYTES: usize = 8;

/// Datagrams (or GRO trains) taken per call.
pub const BATCH: usize = 32;

/// GRO trains taken per call: more leave the processor's cache before they are used.
const TRAINS: usize = 8;

/// Largest train that GRO hands over, in bytes.
pub const GRO_BYTES: usize = 65_536;

/// Segments that one GSO call may carry on every kernel that has GSO (`UDP_MAX_SEGMENTS`).
pub const GSO_SEGMENTS: usize = 64;

/// Bytes that one GSO call may carry.
pub const GSO_BYTES: usize = 65_000;

/// Let the kernel join UDP datagrams of one flow into trains.
pub fn enable_gro(socket: &impl AsRawFd) -> Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
        .map_err(TransportError::io("switch on UDP GRO"))
}

/// Have the kernel tell the ECN field of every arrival. An IPv6 socket is asked for IPv6 only, as
/// [`crate::socket`] opens them.
pub fn enable_rx_ecn(socket: &Socket, ip_version: IpVersion) -> Result<()> {
    let (level, name) = match ip_version {
        IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_RECVTOS),
        IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    };
    set_option(socket.as_raw_fd(), level, name, 1)
        .map_err(TransportError::io("ask for the ECN field of arrivals"))
}

/// Have the kernel tell with every arrival how many before it found no room in the socket's buffer.
pub fn enable_overflow_counts(socket: &impl AsRawFd) -> Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
        .map_err(TransportError::io("ask for the overflows of the receive buffer"))
}

/// Buffers for `recvmmsg`, allocated once.
pub struct ReceiveBatch {
    buffer: Vec<u8>,
    slot_bytes: usize,
    controls: Vec<[u64; CONTROL_WORDS]>,
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    clock: TimestampClock,
}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReceiveBatch").field("slot_bytes", &self.slot_bytes).finish_non_exhaustive()
    }
}

/// One datagram of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Contents; several datagrams of [`Self::segment_bytes`] when the kernel joined them.
    pub bytes: &'a [u8],
    /// Arrival, `CLOCK_MONOTONIC` ns: the kernel's stamp, or the time of reading where there is none to believe. The
    /// datagrams of a train have one.
    pub arrived_ns: i64,
    /// Length of each datagram when the kernel joined several (GRO).
    pub segment_bytes: Option<usize>,
    /// ECN field of the IP header (RFC 3168 section 5), 0 to 3; 0 unless [`enable_rx_ecn`] was called. The kernel joins
    /// only datagrams of one field.
    pub ecn: u8,
    /// Datagrams that had found no room in the socket's buffer when this one came, since the socket was opened; 0 unless
    /// [`enable_overflow_counts`] was called.
    pub overflows: u32,
}

impl ReceiveBatch {
    /// Buffers for [`BATCH`] datagrams of up to `slot_bytes`.
    pub fn new(slot_bytes: usize) -> Self {
        Self::of(BATCH, slot_bytes)
    }

    /// Buffers for trains.
    pub fn of_trains() -> Self {
        Self::of(TRAINS, GRO_BYTES)
    }

    fn of(most: usize, slot_bytes: usize) -> Self {
        let mut buffer = vec![0_u8; slot_bytes * most];
        let mut controls = vec![[0_u64; CONTROL_WORDS]; most];
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
        let clock = TimestampClock::new(ClockReading::take());
        Self { buffer, slot_bytes, controls, headers, _vectors: vectors, clock }
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
                self.headers.len() as _,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count > 0 {
            self.clock.look(ClockReading::take());
        }
        if count >= 0 {
            return Ok(count as usize);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        }
    }

    /// How many one [`Self::receive`] takes at most; after fewer the socket was empty.
    pub fn most(&self) -> usize {
        self.headers.len()
    }

    /// When the last batch had been read, `CLOCK_MONOTONIC` ns.
    pub fn read_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Where the arrival times of all datagrams so far came from.
    pub fn timestamp_counts(&self) -> TimestampCounts {
        self.clock.counts()
    }

    /// The bytes of datagram `index` of the last [`Self::receive`], to be changed in place.
    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        let length = (self.headers[index].msg_len as usize).min(self.slot_bytes);
        &mut self.buffer[index * self.slot_bytes..][..length]
    }

    /// Datagram `index` of the last [`Self::receive`]; ask for each once, in order.
    pub fn datagram(&mut self, index: usize) -> Received<'_> {
        let header = &self.headers[index];
        let start = index * self.slot_bytes;
        let length = (header.msg_len as usize).min(self.slot_bytes);
        // SAFETY: the kernel filled the control buffer of this header, which self owns, up to msg_controllen.
        let ancillary = unsafe { Ancillary::of(&header.msg_hdr) };
        debug_assert_eq!(self.controls.len(), self.headers.len());
        let arrived_ns = self.clock.monotonic_ns(ancillary.stamp_ns).unwrap_or(self.clock.now_ns());
        Received {
            bytes: &self.buffer[start..start + length],
            arrived_ns,
            segment_bytes: ancillary.segment_bytes,
            ecn: ancillary.ecn,
            overflows: ancillary.overflows,
        }
    }
}

/// One datagram or train that was read by itself, and from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Length in bytes; of a train in all.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// As in [`Received`].
    pub ecn: u8,
}

/// Receive one datagram or train into `buffer`; `None` when nothing is waiting.
pub fn receive_one(fd: RawFd, buffer: &mut [u8]) -> io::Result<Option<ReceivedDatagram>> {
    match ancillary::read_from(fd, buffer) {
        Ok((Read { length, ancillary, .. }, from)) => {
            let from = ancillary::ip_address(&from)?;
            Ok(Some(ReceivedDatagram { length, from, ecn: ancillary.ecn }))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a train was refused because of what it is, and its datagrams may go by themselves. udp_send_skb
/// (net/ipv4/udp.c): EIO where the device computes no checksums (before Linux 6.11) or with IPsec, EINVAL for a socket
/// without checksums; kernels before 4.18 do not know the control message.
pub fn is_gso_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

/// Send `bytes` as datagrams of `segment_bytes` each in one call (UDP GSO).
pub fn send_segmented(fd: RawFd, bytes: &[u8], segment_bytes: u16) -> io::Result<()> {
    ancillary::send_with(fd, bytes, (libc::SOL_UDP, libc::UDP_SEGMENT), segment_bytes.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket;

    /// Sockets of one address family, the first connected to the second, which tells ECN fields.
    fn pair(address: &str) -> (Socket, Socket, IpVersion) {
        let address: SocketAddr = address.parse().unwrap();
        let version = IpVersion::of(address.ip());
        let [near, far] = [(); 2].map(|()| socket::datagram(address).unwrap());
        near.connect(&far.local_addr().unwrap()).unwrap();
        enable_rx_timestamps(&far).unwrap();
        enable_rx_ecn(&far, version).unwrap();
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
            let one = receive_one(far.as_raw_fd(), &mut buffer).unwrap().unwrap();
            assert_eq!((one.length, Some(one.from)), (30, near.local_addr().unwrap().as_socket()));
            assert_eq!(one.ecn, 0);
            let mut batch = ReceiveBatch::new(64);
            assert_eq!(batch.receive(far.as_raw_fd()).unwrap(), 4, "{address}");
            for (index, field) in [1, 2, 3, 0].into_iter().enumerate() {
                let received = batch.datagram(index);
                assert_eq!((received.bytes, received.ecn), (&[field; 30][..], field), "{address}");
            }
            assert_eq!(receive_one(far.as_raw_fd(), &mut buffer).unwrap(), None);
        }
    }

    /// The kernel switches stamping on a moment after it was asked; until then it stamps what is read with that time.
    fn await_stamping(near: &Socket, far: &Socket, batch: &mut ReceiveBatch) {
        for _ in 0..1_000 {
            near.send(&[7; 30]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(batch.receive(far.as_raw_fd()).unwrap(), 1);
            if batch.datagram(0).arrived_ns < batch.read_ns() - 1_000_000 {
                return;
            }
        }
        panic!("the kernel does not stamp arrivals");
    }

    #[test]
    fn arrivals_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, far, _) = pair(address);
            let mut batch = ReceiveBatch::new(64);
            await_stamping(&near, &far, &mut batch);
            let mut sent_ns = Vec::new();
            for _ in 0..2 {
                let before_ns = now_ns();
                near.send(&[7; 30]).unwrap();
                sent_ns.push((before_ns, now_ns()));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert_eq!(batch.receive(far.as_raw_fd()).unwrap(), 2, "{address}");
            for (index, (before_ns, after_ns)) in sent_ns.into_iter().enumerate() {
                // Over loopback a packet arrives before the call that sends it returns. 2 us: noise of the clocks.
                let arrived_ns = batch.datagram(index).arrived_ns;
                let sending = before_ns - 2_000..=after_ns + 2_000;
                assert!(sending.contains(&arrived_ns), "{address}: {arrived_ns} not in {sending:?}");
            }
            assert_eq!((batch.timestamp_counts().read, batch.timestamp_counts().clock_steps), (0, 0));
        }
    }

    #[test]
    fn what_found_no_room_is_told_with_what_comes_behind_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, far, _) = pair(address);
            enable_overflow_counts(&far).unwrap();
            // The kernel takes its least, some kilobytes.
            far.set_recv_buffer_size(1).unwrap();
            for _ in 0..100 {
                near.send(&[7; 1_000]).unwrap();
            }
            let mut batch = ReceiveBatch::new(1_000);
            let mut arrived = batch.receive(far.as_raw_fd()).unwrap();
            assert_eq!(batch.datagram(0).overflows, 0, "{address}");
            assert!(arrived < BATCH, "{address}: {arrived} found room");
            near.send(&[7; 1_000]).unwrap();
            assert_eq!(batch.receive(far.as_raw_fd()).unwrap(), 1);
            arrived += 1;
            assert_eq!(batch.datagram(0).overflows as usize, 101 - arrived, "{address}");
        }
    }

    #[test]
    fn a_train_has_the_field_of_its_datagrams() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, far, version) = pair(address);
            enable_gro(&far).unwrap();
            for field in [2, 3] {
                socket::set_ecn(near.as_raw_fd(), version, field).unwrap();
                send_segmented(near.as_raw_fd(), &[field; 300], 100).unwrap();
            }
            let mut batch = ReceiveBatch::new(GRO_BYTES);
            let count = batch.receive(far.as_raw_fd()).unwrap();
            let (mut bytes, mut any_train) = (0, false);
            for index in 0..count {
                let received = batch.datagram(index);
                bytes += received.bytes.len();
                any_train |= received.segment_bytes == Some(100);
                assert!(received.bytes.iter().all(|byte| *byte == received.ecn));
            }
            assert_eq!(bytes, 600);
            assert!(any_train, "{address}: no train");
        }
    }
}
