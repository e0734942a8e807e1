// SPDX-License-Identifier: Apache-2.0
//! What leaves next (RFC 4340 sections 8.1 and 8.2).

use super::packets::{Carries, Header};
use super::{Connection, SendError, State, Transmit};
use crate::ccid::Departure;
use crate::feature::Role;
use crate::packet::{header_bytes, PacketType};

/// An acknowledgement's options ride on a data packet only with this much room for them.
const PIGGYBACK_BYTES: usize = 128;
/// PARTOPEN: Acks with the Confirms that go ahead of a message that leaves no room for them. A server opens with the first
/// packet that arrives, and one that has not got its Confirms by then refuses the data (section 12.1) or, Linux, the
/// connection.
const CONFIRMS_AHEAD: u8 = 2;

/// Why an acknowledgement should leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckNeed {
    /// Now: the receiving CCID, a feature or the handshake wants it.
    pub(super) due: bool,
    /// The peer's acknowledgements should be acknowledged; any packet with an acknowledgement number does.
    pub(super) of_acks: bool,
}

impl Connection {
    /// Append the next packet that is due at `now_ns` to `out`, if there is one. Call until `None`.
    pub fn poll_transmit(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        self.pass_time(now_ns);
        self.run_timers(now_ns);
        if self.pending.any_urgent() {
            if let Some(transmit) = self.urgent(now_ns, out) {
                return Some(transmit);
            }
        }
        self.close_when_drained(now_ns);
        match self.state {
            State::Request => self.request(now_ns, out),
            State::Respond => self.response(now_ns, out),
            State::PartOpen => self.part_open(now_ns, out),
            State::Open => self.flow(now_ns, out),
            State::CloseReq | State::Closing => self.closing(now_ns, out),
            State::Closed | State::TimeWait => None,
        }
    }

    /// Packets that wait for nobody.
    fn urgent(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(reset) = self.pending.reset.take() {
            let mut header = Header::new(PacketType::Reset, self.sequence.next(), Some(reset.ack));
            header.reset = Some((reset.code, reset.data));
            return self.emit(now_ns, header, Carries::default(), &[], out);
        }
        if let Some(stray) = self.pending.stray.take() {
            return self.emit_stray(now_ns, stray, out);
        }
        if let Some(seq) = self.pending.pop_sync_ack() {
            //= rfc4340#5.7
            //# Second, the Acknowledgement Number on any DCCP-SyncAck packet MUST correspond to the Sequence Number on an
            //# acknowledgeable DCCP-Sync packet.
            let header = Header::new(PacketType::SyncAck, self.sequence.next(), Some(seq));
            return self.emit(now_ns, header, Carries::default(), &[], out);
        }
        let about = self.pending.sync.take()?;
        //= rfc4340#7.5.4
        //# This response packet MUST use a new Sequence Number, and thus will increase GSS;
        let header = Header::new(PacketType::Sync, self.sequence.next(), Some(about));
        self.emit(now_ns, header, Carries::default(), &[], out)
    }

    fn request(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        if !self.timers.state_due(now_ns) {
            return None;
        }
        self.timers.back_off(now_ns);
        self.timers.on_handshake_sent(now_ns);
        //= rfc4340#8.1.1
        //# Each new DCCP-Request MUST increment the Sequence Number by one and MUST contain the same Service Code and
        //# application data as the original DCCP-Request.
        let header = Header::new(PacketType::Request, self.sequence.next(), None);
        let carries = Carries { features: true, repeats: true, acknowledgement: false };
        self.emit(now_ns, header, carries, &[], out)
    }

    //= rfc4340#8.1.3
    //# The server SHOULD NOT retransmit DCCP-Response packets; the client will retransmit the DCCP-Request if necessary.
    //= rfc4340#8.1.3
    //# Each new DCCP-Response MUST increment the server's Sequence Number by one and MUST include the same application data, if
    //# any, as the original DCCP-Response.
    fn response(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        if !std::mem::take(&mut self.pending.response) {
            return None;
        }
        self.timers.on_handshake_sent(now_ns);
        let header = Header::new(PacketType::Response, self.sequence.next(), Some(self.sequence.gsr));
        let carries = Carries { features: true, repeats: true, acknowledgement: true };
        self.emit(now_ns, header, carries, &[], out)
    }

    /// PARTOPEN: Ack first, then data as DataAck.
    fn part_open(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        if std::mem::take(&mut self.pending.part_open_ack) {
            // A server that has nothing to say, and whose one packet was lost, must answer a Sync; not at once, for Linux
            // resets a half-open connection that gets one. The same for a message that does not fit beside Init Cookies.
            let waits = !self.queue.is_empty() && !self.head_fits_part_open();
            if waits || self.timers.part_open_is_stuck() {
                self.pending.sync = Some(self.sequence.gsr);
            }
            return self.acknowledge_part_open(now_ns, out);
        }
        if self.queue.is_empty() || !self.head_fits_part_open() {
            return None;
        }
        if self.head_departure(now_ns) != Some(Departure::Now) {
            return None;
        }
        //= rfc4340#8.1.5
        //# Clients in the PARTOPEN state that want to send data MUST do so using DCCP-DataAck packets, not DCCP-Data packets.
        //= rfc4340#8.1.4
        //# As a result, the client MUST NOT use DCCP-Data packets until the three-way handshake completes or the connection is
        //# reset.
        //= rfc4340#4.3
        //# The client may send application data in this state, but it MUST include an Acknowledgement
        //# Number on all of its packets.
        let carries = Carries { features: self.head_leaves_room_for_confirms(), ..Carries::default() };
        if self.features.has_answers() && !carries.features {
            if self.pending.confirms_ahead < CONFIRMS_AHEAD {
                return self.acknowledge_part_open(now_ns, out);
            }
            self.pending.confirms_ahead -= 1;
        }
        let transmit = self.queued_data(now_ns, PacketType::DataAck, carries, out);
        self.timers.restart(now_ns);
        transmit
    }

    fn acknowledge_part_open(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        self.pending.confirms_ahead = self.pending.confirms_ahead.saturating_add(1).min(CONFIRMS_AHEAD);
        self.acknowledge(now_ns, true, out)
    }

    /// PARTOPEN: Confirms may stand beside the oldest message.
    fn head_leaves_room_for_confirms(&self) -> bool {
        let payload_bytes = self.queue.front().map_or(0, <[u8]>::len);
        let room = self.option_room(header_bytes(PacketType::DataAck, false), payload_bytes);
        room >= self.cookies.len() + PIGGYBACK_BYTES
    }

    /// The oldest message fits a DataAck with the Init Cookies.
    pub(super) fn head_fits_part_open(&self) -> bool {
        self.state == State::PartOpen
            && self.queue.front().is_some_and(|payload| {
                let fixed = header_bytes(PacketType::DataAck, false) + self.cookies.len();
                fixed + payload.len() <= self.max_packet_bytes()
            })
    }

    /// OPEN: acknowledgements and data.
    fn flow(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        let need = self.ack_need(now_ns);
        let departure = self.head_departure(now_ns);
        if departure != Some(Departure::Now) {
            // Acknowledging acknowledgements waits for the next data packet (section 11.2: it may).
            return if need.due {
                // On entering OPEN: Changes that the handshake left without answer, at once again.
                self.acknowledge(now_ns, self.pending.ack, out)
            } else {
                None
            };
        }
        let payload_bytes = self.queue.front().map_or(0, <[u8]>::len);
        let Some((kind, carries)) = self.data_kind(need, payload_bytes) else {
            return self.acknowledge(now_ns, self.pending.ack, out);
        };
        let transmit = self.queued_data(now_ns, kind, carries, out);
        self.close_when_drained(now_ns);
        transmit
    }

    /// Why an acknowledgement should leave now.
    pub(super) fn ack_need(&self, now_ns: i64) -> AckNeed {
        let Some(halves) = &self.halves else {
            return AckNeed {
                due: self.pending.ack || self.timers.feature_due(&self.features, now_ns),
                of_acks: false,
            };
        };
        let due = self.pending.ack
            || halves.receiver.ack_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
            || self.timers.feature_due(&self.features, now_ns);
        AckNeed { due, of_acks: halves.sender.wants_ack_of_acks() }
    }

    //= rfc4340#11.2
    //# In this case, DCCP B SHOULD send separate DCCP-Data and DCCP-Ack packets, or wait, but not too long, for a smaller
    //# datagram.
    /// How a message of this size should leave, given what is to be acknowledged; `None`: after an Ack of its own.
    fn data_kind(&self, need: AckNeed, payload_bytes: usize) -> Option<(PacketType, Carries)> {
        let plain = Carries::default();
        if !need.due && !need.of_acks {
            return Some((PacketType::Data, plain));
        }
        let fixed = header_bytes(PacketType::DataAck, false);
        if fixed + payload_bytes > self.max_packet_bytes() {
            return None;
        }
        if !need.due {
            return Some((PacketType::DataAck, plain));
        }
        let carries =
            Carries { features: true, repeats: self.timers.repeats_due(self.now_ns), acknowledgement: true };
        let roomy = self.option_room(fixed, payload_bytes) >= PIGGYBACK_BYTES;
        roomy.then_some((PacketType::DataAck, carries))
    }

    /// What congestion control says about the oldest message; `None` without one.
    fn head_departure(&mut self, now_ns: i64) -> Option<Departure> {
        let payload_bytes = self.queue.front()?.len();
        let halves = self.halves.as_mut()?;
        let departure = match self.departure {
            Some(Departure::At(due_ns)) if due_ns > now_ns => Departure::At(due_ns),
            _ => halves.sender.departure(now_ns, payload_bytes),
        };
        self.departure = Some(departure);
        Some(departure)
    }

    /// Send the oldest message.
    fn queued_data(
        &mut self,
        now_ns: i64,
        kind: PacketType,
        carries: Carries,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let mut queue = std::mem::take(&mut self.queue);
        let transmit =
            queue.front().and_then(|payload| self.data_packet(now_ns, kind, carries, payload, out));
        queue.pop();
        self.queue = queue;
        self.departure = None;
        if self.queue.is_empty() {
            if let Some(halves) = &mut self.halves {
                halves.sender.on_queue_empty(now_ns);
            }
        }
        transmit
    }

    fn data_packet(
        &mut self,
        now_ns: i64,
        kind: PacketType,
        carries: Carries,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        //= rfc4340#7.4
        //# A sent packet's Acknowledgement Number MUST equal the sending endpoint's GSR, the Greatest Sequence Number Received on
        //# an acknowledgeable packet, for all packet types except DCCP-Sync and DCCP-SyncAck.
        let ack = kind.has_ack().then_some(self.sequence.gsr);
        if carries.acknowledgement {
            self.pending.ack = false;
        }
        let header = Header::new(kind, self.sequence.next(), ack);
        self.emit(now_ns, header, carries, payload, out)
    }

    /// A pure Ack with all that is to be said. `repeats`: Changes without answer again, whatever their timer says.
    fn acknowledge(&mut self, now_ns: i64, repeats: bool, out: &mut Vec<u8>) -> Option<Transmit> {
        self.pending.ack = false;
        let header = Header::new(PacketType::Ack, self.sequence.next(), Some(self.sequence.gsr));
        let carries = Carries {
            features: true,
            repeats: repeats || self.timers.repeats_due(now_ns),
            acknowledgement: true,
        };
        self.emit(now_ns, header, carries, &[], out)
    }

    fn closing(&mut self, now_ns: i64, out: &mut Vec<u8>) -> Option<Transmit> {
        if !std::mem::take(&mut self.pending.close) {
            return None;
        }
        let kind = match self.state {
            State::CloseReq => PacketType::CloseReq,
            _ => PacketType::Close,
        };
        debug_assert!(kind == PacketType::Close || self.role == Role::Server);
        let header = Header::new(kind, self.sequence.next(), Some(self.sequence.gsr));
        self.emit(now_ns, header, Carries::default(), &[], out)
    }

    /// Queue a message for [`Self::poll_transmit`].
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn send(&mut self, now_ns: i64, payload: &[u8]) -> Result<(), SendError> {
        self.pass_time(now_ns);
        self.check_message(payload)?;
        if self.queue.is_empty() {
            self.departure = None;
        }
        if self.queue.push(payload) {
            Ok(())
        } else {
            Err(SendError::QueueFull)
        }
    }

    //= rfc4340#14.2
    //# the API MUST refuse to send the packet and return an appropriate error to the application.
    fn check_message(&self, payload: &[u8]) -> Result<(), SendError> {
        if !matches!(self.state, State::PartOpen | State::Open) || self.close_wanted {
            return Err(SendError::NotOpen);
        }
        if payload.len() > self.max_payload_bytes() {
            return Err(SendError::TooLarge);
        }
        Ok(())
    }

    /// The short way for a message when nothing is queued and congestion control lets it go: append its packet to
    /// `out` without a copy in the queue. `None`: use [`Self::send`].
    pub fn send_now(&mut self, now_ns: i64, payload: &[u8], out: &mut Vec<u8>) -> Option<Transmit> {
        if self.state != State::Open || !self.queue.is_empty() || self.pending.any(State::Open) {
            return None;
        }
        self.pass_time(now_ns);
        if self.check_message(payload).is_err() {
            return None;
        }
        // The messages of a batch share one time: what was due by then is done.
        if self.timers_ran_ns < now_ns {
            self.run_timers(now_ns);
        }
        let need = self.ack_need(now_ns);
        let (kind, carries) = self.data_kind(need, payload.len())?;
        let halves = self.halves.as_mut()?;
        let departure = halves.sender.departure(now_ns, payload.len());
        if departure != Departure::Now {
            return None;
        }
        self.data_packet(now_ns, kind, carries, payload, out)
    }

    //= rfc4340#14.2
    //# It MAY send these packets as fragmentable, or it MAY discard these packets; it MUST NOT send them as unfragmentable.
    /// The MTU shrank: queued messages that no longer fit are discarded when their turn comes; look at the next.
    pub(super) fn drop_oversized(&mut self) {
        let limit = self.max_payload_bytes();
        self.counters.queue_discarded += self.queue.discard_longer_than(limit) as u64;
        self.departure = None;
    }
}
