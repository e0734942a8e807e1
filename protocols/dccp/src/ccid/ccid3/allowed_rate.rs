// SPDX-License-Identifier: Apache-2.0
//! X, the allowed sending rate: after feedback and when it stays away (RFC 5348 sections 4.2 to 4.5).

use super::receive_rates::ReceiveRates;
use super::segment_size::SegmentSize;
use super::{whole_ns, NS_PER_S};
use crate::ccid::tfrc::{equation, MAX_BACKOFF_S};

/// q and q2: weight of the old value in the averages of the round trip.
const KEEP: f64 = 0.9;
/// Upper bound on the bytes of the initial window unless two segments are more (RFC 3390).
const INITIAL_WINDOW_BYTES: f64 = 4380.0;
/// The nofeedback timer before the first round trip is known, ns.
const FIRST_TIMEOUT_NS: i64 = 2_000_000_000;
/// Shortest nofeedback timeout, ns. RFC 4342 section 5 wants at least four round trips; on a path of microseconds those
/// would be shorter than the pauses of an operating system's scheduler and than the receiver's feedback interval.
const MIN_TIMEOUT_NS: f64 = 20e6;
/// Expirations made up for in one go after a long silence; by then the rate has reached its least.
const MAX_CATCH_UP: u32 = 64;

/// What a feedback packet says, made ready for the rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// X_recv, bytes per second.
    pub(super) receive_rate: f64,
    /// R_sample, ns, when there is a sound one.
    pub(super) rtt_sample_ns: Option<f64>,
    /// p.
    pub(super) loss_event_rate: f64,
    /// A new loss event since the last feedback.
    pub(super) is_new_loss_event: bool,
    /// The sender could have sent more during the whole interval that this packet covers.
    pub(super) is_data_limited: bool,
}

/// The rate and all it depends on.
#[derive(Debug)]
pub(super) struct AllowedRate {
    /// X, bytes per second.
    rate: f64,
    loss_event_rate: f64,
    receive_rates: ReceiveRates,
    last_receive_rate: f64,
    /// R, ns.
    rtt_ns: Option<f64>,
    last_sample_ns: f64,
    /// Its square root: every packet asks for it.
    last_root: f64,
    /// The shortest round trip so far: that of the path without its queues.
    least_sample_ns: f64,
    /// R_sqmean, square root of ns.
    root_mean: f64,
    has_feedback: bool,
    /// tld.
    doubled_ns: i64,
    /// Nofeedback timer; `None` while idle with nothing to halve.
    deadline_ns: Option<i64>,
    /// Data was sent since the timer was set.
    sent_since_set: bool,
    expirations: u64,
}

impl AllowedRate {
    /// "The value of X is set to s bytes per second."
    pub(super) fn new(segment: &SegmentSize) -> Self {
        Self {
            rate: segment.bytes(),
            loss_event_rate: 0.0,
            receive_rates: ReceiveRates::new(),
            last_receive_rate: 0.0,
            rtt_ns: None,
            last_sample_ns: 0.0,
            least_sample_ns: f64::INFINITY,
            last_root: 0.0,
            root_mean: 0.0,
            has_feedback: false,
            doubled_ns: 0,
            deadline_ns: None,
            sent_since_set: false,
            expirations: 0,
        }
    }

    /// The first message is known and nothing was sent: begin with its size.
    pub(super) fn restart(&mut self, segment: &SegmentSize) {
        self.rate = if self.rtt_ns.is_some() { self.initial_rate(segment) } else { segment.bytes() };
    }

    /// Without a loss yet, and nothing has lowered X below its first value.
    pub(super) fn is_initial_at_least(&self, segment: &SegmentSize) -> bool {
        self.rtt_ns.is_some() && self.loss_event_rate <= 0.0 && self.rate >= self.initial_rate(segment)
    }

    /// Larger packets than before are to be sent. X grew from the initial window of the small ones, although section 4.2 takes
    /// the largest of the first round trip, and section 4.3 never lets X be below that without a loss.
    pub(super) fn raise_to_initial(&mut self, segment: &SegmentSize) {
        self.rate = self.rate.max(self.initial_rate(segment));
    }

    /// Round trip of the handshake.
    pub(super) fn seed_rtt(&mut self, now_ns: i64, rtt_ns: f64, segment: &SegmentSize) {
        if self.has_feedback {
            return;
        }
        self.rtt_ns = Some(rtt_ns.max(1.0));
        self.take_sample(rtt_ns.max(1.0));
        self.root_mean = self.last_root;
        self.doubled_ns = now_ns;
        self.rate = self.initial_rate(segment);
    }

    /// R, ns.
    pub(super) const fn rtt_ns(&self) -> Option<f64> {
        self.rtt_ns
    }

    /// The latest round trip or the average, whichever is longer; 0 while not known.
    pub(super) fn longer_rtt_ns(&self) -> f64 {
        self.rtt_ns.map_or(0.0, |rtt_ns| rtt_ns.max(self.last_sample_ns))
    }

    /// The shortest round trip so far, infinite while not known.
    pub(super) const fn least_rtt_ns(&self) -> f64 {
        self.least_sample_ns
    }

    /// X, bytes per second.
    pub(super) const fn allowed(&self) -> f64 {
        self.rate
    }

    /// p.
    pub(super) const fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// The last X_recv.
    pub(super) const fn receive_rate(&self) -> f64 {
        self.last_receive_rate
    }

    /// Expirations of the nofeedback timer.
    pub(super) const fn expirations(&self) -> u64 {
        self.expirations
    }

    /// X_inst, bytes per second: less than X while the round trip is longer than usual.
    pub(super) fn instantaneous(&self, segment: &SegmentSize) -> f64 {
        //= rfc5348#4.5
        //# However, this modification
        //# SHOULD be implemented because it makes TFRC behave better in some
        //# environments with a low level of statistical multiplexing.
        let rate = if self.last_root > 0.0 { self.rate * self.root_mean / self.last_root } else { self.rate };
        rate.max(least_rate(segment))
    }

    /// When the nofeedback timer expires.
    pub(super) const fn deadline_ns(&self) -> Option<i64> {
        self.deadline_ns
    }

    /// A data packet left.
    pub(super) fn on_sent(&mut self, now_ns: i64, segment: &SegmentSize) {
        self.sent_since_set = true;
        if self.deadline_ns.is_none() {
            let timeout_ns = if self.has_feedback { self.timeout_ns(segment) } else { FIRST_TIMEOUT_NS };
            self.deadline_ns = Some(now_ns.saturating_add(timeout_ns));
        }
    }

    /// Feedback arrived at `now_ns`. The steps are numbered as in section 4.3.
    pub(super) fn on_feedback(&mut self, now_ns: i64, report: &Report, segment: &SegmentSize) {
        //= rfc5348#4.3
        //# When a feedback packet is received by the sender at time t_now, the
        //# current time in seconds, the following actions MUST be performed.
        if let Some(sample_ns) = report.rtt_sample_ns {
            self.average_rtt(sample_ns); // 1 and 2; step 5 follows from it
        }
        let is_first = !self.has_feedback;
        self.has_feedback = true;
        self.last_receive_rate = report.receive_rate;
        let increased = report.loss_event_rate > self.loss_event_rate * (1.0 + 1e-9);
        self.loss_event_rate = report.loss_event_rate;
        if let Some(rtt_ns) = self.rtt_ns {
            let limit = self.receive_limit(now_ns, report, report.is_new_loss_event || increased, rtt_ns);
            if self.loss_event_rate > 0.0 {
                self.avoid_congestion(limit, segment);
            } else if is_first {
                // Section 4.2 replaces step 4 for the first feedback.
                self.rate = self.initial_rate(segment);
                self.doubled_ns = now_ns;
            } else if now_ns.saturating_sub(self.doubled_ns) as f64 >= rtt_ns {
                self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate(segment));
                self.doubled_ns = now_ns;
            }
        }
        self.set_timer(now_ns, segment); // 3 and 6
    }

    /// Let the nofeedback timer expire as often as it has by `now_ns`.
    pub(super) fn catch_up(&mut self, now_ns: i64, segment: &SegmentSize) {
        if self.deadline_ns.is_none_or(|deadline_ns| deadline_ns > now_ns) {
            return;
        }
        for _ in 0..MAX_CATCH_UP {
            let Some(deadline_ns) = self.deadline_ns.filter(|deadline_ns| *deadline_ns <= now_ns) else {
                return;
            };
            self.expire(deadline_ns, segment);
        }
        if self.deadline_ns.is_some() {
            self.set_timer(now_ns, segment);
        }
    }

    fn average_rtt(&mut self, sample_ns: f64) {
        let sample_ns = sample_ns.max(1.0);
        self.take_sample(sample_ns);
        match self.rtt_ns {
            Some(rtt_ns) if self.has_feedback => {
                //= rfc5348#4.3
                //# TFRC is not sensitive to the precise value for the filter constant q,
                //# but a default value of 0.9 is RECOMMENDED.
                self.rtt_ns = Some(KEEP * rtt_ns + (1.0 - KEEP) * sample_ns);
                //= rfc5348#4.5
                //# A value of 0.9 as the default for q2 is RECOMMENDED.
                self.root_mean = KEEP * self.root_mean + (1.0 - KEEP) * self.last_root;
            }
            _ => {
                self.rtt_ns = Some(sample_ns);
                self.root_mean = self.last_root;
            }
        }
    }

    fn take_sample(&mut self, sample_ns: f64) {
        self.last_sample_ns = sample_ns;
        self.least_sample_ns = self.least_sample_ns.min(sample_ns);
        self.last_root = sample_ns.sqrt();
    }

    /// recv_limit.
    fn receive_limit(&mut self, now_ns: i64, report: &Report, is_worse: bool, rtt_ns: f64) -> f64 {
        if !report.is_data_limited || report.receive_rate <= 0.0 {
            self.receive_rates.update(now_ns, report.receive_rate, rtt_ns);
            2.0 * self.receive_rates.max()
        } else if is_worse {
            self.receive_rates.halve();
            self.receive_rates.maximize(now_ns, 0.85 * report.receive_rate);
            self.receive_rates.max()
        } else {
            self.receive_rates.maximize(now_ns, report.receive_rate);
            2.0 * self.receive_rates.max()
        }
    }

    /// Step 4 with p > 0.
    fn avoid_congestion(&mut self, receive_limit: f64, segment: &SegmentSize) {
        self.rate = self.equation_rate(segment).min(receive_limit).max(least_rate(segment));
    }

    /// X_Bps.
    fn equation_rate(&self, segment: &SegmentSize) -> f64 {
        let rtt_s = self.rtt_ns.unwrap_or(NS_PER_S) / NS_PER_S;
        equation::bytes_per_s(segment.bytes(), rtt_s, self.loss_event_rate)
    }

    /// The rate of RFC 3390's initial window.
    fn initial_rate(&self, segment: &SegmentSize) -> f64 {
        //= rfc5348#4.2
        //# In computing W_init, instead of using Maximum Segment Size (MSS), the
        //# TFRC sender SHOULD use the maximum segment size to be used for the
        //# initial round-trip time of data, if that is known by the TFRC sender
        //# when X is initialized.
        let largest_bytes = segment.largest_bytes();
        let window_bytes = (4.0 * largest_bytes).min((2.0 * largest_bytes).max(INITIAL_WINDOW_BYTES));
        window_bytes * NS_PER_S / self.rtt_ns.unwrap_or(NS_PER_S)
    }

    fn expire(&mut self, now_ns: i64, segment: &SegmentSize) {
        //= rfc5348#4.4
        //# If the nofeedback timer expires, the sender MUST perform the
        //# following actions:
        self.expirations += 1;
        let is_idle = !self.sent_since_set;
        let halved = (self.rate / 2.0).max(least_rate(segment));
        let receive_rate = self.receive_rates.max();
        let recover_rate = self.initial_rate(segment);
        let is_lossless = self.loss_event_rate <= 0.0;
        let is_below_recover_rate =
            if is_lossless { self.rate < 2.0 * recover_rate } else { receive_rate < recover_rate };
        if is_idle && (self.rtt_ns.is_none() || is_below_recover_rate) {
            // Not halved, and nothing can change before data leaves: the timer starts again then.
            self.deadline_ns = None;
            return;
        }
        if self.rtt_ns.is_none() || is_lossless {
            self.rate = halved;
        } else if self.equation_rate(segment) > 2.0 * receive_rate {
            self.limit(now_ns, receive_rate, segment);
        } else {
            self.limit(now_ns, self.equation_rate(segment) / 2.0, segment);
        }
        self.set_timer(now_ns, segment);
    }

    /// "Update_Limits(timer_limit)".
    fn limit(&mut self, now_ns: i64, timer_limit: f64, segment: &SegmentSize) {
        let timer_limit = timer_limit.max(least_rate(segment));
        self.receive_rates.replace(now_ns, timer_limit / 2.0);
        self.avoid_congestion(timer_limit, segment);
    }

    fn set_timer(&mut self, now_ns: i64, segment: &SegmentSize) {
        self.deadline_ns = Some(now_ns.saturating_add(self.timeout_ns(segment)));
        self.sent_since_set = false;
    }

    /// RTO = max(4 R, 2 s / X): two packets' time. A packet larger than s keeps the next one waiting for longer.
    fn timeout_ns(&self, segment: &SegmentSize) -> i64 {
        let packets_ns = 2.0 * segment.bytes().max(segment.last_bytes()) * NS_PER_S / self.rate;
        whole_ns(packets_ns.max(4.0 * self.rtt_ns.unwrap_or(0.0)).max(MIN_TIMEOUT_NS))
    }
}

/// One packet in 64 seconds.
fn least_rate(segment: &SegmentSize) -> f64 {
    segment.bytes() / MAX_BACKOFF_S
}
