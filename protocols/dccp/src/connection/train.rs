// SPDX-License-Identifier: Apache-2.0
//! Trains: Data packets back to back that look like the first one but for the number, which rises by one.
//!
//! What is true of the first packet of a train is true of its followers, so most of the work of
//! [`Connection::handle`] and [`Connection::send_now`] is done once for all of them. Nothing that an observer could see
//! differs from handling and sending them one by one.

use super::{Carriage, Connection, State, Transmit};
use crate::ccid::{Ccid, Ecn, Incoming};
use crate::options::data_dropped::DropCode;
use crate::options::DccpOption;
use crate::packet::{Packet, PacketType, WireSeq};
use crate::seqno::Seq48;

/// Fixed header of a Data packet with a long number, which is its last six bytes.
const FIXED_BYTES: usize = super::DATA_HEADER_BYTES;
/// Bits of a number.
const SEQ_BITS: u32 = 48;

/// The fixed header of a Data packet: everything before the number, and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    before: u128,
    seq: Seq48,
}

impl Head {
    /// Of a packet of at least [`FIXED_BYTES`].
    #[inline(always)]
    fn read(packet: &[u8]) -> Option<Self> {
        let bytes = u128::from_be_bytes(*packet.first_chunk::<FIXED_BYTES>()?);
        Some(Self { before: bytes >> SEQ_BITS, seq: Seq48::new(bytes as u64) })
    }

    fn write(self) -> [u8; FIXED_BYTES] {
        (self.before << SEQ_BITS | u128::from(self.seq.value())).to_be_bytes()
    }

    /// Of a Data packet with a long number.
    const fn is_data(&self) -> bool {
        (self.before >> 8) as u8 == PacketType::Data.number() << 1 | 1
    }

    #[inline(always)]
    const fn next(self) -> Self {
        Self { before: self.before, seq: self.seq.add(1) }
    }
}

/// How messages lie in a batch: each behind free bytes for its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// Free bytes before each message.
    pub headroom_bytes: usize,
    /// Length of each message.
    pub payload_bytes: usize,
}

/// Data packets of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// The first of them, which speaks for all.
    pub first: Transmit,
    /// How many.
    pub packets: usize,
    /// They are the first bytes of the batch; otherwise the one packet was appended.
    pub in_place: bool,
}

impl Connection {
    /// Length of the header of most data packets of a flow.
    pub const fn data_header_bytes(ccid: Ccid) -> usize {
        match ccid {
            Ccid::TcpLike => FIXED_BYTES,
            // RTT Estimate (RFC 6323 section 3.2.1) of a round trip below 65.5 ms, padded to a word.
            Ccid::Tfrc => FIXED_BYTES + 4,
        }
    }

    /// Take packets of `packet_bytes` each (the last may be shorter) that lie back to back and arrived together, as
    /// [`Self::handle`] takes them one by one; `sink` gets the application data. What it does not take for want of room, or
    /// because nobody listens, was received all the same; the next acknowledgement names it as dropped (RFC 4340 section
    /// 11.7). Packets that the operating system had no room for never come here and are no such drops: nothing is known of
    /// them but how many they are ([`Self::on_receive_buffer`]), and to congestion control they are lost on the way.
    ///
    /// # Panics
    /// When `packet_bytes` is 0.
    pub fn handle_train<'a>(
        &mut self,
        arrived_ns: i64,
        ecn: Ecn,
        packets: &'a [u8],
        packet_bytes: usize,
        mut sink: impl FnMut(&'a [u8]) -> Result<(), DropCode>,
    ) {
        let mut rest = packets;
        while !rest.is_empty() {
            let (first, behind) = rest.split_at(packet_bytes.min(rest.len()));
            rest = behind;
            let Some(payload) = self.handle(arrived_ns, ecn, first) else { continue };
            if let Err(code) = sink(payload) {
                self.on_refused(first, code);
            }
            let header_bytes = first.len() - payload.len();
            let followers = self.take_followers(arrived_ns, ecn, first, rest);
            let (run, behind) = rest.split_at(followers * packet_bytes);
            for packet in run.chunks_exact(packet_bytes) {
                if let Err(code) = sink(&packet[header_bytes..]) {
                    self.on_refused(packet, code);
                }
            }
            rest = behind;
        }
    }

    /// Account for the packets at the front of `rest` that follow `first`, whose data was just delivered; how many.
    pub(super) fn take_followers(&mut self, arrived_ns: i64, ecn: Ecn, first: &[u8], rest: &[u8]) -> usize {
        if rest.len() < first.len() || self.state != State::Open || !self.carriage_is_udp() {
            return 0;
        }
        let Ok(packet) = Packet::parse(first) else { return 0 };
        let is_plain = packet.kind == PacketType::Data
            && packet.seq == WireSeq::Long(self.sequence.gsr)
            && packet
                .options()
                .all(|option| matches!(option, DccpOption::RttEstimate(_) | DccpOption::Padding));
        let Some(head) = Head::read(first).filter(|_| is_plain) else { return 0 };
        let (mut followers, mut expected) = (0, head.next());
        for other in rest.chunks_exact(first.len()) {
            let is_same =
                Head::read(other) == Some(expected) && other[FIXED_BYTES..].starts_with(packet.option_bytes);
            if !is_same {
                break;
            }
            followers += 1;
            expected = expected.next();
        }
        let incoming = Incoming { arrived_ns, seq: head.seq, ack: None, ecn, packet: &packet };
        self.accept_followers(&incoming, followers)
    }

    /// What [`Self::handle`] would change for each of `followers`; how many of them were taken.
    fn accept_followers(&mut self, incoming: &Incoming<'_>, followers: usize) -> usize {
        let Some(halves) = &mut self.halves else { return 0 };
        if followers == 0 {
            return 0;
        }
        let packets = followers as u64;
        let newest = incoming.seq.add(packets);
        self.sequence.accept(PacketType::Data, newest, None);
        self.features.clamp(self.sequence.gsr, self.sequence.gss);
        self.counters.data_packets_received += packets;
        halves.sender.on_followers(incoming, packets);
        let taken_ns = incoming.arrived_ns.saturating_add(self.waited_ns);
        halves.receiver.on_followers(&Incoming { arrived_ns: taken_ns, ..*incoming }, packets);
        followers
    }

    /// [`Self::send_now`] for the first message in `batch`, and for as many more as may leave with it and look like it: `most` in
    /// all. The messages have `payload_bytes` each and stand behind `headroom_bytes` free bytes each. Where that is just the
    /// length of the header, it is written there; otherwise the first packet alone is appended to `out`.
    pub fn send_train(
        &mut self,
        now_ns: i64,
        batch: &mut [u8],
        spacing: Spacing,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Option<Train> {
        let Spacing { headroom_bytes, payload_bytes } = spacing;
        let start = out.len();
        let says_more = self.ndp_run > 0 || self.echo.is_some();
        let first = self.send_now(now_ns, batch.get(headroom_bytes..)?.get(..payload_bytes)?, out)?;
        let mut train = Train { first, packets: 1, in_place: false };
        if !self.carriage_is_udp() || first.bytes != headroom_bytes + payload_bytes {
            return Some(train);
        }
        let Some(head) = Head::read(&out[start..]) else { return Some(train) };
        let mut packets = batch.chunks_exact_mut(first.bytes);
        if let Some(packet) = packets.next() {
            packet[..headroom_bytes].copy_from_slice(&out[start..start + headroom_bytes]);
            train.in_place = true;
        }
        if head.is_data() && !says_more {
            let most = most.saturating_sub(1).min(packets.len());
            let followers = self.may_follow(now_ns, payload_bytes, most);
            for packet in packets.take(followers) {
                let head = Head { seq: self.sequence.next(), ..head };
                packet[..FIXED_BYTES].copy_from_slice(&head.write());
                packet[FIXED_BYTES..headroom_bytes]
                    .copy_from_slice(&out[start + FIXED_BYTES..start + headroom_bytes]);
            }
            self.account_followers(now_ns, payload_bytes, followers, first.ecn);
            train.packets += followers;
        }
        out.truncate(start);
        Some(train)
    }

    /// How many messages may leave behind the one that just left as a Data packet, with the same header.
    fn may_follow(&mut self, now_ns: i64, payload_bytes: usize, most: usize) -> usize {
        let need = self.ack_need(now_ns);
        if most == 0 || need.due || need.of_acks {
            return 0;
        }
        let Some(halves) = &mut self.halves else { return 0 };
        halves.sender.may_follow(now_ns, payload_bytes, most)
    }

    fn account_followers(&mut self, now_ns: i64, payload_bytes: usize, followers: usize, ecn: Ecn) {
        let Some(halves) = &mut self.halves else { return };
        if followers > 0 {
            let packets = followers as u64;
            self.counters.data_packets_sent += packets;
            let first = self.sequence.gss.sub(packets - 1);
            halves.sender.on_followers_sent(now_ns, first, packets, payload_bytes, ecn);
        }
    }

    /// No checksum of this stack's own in the header, so that headers of a train differ in the number only.
    const fn carriage_is_udp(&self) -> bool {
        matches!(self.config.carriage, Carriage::Udp { .. })
    }
}
