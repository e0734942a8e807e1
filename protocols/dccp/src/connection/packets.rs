// SPDX-License-Identifier: Apache-2.0
//! What waits to be said, and the bytes of one packet.

use super::dropped_data::MAX_VECTOR_BYTES;
use super::{Carriage, Connection, State, Transmit};
use crate::ccid::Ecn;
use crate::checksum;
use crate::feature::negotiation::Write;
use crate::feature::{Feature, Location};
use crate::options::DccpOption;
use crate::packet::{header_bytes, Packet, PacketType, WireSeq};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// Longest Init Cookies that a client echoes.
pub(super) const MAX_COOKIE_BYTES: usize = 512;
/// Longest header: Data Offset is one byte and counts words.
const MAX_HEADER_BYTES: usize = 1020;
/// Where the checksum stands in the header.
const CHECKSUM_AT: usize = 6;
/// SyncAcks that wait at most.
const MAX_SYNC_ACKS: usize = 8;
/// Units of time options, 10 microseconds.
const TIME_UNIT_NS: i64 = 10_000;

/// A Reset that ends the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnReset {
    pub(super) code: ResetCode,
    pub(super) data: [u8; 3],
    pub(super) ack: Seq48,
}

/// A Reset that ends nothing here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stray {
    /// `None`: the connection's next number.
    pub(super) seq: Option<Seq48>,
    pub(super) ack: Seq48,
    pub(super) code: ResetCode,
    pub(super) data: [u8; 3],
}

/// Packets that wait for [`Connection::poll_transmit`], apart from those that timers and congestion control ask for.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) reset: Option<OwnReset>,
    pub(super) stray: Option<Stray>,
    sync_acks: Vec<Seq48>,
    /// Sync that acknowledges this number.
    pub(super) sync: Option<Seq48>,
    pub(super) response: bool,
    pub(super) part_open_ack: bool,
    /// Acks of PARTOPEN that no message without Confirms has followed.
    pub(super) confirms_ahead: u8,
    pub(super) ack: bool,
    /// Close or CloseReq, by state.
    pub(super) close: bool,
}

impl Pending {
    pub(super) fn push_sync_ack(&mut self, seq: Seq48) {
        if self.sync_acks.len() < MAX_SYNC_ACKS {
            self.sync_acks.push(seq);
        }
    }

    pub(super) fn pop_sync_ack(&mut self) -> Option<Seq48> {
        if self.sync_acks.is_empty() {
            None
        } else {
            Some(self.sync_acks.remove(0))
        }
    }

    /// Nothing but control packets' flags are looked at.
    pub(super) fn any_urgent(&self) -> bool {
        self.reset.is_some() || self.stray.is_some() || !self.sync_acks.is_empty() || self.sync.is_some()
    }

    /// Something waits that this state lets out.
    pub(super) fn any(&self, state: State) -> bool {
        let own = match state {
            State::Respond => self.response,
            State::PartOpen => self.part_open_ack,
            State::Open => self.ack,
            State::CloseReq | State::Closing => self.close,
            State::Request | State::Closed | State::TimeWait => false,
        };
        own || self.any_urgent()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The header of a packet to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) kind: PacketType,
    pub(super) seq: Seq48,
    pub(super) ack: Option<Seq48>,
    pub(super) ccval: u8,
    pub(super) coverage: u8,
    pub(super) reset: Option<(ResetCode, [u8; 3])>,
}

impl Header {
    pub(super) fn new(kind: PacketType, seq: Seq48, ack: Option<Seq48>) -> Self {
        //= rfc4340#5.1
        //# The sender MUST set CCVal to zero unless its HC-Sender CCID specifies otherwise,
        Self { kind, seq, ack, ccval: 0, coverage: 0, reset: None }
    }
}

/// Ports and such that all packets of a connection share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addressing {
    pub(crate) carriage: Carriage,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) service_code: u32,
}

impl Addressing {
    /// Append a packet to `out`, with its checksum. Says how long it is; 0 when its header would be too long.
    #[inline]
    pub(super) fn write(
        &self,
        header: &Header,
        option_bytes: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> usize {
        let start = out.len();
        if header.kind == PacketType::Data && option_bytes.is_empty() {
            self.write_plain_data(header, payload, out);
        } else if !self.write_any(header, option_bytes, payload, out) {
            return 0;
        }
        if let Carriage::Ip { local, remote } = self.carriage {
            if let Some(sum) = checksum::header_checksum(local, remote, &out[start..]) {
                out[start + CHECKSUM_AT..start + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
            }
        }
        out.len() - start
    }

    /// Append a Data packet without options: most packets of a flow are such. The bytes of [`Self::write_any`], sooner.
    fn write_plain_data(&self, header: &Header, payload: &[u8], out: &mut Vec<u8>) {
        let offset_words = (header_bytes(PacketType::Data, false) / 4) as u64;
        let ports = u64::from(self.local_port) << 16 | u64::from(self.remote_port);
        let ccval_and_coverage = u64::from(header.ccval << 4 | header.coverage & 0xf);
        let first = ports << 32 | offset_words << 24 | ccval_and_coverage << 16;
        // Type and X, a reserved byte, six bytes of the number.
        let type_and_x = u64::from(PacketType::Data.number() << 1 | 1);
        let second = type_and_x << 56 | header.seq.value();
        out.reserve(16 + payload.len());
        out.extend_from_slice(&((u128::from(first) << 64) | u128::from(second)).to_be_bytes());
        out.extend_from_slice(payload);
    }

    /// Append a packet without checksum; false when its header would be too long.
    fn write_any(&self, header: &Header, option_bytes: &[u8], payload: &[u8], out: &mut Vec<u8>) -> bool {
        //= rfc4340#5.6
        //# DCCP-Resets MUST use 48-bit sequence numbers (X=1).
        //= rfc4340#5.7
        //# Both packet types MUST use 48-bit sequence numbers (X=1).
        // All packets do.
        let with_code = matches!(header.kind, PacketType::Request | PacketType::Response);
        let packet = Packet {
            source_port: self.local_port,
            destination_port: self.remote_port,
            ccval: header.ccval,
            checksum_coverage: header.coverage,
            //= rfc6773#3.3
            //# On transmission, the DCCP Checksum field SHOULD be set to zero.
            checksum: 0,
            kind: header.kind,
            seq: WireSeq::Long(header.seq),
            ack: header.ack.map(WireSeq::Long),
            service_code: with_code.then_some(self.service_code),
            reset: header.reset,
            option_bytes,
            payload,
        };
        packet.emit(out)
    }

    /// A Reset that belongs to no connection.
    pub(crate) fn write_stray(&self, stray: &Stray, out: &mut Vec<u8>) -> usize {
        let seq = stray.seq.unwrap_or_default();
        let mut header = Header::new(PacketType::Reset, seq, Some(stray.ack));
        header.reset = Some((stray.code, stray.data));
        self.write(&header, &[], &[], out)
    }
}

/// Which options a packet other than Data carries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carries {
    /// Feature negotiation.
    pub(super) features: bool,
    /// Changes said before, again.
    pub(super) repeats: bool,
    /// Acknowledgement options of the CCID.
    pub(super) acknowledgement: bool,
}

impl Connection {
    fn addressing(&self) -> Addressing {
        Addressing {
            carriage: self.config.carriage,
            local_port: self.config.local_port,
            remote_port: self.config.remote_port,
            service_code: self.config.service_code,
        }
    }

    /// Make a packet with the connection's next number and account for it. `None` only when its header would be too long.
    pub(super) fn emit(
        &mut self,
        now_ns: i64,
        mut header: Header,
        carries: Carries,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let mut options = std::mem::take(&mut self.option_bytes);
        options.clear();
        let fixed = header_bytes(header.kind, false);
        let room = self.option_room(fixed, payload.len());
        self.put_common_options(now_ns, &header, room, &mut options);
        if header.kind.is_data() {
            header.coverage = self.coverage(payload.len());
            if let Some(halves) = &mut self.halves {
                header.ccval = halves.sender.ccval(now_ns);
            }
        }
        let with_rtt = matches!(header.kind, PacketType::Sync | PacketType::SyncAck);
        if header.kind.is_data() || with_rtt {
            self.put_sender_options(now_ns, room, &mut options);
        }
        if carries.features {
            self.put_features(now_ns, &header, carries.repeats, room, &mut options);
        }
        if carries.acknowledgement {
            self.put_acknowledgement(now_ns, &header, room, &mut options);
        }
        let bytes = self.addressing().write(&header, &options, payload, out);
        self.option_bytes = options;
        if bytes == 0 {
            return None;
        }
        Some(self.account(now_ns, &header, payload.len(), bytes))
    }

    /// Room for options, whole words.
    pub(super) fn option_room(&self, fixed: usize, payload_bytes: usize) -> usize {
        let by_path = self.max_packet_bytes().saturating_sub(fixed + payload_bytes);
        by_path.min(MAX_HEADER_BYTES - fixed) / 4 * 4
    }

    /// Options that any packet may carry.
    fn put_common_options(&mut self, now_ns: i64, header: &Header, room: usize, options: &mut Vec<u8>) {
        //= rfc4340#8.1.5
        //# Furthermore, if the DCCP-Response included an Init Cookie, that Init Cookie MUST be included on every packet sent in
        //# PARTOPEN.
        //= rfc4340#8.1.4
        //# The Init Cookie option MUST NOT be sent on DCCP-Request or DCCP-Data packets.
        let part_open = !matches!(header.kind, PacketType::Request | PacketType::Data);
        //= rfc4340#8.1.4
        //# the client MUST echo the same Init Cookie options, in the same order, in each succeeding DCCP
        //# packet until one of those packets is acknowledged (showing that the three-way handshake has
        //# completed) or the connection is reset.
        //= rfc4340#8.1.4
        //# The Init Cookie options on a client packet MUST equal those received on the DCCP-Request
        //# indicated by the client packet's Acknowledgement Number.
        if part_open && !self.cookies.is_empty() {
            options.extend_from_slice(&self.cookies);
        }
        //= rfc4340#7.7
        //# If a DCCP endpoint's Send NDP Count feature is one (see below), then that endpoint MUST send an NDP Count option on
        //# every packet whose immediate predecessor was a non-data packet.
        //= rfc4340#7.7.2
        //# DCCP B MUST send NDP Count options as described above when Send NDP Count/B is one
        if self.ndp_run > 0 && self.features.value(Feature::SendNdpCount, Location::Local) == 1 {
            DccpOption::NdpCount(self.ndp_run).emit_within(room, options);
        }
        //= rfc4340#13.3
        //# This time MUST have units of hundredths of milliseconds.
        if let Some(echo) = self.echo {
            let elapsed = now_ns.saturating_sub(echo.arrived_ns).max(0) / TIME_UNIT_NS;
            let option = DccpOption::TimestampEcho {
                echo: echo.value,
                elapsed: u32::try_from(elapsed).unwrap_or(u32::MAX),
            };
            if option.emit_within(room, options) {
                self.echo = None;
            }
        }
    }

    //= rfc6323#3.3
    //# the sender MUST provide an RTT Estimate Option on all of its Data, DataAck, Sync, and SyncAck packets
    /// Options of the sending CCID.
    fn put_sender_options(&mut self, now_ns: i64, room: usize, options: &mut Vec<u8>) {
        let rtt_agreed = self.features.value(Feature::SendRttEstimate, Location::Local) == 1;
        if let Some(halves) = &mut self.halves {
            halves.sender.data_options(now_ns, &mut |option| {
                if rtt_agreed || !matches!(option, DccpOption::RttEstimate(_)) {
                    option.emit_within(room, options);
                }
            });
        }
    }

    fn put_features(
        &mut self,
        now_ns: i64,
        header: &Header,
        repeats: bool,
        room: usize,
        options: &mut Vec<u8>,
    ) {
        //= rfc4340#6
        //# Feature negotiation options MUST NOT be sent on DCCP-Data packets,
        //= rfc4340#6.6.1
        //# any packet including a Confirm option MUST carry an Acknowledgement Number.
        let write = Write {
            answers: header.ack.is_some(),
            keep_answers: self.state == State::PartOpen,
            repeats,
            room_bytes: room.saturating_sub(options.len()),
        };
        self.features.put_options(header.seq, write, options);
        if self.state == State::Open {
            let rtt_ns = self.timer_rtt_ns();
            self.timers.on_features_sent(&self.features, now_ns, rtt_ns);
        }
    }

    fn put_acknowledgement(&mut self, now_ns: i64, header: &Header, room: usize, options: &mut Vec<u8>) {
        let Some(ack) = header.ack else { return };
        let is_slow = self.slow_until_ns.is_some_and(|until_ns| now_ns < until_ns);
        if is_slow && DccpOption::SlowReceiver.emit_within(room, options) {
            self.counters.slow_receiver_sent += 1;
        }
        if !self.drops.is_empty() {
            let left = room.saturating_sub(options.len() + 2).min(MAX_VECTOR_BYTES);
            let mut vector = [0; MAX_VECTOR_BYTES];
            let length = self.drops.write(header.seq, ack, &mut vector[..left]);
            if length > 0 {
                DccpOption::DataDropped(&vector[..length]).emit_within(room, options);
            }
        }
        if let Some(halves) = &mut self.halves {
            let left = room.saturating_sub(options.len());
            halves.receiver.ack_options(now_ns, header.seq, ack, left, &mut |option| {
                option.emit_within(room, options);
            });
        }
    }

    /// A packet was made.
    pub(super) fn account(
        &mut self,
        now_ns: i64,
        header: &Header,
        payload_bytes: usize,
        bytes: usize,
    ) -> Transmit {
        let kind = header.kind;
        let is_data = kind.is_data();
        let ecn = match kind {
            PacketType::Data | PacketType::DataAck | PacketType::Ack => self.ecn_field(),
            _ => Ecn::NotEct,
        };
        if kind.carries_data() {
            self.ndp_run = 0;
        } else {
            self.ndp_run += 1;
        }
        self.counters.on_sent(kind);
        if let Some(halves) = &mut self.halves {
            let payload = is_data.then_some(payload_bytes);
            halves.sender.on_sent(now_ns, header.seq, payload, ecn);
        }
        Transmit { bytes, ecn }
    }

    /// A Reset that ends nothing here.
    pub(super) fn emit_stray(&mut self, now_ns: i64, stray: Stray, out: &mut Vec<u8>) -> Option<Transmit> {
        if stray.seq.is_none() {
            let mut header = Header::new(PacketType::Reset, self.sequence.next(), Some(stray.ack));
            header.reset = Some((stray.code, stray.data));
            return self.emit(now_ns, header, Carries::default(), &[], out);
        }
        let bytes = self.addressing().write_stray(&stray, out);
        self.counters.on_sent(PacketType::Reset);
        Some(Transmit::not_ect(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_writes_what_the_long_way_writes() {
        let address = Addressing {
            carriage: Carriage::Udp { ip_version: 4 },
            local_port: 0x1234,
            remote_port: 0xfedc,
            service_code: 7,
        };
        for (ccval, coverage, seq) in [(0, 0, 0), (15, 1, (1 << 48) - 1), (9, 2, 0x0102_0304_0506)] {
            let mut header = Header::new(PacketType::Data, Seq48::new(seq), None);
            (header.ccval, header.coverage) = (ccval, coverage);
            let (mut soon, mut late) = (Vec::new(), Vec::new());
            address.write_plain_data(&header, b"payload", &mut soon);
            assert!(address.write_any(&header, &[], b"payload", &mut late));
            assert_eq!(soon, late);
        }
    }
}
