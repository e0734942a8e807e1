// SPDX-License-Identifier: Apache-2.0
//! What happens when nothing arrives: retransmission with back-off, giving up, rate limits.

use super::{Connection, End, State, DEFAULT_RTT_NS, MSL_NS, SECOND_NS};
use crate::ccid::Departure;
use crate::feature::Negotiation;
use crate::reset::ResetCode;

/// Every back-off ends here (RFC 4340 sections 6.6.3, 8.1.1, 8.3).
const MAX_INTERVAL_NS: i64 = 64 * SECOND_NS;
/// A client gives its Requests up after this time (section 8.1.1).
const GIVE_UP_REQUEST_NS: i64 = 180 * SECOND_NS;
/// PARTOPEN, CLOSEREQ and CLOSING are given up after 4 MSL (section 8.1.5).
const GIVE_UP_NS: i64 = 4 * MSL_NS;
/// First interval of the PARTOPEN timer (section 8.1.5).
const PART_OPEN_NS: i64 = 200_000_000;
/// Close is not repeated faster than this on paths shorter than half of it.
const MIN_CLOSE_NS: i64 = 50_000_000;
/// Not more than eight Syncs a second (section 7.5.4).
const CHALLENGE_SPACING_NS: i64 = 125_000_000;
/// Timeouts of congestion control taken in one go.
const MAX_TIMEOUTS: usize = 8;

/// A timer with exponential back-off and an end.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    due_ns: i64,
    interval_ns: i64,
    give_up_ns: i64,
}

impl Backoff {
    fn new(now_ns: i64, interval_ns: i64, give_up_ns: i64) -> Self {
        Self {
            due_ns: now_ns.saturating_add(interval_ns),
            interval_ns,
            give_up_ns: now_ns.saturating_add(give_up_ns),
        }
    }

    fn back_off(&mut self, now_ns: i64) {
        self.interval_ns = self.interval_ns.saturating_mul(2).min(MAX_INTERVAL_NS);
        self.due_ns = now_ns.saturating_add(self.interval_ns);
    }

    fn wakeup_ns(&self) -> i64 {
        self.due_ns.min(self.give_up_ns)
    }
}

/// All timers of a connection but congestion control's.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Request, PARTOPEN's Ack, Close and CloseReq: one at a time, by state.
    state: Option<Backoff>,
    /// One Request per connection may be triggered by a Listen (RFC 5596 section 2.2.3.1).
    triggered: bool,
    /// Newest Request or Response.
    handshake_sent_ns: Option<i64>,
    time_wait_ns: Option<i64>,
    /// Repetition of Changes.
    features: Option<Backoff>,
    /// Next packet that is sent for feature negotiation alone.
    feature_packet_ns: i64,
    /// Next look at Sequence Window and Ack Ratio.
    pub(super) tune_ns: i64,
    /// Next answer to a packet that is invalid.
    challenge_ns: Option<i64>,
}

impl Timers {
    /// Nothing runs yet.
    pub(super) fn new(now_ns: i64) -> Self {
        Self { feature_packet_ns: now_ns, tune_ns: now_ns, ..Self::default() }
    }

    /// The first Request is due at once.
    pub(super) fn start_requests(&mut self, now_ns: i64) {
        let mut backoff = Backoff::new(now_ns, SECOND_NS, GIVE_UP_REQUEST_NS);
        backoff.due_ns = now_ns;
        backoff.interval_ns = SECOND_NS / 2;
        self.state = Some(backoff);
    }

    //= rfc5596#2.2.3.1
    //# Clients MUST therefore perform only one such retransmission for each DCCP connection.
    /// A Listen came: send the next Request now, if one was sent at all.
    pub(super) fn trigger_request(&mut self, now_ns: i64) {
        if self.triggered || self.handshake_sent_ns.is_none() {
            return;
        }
        self.triggered = true;
        if let Some(backoff) = &mut self.state {
            backoff.due_ns = now_ns;
        }
    }

    pub(super) fn start_part_open(&mut self, now_ns: i64) {
        self.state = Some(Backoff::new(now_ns, PART_OPEN_NS, GIVE_UP_NS));
    }

    pub(super) fn stop_handshake(&mut self) {
        self.state = None;
    }

    //= rfc4340#8.3
    //# The retransmission timer should initially be set to go off in two round-trip times and should back off to not less than
    //# once every 64 seconds if no relevant response is received.
    pub(super) fn start_close(&mut self, now_ns: i64, rtt_ns: i64) {
        let interval_ns = rtt_ns.saturating_mul(2).clamp(MIN_CLOSE_NS, MAX_INTERVAL_NS);
        self.state = Some(Backoff::new(now_ns, interval_ns, GIVE_UP_NS));
    }

    pub(super) fn start_time_wait(&mut self, now_ns: i64) {
        self.state = None;
        self.time_wait_ns = Some(now_ns.saturating_add(2 * MSL_NS));
    }

    pub(super) fn stop(&mut self) {
        self.state = None;
        self.features = None;
    }

    pub(super) fn on_handshake_sent(&mut self, now_ns: i64) {
        self.handshake_sent_ns = Some(now_ns);
    }

    pub(super) fn handshake_sent_ns(&self) -> Option<i64> {
        self.handshake_sent_ns
    }

    pub(super) fn has_responded(&self) -> bool {
        self.handshake_sent_ns.is_some()
    }

    /// A Request or a PARTOPEN packet leaves: the next one backs off from now.
    pub(super) fn back_off(&mut self, now_ns: i64) {
        if let Some(backoff) = &mut self.state {
            backoff.back_off(now_ns);
        }
    }

    /// A packet left in PARTOPEN: its timer starts anew, without back-off.
    pub(super) fn restart(&mut self, now_ns: i64) {
        if let Some(backoff) = &mut self.state {
            backoff.due_ns = now_ns.saturating_add(backoff.interval_ns);
        }
    }

    pub(super) fn state_due(&self, now_ns: i64) -> bool {
        self.state.is_some_and(|backoff| backoff.due_ns <= now_ns)
    }

    /// PARTOPEN's Ack was repeated twice without effect.
    pub(super) fn part_open_is_stuck(&self) -> bool {
        self.state.is_some_and(|backoff| backoff.interval_ns >= 8 * PART_OPEN_NS)
    }

    fn state_over(&self, now_ns: i64) -> bool {
        self.state.is_some_and(|backoff| backoff.give_up_ns <= now_ns)
    }

    //= rfc4340#7.5.4
    //# To protect against denial-of-service attacks, DCCP implementations SHOULD impose a rate limit on DCCP-Syncs sent in
    //# response to sequence-invalid packets, such as not more than eight DCCP-Syncs per second.
    /// An answer to an invalid packet is allowed now; counts it.
    pub(super) fn may_challenge(&mut self, now_ns: i64) -> bool {
        let allowed = self.challenge_ns.is_none_or(|due_ns| due_ns <= now_ns);
        if allowed {
            self.challenge_ns = Some(now_ns.saturating_add(CHALLENGE_SPACING_NS));
        }
        allowed
    }

    /// When feature negotiation wants a packet of its own.
    fn feature_due_ns(&self, features: &Negotiation) -> Option<i64> {
        if features.has_answers() || features.has_new_changes() {
            return Some(self.feature_packet_ns);
        }
        self.features.map(|backoff| backoff.due_ns)
    }

    pub(super) fn feature_due(&self, features: &Negotiation, now_ns: i64) -> bool {
        self.feature_due_ns(features).is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Changes that have no answer are to be said again.
    pub(super) fn repeats_due(&self, now_ns: i64) -> bool {
        self.features.is_some_and(|backoff| backoff.due_ns <= now_ns)
    }

    //= rfc4340#6.6.3
    //# (Packets generated specifically for feature negotiation MUST use such a timer.)
    //= rfc4340#6.6.3
    //# A CHANGING endpoint MUST continue retransmitting Change options until it gets some response or the connection
    //# terminates.
    /// Feature options left on a packet.
    pub(super) fn on_features_sent(&mut self, features: &Negotiation, now_ns: i64, rtt_ns: i64) {
        //= rfc4340#6.6.1
        //# In addition, an endpoint SHOULD generate at most one feature negotiation packet per round-trip time.
        self.feature_packet_ns = now_ns.saturating_add(rtt_ns);
        if !features.has_open_changes() {
            self.features = None;
            return;
        }
        match &mut self.features {
            Some(backoff) if backoff.due_ns <= now_ns => backoff.back_off(now_ns),
            Some(_) => {}
            None => {
                let interval_ns = rtt_ns.max(DEFAULT_RTT_NS);
                self.features = Some(Backoff::new(now_ns, interval_ns, i64::MAX));
            }
        }
    }

    /// Some negotiation may have come to its end.
    pub(super) fn settle_features(&mut self, features: &Negotiation) {
        if !features.has_open_changes() {
            self.features = None;
        }
    }
}

impl Connection {
    /// Do what is due without a packet having come.
    pub(super) fn run_timers(&mut self, now_ns: i64) {
        self.timers_ran_ns = now_ns;
        match self.state {
            State::Request | State::PartOpen | State::CloseReq | State::Closing
                if self.timers.state_over(now_ns) =>
            {
                // Sections 8.1.1 and 8.1.5: a Reset with code 2 cleans up at the peer.
                self.reset_here(ResetCode::Aborted, [0; 3]);
                self.end = Some(End::TimedOut);
            }
            State::PartOpen if self.timers.state_due(now_ns) => {
                self.pending.part_open_ack = true;
                self.timers.back_off(now_ns);
            }
            //= rfc4340#8.3
            //# Endpoints in the CLOSEREQ and CLOSING states MUST retransmit DCCP-CloseReq and DCCP-Close packets, respectively, until
            //# leaving those states.
            State::CloseReq | State::Closing if self.timers.state_due(now_ns) => {
                self.pending.close = true;
                self.timers.back_off(now_ns);
            }
            State::TimeWait => self.expire_time_wait(now_ns),
            _ => {}
        }
        if matches!(self.state, State::PartOpen | State::Open) {
            self.run_ccid_timers(now_ns);
            self.tune_features(now_ns);
        }
    }

    fn run_ccid_timers(&mut self, now_ns: i64) {
        let Some(halves) = &mut self.halves else {
            return;
        };
        for _ in 0..MAX_TIMEOUTS {
            match halves.sender.next_timeout_ns() {
                Some(due_ns) if due_ns <= now_ns => halves.sender.on_timeout(now_ns),
                _ => return,
            }
            self.departure = None;
        }
    }

    pub(super) fn expire_time_wait(&mut self, now_ns: i64) {
        let over = self.timers.time_wait_ns.is_some_and(|until_ns| until_ns <= now_ns);
        if self.state == State::TimeWait && over {
            self.state = State::Closed;
            self.timers.time_wait_ns = None;
        }
    }

    /// When [`Self::poll_transmit`] will have something to say without any packet arriving: pacing, acknowledgements, timers.
    /// Timers run inside `poll_transmit`.
    pub fn next_wakeup_ns(&self) -> Option<i64> {
        if self.pending.any(self.state) {
            return Some(self.now_ns);
        }
        let state = match self.state {
            State::TimeWait => self.timers.time_wait_ns,
            State::Closed | State::Respond => None,
            _ => self.timers.state.map(|backoff| backoff.wakeup_ns()),
        };
        [state, self.flow_wakeup_ns()].into_iter().flatten().min()
    }

    /// The part of it that data and acknowledgements want.
    fn flow_wakeup_ns(&self) -> Option<i64> {
        if !matches!(self.state, State::PartOpen | State::Open) {
            return None;
        }
        let open = self.state == State::Open;
        let features = self.timers.feature_due_ns(&self.features).filter(|_| open);
        let Some(halves) = &self.halves else {
            return features;
        };
        let mut wakeup_ns = halves.sender.next_timeout_ns();
        let mut at = |due_ns: i64| wakeup_ns = Some(wakeup_ns.map_or(due_ns, |other| other.min(due_ns)));
        if open {
            if let Some(due_ns) = halves.receiver.ack_due_ns() {
                at(due_ns);
            }
            if let Some(due_ns) = features {
                at(due_ns);
            }
        }
        if !self.queue.is_empty() && (open || self.head_fits_part_open()) {
            match self.departure {
                None | Some(Departure::Now) => at(self.now_ns),
                Some(Departure::At(due_ns)) => at(due_ns),
                Some(Departure::OnFeedback) => {}
            }
        }
        wakeup_ns
    }
}
