// SPDX-License-Identifier: Apache-2.0
//! What a packet that arrived does: the steps of RFC 4340 section 8.5.

use super::options::{Arrival, Findings};
use super::sequence::Validity;
use super::{Carriage, Connection, State};
use crate::ccid::{Ecn, Incoming, Violation};
use crate::checksum;
use crate::feature::{Feature, Location, Role};
use crate::options::data_dropped::DropCode;
use crate::packet::{Packet, PacketType, WireSeq};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

impl Connection {
    /// Take a packet that arrived (no IP, no UDP header). Returns its application data when there is some to deliver
    /// (an empty slice is a real zero-length message). Anything wrong with it changes no more than the RFC says.
    pub fn handle<'a>(&mut self, arrived_ns: i64, ecn: Ecn, bytes: &'a [u8]) -> Option<&'a [u8]> {
        //= rfc4340#8.5
        //# any implementation MUST generate observable effects exactly as indicated by this pseudocode,
        //# except where allowed otherwise by another part of this document.
        let packet = self.check_basics(bytes)?;
        self.pass_time(arrived_ns);
        self.departure = None;
        if packet.kind == PacketType::Listen {
            //= rfc5596#2.2.1
            //# Since DCCP-Listen packets are issued before an actual connection is established, endpoints
            //# MUST ignore any payload data encountered in DCCP-Listen packets.
            self.on_listen(arrived_ns);
            return None;
        }
        self.expire_time_wait(arrived_ns);
        match self.state {
            State::Closed | State::TimeWait => {
                //= rfc4340#8.3.1
                //# Resets sent in the CLOSED, LISTEN, and TIMEWAIT states use Reset Code 3, "No Connection", unless otherwise
                //# specified.
                self.reply_reset(&packet, ResetCode::NoConnection, arrived_ns);
                None
            }
            State::Request => self.in_request(arrived_ns, ecn, &packet),
            _ => self.in_connection(arrived_ns, ecn, &packet),
        }
    }

    /// Step 1: header and checksum; step 2: ports.
    #[inline(always)]
    fn check_basics<'a>(&mut self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        //= rfc4340#5.1
        //# The receiver MUST ignore packets whose Data Offset is smaller than the minimum-sized header for the given Type or
        //# larger than the DCCP packet itself.
        //= rfc4340#5.1
        //# Receivers MUST ignore any packets with reserved type.
        let Ok(packet) = Packet::parse(bytes) else {
            self.counters.packets_invalid += 1;
            return None;
        };
        if let Carriage::Ip { local, remote } = self.config.carriage {
            //= rfc4340#9.1
            //# Packets with invalid header checksums MUST be ignored. In particular, their options MUST NOT be processed.
            if !checksum::verify(remote, local, bytes) {
                self.counters.checksum_errors += 1;
                return None;
            }
        }
        //= rfc6773#3.8
        //# In the second stage, a receiving endpoint MUST ensure that two independent DCCP connections
        //# that were multiplexed to the same UDP 4-tuple are not associated with the same connection in
        //# the DCCP module.
        //= rfc6773#3.8
        //# A DCCP-UDP implementation MUST implement exactly one of these: The DCCP server may accept only
        //# one active 6-tuple at any one time for a given UDP 4-tuple.
        //= rfc6773#3.8
        //# In this method, DCCP-UDP packets that do not match an active 6-tuple MUST NOT be passed to the
        //# DCCP module
        let ours = packet.source_port == self.config.remote_port
            && packet.destination_port == self.config.local_port;
        if !ours {
            self.counters.packets_invalid += 1;
            return None;
        }
        Some(packet)
    }

    /// DCCP-Listen (RFC 5596): a nudge for a client that waits, nothing for others.
    fn on_listen(&mut self, now_ns: i64) {
        //= rfc5596#2.2.3
        //# A client in any state MUST silently discard any received DCCP-Listen packet, unless it implements the optional
        //# procedure defined in the following section.
        //= rfc5596#2.2.3.1
        //# DCCP-Listen packets MUST be silently discarded in all other states.
        //= rfc5596#2.2.1
        //# A DCCP client MUST ignore the value of the Sequence Number field.
        if self.state == State::Request {
            self.timers.trigger_request(now_ns);
        }
    }

    /// Step 4.
    fn in_request<'a>(&mut self, arrived_ns: i64, ecn: Ecn, packet: &Packet<'a>) -> Option<&'a [u8]> {
        let (Some(seq), ack) = (long(packet.seq), packet.ack.and_then(long)) else {
            self.counters.packets_invalid += 1;
            return None;
        };
        //= rfc4340#5.3
        //# MUST equal the Service Code on the corresponding DCCP-Request.
        let answers =
            packet.kind == PacketType::Response && packet.service_code == Some(self.config.service_code);
        let expected = answers || packet.kind == PacketType::Reset;
        if expected && ack.is_some_and(|ack| self.sequence.ack_in_window(ack)) {
            self.sequence.set_first_received(seq);
            self.features.set_first_received(seq);
            return self.process(arrived_ns, ecn, packet, seq, ack);
        }
        self.counters.packets_sequence_invalid += 1;
        //= rfc4340#7.5.4
        //# As an exception, if the peer endpoint is in the REQUEST state, it MUST respond with a DCCP-Reset instead of a
        //# DCCP-SyncAck.
        if packet.kind != PacketType::Reset {
            self.reply_packet_error(seq, packet.kind, arrived_ns);
        }
        None
    }

    /// Steps 5 and 6.
    #[inline(always)]
    fn in_connection<'a>(&mut self, arrived_ns: i64, ecn: Ecn, packet: &Packet<'a>) -> Option<&'a [u8]> {
        let Some((seq, ack)) = self.extend(packet) else {
            self.counters.packets_invalid += 1;
            return None;
        };
        let quiet_ns = arrived_ns.saturating_sub(self.heard_ns);
        let active = quiet_ns <= self.timer_rtt_ns().saturating_mul(3);
        //= rfc4340#7.5.4
        //# DCCP endpoints MUST NOT process sequence-invalid packets except, perhaps, by generating a DCCP-Sync.
        //= rfc4340#7.5.4
        //# For instance, options MUST NOT be processed.
        match self.sequence.check(packet.kind, seq, ack, active) {
            Validity::Valid => self.process(arrived_ns, ecn, packet, seq, ack),
            Validity::Sync(about) => {
                self.counters.packets_sequence_invalid += 1;
                self.challenge(about, arrived_ns);
                None
            }
            Validity::Ignore => {
                self.counters.packets_sequence_invalid += 1;
                None
            }
        }
    }

    /// 48-bit numbers of a packet; `None` for short ones that were not agreed.
    fn extend(&self, packet: &Packet<'_>) -> Option<(Seq48, Option<Seq48>)> {
        match packet.seq {
            WireSeq::Long(seq) => Some((seq, packet.ack.and_then(long))),
            WireSeq::Short(low) => {
                //= rfc4340#7.6.1
                //# When Allow Short Seqnos/B is zero, DCCP B MUST NOT send packets with short sequence numbers and DCCP A MUST
                //# ignore any packets with short sequence numbers that are received.
                let allowed = self.features.value(Feature::AllowShortSeqnos, Location::Remote);
                if allowed == 0 {
                    return None;
                }
                let seq = Seq48::extend(low, self.sequence.gsr);
                let ack = packet.ack.map(|ack| match ack {
                    WireSeq::Long(ack) => ack,
                    WireSeq::Short(low) => Seq48::extend(low, self.sequence.gss),
                });
                Some((seq, ack))
            }
        }
    }

    /// Steps 6 (second half) to 16 for a sequence-valid packet.
    fn process<'a>(
        &mut self,
        arrived_ns: i64,
        ecn: Ecn,
        packet: &Packet<'a>,
        seq: Seq48,
        ack: Option<Seq48>,
    ) -> Option<&'a [u8]> {
        self.sequence.accept(packet.kind, seq, ack);
        self.features.clamp(self.sequence.gsr, self.sequence.gss);
        self.heard_ns = self.heard_ns.max(arrived_ns);
        if self.is_unexpected(packet.kind, seq) {
            self.challenge(seq, arrived_ns);
            return None;
        }
        self.counters.on_received(packet.kind);
        let arrival = Arrival { packet, arrived_ns, seq, ack };
        let findings = match self.process_options(&arrival) {
            Ok(findings) => findings,
            Err(violation) => {
                self.reset_here(violation.code, violation.data);
                return None;
            }
        };
        self.apply_features();
        //= rfc4340#5.6
        //# Options on DCCP-Reset packets are processed before the connection is shut down.
        if let (PacketType::Reset, Some((code, _))) = (packet.kind, packet.reset) {
            self.on_reset(code, arrived_ns);
            return None;
        }
        if let Some(ack) = ack {
            self.drops.on_ack(ack);
        }
        self.advance_handshake(&arrival);
        if let Err(violation) = self.inform_ccids(&arrival, ecn, findings) {
            self.reset_here(violation.code, violation.data);
            return None;
        }
        self.react(&arrival);
        self.deliver(&arrival, packet, findings)
    }

    /// Step 7: valid numbers, but nobody in this place says that.
    fn is_unexpected(&self, kind: PacketType, seq: Seq48) -> bool {
        let not_new = |osr: Seq48| !seq.is_before(osr);
        let late = self.state.is_established() && self.sequence.osr.is_none_or(not_new);
        match kind {
            //= rfc4340#8.3
            //# A server receiving a sequence-valid DCCP-CloseReq packet MUST respond with a DCCP-Sync packet and otherwise ignore
            //# the DCCP-CloseReq.
            PacketType::CloseReq => self.role == Role::Server,
            PacketType::Response => self.role == Role::Server || late,
            PacketType::Request => self.role == Role::Client || late,
            PacketType::Data => self.state == State::Respond,
            _ => false,
        }
    }

    /// Steps 10 to 12.
    fn advance_handshake(&mut self, arrival: &Arrival<'_, '_>) {
        let kind = arrival.packet.kind;
        match self.state {
            State::Request => {
                self.measure_handshake(arrival);
                self.state = State::PartOpen;
                self.timers.start_part_open(arrival.arrived_ns);
                self.pending.part_open_ack = true;
            }
            State::Respond if kind == PacketType::Request => {
                if !self.pending.response && !self.timers.has_responded() {
                    self.request_as_server();
                }
                //= rfc4340#8.1.3
                //# Every valid DCCP-Request received while the server is in the RESPOND state MUST elicit a new DCCP-Response.
                self.pending.response = true;
                if !arrival.packet.payload.is_empty() {
                    self.drops.note(arrival.seq, DropCode::ProtocolConstraints);
                }
                return;
            }
            State::Respond => {
                self.measure_handshake(arrival);
                self.open(arrival.seq);
                // Takes the client out of PARTOPEN, which no Response does.
                self.pending.ack = true;
            }
            State::PartOpen => {
                if kind == PacketType::Response {
                    self.pending.part_open_ack = true;
                } else if kind != PacketType::Sync {
                    self.open(arrival.seq);
                    self.features.drop_answers();
                }
            }
            _ => {}
        }
        self.start_halves(arrival.arrived_ns);
    }

    fn open(&mut self, first: Seq48) {
        self.sequence.osr = Some(first);
        self.state = State::Open;
        self.cookies = Vec::new();
        self.timers.stop_handshake();
    }

    /// The handshake's round trip, when the packet answers the newest Request or Response.
    fn measure_handshake(&mut self, arrival: &Arrival<'_, '_>) {
        if arrival.ack == Some(self.sequence.gss) {
            if let Some(sent_ns) = self.timers.handshake_sent_ns() {
                let rtt_ns = arrival.arrived_ns.saturating_sub(sent_ns);
                if rtt_ns > 0 {
                    self.handshake_rtt_ns = Some(rtt_ns);
                }
            }
        }
    }

    /// Both half-connections see the packet.
    fn inform_ccids(
        &mut self,
        arrival: &Arrival<'_, '_>,
        ecn: Ecn,
        findings: Findings,
    ) -> Result<(), Violation> {
        let Some(halves) = &mut self.halves else {
            return Ok(());
        };
        let kind = arrival.packet.kind;
        let mut incoming = Incoming {
            arrived_ns: arrival.arrived_ns,
            seq: arrival.seq,
            ack: arrival.ack,
            ecn,
            packet: arrival.packet,
        };
        //= rfc4340#5.7
        //# Thus, receivers MUST NOT assume that a packet was processed simply because it appears in the Acknowledgement Number
        //# field of a DCCP-Sync packet.
        if kind == PacketType::Sync && !findings.ack_vector {
            incoming.ack = None;
        }
        halves.sender.on_incoming(&incoming)?;
        if kind == PacketType::Sync {
            incoming.ack = None;
        }
        //= rfc4340#11.4
        //# Packets reported as State 0 or State 1 MUST be acknowledgeable: their options have been
        //# processed by the receiving DCCP stack.
        //= rfc4340#11.4
        //# Packets reported as State 3 MUST NOT be acknowledgeable. Feature negotiations and options on
        //# such packets MUST NOT have been processed, and the Acknowledgement Number MUST NOT correspond
        //# to such a packet.
        incoming.arrived_ns = incoming.arrived_ns.saturating_add(self.waited_ns);
        halves.receiver.on_incoming(&incoming)
    }

    /// Steps 13 to 15.
    fn react(&mut self, arrival: &Arrival<'_, '_>) {
        match arrival.packet.kind {
            PacketType::CloseReq => self.on_close_req(arrival.arrived_ns),
            PacketType::Close => self.on_close(),
            PacketType::Sync => {
                //= rfc4340#8.2
                //# On receiving a valid DCCP-Sync packet, a DCCP endpoint MUST immediately generate and send a DCCP-SyncAck
                //# response (subject to any implementation rate limits); the Acknowledgement Number on that DCCP-SyncAck MUST
                //# equal the Sequence Number of the DCCP-Sync.
                //= rfc4340#7.5.4
                //# On receiving a sequence-valid DCCP-Sync packet, the peer endpoint (say, DCCP B) MUST
                //# update its GSR variable and reply with a DCCP-SyncAck packet.
                self.pending.push_sync_ack(arrival.seq);
            }
            _ => {}
        }
    }

    /// Step 16.
    fn deliver<'a>(
        &mut self,
        arrival: &Arrival<'_, '_>,
        packet: &Packet<'a>,
        findings: Findings,
    ) -> Option<&'a [u8]> {
        if findings.corrupt {
            //= rfc4340#9.3
            //# Otherwise, the receiving endpoint MUST drop the application data and report that data as dropped due to corruption
            //# using a Data Dropped option (Drop Code 3, Corrupt).
            self.counters.data_checksum_errors += 1;
            //= rfc4340#9.3
            //# If the CRCs differ, the packets similarly MUST be reported using Data Dropped options
            //# (Drop Code 3), although their application data areas would not be delivered to the
            //# application in any case.
            self.drops.note(arrival.seq, DropCode::Corrupt);
            return None;
        }
        let wanted = match packet.kind {
            PacketType::Data | PacketType::DataAck => true,
            //= rfc4340#8.1.3
            //# The server MUST NOT accept more than one piece of DCCP-Request application data per connection.
            // It accepts none; the Response says so.
            PacketType::Request => false,
            //= rfc4340#8.5
            //# the application MUST NOT receive data from more than one Request or Response
            PacketType::Response => !packet.payload.is_empty() && !self.handshake_data_taken,
            //= rfc4340#5.4
            //# Receivers MUST ignore the content of the application data area in DCCP-Ack packets.
            //= rfc4340#5.5
            //# As with DCCP-Ack packets, DCCP-CloseReq and DCCP-Close packets MAY have non-zero-length
            //# application data areas, whose contents receivers MUST ignore.
            //= rfc4340#5.7
            //# As with DCCP-Ack packets, DCCP-Sync and DCCP-SyncAck packets MAY have non-zero-length
            //# application data areas, whose contents receivers MUST ignore.
            _ => return None,
        };
        if !wanted || !self.accepts_data() || self.state.is_over() {
            if packet.kind.is_data() {
                self.counters.data_refused += 1;
                self.drops.note(arrival.seq, DropCode::ProtocolConstraints);
            }
            return None;
        }
        self.handshake_data_taken |= packet.kind == PacketType::Response;
        Some(packet.payload)
    }

    /// The data of `packet`, which was delivered, was not taken.
    pub(super) fn on_refused(&mut self, packet: &[u8], code: DropCode) {
        let numbers = Packet::parse(packet).ok().and_then(|packet| self.extend(&packet));
        if let Some((seq, _)) = numbers {
            self.counters.data_not_taken += 1;
            self.drops.note(seq, code);
        }
    }
}

/// Long form of a number; `None` for the short one.
fn long(number: WireSeq) -> Option<Seq48> {
    match number {
        WireSeq::Long(seq) => Some(seq),
        WireSeq::Short(_) => None,
    }
}
