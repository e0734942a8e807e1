// SPDX-License-Identifier: Apache-2.0
//! The half-connection's sender (RFC 4342 section 5, RFC 5348 section 4).

use super::allowed_rate::{AllowedRate, Report};
use super::feedback::{Dropped, Feedback};
use super::loss_report::LossReport;
use super::pacing::Pacer;
use super::segment_size::SegmentSize;
use super::sent_log::{Sent, SentLog};
use super::window_counter::WindowCounter;
use super::{whole_ns, MIN_FEEDBACK_INTERVAL_NS, NS_PER_S};
use crate::ccid::{Ccid, Departure, Ecn, Figure, Incoming, SendingCcid, Violation};
use crate::options::DccpOption;
use crate::seqno::Seq48;

/// Elapsed Time is in units of 10 us.
const ELAPSED_UNIT_NS: i64 = 10_000;
/// Packets that may leave without feedback at any rate: 3 MB, more than wait in the queues of a slow path.
const LEAST_UNANSWERED: f64 = 2048.0;
/// Largest number in an RTT Estimate option, us.
const MAX_RTT_US: f64 = 0xff_fffe as f64;
/// Says "more than that".
const RTT_TOO_LARGE: u32 = 0xff_ffff;

/// The half-connection's sender.
#[derive(Debug)]
pub struct Sender {
    created_ns: i64,
    rate: AllowedRate,
    segment: SegmentSize,
    pacer: Pacer,
    counter: WindowCounter,
    sent: SentLog,
    losses: LossReport,
    has_sent: bool,
    /// Numbers of the newest packet that is acknowledged and of the newest data packet, once there is one.
    flying: Option<(Seq48, Seq48)>,
    /// The newest packet when the nofeedback timer last expired.
    given_up: Option<Seq48>,
    /// Until when a waiting message was told to wait.
    blocked_until_ns: Option<i64>,
    /// Last time at which more waited than was allowed to leave.
    limited_ns: i64,
    /// Sequence and acknowledgement number of the newest feedback.
    newest_feedback: Option<(Seq48, Seq48)>,
    /// Until the feature is known to be off; the connection puts the option only where the feature allows it.
    puts_rtt_estimate: bool,
    wants_ack_of_acks: bool,
    feedback_packets: u64,
}

impl Sender {
    /// See [`Ccid::sender`].
    pub fn new(now_ns: i64, _first_seq: Seq48, segment_bytes: usize) -> Self {
        let segment = SegmentSize::new(segment_bytes);
        Self {
            created_ns: now_ns,
            rate: AllowedRate::new(&segment),
            segment,
            pacer: Pacer::default(),
            counter: WindowCounter::default(),
            sent: SentLog::new(),
            losses: LossReport::default(),
            has_sent: false,
            flying: None,
            given_up: None,
            blocked_until_ns: None,
            limited_ns: i64::MIN,
            newest_feedback: None,
            puts_rtt_estimate: true,
            wants_ack_of_acks: false,
            feedback_packets: 0,
        }
    }

    /// t_ipi, ns: how long the last packet keeps the next one waiting, its own size / X_inst. For packets of one size that is
    /// s / X_inst; of several sizes X is kept in bytes, also while the average s follows. With s, packets far smaller than s
    /// would carry far less than X, and 2 * X_recv (RFC 5348 section 4.3) would lower X again and again.
    fn interval_ns(&self) -> f64 {
        self.segment.last_bytes() * NS_PER_S / self.rate.instantaneous(&self.segment)
    }

    /// Let the nofeedback timer expire as often as it has.
    fn catch_up(&mut self, now_ns: i64) {
        let expirations = self.rate.expirations();
        self.rate.catch_up(now_ns, &self.segment);
        if self.rate.expirations() > expirations {
            self.given_up = self.flying.map(|(_, newest)| newest);
        }
    }

    /// How many packets may leave before there is feedback, or the nofeedback timer expires: what X gives in four round trips,
    /// after which RFC 5348 section 4.4 would lower X; on a path shorter than the feedback interval, whose round trips are
    /// waits in the receiver's buffer, in two of both. `allowed_rate::MIN_TIMEOUT_NS` is longer there, and a receiver that
    /// its scheduler holds back for that long would lose all that its buffer has no room for. A sender may always send less
    /// than X.
    fn room(&self) -> u64 {
        let Some((acknowledged, newest)) = self.flying else { return u64::MAX };
        let (rtt_ns, interval_ns) = (self.rate.longer_rtt_ns(), MIN_FEEDBACK_INTERVAL_NS as f64);
        let is_short = self.rate.least_rtt_ns() < interval_ns;
        let span_ns = if is_short { 2.0 * (rtt_ns + interval_ns) } else { 4.0 * rtt_ns };
        // X_inst follows single round trips, up and down.
        let most = self.rate.allowed() * span_ns / NS_PER_S / self.segment.bytes();
        let since = self.given_up.map_or(acknowledged, |given_up| acknowledged.latest(given_up));
        let unanswered = since.distance_to(newest).max(0) as u64;
        (most.max(LEAST_UNANSWERED) as u64).saturating_sub(unanswered)
    }

    /// R_sample = (t_now - t_recvdata) - t_delay; `None` when the reported delay leaves nothing of it.
    fn rtt_sample_ns(arrived_ns: i64, sent: &Sent, elapsed: u32) -> Option<f64> {
        let elapsed_ns = i64::from(elapsed) * ELAPSED_UNIT_NS;
        let sample_ns = arrived_ns.saturating_sub(sent.sent_ns).saturating_sub(elapsed_ns);
        (sample_ns > 0).then_some(sample_ns as f64)
    }

    /// The sender was data-limited over the whole interval that an acknowledgement of `sent` covers (RFC 5348 section 8.2.1,
    /// with state per packet instead of the two NotLimited variables).
    fn is_data_limited(&self, sent: Option<Sent>) -> bool {
        let rtt_ns = whole_ns(self.rate.rtt_ns().unwrap_or(0.0));
        sent.is_some_and(|sent| sent.limited_ns <= sent.sent_ns.saturating_sub(rtt_ns))
    }

    /// X_recv after Slow Receiver and Data Dropped (RFC 4342 section 5.2).
    fn receive_rate(&self, feedback: &Feedback<'_>, dropped: Dropped) -> f64 {
        let reported = f64::from(feedback.receive_rate);
        let mut upper_bound = f64::INFINITY;
        if feedback.is_slow_receiver {
            upper_bound = reported;
        }
        //= rfc4342#5.2
        //# This procedure MUST only be used
        //# for those Drop Codes not related to corruption (see [RFC4340]).
        //= rfc4340#11.7.1
        //# Non-window-based congestion control mechanisms MUST behave analogously; again, CCID profiles
        //# define how.
        if dropped.in_buffer > 0 {
            let rtt_ns = self.rate.rtt_ns().unwrap_or(NS_PER_S);
            let packet_per_rtt = self.segment.bytes() * NS_PER_S / rtt_ns;
            let reduced = reported - dropped.in_buffer as f64 * packet_per_rtt;
            upper_bound = upper_bound.min(reduced.max(reported.min(packet_per_rtt)));
        }
        //= rfc4342#5.2
        //# A CCID 3 sender SHOULD also
        //# respond to non-network-congestion events, such as those implied by
        //# Data Dropped and Slow Receiver options, by adjusting X_recv, the
        //# receive rate reported by the receiver in Receive Rate options (see
        //# Section 8.3).
        reported.min(upper_bound / 2.0)
    }

    /// The first message, or one larger than all before, waits: what is sent in the first round trips is better known.
    fn expect(&mut self, payload_bytes: usize) {
        let is_lowered = self.has_sent && !self.rate.is_initial_at_least(&self.segment);
        self.segment.expect(payload_bytes);
        if !self.has_sent {
            self.rate.restart(&self.segment);
        } else if !is_lowered {
            self.rate.raise_to_initial(&self.segment);
        }
    }

    fn on_feedback(
        &mut self,
        incoming: &Incoming<'_>,
        ack: Seq48,
        sent: Option<Sent>,
        feedback: &Feedback<'_>,
    ) {
        let mut dropped = Dropped::default();
        if feedback.has_data_dropped {
            dropped = Dropped::read(incoming.packet, ack, self.newest_feedback.map(|(_, ack)| ack));
            //= rfc4342#6.3
            //# When Ack Vector or Data Dropped is used, however,
            //# the sender, DCCP A, MUST occasionally acknowledge the receiver's
            //# acknowledgements so that the receiver can free up Ack Vector or Data
            //# Dropped state.
            //= rfc4342#6.3
            //# Thus, when Ack Vector or Data Dropped is used, an active sender MUST
            //# acknowledge the receiver's acknowledgements approximately once per
            //# round-trip time, within a factor of two or three, probably by sending
            //# a DCCP-DataAck packet.
            // Feedback comes once per round trip.
            self.wants_ack_of_acks = true;
        }
        if let Some(seq) = dropped.as_marked {
            self.losses.mark(seq);
        }
        self.newest_feedback = Some((incoming.seq, ack));
        self.feedback_packets += 1;
        let (loss_event_rate, is_new) = self.losses.read(ack, feedback.intervals, feedback.loss_event_rate);
        let report = Report {
            receive_rate: self.receive_rate(feedback, dropped),
            rtt_sample_ns: sent
                .and_then(|sent| Self::rtt_sample_ns(incoming.arrived_ns, &sent, feedback.elapsed)),
            loss_event_rate,
            is_new_loss_event: is_new || dropped.as_marked.is_some(),
            is_data_limited: self.is_data_limited(sent),
        };
        self.rate.on_feedback(incoming.arrived_ns, &report, &self.segment);
        if is_new {
            self.segment.on_loss_event();
        }
    }
}

impl SendingCcid for Sender {
    fn ccid(&self) -> Ccid {
        Ccid::Tfrc
    }

    fn departure(&mut self, now_ns: i64, payload_bytes: usize) -> Departure {
        self.catch_up(now_ns);
        if !self.has_sent || payload_bytes as f64 > self.segment.largest_bytes() {
            self.expect(payload_bytes);
        }
        let mut departure = self.pacer.departure(now_ns, self.interval_ns(), self.rate.longer_rtt_ns());
        if let (Departure::Now, 0, Some(deadline_ns)) = (departure, self.room(), self.rate.deadline_ns()) {
            departure = Departure::At(deadline_ns);
        }
        if let Departure::At(at_ns) = departure {
            self.blocked_until_ns = Some(at_ns);
        }
        departure
    }

    fn ccval(&mut self, now_ns: i64) -> u8 {
        //= rfc6323#3.3
        //# The sender MUST implement and continue to update the CCVal window
        //# counter as specified in [RFC4342], Section 8.1, even when the Send
        //# RTT Estimate Feature is on.
        (self.counter.advance(now_ns, self.rate.rtt_ns()) & 0xf) as u8
    }

    fn data_options(&mut self, _now_ns: i64, put: &mut dyn FnMut(DccpOption<'_>)) {
        //= rfc6323#3.3
        //# When the Send RTT Estimate Feature is enabled, the sender MUST
        //# provide an RTT Estimate Option on all of its Data, DataAck, Sync, and
        //# SyncAck packets.
        //= rfc6323#3.2.2
        //# The Send RTT Estimate feature lets endpoints negotiate whether the
        //# sender MUST provide RTT Estimate options on its data packets.
        if !self.puts_rtt_estimate {
            return;
        }
        //= rfc6323#3.2.1
        //# A sender capable of sampling at sub-microsecond granularity SHOULD
        //# round up RTT samples to the next microsecond, to avoid under-
        //# estimating the RTT.
        let estimate = match self.rate.rtt_ns().map(|rtt_ns| (rtt_ns / 1e3).ceil()) {
            //= rfc6323#3.2.1
            //# The sender
            //# MUST set the value to 0 if it does not yet have an RTT estimate.
            None => 0,
            //= rfc6323#3.3
            //# If the RTT is larger than
            //# the maximum representable value (0xFFFFFE), the sender MUST set the
            //# value of the RTT Estimate Option to 0xFFFFFF.
            Some(rtt_us) if rtt_us > MAX_RTT_US => RTT_TOO_LARGE,
            //= rfc6323#3.2.1
            //# RTT
            //# estimates of less than 1 microsecond MUST be reported as 1
            //# microsecond.
            Some(rtt_us) => rtt_us.max(1.0) as u32,
        };
        put(DccpOption::RttEstimate(estimate));
    }

    fn on_sent(&mut self, now_ns: i64, seq: Seq48, payload_bytes: Option<usize>, _ecn: Ecn) {
        self.wants_ack_of_acks = false;
        if let Some(payload_bytes) = payload_bytes {
            self.catch_up(now_ns);
            self.pacer.on_sent(now_ns, self.interval_ns(), self.rate.longer_rtt_ns());
            // A message without a byte counts as one of one byte, here and at the receiver: a rate of 0 would never rise.
            let payload_bytes = payload_bytes.max(1);
            self.segment.on_sent(payload_bytes);
            self.counter.on_sent();
            self.rate.on_sent(now_ns, &self.segment);
            self.has_sent = true;
            self.flying = Some((self.flying.map_or(seq.sub(1), |(acknowledged, _)| acknowledged), seq));
            if let Some(until_ns) = self.blocked_until_ns.take() {
                self.limited_ns = self.limited_ns.max(until_ns.min(now_ns));
            }
        }
        let (counter, limited_ns) = (self.counter.sent(), self.limited_ns);
        self.sent.push(seq, seq, Sent { sent_ns: now_ns, counter, limited_ns });
    }

    fn may_follow(&mut self, now_ns: i64, _payload_bytes: usize, most: usize) -> usize {
        let due = self.pacer.burst(now_ns, self.interval_ns(), self.rate.longer_rtt_ns());
        due.min(self.room()).min(most as u64) as usize
    }

    fn on_followers_sent(
        &mut self,
        now_ns: i64,
        first: Seq48,
        packets: u64,
        payload_bytes: usize,
        _ecn: Ecn,
    ) {
        if packets == 0 {
            return;
        }
        let (interval_ns, rtt_ns) = (self.interval_ns(), self.rate.longer_rtt_ns());
        let (counter, limited_ns) = (self.counter.sent(), self.limited_ns);
        self.pacer.on_all_sent(now_ns, packets, interval_ns, rtt_ns);
        self.segment.on_all_sent(packets, payload_bytes.max(1));
        let last = first.add(packets - 1);
        self.sent.push(first, last, Sent { sent_ns: now_ns, counter, limited_ns });
        if let Some((_, newest)) = &mut self.flying {
            *newest = last;
        }
    }

    fn on_queue_empty(&mut self, _now_ns: i64) {
        // Nothing waits any more: the next packet is not held back by what an earlier message was told.
        self.blocked_until_ns = None;
    }

    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation> {
        let Some(ack) = incoming.ack else { return Ok(()) };
        let now_ns = incoming.arrived_ns;
        self.catch_up(now_ns);
        let sent = self.sent.get(ack);
        if let Some(sent) = sent {
            self.counter.on_acknowledged(now_ns, sent.counter);
        }
        if self.newest_feedback.is_none_or(|(seq, _)| seq.is_before(incoming.seq)) {
            if let Some(feedback) = Feedback::read(incoming.packet) {
                self.on_feedback(incoming, ack, sent, &feedback);
            }
        }
        self.sent.acknowledge(ack);
        if let Some((acknowledged, _)) = &mut self.flying {
            *acknowledged = acknowledged.latest(ack);
        }
        Ok(())
    }

    /// Nothing: Data packets acknowledge nothing.
    fn on_followers(&mut self, _incoming: &Incoming<'_>, _packets: u64) {}

    /// Nothing: the nofeedback timer only lowers the rate, so it is enough to let it expire when the rate is asked for.
    /// An idle or waiting sender is never woken for it.
    fn next_timeout_ns(&self) -> Option<i64> {
        None
    }

    fn on_timeout(&mut self, now_ns: i64) {
        self.catch_up(now_ns);
    }

    fn set_initial_rtt(&mut self, rtt_ns: i64) {
        self.rate.seed_rtt(self.created_ns, rtt_ns as f64, &self.segment);
    }

    fn rtt_ns(&self) -> Option<i64> {
        self.rate.rtt_ns().map(whole_ns)
    }

    /// Where the round trip is shorter than the time between two acknowledgements, what leaves in that time. What waits in
    /// the receiver's buffer is in neither: the receiver takes that wait out of the round trip. So what is not acknowledged
    /// counts, too.
    fn packets_per_rtt(&self) -> u64 {
        let round_s = self.rate.longer_rtt_ns().max(MIN_FEEDBACK_INTERVAL_NS as f64) / NS_PER_S;
        let packets = self.rate.instantaneous(&self.segment) * round_s / self.segment.bytes();
        let flying = self.flying.map_or(0, |(acknowledged, newest)| acknowledged.distance_to(newest).max(0));
        (packets.ceil().max(1.0) as u64).max(flying as u64)
    }

    fn wants_ack_of_acks(&self) -> bool {
        self.wants_ack_of_acks
    }

    fn set_rtt_estimate_feature(&mut self, on: bool) {
        self.puts_rtt_estimate = on;
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            ("rtt_us", self.rate.rtt_ns().unwrap_or(0.0) / 1e3),
            ("allowed_rate_bytes_per_s", self.rate.allowed()),
            ("instantaneous_rate_bytes_per_s", self.rate.instantaneous(&self.segment)),
            ("loss_event_rate", self.rate.loss_event_rate()),
            ("receive_rate_bytes_per_s", self.rate.receive_rate()),
            ("segment_bytes", self.segment.bytes()),
            ("loss_events", self.losses.events() as f64),
            ("feedback_received", self.feedback_packets as f64),
            ("nofeedback_expirations", self.rate.expirations() as f64),
        ]
    }
}
