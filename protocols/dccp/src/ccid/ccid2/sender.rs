// SPDX-License-Identifier: Apache-2.0
//! The half-connection's sender.

use super::ack_ratio::AckRatio;
use super::flight::{Flight, News};
use super::nonces::Nonces;
use super::rto::RttEstimator;
use super::window::Window;
use crate::ccid::ack_vector::{self, runs};
use crate::ccid::{Ccid, Departure, Ecn, Figure, Incoming, SendingCcid, Violation};
use crate::options::data_dropped::{blocks, DropCode};
use crate::options::DccpOption;
use crate::seqno::Seq48;

const NS_PER_US: f64 = 1e3;
/// Unit of Elapsed Time (RFC 4340 section 13.2).
const ELAPSED_UNIT_NS: i64 = 10_000;

/// What happened so far.
#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
    lost: u64,
    marked: u64,
    events: u64,
    timeouts: u64,
    /// Timeouts that did not follow an unanswered one.
    timeout_sequences: u64,
    acks: u64,
    nonce_mismatches: u64,
}

/// The sender.
#[derive(Debug)]
pub struct Sender {
    flight: Flight,
    window: Window,
    rtt: RttEstimator,
    ack_ratio: AckRatio,
    nonces: Nonces,
    /// The transmit timer, while data is under way.
    timeout_at_ns: Option<i64>,
    /// The round trip is measured again with this packet: once per window.
    measure_from: Seq48,
    /// Data packets since the peer's acknowledgements were acknowledged.
    unacknowledging: u64,
    /// An acknowledgement came since then.
    has_new_acks: bool,
    counts: Counts,
}

impl Sender {
    /// See [`Ccid::sender`].
    pub fn new(_now_ns: i64, first_seq: Seq48, segment_bytes: usize) -> Self {
        Self {
            flight: Flight::new(first_seq),
            window: Window::new(segment_bytes),
            rtt: RttEstimator::default(),
            ack_ratio: AckRatio::new(first_seq),
            nonces: Nonces::new(first_seq),
            timeout_at_ns: None,
            measure_from: first_seq,
            unacknowledging: 0,
            has_new_acks: false,
            counts: Counts::default(),
        }
    }

    fn newest_sent(&self) -> Seq48 {
        self.flight.next_seq().sub(1)
    }

    fn on_ack(&mut self, incoming: &Incoming<'_>, ack: Seq48) {
        let now_ns = incoming.arrived_ns;
        self.measure_rtt(incoming, ack);
        let mut news = News::default();
        let mut honest = true;
        let mut any = false;
        for placed in ack_vector::of_packet(incoming.packet, ack) {
            any = true;
            honest &= self.nonces.agrees(&placed);
            for run in runs(placed.newest, placed.vector) {
                if !self.flight.on_run(run, &mut news) {
                    break;
                }
            }
        }
        self.has_new_acks |= any;
        self.counts.acks += u64::from(any);
        //= rfc4340#11.7.1
        //# When deciding on a response to a particular acknowledgement or set of acknowledgements
        //# containing Data Dropped options, a congestion control mechanism MUST consider dropped packets,
        //# ECN Congestion Experienced marks (including marked packets that are included in Data Dropped),
        //# and packets singled out in Data Dropped.
        self.on_data_dropped(incoming, ack, &mut news);
        self.flight.settle(&mut news);
        self.apply(now_ns, &news);
        if !honest {
            self.counts.nonce_mismatches += 1;
            // Section 12.3: as if a recent packet had been marked.
            self.on_congestion(ack);
        }
        if any {
            self.ack_ratio.on_acknowledged(ack, self.newest_sent(), self.window.cwnd());
        }
    }

    /// "The sender estimates the round-trip time at most once per window of data".
    fn measure_rtt(&mut self, incoming: &Incoming<'_>, ack: Seq48) {
        if ack.is_before(self.measure_from) {
            return;
        }
        let Some(sent_ns) = self.flight.sent_unless_known(ack) else { return };
        let elapsed_ns = elapsed_ns(incoming);
        let rtt_ns = incoming.arrived_ns.saturating_sub(sent_ns);
        // An Elapsed Time longer than the whole trip is a lie or a broken clock.
        self.rtt.sample(if elapsed_ns < rtt_ns { rtt_ns - elapsed_ns } else { rtt_ns });
        self.measure_from = self.flight.next_seq();
    }

    fn apply(&mut self, now_ns: i64, news: &News) {
        self.counts.received += news.received;
        self.counts.lost += news.lost;
        self.counts.marked += news.marked;
        if let Some(oldest) = news.oldest_received {
            self.rtt.end_back_off();
            self.timeout_at_ns = Some(now_ns + self.rtt.rto_ns());
            //= rfc4340#11.7.1
            //# Then the actual new window W_new MUST NOT be larger than the minimum of W_new1 and W_new2
            // The response to Data Dropped is in the window already; what follows can only make it smaller.
            if !news.reduced {
                let ratio = self.ack_ratio.ratio();
                self.window.on_acknowledged(now_ns, news.received, oldest, ratio);
            }
        }
        if let Some(seq) = news.newest_congested {
            self.on_congestion(seq);
        }
        if self.flight.pipe() == 0 {
            self.timeout_at_ns = None;
        }
    }

    fn on_congestion(&mut self, seq: Seq48) {
        let newest_sent = self.newest_sent();
        self.counts.events += u64::from(self.window.on_congestion(seq, newest_sent));
        self.ack_ratio.constrain(self.window.cwnd());
    }

    /// Data Dropped (RFC 4340 section 11.7): what it says of packets that are still remembered.
    fn on_data_dropped(&mut self, incoming: &Incoming<'_>, ack: Seq48, news: &mut News) {
        let mut newest = ack;
        for option in incoming.packet.options() {
            let DccpOption::DataDropped(vector) = option else { continue };
            for block in blocks(vector) {
                let next = newest.sub(u64::from(block.packets));
                if let Some(code) = block.dropped {
                    self.on_drop_block(code, newest, next.add(1), news);
                }
                newest = next;
            }
        }
    }

    fn on_drop_block(&mut self, code: DropCode, newest: Seq48, oldest: Seq48, news: &mut News) {
        let dropped = self.flight.take_dropped(newest, oldest);
        if dropped == 0 {
            return;
        }
        match code {
            // No sign of congestion (section 11.7.2); whether data is welcome is not congestion control's question.
            DropCode::ProtocolConstraints | DropCode::ApplicationNotListening => {}
            DropCode::ReceiveBuffer => {
                self.window.on_receive_buffer_drops(dropped);
                news.reduced = true;
                self.ack_ratio.constrain(self.window.cwnd());
            }
            _ => {
                //= rfc4340#11.7.2
                //# Currently, the other Drop Codes (namely Drop Code 3, Corrupt; Drop Code 7, Delivered Corrupt; and reserved Drop
                //# Codes 4-6) MUST cause the relevant CCID to behave as if the relevant packets were ECN marked
                //= rfc4340#11.7
                //# Unless it is explicitly specified otherwise, DCCP congestion control mechanisms MUST
                //# react as if each Data Dropped packet was marked as ECN Congestion Experienced by the
                //# network.
                //= rfc4340#11.7
                //# DCCP CCIDs MUST react conservatively to Data Dropped until this behavior is
                //# standardized.
                news.marked += dropped;
                news.newest_congested = Some(news.newest_congested.map_or(newest, |seq| seq.latest(newest)));
            }
        }
        self.window.leave_slow_start();
    }

    fn on_slow_receiver(&mut self, incoming: &Incoming<'_>) {
        if incoming.packet.options().any(|option| option == DccpOption::SlowReceiver) {
            // RFC 4340 section 11.6: no faster for about a round trip.
            let rtt_ns = self.rtt.rtt_ns().unwrap_or(0);
            self.window.hold_until(incoming.arrived_ns.saturating_add(rtt_ns));
            self.window.leave_slow_start();
        }
    }
}

/// How long the peer kept its acknowledgement back.
fn elapsed_ns(incoming: &Incoming<'_>) -> i64 {
    let elapsed = |option| match option {
        DccpOption::ElapsedTime(elapsed) => Some(elapsed),
        _ => None,
    };
    i64::from(incoming.packet.options().find_map(elapsed).unwrap_or(0)) * ELAPSED_UNIT_NS
}

impl SendingCcid for Sender {
    fn ccid(&self) -> Ccid {
        Ccid::TcpLike
    }

    fn departure(&mut self, _now_ns: i64, _payload_bytes: usize) -> Departure {
        if self.window.has_room(self.flight.pipe()) {
            Departure::Now
        } else {
            Departure::OnFeedback
        }
    }

    fn ccval(&mut self, _now_ns: i64) -> u8 {
        0
    }

    fn data_options(&mut self, _now_ns: i64, _put: &mut dyn FnMut(DccpOption<'_>)) {}

    fn on_sent(&mut self, now_ns: i64, seq: Seq48, payload_bytes: Option<usize>, ecn: Ecn) {
        let is_data = payload_bytes.is_some();
        self.nonces.on_sent(seq, ecn);
        if self.wants_ack_of_acks() {
            self.unacknowledging = 0;
            self.has_new_acks = false;
        }
        if !is_data {
            self.flight.on_sent(now_ns, seq, false);
            return;
        }
        self.unacknowledging += 1;
        self.counts.sent += 1;
        let rto_ns = self.rtt.rto_ns();
        self.window.before_sending(now_ns, rto_ns);
        self.flight.on_sent(now_ns, seq, true);
        self.window.on_sent(now_ns, seq, self.flight.pipe(), rto_ns);
        self.timeout_at_ns.get_or_insert(now_ns + rto_ns);
    }

    fn may_follow(&mut self, _now_ns: i64, _payload_bytes: usize, most: usize) -> usize {
        let mut room = self.window.room(self.flight.pipe());
        if self.has_new_acks {
            // The packet behind that many acknowledges.
            room = room.min(self.window.cwnd().saturating_sub(self.unacknowledging));
        }
        usize::try_from(room).map_or(most, |room| room.min(most))
    }

    fn on_followers_sent(
        &mut self,
        now_ns: i64,
        first: Seq48,
        packets: u64,
        _payload_bytes: usize,
        ecn: Ecn,
    ) {
        if packets == 0 {
            return;
        }
        self.nonces.on_followers_sent(first, packets, ecn);
        self.unacknowledging += packets;
        self.counts.sent += packets;
        self.flight.on_followers_sent(now_ns, packets);
        // Of those that leave at one time only the last can fill the window.
        let last = first.add(packets - 1);
        self.window.on_sent(now_ns, last, self.flight.pipe(), self.rtt.rto_ns());
    }

    fn on_queue_empty(&mut self, _now_ns: i64) {}

    fn on_incoming(&mut self, incoming: &Incoming<'_>) -> Result<(), Violation> {
        let kind = incoming.packet.kind;
        self.ack_ratio.on_packet(incoming.seq, incoming.ecn == Ecn::Ce && !kind.carries_data());
        if !incoming.packet.option_bytes.is_empty() {
            self.on_slow_receiver(incoming);
        }
        //= rfc4340#11
        //# Acknowledgement options received on other packet types, namely DCCP-Request and DCCP-Data, MUST be ignored.
        if let Some(ack) = incoming.ack.filter(|_| kind.has_ack()) {
            self.on_ack(incoming, ack);
        }
        Ok(())
    }

    fn on_followers(&mut self, incoming: &Incoming<'_>, packets: u64) {
        self.ack_ratio.on_followers(incoming.seq, packets);
    }

    fn next_timeout_ns(&self) -> Option<i64> {
        self.timeout_at_ns
    }

    fn on_timeout(&mut self, now_ns: i64) {
        if self.timeout_at_ns.is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        self.timeout_at_ns = None;
        self.counts.timeouts += 1;
        self.counts.timeout_sequences += u64::from(!self.rtt.is_backed_off());
        let next = self.flight.next_seq();
        self.window.on_timeout(next.sub(1));
        //= rfc4341#5
        //# When a transmit timeout occurs, the sender sets pipe to zero.
        self.flight.forget_all(next);
        //= rfc4341#5
        //# The exponential backoff of the timer is exactly as in TCP.
        self.rtt.back_off();
        self.measure_from = next;
        self.ack_ratio.constrain(self.window.cwnd());
    }

    fn set_initial_rtt(&mut self, rtt_ns: i64) {
        if self.rtt.rtt_ns().is_none() {
            self.rtt.sample(rtt_ns);
        }
    }

    fn rtt_ns(&self) -> Option<i64> {
        self.rtt.rtt_ns()
    }

    fn packets_per_rtt(&self) -> u64 {
        self.window.cwnd()
    }

    fn wanted_ack_ratio(&self) -> Option<u16> {
        Some(u16::try_from(self.ack_ratio.ratio()).unwrap_or(u16::MAX))
    }

    fn set_sequence_window(&mut self, packets: u64) {
        self.window.set_sequence_window(packets);
    }

    fn wants_ack_of_acks(&self) -> bool {
        //= rfc4341#6.2
        //# An active sender DCCP A MUST occasionally acknowledge its peer DCCP B's acknowledgements so that DCCP B can free up
        //# Ack Vector state.
        self.has_new_acks && self.unacknowledging >= self.window.cwnd()
    }

    fn figures(&self) -> Vec<Figure> {
        let ns_to_us = |ns: i64| ns as f64 / NS_PER_US;
        // As Padhye et al. count: a timeout and its repetitions are one indication of loss.
        let events = self.counts.events + self.counts.timeout_sequences;
        vec![
            ("rtt_us", ns_to_us(self.rtt.rtt_ns().unwrap_or(0))),
            ("rto_us", ns_to_us(self.rtt.base_rto_ns())),
            ("cwnd_packets", self.window.cwnd() as f64),
            ("ssthresh_packets", self.window.ssthresh() as f64),
            ("pipe_packets", self.flight.pipe() as f64),
            ("ack_ratio", self.ack_ratio.ratio() as f64),
            ("loss_event_rate", events as f64 / self.counts.sent.max(1) as f64),
            ("packets_lost", self.counts.lost as f64),
            ("packets_marked", self.counts.marked as f64),
            ("congestion_events", self.counts.events as f64),
            ("timeouts", self.counts.timeouts as f64),
            ("loss_events", events as f64),
            ("data_packets_acknowledged", (self.counts.received + self.counts.marked) as f64),
            ("data_packets_sent", self.counts.sent as f64),
            ("acks_received", self.counts.acks as f64),
            ("ack_congestion_events", self.ack_ratio.events() as f64),
            ("nonce_mismatches", self.counts.nonce_mismatches as f64),
        ]
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
