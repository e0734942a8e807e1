// SPDX-License-Identifier: Apache-2.0
//! Packets on their way into the socket: one buffer, trains of equal size, nothing allocated per packet.
//!
//! A packet is appended to [`SendQueue::space`] by whoever makes it, then [`SendQueue::push`] takes note of it. Packets of one
//! size and ECN field collect until the train is full, one of the two changes or [`SendQueue::flush`] is called; one shorter
//! packet may end a train. A train leaves in one call: as one packet that the device cuts (UDP GSO) where that was asked
//! for, else as packets of their own (`sendmmsg`). Nobody sleeps before he has flushed. Where packets go singly, as those of
//! a flow do whose messages are not many, each leaves at once.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ecn;
use netjoule_sockets::datagram::{GSO_BYTES, GSO_SEGMENTS};
use netjoule_sockets::send_call::SendCall;
use netjoule_sockets::socket::{is_unreachable, set_ecn};
use netjoule_transport::{IpVersion, Result, TransportError};
use socket2::{SockAddr, Socket};

use crate::ecn;

/// Room for a full train and the packet that did not fit it.
const CAPACITY_BYTES: usize = 2 * 65_536;

/// Offset of the byte that holds a packet's type.
const TYPE_OFFSET: usize = 8;
/// Numbers of Data and DataAck (RFC 4340 section 5.1).
const DATA_TYPES: [u8; 2] = [2, 4];

#[derive(Debug)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    way: SendCall,
    /// Where to, while the socket is not connected.
    destination: Option<SockAddr>,
    /// Size of the packets of the train, the last one's perhaps excepted.
    segment_bytes: usize,
    packets: usize,
    /// ECN field of the train.
    ecn: Ecn,
    /// ECN field that the socket puts into packets.
    socket_ecn: Ecn,
    ip_version: IpVersion,
    /// The socket's buffer is full: the train waits for it.
    blocked: bool,
    /// A packet was larger than the path's MTU.
    too_large: bool,
    /// Data packets that left, and their bytes from the DCCP header on.
    pub(crate) data_packets: u64,
    pub(crate) data_bytes: u64,
    /// Packets that the host refused: no memory, no way to the peer, larger than the path's MTU.
    pub(crate) refused_packets: u64,
}

impl SendQueue {
    /// For a fresh socket of this IP version.
    pub(crate) fn new(way: SendCall, ip_version: IpVersion) -> Self {
        Self {
            bytes: Vec::with_capacity(CAPACITY_BYTES),
            way,
            destination: None,
            segment_bytes: 0,
            packets: 0,
            ecn: Ecn::NotEct,
            socket_ecn: Ecn::NotEct,
            ip_version,
            blocked: false,
            too_large: false,
            data_packets: 0,
            data_bytes: 0,
            refused_packets: 0,
        }
    }

    /// Send to this address from now on; `None`: the socket is connected.
    pub(crate) fn set_destination(&mut self, peer: Option<SocketAddr>) {
        self.destination = peer.map(SockAddr::from);
    }

    /// The call by which packets leave.
    pub(crate) fn send_call(&self) -> &'static str {
        self.way.name()
    }

    /// From now on packets that are there together leave by one call, if they left singly.
    pub(crate) fn share_calls(&mut self) {
        if matches!(self.way, SendCall::Single) {
            self.way = SendCall::batched();
        }
    }

    /// Whether packets wait for company.
    fn collects(&self) -> bool {
        !matches!(self.way, SendCall::Single) && self.destination.is_none()
    }

    /// Whether the socket must become writable first. Nothing may be appended until then.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether packets were larger than the path's MTU since the last time this was asked.
    pub(crate) fn take_too_large(&mut self) -> bool {
        std::mem::take(&mut self.too_large)
    }

    /// Count data packets from here: what has left was about the token.
    pub(crate) fn forget_counts(&mut self) {
        (self.data_packets, self.data_bytes) = (0, 0);
    }

    /// Where the next packet is appended.
    pub(crate) fn space(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// A packet of `length` bytes was appended, which shall leave with the field `ecn`.
    pub(crate) fn push(&mut self, socket: &Socket, length: usize, ecn: Ecn) -> Result<()> {
        let start = self.bytes.len() - length;
        self.count_if_data(start, length);
        let fits = length <= self.segment_bytes
            && ecn == self.ecn
            && self.packets < GSO_SEGMENTS
            && self.bytes.len() <= GSO_BYTES
            && self.collects();
        if self.packets > 0 && !fits {
            self.flush_first(socket, start)?;
            if self.blocked {
                // There is no second train: what does not fit while the socket is full is as good as lost on the way.
                self.bytes.truncate(self.bytes.len() - length);
                self.refused_packets += 1;
                return Ok(());
            }
        }
        if self.packets == 0 {
            self.segment_bytes = length;
            self.ecn = ecn;
        }
        self.packets += 1;
        let ends = length < self.segment_bytes || !self.collects();
        if ends {
            self.flush(socket)?;
        }
        Ok(())
    }

    /// Data packets of `length` bytes each, [`Self::most_batched`] at most, that lie elsewhere leave behind what is waiting.
    pub(crate) fn send_train(
        &mut self,
        socket: &Socket,
        train: &[u8],
        length: usize,
        ecn: Ecn,
    ) -> Result<()> {
        self.flush(socket)?;
        let packets = train.len() / length;
        self.data_packets += packets as u64;
        self.data_bytes += train.len() as u64;
        if self.blocked {
            self.refused_packets += packets as u64;
            return Ok(());
        }
        (self.segment_bytes, self.packets, self.ecn) = (length, packets, ecn);
        let gone = self.hand_over(socket, train)?;
        self.bytes.extend_from_slice(&train[gone..]);
        Ok(())
    }

    /// Most packets of `length` bytes that may leave together.
    pub(crate) fn most_batched(&self, length: usize) -> usize {
        if self.collects() {
            (GSO_BYTES / length.max(1)).clamp(1, GSO_SEGMENTS)
        } else {
            1
        }
    }

    fn count_if_data(&mut self, start: usize, length: usize) {
        let kind = self.bytes.get(start + TYPE_OFFSET).map_or(0, |byte| (byte >> 1) & 0xf);
        if DATA_TYPES.contains(&kind) {
            self.data_packets += 1;
            self.data_bytes += length as u64;
        }
    }

    /// Hand the train over. A full socket buffer keeps it here ([`Self::is_blocked`]).
    pub(crate) fn flush(&mut self, socket: &Socket) -> Result<()> {
        let end = self.bytes.len();
        self.flush_first(socket, end)
    }

    /// Hand over the first `end` bytes, which are the train; what lies behind becomes the front.
    fn flush_first(&mut self, socket: &Socket, end: usize) -> Result<()> {
        if self.packets == 0 {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let outcome = self.hand_over(socket, &bytes[..end]);
        if let Ok(gone) = outcome {
            bytes.drain(..gone);
        }
        self.bytes = bytes;
        outcome.map(drop)
    }

    /// Hand `train` to the socket, whose packets are as the fields of `self` say; how many bytes of it are gone. The rest
    /// waits.
    fn hand_over(&mut self, socket: &Socket, train: &[u8]) -> Result<usize> {
        self.set_field(socket);
        let mut gone = 0;
        while self.packets > 0 {
            let packets = match self.call(socket, &train[gone..]) {
                Ok(packets) => packets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(gone);
                }
                Err(error) if self.is_loss(&error) => {
                    // To congestion control it is a loss like any other on the way.
                    let packets = if matches!(self.way, SendCall::Train) { self.packets } else { 1 };
                    self.refused_packets += packets as u64;
                    packets
                }
                Err(error) => return Err(TransportError::io("send a DCCP packet")(error)),
            };
            self.packets -= packets;
            gone = (gone + packets * self.segment_bytes).min(train.len());
        }
        self.blocked = false;
        Ok(gone)
    }

    /// Whether the packets are gone but the connection may go on.
    fn is_loss(&mut self, error: &io::Error) -> bool {
        let code = error.raw_os_error();
        // A train is refused as invalid when its packets do not fit the device.
        let too_large = code == Some(libc::EMSGSIZE)
            || (code == Some(libc::EINVAL) && self.packets > 1 && matches!(self.way, SendCall::Train));
        self.too_large |= too_large;
        too_large || is_unreachable(error) || code == Some(libc::ENOBUFS)
    }

    //= rfc4340#12
    //# A sender SHOULD set ECN-Capable Transport on its packets' IP headers unless the receiver's ECN Incapable feature is on
    //# or the relevant CCID disallows it.
    //= rfc6773#3.5
    //# by setting the Explicit Congestion Notification (ECN) in the IP headers of outgoing packets
    /// Give the socket the train's ECN field. A field that was refused once is not tried with every train; its packets
    /// leave with another, which costs them marks and nothing else.
    fn set_field(&mut self, socket: &Socket) {
        if self.ecn != self.socket_ecn {
            let _ = set_ecn(socket.as_raw_fd(), self.ip_version, ecn::bits(self.ecn));
            self.socket_ecn = self.ecn;
        }
    }

    /// One call; how many packets of the train it took from the front, at least one.
    fn call(&mut self, socket: &Socket, train: &[u8]) -> io::Result<usize> {
        if let Some(destination) = &self.destination {
            return socket.send_to_with_flags(train, destination, libc::MSG_DONTWAIT).map(|_| 1);
        }
        // The device takes no trains (see `datagram::is_gso_refused`).
        self.way.send(socket, train, self.segment_bytes, |error| error.raw_os_error() == Some(libc::EIO))
    }
}

#[cfg(test)]
mod tests;
