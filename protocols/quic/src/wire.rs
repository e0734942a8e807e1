// SPDX-License-Identifier: Apache-2.0
//! How do packets get into and out of the UDP socket?
//!
//! One packet per call, or, with GSO and GRO, trains of packets of one size (`UDP_SEGMENT`, `UDP_GRO`). A full
//! socket buffer keeps what is waiting; the rest of the crate then makes no further packet. The kernel stamps what
//! arrives (`SO_TIMESTAMPNS`), of a train the whole.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use netjoule_transport::datagram::{self, GRO_BYTES, GSO_BYTES, GSO_SEGMENTS};
use netjoule_transport::socket;
use netjoule_transport::stamps::{ClockLook, StampClock, StampCounts};
use nix::errno::Errno;

use crate::error::QuicError;

/// What passed through the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// UDP datagrams given to the kernel.
    pub(crate) packets: u64,
    /// Their payload in bytes.
    pub(crate) bytes: u64,
    /// Calls for them.
    pub(crate) calls: u64,
    /// Packets that the kernel dropped for want of memory (ENOBUFS); QUIC sends their content again.
    pub(crate) kernel_drops: u64,
    /// "Unreachable" answers (ICMP, or of this host) after the handshake.
    pub(crate) unreachable: u64,
}

/// What one call read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bytes read: one packet or a train.
    pub(crate) len: usize,
    /// Size of each packet of a train, the last may be shorter; `len` for a single packet.
    pub(crate) packet_bytes: usize,
    /// Who sent it.
    pub(crate) from: SocketAddr,
}

/// A buffer for `Wire::receive` must hold the longest train.
pub(crate) const TRAIN_BUFFER_BYTES: usize = GRO_BYTES;

/// The UDP socket of one end, connected or not.
pub(crate) struct Wire {
    socket: UdpSocket,
    is_connected: bool,
    gso: bool,
    expects_trains: bool,
    /// Moves the kernel's times to the monotonic clock.
    clock: StampClock,
    /// The kernel's time of what was read last.
    stamp_ns: Option<i64>,
    /// Packets that wait for the kernel: all `segment_bytes` long, the last may be shorter.
    batch: Vec<u8>,
    segment_bytes: usize,
    segments: usize,
    /// One packet that came while the batch could not leave and does not fit behind it; else empty.
    overflow: Vec<u8>,
    is_blocked: bool,
    counters: Counters,
}

impl Wire {
    /// Binds a socket to `local`.
    pub(crate) fn bind(local: SocketAddr, gso: bool) -> netjoule_transport::Result<Self> {
        let socket: UdpSocket = socket::datagram(local)?.into();
        datagram::ask_for_stamps(&socket)?;
        Ok(Self {
            socket,
            is_connected: false,
            gso,
            expects_trains: false,
            clock: StampClock::new(ClockLook::take()),
            stamp_ns: None,
            batch: Vec::with_capacity(if gso { GSO_BYTES } else { 2048 }),
            segment_bytes: 0,
            segments: 0,
            overflow: Vec::new(),
            is_blocked: false,
            counters: Counters::default(),
        })
    }

    /// Exchanges packets with `peer` only, from now on.
    pub(crate) fn connect(&mut self, peer: SocketAddr) -> Result<(), QuicError> {
        self.socket.connect(peer).map_err(|source| QuicError::Unreachable { peer, source })?;
        self.is_connected = true;
        Ok(())
    }

    pub(crate) fn local_address(&self) -> Result<SocketAddr, QuicError> {
        self.socket
            .local_addr()
            .map_err(|source| QuicError::Socket { doing: "asking a UDP socket for its address", source })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether the socket's buffer is full: wait until it is writable.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether trains are used: asked for, and not refused by the device.
    pub(crate) fn uses_gso(&self) -> bool {
        self.gso
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// With GSO, lets the kernel join packets of the connected peer; tells whether it does. `receive` then needs
    /// `TRAIN_BUFFER_BYTES`.
    pub(crate) fn expect_trains(&mut self) -> bool {
        // A kernel without GRO (before 5.0) hands over single packets: no error.
        self.expects_trains |= self.gso && datagram::join_trains(&self.socket).is_ok();
        self.expects_trains
    }

    /// When what was read last had arrived, `CLOCK_MONOTONIC` ns: by the kernel's stamp, or now where there is none to
    /// believe.
    pub(crate) fn arrived_ns(&mut self) -> i64 {
        self.clock.look(ClockLook::take());
        self.clock.monotonic_ns(self.stamp_ns).unwrap_or(self.clock.now_ns())
    }

    /// Where the times told by `arrived_ns` came from.
    pub(crate) fn stamp_counts(&self) -> StampCounts {
        self.clock.counts()
    }

    /// Reads a packet or a train; `None` when there is none.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Result<Option<Received>, QuicError> {
        match datagram::receive_one(self.fd(), into) {
            Ok(Some(one)) => {
                self.stamp_ns = one.stamp_ns;
                let packet_bytes = one.segment_bytes.unwrap_or(one.length);
                Ok(Some(Received { len: one.length, packet_bytes, from: one.from }))
            }
            Ok(None) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            // ICMP answers to earlier packets come as errors of whatever call is next.
            Err(error) => Err(socket_error(error, "reading from a UDP socket", self.segment_bytes)),
        }
    }

    /// Sends one packet to anybody, at once or never: for peers that have not proven themselves yet.
    pub(crate) fn send_to(&mut self, packet: &[u8], to: SocketAddr) {
        // A lost handshake packet is sent again by its timer.
        if self.socket.send_to(packet, to).is_ok() {
            self.count(packet.len(), 1);
        }
    }

    /// Takes a packet for the connected peer. Only while not blocked.
    pub(crate) fn push(&mut self, packet: &[u8]) -> Result<(), QuicError> {
        debug_assert!(self.is_connected && !self.is_blocked);
        if !self.fits(packet.len()) {
            self.flush()?;
        }
        if self.segments > 0 && !self.fits(packet.len()) {
            self.overflow.extend_from_slice(packet);
            return Ok(());
        }
        self.append(packet);
        // Without GSO every packet goes on its own; and nothing may follow a short segment.
        if !self.gso || packet.len() < self.segment_bytes || self.segments == GSO_SEGMENTS {
            self.flush()?;
        }
        Ok(())
    }

    /// Gives the kernel what is waiting.
    pub(crate) fn flush(&mut self) -> Result<(), QuicError> {
        if self.segments == 0 {
            return Ok(());
        }
        self.is_blocked = false;
        match self.hand_over() {
            Ok(()) => (),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_blocked = true;
                return Ok(());
            }
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                self.counters.kernel_drops += self.segments as u64;
            }
            Err(error) => {
                let bytes = self.segment_bytes;
                self.forget();
                return Err(socket_error(error, "writing to a UDP socket", bytes));
            }
        }
        self.forget();
        if self.overflow.is_empty() {
            return Ok(());
        }
        let packet = std::mem::take(&mut self.overflow);
        self.append(&packet);
        self.flush()
    }

    /// Notes an "unreachable" answer that is no reason to stop.
    pub(crate) fn note_unreachable(&mut self) {
        self.counters.unreachable += 1;
    }

    fn fits(&self, packet_bytes: usize) -> bool {
        self.segments == 0
            || (packet_bytes <= self.segment_bytes && self.batch.len() + packet_bytes <= GSO_BYTES)
    }

    /// Gives away the batch; what the kernel did not take stays in it.
    fn hand_over(&mut self) -> io::Result<()> {
        if self.segments > 1 {
            match send_train(&self.socket, &self.batch, self.segment_bytes) {
                Ok(()) => {
                    self.count(self.batch.len(), self.segments as u64);
                    self.forget();
                }
                Err(error) if datagram::refuses_trains(&error) => self.gso = false,
                Err(error) => return Err(error),
            }
        }
        while self.segments > 0 {
            let bytes = self.segment_bytes.min(self.batch.len());
            self.socket.send(&self.batch[..bytes])?;
            self.count(bytes, 1);
            self.batch.drain(..bytes);
            self.segments -= 1;
        }
        Ok(())
    }

    fn append(&mut self, packet: &[u8]) {
        if self.segments == 0 {
            self.segment_bytes = packet.len();
        }
        self.batch.extend_from_slice(packet);
        self.segments += 1;
    }

    fn forget(&mut self) {
        self.batch.clear();
        self.segments = 0;
    }

    fn count(&mut self, bytes: usize, packets: u64) {
        self.counters.packets += packets;
        self.counters.bytes += bytes as u64;
        self.counters.calls += 1;
    }
}

/// MTU in bytes of the route from `local` to `peer`, as the kernel knows it; nothing is sent.
pub(crate) fn route_mtu_bytes(local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let probe = UdpSocket::bind(SocketAddr::new(local.ip(), 0)).ok()?;
    probe.connect(peer).ok()?;
    socket::path_mtu_bytes(probe.as_raw_fd(), peer.is_ipv4())
}

fn send_train(socket: &UdpSocket, train: &[u8], segment_bytes: usize) -> io::Result<()> {
    let segment_bytes = u16::try_from(segment_bytes).map_err(|_| ErrorKind::InvalidInput)?;
    datagram::send_segmented(socket.as_raw_fd(), train, segment_bytes)
}

fn socket_error(error: io::Error, doing: &'static str, packet_bytes: usize) -> QuicError {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMSGSIZE) => QuicError::PacketTooLarge { packet_bytes },
        Some(Errno::ECONNREFUSED) => QuicError::NobodyListens,
        Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENETDOWN | Errno::EHOSTDOWN) => {
            QuicError::NoPath { source: error }
        }
        _ => QuicError::Socket { doing, source: error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::stamps::now_ns;

    /// SO_NO_CHECK of asm-generic/socket.h: the simplest way to make a kernel refuse trains.
    const SO_NO_CHECK: i32 = 11;

    fn connected(gso: bool) -> (Wire, Wire) {
        let mut wires = [gso, gso].map(|gso| Wire::bind("127.0.0.1:0".parse().unwrap(), gso).unwrap());
        let addresses = [wires[0].local_address().unwrap(), wires[1].local_address().unwrap()];
        wires[0].connect(addresses[1]).unwrap();
        wires[1].connect(addresses[0]).unwrap();
        let [sender, receiver] = wires;
        (sender, receiver)
    }

    fn sizes_received(wire: &mut Wire) -> Vec<usize> {
        let mut buffer = vec![0; TRAIN_BUFFER_BYTES];
        let mut sizes = Vec::new();
        while let Some(received) = wire.receive(&mut buffer).unwrap() {
            sizes.extend(buffer[..received.len].chunks(received.packet_bytes).map(<[u8]>::len));
        }
        sizes
    }

    #[test]
    fn trains_keep_the_borders_and_the_order_of_packets() {
        let (mut sender, mut receiver) = connected(true);
        assert!(receiver.expect_trains());
        let sizes = [100, 100, 100, 40, 200, 90, 90, 91, 5];
        sizes.iter().for_each(|bytes| sender.push(&vec![7; *bytes]).unwrap());
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), sizes);
        assert_eq!(sender.counters().packets, 9);
        assert_eq!(sender.counters().bytes, sizes.iter().sum::<usize>() as u64);
        assert!(sender.counters().calls < 9);
    }

    #[test]
    fn packets_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        let (mut sender, mut receiver) = connected(false);
        let mut buffer = vec![0; TRAIN_BUFFER_BYTES];
        // The kernel switches stamping on a moment after it was asked.
        let stamped_while_sending = (0..1_000).any(|_| {
            let before_ns = now_ns();
            sender.push(&[1; 100]).unwrap();
            let after_ns = now_ns();
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(receiver.receive(&mut buffer).unwrap().is_some());
            let arrived_ns = receiver.arrived_ns();
            // 2 us: noise of the clocks.
            assert!(arrived_ns >= before_ns - 2_000);
            arrived_ns <= after_ns + 2_000
        });
        assert!(stamped_while_sending);
        assert!(receiver.stamp_counts().kernel > 0);
    }

    #[test]
    fn without_gso_every_packet_leaves_at_once() {
        let (mut sender, mut receiver) = connected(false);
        assert!(!receiver.expect_trains());
        sender.push(&[1; 100]).unwrap();
        assert_eq!(sizes_received(&mut receiver), [100]);
    }

    #[test]
    fn where_trains_are_refused_packets_go_singly() {
        let (mut sender, mut receiver) = connected(true);
        socket::set_option(sender.fd(), 1, SO_NO_CHECK, 1).unwrap();
        [100, 100, 30].iter().for_each(|bytes| sender.push(&vec![7; *bytes]).unwrap());
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), [100, 100, 30]);
        assert!(!sender.uses_gso());
        assert_eq!(sender.counters().calls, 3);
    }
}
