// SPDX-License-Identifier: Apache-2.0
//! How do packets get into and out of the UDP socket?
//!
//! One packet per call, or, with GSO and GRO, trains of packets of one size (`UDP_SEGMENT`, `UDP_GRO`). A full
//! socket buffer keeps what is waiting; the rest of the crate then makes no further packet. The kernel stamps what
//! arrives (`SO_TIMESTAMPNS`), of a train the whole.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::slice::ChunksMut;

use netjoule_sockets::datagram::{self, ReceiveBatch, Received, GSO_BYTES, GSO_SEGMENTS};
use netjoule_sockets::socket;
use netjoule_sockets::timestamps::TimestampCounts;
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

/// What arrived together.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    /// One packet, or those of a train.
    pub(crate) packets: ChunksMut<'a, u8>,
    /// When, `CLOCK_MONOTONIC` ns: by the kernel's stamp, or when it was read where there is none to believe.
    pub(crate) arrived_ns: i64,
}

/// Longer than any UDP payload that a peer of this crate sends (it was told the limit).
pub(crate) const PACKET_BUFFER_BYTES: usize = 2048;

/// The UDP socket of one end, connected or not.
pub(crate) struct PacketIo {
    socket: UdpSocket,
    is_connected: bool,
    gso: bool,
    /// What was read last.
    arrivals: ReceiveBatch,
    /// Packets are written where they leave from: first the train, then the packet behind it.
    buffer: Box<[u8]>,
    /// Where the packets lie that wait for the kernel: all `segment_bytes` long, the last may be shorter.
    train: Range<usize>,
    segment_bytes: usize,
    segments: usize,
    /// Length of the packet that was written behind the train and is no part of it; 0 for none.
    behind_bytes: usize,
    /// That packet leaves as soon as the train has: there was no room for both.
    is_overflow: bool,
    is_blocked: bool,
    counters: Counters,
}

impl PacketIo {
    /// Binds a socket to `local`.
    pub(crate) fn bind(local: SocketAddr, gso: bool) -> netjoule_transport::Result<Self> {
        let socket: UdpSocket = socket::datagram(local)?.into();
        datagram::enable_rx_timestamps(&socket)?;
        Ok(Self {
            socket,
            is_connected: false,
            gso,
            arrivals: ReceiveBatch::new(PACKET_BUFFER_BYTES),
            buffer: vec![0; if gso { GSO_BYTES } else { PACKET_BUFFER_BYTES } + PACKET_BUFFER_BYTES].into(),
            train: 0..0,
            segment_bytes: 0,
            segments: 0,
            behind_bytes: 0,
            is_overflow: false,
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

    /// With GSO, lets the kernel join packets of the connected peer. A kernel without GRO (before 5.0) hands over single
    /// packets: no error.
    pub(crate) fn expect_trains(&mut self) {
        if self.gso && datagram::enable_gro(&self.socket).is_ok() {
            self.arrivals = ReceiveBatch::of_trains();
        }
    }

    /// Where the times of arrivals came from.
    pub(crate) fn timestamp_counts(&self) -> TimestampCounts {
        self.arrivals.timestamp_counts()
    }

    /// Reads one packet, also from others than the peer, into `packet`; who sent it and its length, `None` when there is
    /// none.
    pub(crate) fn receive_one(&self, packet: &mut [u8]) -> Result<Option<(SocketAddr, usize)>, QuicError> {
        match datagram::receive_one(self.fd(), packet) {
            Ok(one) => Ok(one.map(|one| (one.from, one.length))),
            Err(error) => self.nothing_read(error).map(|()| None),
        }
    }

    /// Reads a batch of packets or trains of the connected peer; how many, and whether the socket has been emptied.
    pub(crate) fn receive(&mut self) -> Result<(usize, bool), QuicError> {
        match self.arrivals.receive(self.socket.as_raw_fd()) {
            Ok(count) => Ok((count, count < self.arrivals.most())),
            Err(error) => self.nothing_read(error).map(|()| (0, true)),
        }
    }

    /// Packets or train `index` of what was read last, and when it had arrived. Ask for each once, in order.
    pub(crate) fn arrival(&mut self, index: usize) -> Arrived<'_> {
        let Received { arrived_ns, segment_bytes, bytes, .. } = self.arrivals.datagram(index);
        let packet_bytes = segment_bytes.unwrap_or(bytes.len()).max(1);
        Arrived { packets: self.arrivals.bytes_mut(index).chunks_mut(packet_bytes), arrived_ns }
    }

    fn nothing_read(&self, error: io::Error) -> Result<(), QuicError> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            // ICMP answers to earlier packets come as errors of whatever call is next.
            _ => Err(socket_error(error, "reading from a UDP socket", self.segment_bytes)),
        }
    }

    /// Sends one packet to anybody, at once or never: for peers that have not proven themselves yet.
    pub(crate) fn send_to(&mut self, packet: &[u8], to: SocketAddr) {
        // A lost handshake packet is sent again by its timer.
        if self.socket.send_to(packet, to).is_ok() {
            self.count(packet.len(), 1);
        }
    }

    /// Room for the next packet, where it will leave from. Only while none is kept there.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        debug_assert!(self.behind_bytes == 0);
        &mut self.buffer[self.train.end..][..PACKET_BUFFER_BYTES]
    }

    /// The packet of `packet_bytes` in `room` stays there until `push`.
    pub(crate) fn keep(&mut self, packet_bytes: usize) {
        self.behind_bytes = packet_bytes;
    }

    /// Takes the packet that was kept, for the connected peer. Only while not blocked.
    pub(crate) fn push(&mut self) -> Result<(), QuicError> {
        debug_assert!(self.is_connected && !self.is_blocked);
        let flushed = if self.fits(self.behind_bytes) { Ok(()) } else { self.flush() };
        if !self.fits(self.behind_bytes) {
            self.is_overflow = true;
            return flushed;
        }
        let is_short = self.append() < self.segment_bytes;
        // Without GSO every packet goes on its own; and nothing may follow a short segment.
        let is_full = !self.gso || is_short || self.segments == GSO_SEGMENTS;
        flushed.and(if is_full { self.flush() } else { Ok(()) })
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
        // What had found no room.
        self.flush()
    }

    /// Notes an "unreachable" answer that is no reason to stop.
    pub(crate) fn note_unreachable(&mut self) {
        self.counters.unreachable += 1;
    }

    fn fits(&self, packet_bytes: usize) -> bool {
        self.segments == 0
            || (packet_bytes <= self.segment_bytes && self.train.len() + packet_bytes <= GSO_BYTES)
    }

    /// Gives away the train; what the kernel did not take stays in it.
    fn hand_over(&mut self) -> io::Result<()> {
        if self.segments > 1 {
            match send_train(&self.socket, &self.buffer[self.train.clone()], self.segment_bytes) {
                Ok(()) => {
                    self.count(self.train.len(), self.segments as u64);
                    self.segments = 0;
                }
                Err(error) if datagram::is_gso_refused(&error) => self.gso = false,
                Err(error) => return Err(error),
            }
        }
        while self.segments > 0 {
            let bytes = self.segment_bytes.min(self.train.len());
            self.socket.send(&self.buffer[self.train.start..][..bytes])?;
            self.count(bytes, 1);
            self.train.start += bytes;
            self.segments -= 1;
        }
        Ok(())
    }

    /// Makes the packet behind the train its last; how long it is.
    fn append(&mut self) -> usize {
        let packet_bytes = std::mem::take(&mut self.behind_bytes);
        if self.segments == 0 {
            self.segment_bytes = packet_bytes;
        }
        self.train.end += packet_bytes;
        self.segments += 1;
        packet_bytes
    }

    /// The train is gone: what was behind it comes first now.
    fn forget(&mut self) {
        self.buffer.copy_within(self.train.end..self.train.end + self.behind_bytes, 0);
        self.train = 0..0;
        self.segments = 0;
        if std::mem::take(&mut self.is_overflow) {
            self.append();
        }
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
    use netjoule_sockets::timestamps::now_ns;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    /// SO_NO_CHECK of asm-generic/socket.h: the simplest way to make a kernel refuse trains.
    const SO_NO_CHECK: i32 = 11;

    fn connected(gso: bool) -> (PacketIo, PacketIo) {
        let mut wires = [gso, gso].map(|gso| PacketIo::bind("127.0.0.1:0".parse().unwrap(), gso).unwrap());
        let addresses = [wires[0].local_address().unwrap(), wires[1].local_address().unwrap()];
        wires[0].connect(addresses[1]).unwrap();
        wires[1].connect(addresses[0]).unwrap();
        let [sender, receiver] = wires;
        (sender, receiver)
    }

    fn push(wire: &mut PacketIo, packet_bytes: usize) {
        wire.room()[..packet_bytes].fill(packet_bytes as u8);
        wire.keep(packet_bytes);
        wire.push().unwrap();
    }

    fn sizes_received(wire: &mut PacketIo) -> Vec<usize> {
        let mut sizes = Vec::new();
        loop {
            let (count, is_emptied) = wire.receive().unwrap();
            for index in 0..count {
                let packets = wire.arrival(index).packets;
                sizes.extend(packets.inspect(|packet| assert!(is_whole(packet))).map(|packet| packet.len()));
            }
            if is_emptied {
                return sizes;
            }
        }
    }

    fn is_whole(packet: &[u8]) -> bool {
        packet.iter().all(|byte| *byte == packet.len() as u8)
    }

    #[test]
    fn a_packet_that_is_kept_while_the_train_leaves_is_the_next_ones_first() {
        let (mut sender, mut receiver) = connected(true);
        push(&mut sender, 100);
        sender.room()[..90].fill(90);
        sender.keep(90);
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), [100]);
        sender.push().unwrap();
        push(&mut sender, 90);
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), [90, 90]);
    }

    #[test]
    fn what_a_full_socket_does_not_take_leaves_later_and_in_order_with_the_packet_behind_it() {
        let (mut sender, _) = connected(true);
        // Over the loopback device a UDP socket is never full; this one is after a few packets.
        let (near, far) = UnixDatagram::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        sender.socket = UdpSocket::from(OwnedFd::from(near));
        let mut sizes = Vec::new();
        // A longer packet never fits behind a shorter one.
        while !sender.is_blocked() {
            sizes.push(50 + sizes.len());
            push(&mut sender, 50 + sizes.len() - 1);
        }
        assert!(sender.is_overflow);
        let mut buffer = [0; 2048];
        for bytes in sizes {
            assert_eq!(far.recv(&mut buffer).unwrap(), bytes);
            assert!(is_whole(&buffer[..bytes]));
            sender.flush().unwrap();
        }
        assert!(!sender.is_blocked());
    }

    #[test]
    fn trains_keep_the_borders_and_the_order_of_packets() {
        let (mut sender, mut receiver) = connected(true);
        receiver.expect_trains();
        let sizes = [100, 100, 100, 40, 200, 90, 90, 91, 5];
        sizes.iter().for_each(|bytes| push(&mut sender, *bytes));
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), sizes);
        assert_eq!(sender.counters().packets, 9);
        assert_eq!(sender.counters().bytes, sizes.iter().sum::<usize>() as u64);
        assert!(sender.counters().calls < 9);
    }

    #[test]
    fn packets_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        let (mut sender, mut receiver) = connected(false);
        // The kernel switches stamping on a moment after it was asked.
        let stamped_while_sending = (0..1_000).any(|_| {
            let before_ns = now_ns();
            push(&mut sender, 100);
            let after_ns = now_ns();
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(receiver.receive().unwrap(), (1, true));
            let arrived_ns = receiver.arrival(0).arrived_ns;
            // 2 us: noise of the clocks.
            assert!(arrived_ns >= before_ns - 2_000);
            arrived_ns <= after_ns + 2_000
        });
        assert!(stamped_while_sending);
        assert!(receiver.timestamp_counts().kernel > 0);
    }

    #[test]
    fn without_gso_every_packet_leaves_at_once() {
        let (mut sender, mut receiver) = connected(false);
        receiver.expect_trains();
        push(&mut sender, 100);
        assert_eq!(sizes_received(&mut receiver), [100]);
    }

    #[test]
    fn where_trains_are_refused_packets_go_singly() {
        let (mut sender, mut receiver) = connected(true);
        socket::set_option(sender.fd(), 1, SO_NO_CHECK, 1).unwrap();
        [100, 100, 30].iter().for_each(|bytes| push(&mut sender, *bytes));
        sender.flush().unwrap();
        assert_eq!(sizes_received(&mut receiver), [100, 100, 30]);
        assert!(!sender.uses_gso());
        assert_eq!(sender.counters().calls, 3);
    }
}
