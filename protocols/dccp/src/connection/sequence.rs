// SPDX-License-Identifier: Apache-2.0
//! Sequence number variables and the windows of validity (RFC 4340 sections 7.1 and 7.5).

use crate::packet::PacketType;
use crate::seqno::Seq48;

/// From this distance on no window reaches back to the initial sequence number (windows are less than 2^46).
const OLD: i64 = 1 << 46;

/// Variables of section 7.1.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// First number sent.
    pub(crate) iss: Seq48,
    /// Greatest number sent.
    pub(crate) gss: Seq48,
    /// First number received.
    pub(crate) isr: Seq48,
    /// Greatest valid number received.
    pub(crate) gsr: Seq48,
    /// Greatest valid acknowledgement number received on a packet that was no Sync.
    pub(crate) gar: Seq48,
    /// First number received in OPEN.
    pub(crate) osr: Option<Seq48>,
    /// W: the peer's Sequence Window, width of the window for its numbers.
    pub(crate) window_received: u64,
    /// W': the own Sequence Window, width of the window for acknowledgement numbers.
    pub(crate) window_sent: u64,
    /// Too few numbers sent yet for AWL to pass ISS; the same for SWL and ISR.
    young_sent: bool,
    young_received: bool,
}

/// Verdict on the numbers of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validity {
    /// Process it.
    Valid,
    /// Answer with a Sync that acknowledges this number, if the rate limit allows.
    Sync(Seq48),
    /// Do nothing.
    Ignore,
}

impl Sequence {
    /// Nothing received yet; the first number sent will be `iss`.
    pub(crate) fn new(iss: Seq48) -> Self {
        let before = iss.sub(1);
        Self {
            iss,
            gss: before,
            isr: Seq48::new(0),
            gsr: Seq48::new(0),
            gar: iss,
            osr: None,
            window_received: 100,
            window_sent: 100,
            young_sent: true,
            young_received: true,
        }
    }

    /// The peer's first number is known.
    pub(crate) fn set_first_received(&mut self, isr: Seq48) {
        self.isr = isr;
        self.gsr = isr;
    }

    /// The next number to send, used up.
    pub(crate) fn next(&mut self) -> Seq48 {
        //= rfc5348#3.2.1
        //# This number MUST be incremented by one for each data packet transmitted.
        self.gss = self.gss.add(1);
        if self.young_sent && self.iss.distance_to(self.gss) >= OLD {
            self.young_sent = false;
        }
        self.gss
    }

    /// Low end of the window for the peer's numbers.
    pub(crate) fn swl(&self) -> Seq48 {
        let low = self.gsr.add(1).sub(self.window_received / 4);
        //= rfc4340#7.5.1
        //# These adjustments MUST be applied only at the beginning of the connection.
        //= rfc4340#7.5.1
        //# (Long-lived connections may wrap sequence numbers so that they appear to be less than ISR or
        //# ISS; the adjustments MUST NOT be applied in that case.)
        if self.young_received && low.is_before(self.isr) {
            self.isr
        } else {
            low
        }
    }

    /// High end of the window for the peer's numbers.
    pub(crate) fn swh(&self) -> Seq48 {
        self.gsr.add((3 * self.window_received).div_ceil(4))
    }

    /// Low end of the window for acknowledgement numbers.
    pub(crate) fn awl(&self) -> Seq48 {
        let low = self.gss.add(1).sub(self.window_sent);
        if self.young_sent && low.is_before(self.iss) {
            self.iss
        } else {
            low
        }
    }

    /// High end of the window for acknowledgement numbers.
    pub(crate) fn awh(&self) -> Seq48 {
        self.gss
    }

    /// `ack` acknowledges something that this end sent lately.
    pub(crate) fn ack_in_window(&self, ack: Seq48) -> bool {
        ack.is_within(self.awl(), self.awh())
    }

    /// Check the numbers of a packet (steps 5 and 6 of section 8.5). `active`: valid packets came within the last three round
    /// trips, so that Sync and SyncAck are checked strictly.
    pub(crate) fn check(&self, kind: PacketType, seq: Seq48, ack: Option<Seq48>, active: bool) -> Validity {
        match kind {
            PacketType::Sync | PacketType::SyncAck => self.check_sync(seq, ack, active),
            PacketType::CloseReq | PacketType::Close | PacketType::Reset => self.check_last(kind, seq, ack),
            _ => {
                let valid =
                    seq.is_within(self.swl(), self.swh()) && ack.is_none_or(|ack| self.ack_in_window(ack));
                if valid {
                    Validity::Valid
                } else {
                    //= rfc4340#7.5.4
                    //# Any other sequence-invalid packet MUST elicit a similar DCCP-Sync packet, except that the response
                    //# packet's Acknowledgement Number MUST equal the sequence-invalid packet's Sequence Number.
                    Validity::Sync(seq)
                }
            }
        }
    }

    fn check_sync(&self, seq: Seq48, ack: Option<Seq48>, active: bool) -> Validity {
        let swl = self.swl();
        //= rfc4340#7.5.3
        //# Therefore, DCCP implementations SHOULD use the following, more stringent checks for active connections, where a
        //# connection is considered active if it has received valid packets from the other endpoint within the last three
        //# round-trip times.
        let seq_valid = if active { seq.is_within(swl, self.swh()) } else { !seq.is_before(swl) };
        if seq_valid && ack.is_some_and(|ack| self.ack_in_window(ack)) {
            Validity::Valid
        } else {
            //= rfc4340#7.5.4
            //# Any sequence-invalid DCCP-Sync or DCCP-SyncAck packet MUST be ignored.
            Validity::Ignore
        }
    }

    /// Packets that end a connection: nothing old is accepted.
    fn check_last(&self, kind: PacketType, seq: Seq48, ack: Option<Seq48>) -> Validity {
        let low = self.gsr.add(1);
        let valid =
            seq.is_within(low, self.swh()) && ack.is_some_and(|ack| ack.is_within(self.gar, self.awh()));
        if valid {
            Validity::Valid
        } else if kind == PacketType::Reset {
            //= rfc4340#7.5.4
            //# A sequence-invalid DCCP-Reset packet MUST elicit a DCCP-Sync packet in response (subject to a possible rate
            //# limit).
            //= rfc4340#7.5.4
            //# The response packet's Acknowledgement Number MUST equal GSR.
            Validity::Sync(self.gsr)
        } else {
            Validity::Sync(seq)
        }
    }

    /// A valid packet came: move the windows.
    pub(crate) fn accept(&mut self, kind: PacketType, seq: Seq48, ack: Option<Seq48>) {
        self.gsr = self.gsr.latest(seq);
        if self.young_received && self.isr.distance_to(self.gsr) >= OLD {
            self.young_received = false;
        }
        if let (Some(ack), false) = (ack, kind == PacketType::Sync) {
            self.gar = self.gar.latest(ack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(iss: u64, sent: u64, isr: u64, received: u64) -> Sequence {
        let mut sequence = Sequence::new(Seq48::new(iss));
        for _ in 0..sent {
            sequence.next();
        }
        sequence.set_first_received(Seq48::new(isr));
        sequence.accept(PacketType::Data, Seq48::new(isr + received), None);
        sequence
    }

    #[test]
    fn windows_start_at_the_initial_numbers_and_then_follow() {
        let young = sequence(1000, 3, 500, 2);
        assert_eq!((young.swl().value(), young.swh().value()), (500, 577));
        assert_eq!((young.awl().value(), young.awh().value()), (1000, 1002));
        let later = sequence(1000, 300, 500, 200);
        assert_eq!((later.swl().value(), later.swh().value()), (676, 775));
        assert_eq!((later.awl().value(), later.awh().value()), (1200, 1299));
    }

    #[test]
    fn windows_wrap_with_the_circle() {
        let top = (1 << 48) - 10;
        let mut sequence = Sequence::new(Seq48::new(top));
        for _ in 0..20 {
            sequence.next();
        }
        sequence.set_first_received(Seq48::new(top));
        sequence.accept(PacketType::Data, Seq48::new(5), None);
        assert_eq!(sequence.gss.value(), 9);
        assert_eq!(sequence.awl().value(), top);
        assert_eq!(sequence.swl().value(), top);
        assert_eq!(sequence.swh().value(), 80);
        let data = |seq| sequence.check(PacketType::Data, Seq48::new(seq), None, true);
        assert_eq!(data(80), Validity::Valid);
        assert_eq!(data(81), Validity::Sync(Seq48::new(81)));
        assert_eq!(data(top), Validity::Valid);
        assert_eq!(data(top - 1), Validity::Sync(Seq48::new(top - 1)));
    }

    /// Table of section 7.5.3: every type below, in and above the windows.
    #[test]
    fn validity_by_type() {
        let mut sequence = sequence(1000, 300, 500, 200);
        sequence.accept(PacketType::Ack, Seq48::new(700), Some(Seq48::new(1250)));
        let check = |kind, seq: u64, ack: Option<u64>, active| {
            sequence.check(kind, Seq48::new(seq), ack.map(Seq48::new), active)
        };
        for kind in [PacketType::Ack, PacketType::DataAck, PacketType::Response] {
            assert_eq!(check(kind, 676, Some(1200), true), Validity::Valid);
            assert_eq!(check(kind, 775, Some(1299), true), Validity::Valid);
            for (seq, ack) in [(675, 1200), (776, 1200), (700, 1199), (700, 1300)] {
                let verdict = check(kind, seq, Some(ack), true);
                assert_eq!(verdict, Validity::Sync(Seq48::new(seq)), "{kind:?} {seq} {ack}");
            }
        }
        for kind in [PacketType::CloseReq, PacketType::Close, PacketType::Reset] {
            assert_eq!(check(kind, 701, Some(1250), true), Validity::Valid);
            for (seq, ack) in [(700, 1250), (776, 1250), (701, 1249), (701, 1300)] {
                let verdict = check(kind, seq, Some(ack), true);
                let answer = if kind == PacketType::Reset { 700 } else { seq };
                assert_eq!(verdict, Validity::Sync(Seq48::new(answer)), "{kind:?} {seq} {ack}");
            }
        }
        for kind in [PacketType::Sync, PacketType::SyncAck] {
            assert_eq!(check(kind, 676, Some(1200), true), Validity::Valid);
            assert_eq!(check(kind, 100_000, Some(1299), false), Validity::Valid);
            assert_eq!(check(kind, 100_000, Some(1299), true), Validity::Ignore);
            assert_eq!(check(kind, 675, Some(1299), false), Validity::Ignore);
            assert_eq!(check(kind, 700, Some(1300), false), Validity::Ignore);
        }
    }
}
