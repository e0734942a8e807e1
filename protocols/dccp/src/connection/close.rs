// SPDX-License-Identifier: Apache-2.0
//! How a connection ends (RFC 4340 section 8.3).

use super::packets::{OwnReset, Stray};
use super::{Connection, End, State};
use crate::feature::Role;
use crate::packet::{Packet, PacketType, WireSeq};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

impl Connection {
    /// Start an orderly close; what is queued leaves first. A server sends CloseReq, a client Close.
    pub fn close(&mut self, now_ns: i64) {
        self.pass_time(now_ns);
        match self.state {
            State::Request | State::Respond => self.abort(now_ns),
            State::PartOpen | State::Open => {
                self.close_wanted = true;
                self.close_when_drained(now_ns);
            }
            State::CloseReq | State::Closing | State::TimeWait | State::Closed => {}
        }
    }

    /// Reset with code Aborted at once.
    pub fn abort(&mut self, now_ns: i64) {
        self.pass_time(now_ns);
        if self.state.is_over() {
            return;
        }
        self.reset_here(ResetCode::Aborted, [0; 3]);
    }

    /// Close was asked for and nothing is queued any more.
    pub(super) fn close_when_drained(&mut self, now_ns: i64) {
        if !self.close_wanted || !self.queue.is_empty() {
            return;
        }
        //= rfc4340#8.3
        //# Only the server can send a DCCP-CloseReq packet or enter the CLOSEREQ state.
        self.state = match self.role {
            Role::Server => State::CloseReq,
            Role::Client => State::Closing,
        };
        self.send_close(now_ns);
    }

    fn send_close(&mut self, now_ns: i64) {
        self.close_wanted = false;
        self.pending.close = true;
        self.timers.start_close(now_ns, self.timer_rtt_ns());
    }

    //= rfc4340#8.3
    //# The receiver of a valid DCCP-CloseReq packet MUST respond with a DCCP-Close packet.
    /// Step 13.
    pub(super) fn on_close_req(&mut self, now_ns: i64) {
        match self.state {
            State::PartOpen | State::Open => {
                self.discard_queue();
                self.state = State::Closing;
                self.send_close(now_ns);
            }
            // CLOSING: step 13 generates no second Close. The CloseReq crossed the first one, or that one was lost and its timer
            // repeats it. A second one would reach a server that is gone and draw a Reset, "No Connection".
            _ => {}
        }
    }

    //= rfc4340#8.3
    //# The receiver of a valid DCCP-Close packet MUST respond with a DCCP-Reset packet with Reset Code 1, "Closed".
    /// Step 14.
    pub(super) fn on_close(&mut self) {
        self.reset_here(ResetCode::Closed, [0; 3]);
        self.end = Some(End::Closed);
    }

    /// Step 9.
    pub(super) fn on_reset(&mut self, code: ResetCode, now_ns: i64) {
        let closing = matches!(self.state, State::Closing | State::CloseReq);
        self.end =
            Some(if closing && code == ResetCode::Closed { End::Closed } else { End::ResetByPeer(code) });
        self.tear_down();
        self.state = State::TimeWait;
        self.timers.start_time_wait(now_ns);
    }

    /// Send a Reset and forget the connection.
    pub(super) fn reset_here(&mut self, code: ResetCode, data: [u8; 3]) {
        //= rfc4340#8.1.1
        //# A client in REQUEST state has never received an initial sequence number from its peer, so the DCCP-Reset's
        //# Acknowledgement Number MUST be set to zero.
        let requested = self.state != State::Request || self.timers.has_responded();
        let ack = if self.state == State::Request { Seq48::new(0) } else { self.sequence.gsr };
        self.tear_down();
        self.end = Some(End::ResetHere(code));
        if requested {
            self.pending.reset = Some(OwnReset { code, data, ack });
        }
        self.state = State::Closed;
    }

    fn tear_down(&mut self) {
        self.discard_queue();
        self.pending.clear();
        self.timers.stop();
        self.close_wanted = false;
    }

    fn discard_queue(&mut self) {
        self.counters.queue_discarded += self.queue.clear() as u64;
    }

    /// Answer a packet that belongs to no connection (section 8.3.1).
    pub(super) fn reply_reset(&mut self, packet: &Packet<'_>, code: ResetCode, now_ns: i64) {
        if packet.kind == PacketType::Reset || !self.timers.may_challenge(now_ns) {
            return;
        }
        self.pending.stray = Some(stray_reset(packet, code));
    }

    /// REQUEST: what came is neither Response nor Reset.
    pub(super) fn reply_packet_error(&mut self, ack: Seq48, kind: PacketType, now_ns: i64) {
        if self.timers.may_challenge(now_ns) {
            //= rfc4340#5.6
            //# The Data 1 field equals the offending packet type as an eight-bit number;
            self.pending.stray =
                Some(Stray { seq: None, ack, code: ResetCode::PacketError, data: [kind as u8, 0, 0] });
        }
    }

    /// Answer a sequence-invalid or unexpected packet with a Sync.
    pub(super) fn challenge(&mut self, about: Seq48, now_ns: i64) {
        if self.timers.may_challenge(now_ns) {
            self.pending.sync = Some(about);
        }
    }
}

/// Reset without a connection: numbers from the packet that it answers (section 8.3.1).
pub(crate) fn stray_reset(packet: &Packet<'_>, code: ResetCode) -> Stray {
    let number = |seq| match seq {
        WireSeq::Long(seq) => seq,
        // Upper 24 bits 0.
        WireSeq::Short(low) => Seq48::new(u64::from(low)),
    };
    let seq = match packet.ack {
        Some(WireSeq::Long(ack)) => ack.add(1),
        Some(WireSeq::Short(low)) => Seq48::new(u64::from(low.wrapping_add(1) & 0xff_ffff)),
        None => Seq48::new(0),
    };
    //= rfc4340#5.6
    //# Unless otherwise specified, the Data 1, 2, and 3 fields MUST be set to 0 by the sender of the DCCP-Reset and ignored by
    //# its receiver.
    Stray { seq: Some(seq), ack: number(packet.seq), code, data: [0; 3] }
}
