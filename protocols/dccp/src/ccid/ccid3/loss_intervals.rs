// SPDX-License-Identifier: Apache-2.0
//! Loss events and loss intervals as the receiver sees them (RFC 4342 sections 6.1 and 10.2, RFC 5348 section 5).

use super::arrivals::Step;
use crate::ccid::tfrc::loss_rate::{History, INTERVALS};
use crate::options::loss_intervals::{LossInterval, MAX_LENGTH, MAX_LOSS_LENGTH};

/// Quarter round trips after which a loss begins a new loss event.
const COUNTER_DISTANCE: u64 = 4;

/// One loss interval, all counts in sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    /// From the first packet of the interval to its last lost or marked data packet.
    lossy: u64,
    /// The whole interval.
    length: u64,
    /// Packets that are known to be without data.
    non_data: u64,
    /// Parity of the nonces of data packets in the lossless part.
    nonce: bool,
    /// Data length of an interval that is over, when it does not follow from the counts (the first one).
    synthetic: Option<u64>,
}

impl Interval {
    fn data_length(&self) -> u64 {
        //= rfc4342#6.1.1
        //# In the absence of better information, an
        //# endpoint MUST conservatively assume that the loss interval contained
        //# only data packets, in which case the data length equals the sequence
        //# length.
        self.synthetic.unwrap_or_else(|| self.length.saturating_sub(self.non_data).max(1))
    }

    fn report(&self, skipped_too_much: u64, is_first: bool) -> LossInterval {
        let capped = |length: u64, most: u32| length.min(u64::from(most)) as u32;
        let lossless = (self.length - self.lossy).saturating_add(skipped_too_much);
        LossInterval {
            lossless_length: capped(lossless, MAX_LENGTH),
            //= rfc4342#8.6.1
            //# Receivers
            //# SHOULD report the minimum valid Loss Length for each loss interval,
            //# making the first and last sequence numbers in each lossy part
            //# correspond to lost or marked data packets.
            loss_length: capped(self.lossy, MAX_LOSS_LENGTH),
            //= rfc4342#8.6.1
            //# If Lossless Length
            //# is 0, the receiver is ECN Incapable, or the Lossless Length
            //# contained no data packets, then the ECN Nonce Echo MUST be reported
            //# as 0.
            nonce_echo: self.nonce && lossless > 0,
            // Until the first loss event there is no data length (section 6.1.1).
            data_length: if is_first { 0 } else { capped(self.data_length(), MAX_LENGTH) },
        }
    }
}

/// Where the current loss event began.
#[derive(Debug, Clone, Copy)]
struct LossEvent {
    /// Window counter of the packet before its first loss.
    counter: u64,
    /// Nominal time of arrival of its first loss.
    time_ns: i64,
}

/// The loss intervals so far.
#[derive(Debug)]
pub(super) struct LossLog {
    current: Interval,
    /// Newest first.
    finished: [Interval; INTERVALS],
    finished_count: usize,
    history: History,
    event: Option<LossEvent>,
    /// Window counter of the greatest settled packet, counted on past 15.
    counter: u64,
    events: u64,
}

impl LossLog {
    pub(super) fn new() -> Self {
        Self {
            current: Interval::default(),
            finished: [Interval::default(); INTERVALS],
            finished_count: 0,
            history: History::new(),
            event: None,
            counter: 0,
            events: 0,
        }
    }

    /// The next packet in sequence order. True when a new loss event began.
    ///
    /// `rtt_ns`: tell loss events apart by this round trip (RFC 6323) and times of arrival, instead of by the window
    /// counter. `first_interval` gives the first interval's length after the first loss event; its argument says that
    /// nothing had arrived before the loss.
    pub(super) fn apply(
        &mut self,
        step: &Step,
        rtt_ns: Option<i64>,
        first_interval: &mut dyn FnMut(bool) -> f64,
    ) -> bool {
        let mut is_new = false;
        if step.lost > 0 {
            is_new = self.hole(step, rtt_ns, first_interval);
        }
        let arrival = &step.arrival;
        if arrival.marked {
            is_new |= self.loss(1, arrival.arrived_ns, rtt_ns, first_interval);
        } else {
            self.current.length += 1;
            //= rfc4342#8.6.1
            //# Note that any ECN nonces on received non-data packets MUST NOT
            //# contribute to the ECN Nonce Echo.
            if arrival.data {
                self.current.nonce ^= arrival.nonce;
            } else {
                self.current.non_data += 1;
            }
        }
        if arrival.data {
            let ahead = u64::from(arrival.ccval.wrapping_sub(self.counter as u8) & 0xf);
            self.counter += ahead;
        }
        is_new
    }

    /// `packets` of data, none marked, with one nonce and the window counter of the last packet, behind that one.
    pub(super) fn on_followers(&mut self, packets: u64, nonce: bool) {
        self.current.length += packets;
        self.current.nonce ^= nonce && packets % 2 == 1;
    }

    /// p, 0 before the first loss event.
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.history.loss_event_rate(self.current.data_length() as f64)
    }

    /// Loss events so far.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// Intervals for the option, newest first. `skipped_too_much`: packets above the settled ones beyond the three
    /// that Skip Length may leave out; for as long as a long hole waits they count as lossless.
    pub(super) fn report(&self, skipped_too_much: u64) -> impl Iterator<Item = LossInterval> + '_ {
        std::iter::once(self.current.report(skipped_too_much, self.event.is_none()))
            .chain(self.finished[..self.finished_count].iter().map(|interval| interval.report(0, false)))
    }

    /// Packets missing between two that arrived.
    fn hole(
        &mut self,
        step: &Step,
        rtt_ns: Option<i64>,
        first_interval: &mut dyn FnMut(bool) -> f64,
    ) -> bool {
        // NDP Count counts back from the packet that carries it: that end of the hole was without data.
        let non_data = step.arrival.ndp_count.min(step.lost);
        //= rfc4342#6.1
        //# In
        //# the absence of better information, a receiver MUST conservatively
        //# assume that every lost packet was a data packet and thus must occur
        //# in some lossy part.
        let data = step.lost - non_data;
        let mut is_new = false;
        if data > 0 {
            // Interpolated arrival of the first lost packet (RFC 5348 section 5.2).
            let before_ns = step.before.map_or(step.arrival.arrived_ns, |(_, arrived_ns)| arrived_ns);
            let gap_ns = step.arrival.arrived_ns.saturating_sub(before_ns);
            let time_ns = before_ns + gap_ns / i64::try_from(step.lost + 1).unwrap_or(i64::MAX);
            is_new = self.loss(data, time_ns, rtt_ns, first_interval);
        }
        self.current.length += non_data;
        self.current.non_data += non_data;
        is_new
    }

    /// `packets` in a row are lost, or one is marked.
    fn loss(
        &mut self,
        packets: u64,
        time_ns: i64,
        rtt_ns: Option<i64>,
        first_interval: &mut dyn FnMut(bool) -> f64,
    ) -> bool {
        let is_new = self.event.is_none_or(|event| self.begins_event(event, time_ns, rtt_ns));
        if is_new {
            if self.event.is_none() {
                let nothing_before = self.current.length == 0;
                self.current.synthetic = Some(first_interval(nothing_before).round() as u64);
            }
            self.history.close(self.current.data_length() as f64);
            self.finished.rotate_right(1);
            self.finished[0] = self.current;
            self.finished_count = (self.finished_count + 1).min(INTERVALS);
            self.current = Interval::default();
            self.event = Some(LossEvent { counter: self.counter, time_ns });
            self.events += 1;
        }
        self.current.length += packets;
        self.current.lossy = self.current.length;
        self.current.nonce = false;
        is_new
    }

    //= rfc4342#6.1
    //# As in [RFC3448], Section 5.2, the length of the lossy part MUST be
    //# less than or equal to 1 RTT.
    fn begins_event(&self, event: LossEvent, time_ns: i64, rtt_ns: Option<i64>) -> bool {
        match rtt_ns {
            Some(rtt_ns) => event.time_ns.saturating_add(rtt_ns) < time_ns,
            None => self.counter - event.counter > COUNTER_DISTANCE,
        }
    }
}
