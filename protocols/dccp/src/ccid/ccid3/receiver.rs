// SPDX-License-Identifier: Apache-2.0
//! The half-connection's receiver: when to send feedback and what it says (RFC 4342 sections 6, 8 and 10, RFC 5348 section 6).

use super::arrivals::{Arrival, Arrivals, NDUPACK};
use super::loss_intervals::LossLog;
use super::receive_rate::ReceiveRate;
use super::receiver_rtt::ReceiverRtt;
use super::{MIN_FEEDBACK_INTERVAL_NS, NS_PER_S};
use crate::ccid::tfrc::equation;
use crate::ccid::tfrc::loss_rate::INTERVALS;
use crate::ccid::{Ccid, Ecn, Figure, Incoming, ReceivingCcid, Violation};
use crate::options::loss_intervals::INTERVAL_BYTES;
use crate::options::{number, DccpOption};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// Elapsed Time is in units of 10 us.
const ELAPSED_UNIT_NS: i64 = 10_000;
/// Bytes of Elapsed Time (long form), Receive Rate, Loss Event Rate, each.
const SHORT_OPTION_BYTES: usize = 6;
/// Option type, length and Skip Length before the intervals.
const INTERVALS_HEADER_BYTES: usize = 3;
/// Round trip for the first loss interval when none is known.
const FALLBACK_RTT_NS: i64 = 500_000_000;
/// Skip Length, then at most nine intervals.
const MAX_CONTENTS_BYTES: usize = 1 + (INTERVALS + 1) * INTERVAL_BYTES;

/// The half-connection's receiver.
#[derive(Debug)]
pub struct Receiver {
    arrivals: Arrivals,
    losses: LossLog,
    rate: ReceiveRate,
    rtt: ReceiverRtt,
    /// Greatest packet received: number and time.
    newest: Option<(Seq48, i64)>,
    /// Window counter of the newest data packet, counted on past 15.
    counter: u64,
    /// The same when the last feedback left.
    reported_counter: u64,
    last_feedback_ns: Option<i64>,
    /// Data came since the last feedback.
    is_data_unreported: bool,
    due_ns: Option<i64>,
    /// Average payload, bytes.
    segment_bytes: f64,
    send_loss_event_rate: bool,
    data_packets: u64,
    feedback_packets: u64,
}

impl Receiver {
    /// See [`Ccid::receiver`].
    pub fn new(_now_ns: i64) -> Self {
        Self {
            arrivals: Arrivals::new(),
            losses: LossLog::new(),
            rate: ReceiveRate::default(),
            rtt: ReceiverRtt::new(),
            newest: None,
            counter: 0,
            reported_counter: 0,
            last_feedback_ns: None,
            is_data_unreported: false,
            due_ns: None,
            segment_bytes: 0.0,
            send_loss_event_rate: true,
            data_packets: 0,
            feedback_packets: 0,
        }
    }

    fn rtt_or_zero_ns(&self) -> i64 {
        self.rtt.known_ns().unwrap_or(0)
    }

    /// NDP Count, and the RTT Estimate is noted.
    fn read_options(&mut self, incoming: &Incoming<'_>) -> Result<u64, Violation> {
        let mut ndp_count = 0;
        for option in incoming.packet.options() {
            match option {
                DccpOption::NdpCount(count) => ndp_count = count,
                DccpOption::RttEstimate(rtt_us) => self.rtt.on_option(incoming.arrived_ns, rtt_us),
                //= rfc6323#3.3
                //# If the receiver
                //# encounters an invalid RTT Estimate Option (Section 3.2.1), it MUST
                //# reset the connection with Reset Code 5, "Option Error", where the
                //# Data 1..3 fields are set to the first 3 bytes of the offending RTT
                //# Estimate Option.
                DccpOption::Unknown { kind: number::RTT_ESTIMATE, contents } if self.rtt.is_by_option() => {
                    let length = (contents.len() + 2).min(255) as u8;
                    let data = [number::RTT_ESTIMATE, length, contents.first().copied().unwrap_or(0)];
                    return Err(Violation { code: ResetCode::OptionError, data });
                }
                _ => {}
            }
        }
        Ok(ndp_count)
    }

    /// A data packet that was not here before.
    fn on_data(&mut self, incoming: &Incoming<'_>) {
        // See the sender: a message without a byte counts as one byte.
        let bytes = incoming.packet.payload.len().max(1);
        self.rate.on_data(incoming.arrived_ns, bytes, self.rtt_or_zero_ns());
        self.segment_bytes =
            if self.data_packets == 0 { bytes as f64 } else { 0.9 * self.segment_bytes + 0.1 * bytes as f64 };
        self.data_packets += 1;
        self.is_data_unreported = true;
        let ahead = self.newest.map_or(1, |(seq, _)| seq.distance_to(incoming.seq));
        if ahead > 0 {
            let ccval = incoming.packet.ccval;
            self.counter += u64::from(ccval.wrapping_sub(self.counter as u8) & 0xf);
            self.rtt.on_counter(incoming.arrived_ns, ccval, ahead == 1);
        }
    }

    /// Take what [`Arrivals`] has in order. True when a new loss event began.
    fn settle(&mut self) -> bool {
        let known_ns = self.rtt.known_ns();
        //= rfc6323#3.3
        //# When the Send RTT Estimate Feature is enabled, the receiver MUST use
        //# the value reported by the RTT Estimate Option in all places that
        //# require an RTT (listed at the begin of Section 2).
        let event_rtt_ns = known_ns.filter(|_| self.rtt.is_by_option());
        let rtt_ns = known_ns.unwrap_or(FALLBACK_RTT_NS);
        let (rate, segment_bytes) = (&self.rate, self.segment_bytes.max(1.0));
        let mut first_interval = |nothing_before| first_interval(rate, segment_bytes, rtt_ns, nothing_before);
        let mut is_new = false;
        while let Some(step) = self.arrivals.next() {
            is_new |= self.losses.apply(&step, event_rtt_ns, &mut first_interval);
        }
        is_new
    }

    /// When feedback is due after a packet at `now_ns`.
    fn schedule(&mut self, now_ns: i64, is_new_event: bool) {
        let Some(last_ns) = self.last_feedback_ns else {
            if self.is_data_unreported {
                self.due_ns = Some(now_ns);
            }
            return;
        };
        //= rfc5348#6
        //# A feedback packet SHOULD also be sent whenever a
        //# new loss event is detected without waiting for the end of an RTT
        if !self.is_data_unreported {
            return;
        }
        if is_new_event {
            self.due_ns = Some(now_ns);
        } else {
            let rtt_ns = self.rtt.known_ns();
            let is_round_over = self.counter - self.reported_counter >= 4
                || rtt_ns.is_some_and(|rtt_ns| self.rtt.is_by_option() && now_ns - last_ns >= rtt_ns);
            let wanted_ns = if is_round_over {
                Some(now_ns.max(last_ns + MIN_FEEDBACK_INTERVAL_NS))
            } else {
                // The timer that RFC 4342 section 10.3 leaves open, for the end of a burst: late enough that packets
                // of a steady flow come first, so that it wakes nobody.
                rtt_ns.map(|rtt_ns| last_ns + (rtt_ns + rtt_ns / 2).max(MIN_FEEDBACK_INTERVAL_NS))
            };
            self.due_ns = match (self.due_ns, wanted_ns) {
                (Some(due_ns), Some(wanted_ns)) => Some(due_ns.min(wanted_ns)),
                (due_ns, wanted_ns) => due_ns.or(wanted_ns),
            };
        }
    }

    fn loss_event_rate_option(&self) -> DccpOption<'static> {
        let p = self.losses.loss_event_rate();
        let inverse =
            if p > 0.0 { (1.0 / p).ceil().clamp(1.0, f64::from(u32::MAX - 1)) as u32 } else { u32::MAX };
        DccpOption::LossEventRate(inverse)
    }

    /// Loss Intervals in at most `room_bytes`. Not when `ack` does not cover the settled packets: they would be wrong.
    fn put_intervals(&self, ack: Seq48, room_bytes: usize, put: &mut dyn FnMut(DccpOption<'_>)) {
        let Some(settled) = self.arrivals.settled() else { return };
        let Ok(unsettled) = u64::try_from(settled.distance_to(ack)) else { return };
        let skip = unsettled.min(NDUPACK as u64);
        let fitting = room_bytes.saturating_sub(INTERVALS_HEADER_BYTES) / INTERVAL_BYTES;
        let mut contents = [0; MAX_CONTENTS_BYTES];
        contents[0] = skip as u8;
        let mut length = 1;
        //= rfc4342#8.6.1
        //# The options MUST contain
        //# information about at least the most recent NINTERVAL + 1 = 9 loss
        //# intervals unless (1) there have not yet been NINTERVAL + 1 loss
        //# intervals
        //= rfc4342#8.6.1
        //# In this second case, the receiver
        //# need not send loss intervals that the sender already knows about,
        //# except that it MUST transmit at least one loss interval regardless.
        for interval in self.losses.report(unsettled - skip).take(fitting.min(INTERVALS + 1)) {
            contents[length..length + INTERVAL_BYTES].copy_from_slice(&interval.to_bytes());
            length += INTERVAL_BYTES;
        }
        if length > 1 {
            //= rfc4342#7
            //# Information about the ECN Nonce MUST be returned by
            //# the receiver using the Loss Intervals option
            put(DccpOption::LossIntervals(&contents[..length]));
        }
    }
}

impl ReceivingCcid for Receiver {
    fn ccid(&self) -> Ccid {
        Ccid::Tfrc
    }

    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation> {
        let ndp_count = self.read_options(incoming)?;
        let kind = incoming.packet.kind;
        let arrival = Arrival {
            seq: incoming.seq,
            arrived_ns: incoming.arrived_ns,
            data: kind.carries_data(),
            marked: kind.is_data() && incoming.ecn == Ecn::Ce,
            nonce: incoming.ecn == Ecn::Ect1,
            ccval: if kind.is_data() { incoming.packet.ccval } else { self.counter as u8 & 0xf },
            ndp_count,
        };
        if !self.arrivals.insert(arrival) {
            return Ok(());
        }
        if kind.is_data() {
            self.on_data(incoming);
        }
        if self.newest.is_none_or(|(seq, _)| seq.is_before(incoming.seq)) {
            self.newest = Some((incoming.seq, incoming.arrived_ns));
        }
        let is_new_event = self.settle();
        self.schedule(incoming.arrived_ns, is_new_event);
        Ok(())
    }

    fn on_followers(&mut self, incoming: &Incoming<'_>, packets: u64) {
        let last = incoming.seq.add(packets);
        let is_plain = incoming.packet.kind.is_data()
            && incoming.ecn != Ecn::Ce
            && self.newest.is_some_and(|(seq, _)| seq == incoming.seq)
            && self.arrivals.insert_followers(incoming.seq, last, incoming.arrived_ns);
        if !is_plain {
            for step in 1..=packets {
                // What was right with the options of the first packet is right with theirs: they are the same.
                let _ = self.on_incoming(&Incoming { seq: incoming.seq.add(step), ..*incoming });
            }
            return;
        }
        let bytes = incoming.packet.payload.len().max(1);
        let estimate_us = incoming.packet.options().find_map(|option| match option {
            DccpOption::RttEstimate(rtt_us) => Some(rtt_us),
            _ => None,
        });
        // The averages are those of packets one by one.
        for _ in 0..packets {
            if let Some(rtt_us) = estimate_us {
                self.rtt.on_option(incoming.arrived_ns, rtt_us);
            }
            self.segment_bytes = 0.9 * self.segment_bytes + 0.1 * bytes as f64;
        }
        self.rate.on_data(incoming.arrived_ns, packets as usize * bytes, self.rtt_or_zero_ns());
        self.losses.on_followers(packets, incoming.ecn == Ecn::Ect1);
        self.data_packets += packets;
        self.is_data_unreported = true;
        self.newest = Some((last, incoming.arrived_ns));
        self.schedule(incoming.arrived_ns, false);
    }

    fn ack_due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    fn ack_options(
        &mut self,
        now_ns: i64,
        _seq: Seq48,
        ack: Seq48,
        room_bytes: usize,
        put: &mut dyn FnMut(DccpOption<'_>),
    ) {
        self.due_ns = None;
        // RFC 5348 section 6.2: without data since the last feedback there is none. It would say that nothing arrives, and with
        // a loss event bring the sender down to a packet in 64 seconds.
        let Some((_, newest_ns)) = self.newest.filter(|_| self.is_data_unreported) else { return };
        let mut room_bytes = room_bytes;
        let mut put_short = |option: DccpOption<'_>| {
            if room_bytes >= SHORT_OPTION_BYTES {
                room_bytes -= SHORT_OPTION_BYTES;
                put(option);
            }
        };
        //= rfc4342#8.2
        //# The data receiver MUST include an elapsed time value on every
        //# required acknowledgement.
        //= rfc4342#8.2
        //# The receiver MUST at least include
        //# an Elapsed Time option on every feedback packet
        //= rfc4340#13.2
        //# DCCP endpoints MUST NOT report Elapsed Times that are significantly larger than the true
        //# elapsed times.
        let elapsed = (now_ns.saturating_sub(newest_ns).max(0) / ELAPSED_UNIT_NS).min(i64::from(u32::MAX));
        put_short(DccpOption::ElapsedTime(elapsed as u32));
        //= rfc4342#8.3
        //# This option MUST be sent by the data receiver on all required
        //# acknowledgements.
        let rtt_ns = self.rtt_or_zero_ns();
        let is_first = self.last_feedback_ns.is_none();
        let receive_rate = if is_first { 0.0 } else { self.rate.bytes_per_s(rtt_ns) };
        put_short(DccpOption::ReceiveRate(receive_rate as u32));
        //= rfc4342#8.4
        //# The Send Loss Event Rate feature lets CCID 3 endpoints negotiate
        //# whether the receiver MUST provide Loss Event Rate options on its
        //# acknowledgements.
        //= rfc4342#8.4
        //# DCCP B MUST send Loss Event Rate
        //# options on its acknowledgements when Send Loss Event Rate/B is one
        if self.send_loss_event_rate {
            put_short(self.loss_event_rate_option());
        }
        //= rfc4342#8.6
        //# This option
        //# MUST be sent by the data receiver on all required acknowledgements.
        self.put_intervals(ack, room_bytes, put);
        self.rate.on_report(rtt_ns);
        self.reported_counter = self.counter;
        self.is_data_unreported = false;
        self.last_feedback_ns = Some(now_ns);
        self.feedback_packets += 1;
    }

    fn set_initial_rtt(&mut self, rtt_ns: i64) {
        self.rtt.seed(rtt_ns);
    }

    fn set_rtt_estimate_feature(&mut self, on: bool) {
        self.rtt.set_by_option(on);
    }

    fn set_loss_event_rate_feature(&mut self, on: bool) {
        self.send_loss_event_rate = on;
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            ("receiver_rtt_us", self.rtt_or_zero_ns() as f64 / 1e3),
            ("receiver_loss_event_rate", self.losses.loss_event_rate()),
            ("receiver_loss_events", self.losses.events() as f64),
            ("receiver_rate_bytes_per_s", self.rate.bytes_per_s(self.rtt_or_zero_ns())),
            ("receiver_data_packets", self.data_packets as f64),
            ("receiver_data_bytes", self.rate.total_bytes() as f64),
            ("feedback_sent", self.feedback_packets as f64),
        ]
    }
}

/// Length in packets of the first loss interval (RFC 5348 section 6.3.1).
fn first_interval(rate: &ReceiveRate, segment_bytes: f64, rtt_ns: i64, nothing_before: bool) -> f64 {
    let rtt_s = rtt_ns as f64 / NS_PER_S;
    //= rfc5348#6.3.1
    //# This section describes the procedure that MUST be used for
    //# initializing the loss history after the first loss event.
    let least = 0.5 * segment_bytes / rtt_s;
    let target = if nothing_before { least } else { rate.greatest_bytes_per_s(rtt_ns).max(least) };
    1.0 / equation::loss_event_rate_for(segment_bytes, rtt_s, target)
}
