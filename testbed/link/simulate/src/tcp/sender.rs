// SPDX-License-Identifier: Apache-2.0
//! Which segment may leave now? RFC 5681 with the recovery of RFC 6582 (NewReno) and limited transmit (RFC 3042), whatever
//! makes the window grow.
//!
//! The window counts whole segments; segment 0 is the SYN. Each acknowledgement counts once, however much it is of (RFC 5681,
//! equations 2 and 3), as in ns-2; Linux counts segments, which is the same without delayed acknowledgements and losses. A segment
//! whose timer ends twice halves the threshold twice, as in ns-2; RFC 5681 keeps it.

use super::choice::ControlName;
use super::control::CongestionControl;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use crate::ends::FlowTotals;
use crate::segment::{Ack, SYN};

/// Acknowledgements of nothing new that tell a loss.
const DUPLICATES: u32 = 3;

/// Parameters of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderParams {
    /// Window after the SYN, segments.
    pub initial_window: f64,
    /// Least retransmission timeout, ns.
    pub min_rto_ns: u64,
    /// What makes the window grow.
    pub control: ControlName,
    /// Losses are found and mended by selective acknowledgements (RFC 6675), not by RFC 6582.
    pub sack: bool,
    /// What the receiver has room for, segments; infinite where it reads at once whatever comes.
    pub receive_window: f64,
}

/// The sending end; it has always something to send, unless [`Sender::limit`] says otherwise.
#[derive(Debug)]
pub struct Sender {
    initial_window: f64,
    receive_window: f64,
    /// Where the data ends that there is to send.
    available: Option<u64>,
    control: Box<dyn CongestionControl>,
    /// With selective acknowledgements.
    board: Option<Scoreboard>,
    window: f64,
    threshold: f64,
    /// The first segment that was not acknowledged.
    unacked: u64,
    next: u64,
    /// One more than the highest that was ever sent.
    highest: u64,
    duplicates: u32,
    /// While losses are mended: up to where everything was sent when the first was noticed.
    recovering_to: Option<u64>,
    /// A duplicate acknowledgement of no more than this is of a loss that is known (RFC 6582, section 3.2, step 2).
    known_to: Option<u64>,
    /// A partial acknowledgement has come since.
    is_partial: bool,
    /// Segments that duplicates let out before the loss was noticed.
    limited: u64,
    resend: bool,
    rto: Rto,
    timer_ns: Option<u64>,
    /// The segment whose round trip is measured, and when it left.
    timed: Option<(u64, u64)>,
    counts: FlowTotals,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(params: SenderParams) -> Self {
        Self {
            initial_window: params.initial_window,
            receive_window: params.receive_window,
            available: None,
            control: params.control.control(),
            board: params.sack.then(Scoreboard::default),
            window: 1.0,
            threshold: f64::INFINITY,
            unacked: 0,
            next: 0,
            highest: 0,
            duplicates: 0,
            recovering_to: None,
            known_to: None,
            is_partial: false,
            limited: 0,
            resend: false,
            rto: Rto::new(params.min_rto_ns),
            timer_ns: None,
            timed: None,
            counts: FlowTotals::default(),
        }
    }

    /// Segments from this one on are not there yet; called again when more are.
    pub fn limit(&mut self, available: u64) {
        self.available = Some(available);
    }

    /// The next segment that was never sent.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether there is such a segment, and room for it at the receiver.
    fn may_send(&self, number: u64) -> bool {
        let end = self.unacked as f64 + self.receive_window;
        self.available.is_none_or(|available| number < available) && (number as f64) < end
    }

    /// Whether the window holds its sender back, so that it may grow: one that has had less to send tells nothing of the
    /// path. In slow start half of it is enough, as in Linux (tcp_is_cwnd_limited).
    fn is_used(&self, acked: u64) -> bool {
        let flight = (self.next - self.unacked + acked) as f64;
        let is_limited = self.available.is_some() || self.receive_window.is_finite();
        let used = if self.window < self.threshold { 2.0 * flight } else { flight + 1.0 };
        !is_limited || used > self.window
    }

    /// Segments of data acknowledged in order.
    pub fn acked(&self) -> u64 {
        self.unacked.saturating_sub(1)
    }

    /// The congestion window, segments.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Counts since the start.
    pub fn counts(&self) -> FlowTotals {
        FlowTotals { acked_packets: self.acked(), ..self.counts }
    }

    /// When the timer ends.
    pub fn next_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// The next segment that may leave at `now_ns`.
    pub fn poll(&mut self, now_ns: u64) -> Option<u64> {
        if std::mem::take(&mut self.resend) {
            return Some(self.emit(now_ns, self.unacked));
        }
        if self.recovering_to.is_some() && self.board.is_some() {
            return self.poll_board(now_ns);
        }
        // Each of the first two duplicates lets one segment more out.
        let limited = if self.recovering_to.is_none() { self.duplicates.min(DUPLICATES - 1) } else { 0 };
        let end = self.unacked + self.window as u64;
        if self.next >= end + u64::from(limited) || !self.may_send(self.next) {
            return None;
        }
        self.limited += u64::from(self.next >= end);
        self.next += 1;
        Some(self.emit(now_ns, self.next - 1))
    }

    /// While losses are mended: what is lost, then what is new, as far as the window has room beside what is on its way.
    fn poll_board(&mut self, now_ns: u64) -> Option<u64> {
        let board = self.board.as_mut()?;
        if self.window - (board.pipe(self.unacked, self.highest) as f64) < 1.0 {
            return None;
        }
        let lost = board.next_lost(self.unacked).inspect(|lost| board.resend(*lost));
        let number = lost.or_else(|| self.may_send(self.highest).then_some(self.highest))?;
        self.next = self.next.max(number + 1);
        Some(self.emit(now_ns, number))
    }

    fn emit(&mut self, now_ns: u64, number: u64) -> u64 {
        let is_data = u64::from(number != SYN);
        self.counts.sent_packets += is_data;
        if number < self.highest {
            self.counts.resent_packets += is_data;
            // Nobody knows which of the two is acknowledged.
            self.timed = self.timed.filter(|(timed, _)| *timed != number);
        } else {
            self.highest = number + 1;
            self.timed = self.timed.or(Some((number, now_ns)));
        }
        if self.timer_ns.is_none() {
            self.timer_ns = Some(now_ns + self.rto.ns());
        }
        number
    }

    /// Takes an acknowledgement in.
    pub fn take(&mut self, now_ns: u64, told: impl Into<Ack>) {
        let told = told.into();
        if let Some(board) = &mut self.board {
            board.take(told.sacked());
        }
        if told.next > self.unacked {
            self.advance(now_ns, told.next);
        } else if told.next == self.unacked && self.highest > self.unacked {
            self.duplicate();
        }
    }

    fn advance(&mut self, now_ns: u64, ack: u64) {
        let acked = ack - self.unacked;
        if let Some((_, sent_ns)) = self.timed.filter(|(timed, _)| *timed < ack) {
            self.rto.sample(now_ns - sent_ns);
            self.timed = None;
        }
        self.unacked = ack;
        self.next = self.next.max(ack);
        if let Some(board) = &mut self.board {
            board.advance(ack);
        }
        self.duplicates = 0;
        self.limited = 0;
        let mut restart = true;
        match self.recovering_to {
            Some(to) if ack >= to => {
                // RFC 6582, section 3.2, step 3, second way; what is on its way is hardly less.
                self.window = self.threshold;
                self.recovering_to = None;
            }
            Some(_) if self.board.is_some() => {}
            Some(_) => {
                // A partial acknowledgement: the next hole is resent, the timer is set anew for the first of them alone.
                restart = !std::mem::replace(&mut self.is_partial, true);
                self.window = (self.window - acked as f64 + 1.0).max(1.0);
                self.resend = true;
            }
            None if acked == ack => {
                // A SYN that was lost says nothing of the window (RFC 5681, section 3.1).
                self.window = self.initial_window;
                self.threshold = f64::INFINITY;
                self.known_to = None;
            }
            None if !self.is_used(acked) => {}
            None if self.window < self.threshold => self.window += 1.0,
            None => self.window = self.control.grown(now_ns, self.rto.mean_ns(), self.window, acked),
        }
        if self.unacked == self.highest {
            self.timer_ns = None;
        } else if restart {
            self.timer_ns = Some(now_ns + self.rto.ns());
        }
    }

    fn duplicate(&mut self) {
        self.duplicates += 1;
        let is_told = match &self.board {
            Some(board) => board.is_lost(self.unacked),
            None => self.duplicates == DUPLICATES,
        };
        if self.recovering_to.is_some() {
            self.window += if self.board.is_some() { 0.0 } else { 1.0 };
        } else if is_told && self.known_to.is_none_or(|to| self.is_beyond(to)) {
            self.recover();
        }
    }

    /// True when a loss of the first segment that was not acknowledged is a new one: a segment more has to be acknowledged where
    /// nothing but duplicates tell of it (RFC 6582, section 3.2; RFC 6675, section 5.1).
    fn is_beyond(&self, known_to: u64) -> bool {
        self.unacked + u64::from(self.board.is_some()) > known_to
    }

    fn recover(&mut self) {
        self.reduce();
        self.recovering_to = Some(self.highest);
        self.counts.recoveries += 1;
        self.window = self.threshold;
        // At once, whatever the window has room for (RFC 6675, section 5, step 4.3).
        self.resend = true;
        if let Some(board) = &mut self.board {
            board.forget_resent();
            board.resend(self.unacked);
        } else {
            self.window += f64::from(DUPLICATES);
            self.is_partial = false;
        }
    }

    /// What the control leaves of the window, as far as it is on its way, without what duplicates let out; two segments at least (RFC 5681,
    /// section 3.2). A part of a segment counts, as in Linux and ns-2. Losses of everything that was sent are known from now on.
    fn reduce(&mut self) {
        let flight = (self.next - self.unacked - self.limited) as f64;
        // What duplicates add to the window while losses are mended stands for segments that have left.
        let window = if self.recovering_to.is_some() { self.threshold } else { self.window };
        self.threshold = self.control.reduced(window.min(flight + 1.0)).max(2.0);
        self.known_to = Some(self.highest);
    }

    /// Ends the timer if it is due: everything that was not acknowledged is sent again.
    pub fn expire(&mut self, now_ns: u64) {
        if self.timer_ns.is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        self.reduce();
        self.control.timed_out();
        if let Some(board) = &mut self.board {
            board.clear();
        }
        self.window = 1.0;
        self.next = self.unacked;
        self.duplicates = 0;
        self.limited = 0;
        self.recovering_to = None;
        self.resend = false;
        self.timed = None;
        self.rto.back_off();
        self.timer_ns = None;
        self.counts.timeouts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PARAMS: SenderParams = SenderParams {
        initial_window: 2.0,
        min_rto_ns: 200 * MS,
        control: ControlName::Newreno,
        sack: false,
        receive_window: f64::INFINITY,
    };

    fn burst(sender: &mut Sender, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| sender.poll(now_ns)).collect()
    }

    /// A sender whose SYN is acknowledged.
    fn opened() -> Sender {
        let mut sender = Sender::new(PARAMS);
        assert_eq!(burst(&mut sender, 0), [SYN]);
        sender.take(100 * MS, 1);
        sender
    }

    /// A sender in slow start that has sent 1 to 14 and heard of 1 to 6.
    fn with_eight_on_their_way() -> Sender {
        let mut sender = opened();
        burst(&mut sender, 100 * MS);
        for ack in 2..=7 {
            sender.take(200 * MS, ack);
            burst(&mut sender, 200 * MS);
        }
        assert_eq!((sender.highest, sender.acked(), sender.window), (15, 6, 8.0));
        sender
    }

    #[test]
    fn the_initial_window_leaves_when_the_syn_is_acknowledged_and_slow_start_adds_a_segment_for_each_acknowledgement(
    ) {
        let mut sender = opened();
        assert_eq!(burst(&mut sender, 100 * MS), [1, 2]);
        sender.take(200 * MS, 2);
        assert_eq!(burst(&mut sender, 200 * MS), [3, 4]);
        sender.threshold = 3.0;
        sender.take(200 * MS, 3);
        assert_eq!(burst(&mut sender, 200 * MS), [5]);
        assert_eq!((sender.acked(), sender.counts().sent_packets), (2, 5));
    }

    #[test]
    fn a_lost_syn_is_sent_again() {
        let mut sender = Sender::new(PARAMS);
        burst(&mut sender, 0);
        sender.expire(1_000 * MS);
        assert_eq!(burst(&mut sender, 1_000 * MS), [SYN]);
        sender.take(1_100 * MS, 1);
        assert_eq!((burst(&mut sender, 1_100 * MS), sender.counts().resent_packets), (vec![1, 2], 0));
        assert!(sender.threshold > 1e9);
    }

    #[test]
    fn three_duplicates_resend_and_halve_and_the_first_two_let_new_segments_out() {
        let mut sender = with_eight_on_their_way();
        sender.take(300 * MS, 7);
        assert_eq!(burst(&mut sender, 300 * MS), [15]);
        sender.take(300 * MS, 7);
        assert_eq!(burst(&mut sender, 300 * MS), [16]);
        sender.take(300 * MS, 7);
        // Half of the eight is 4, and three have left.
        assert_eq!((sender.threshold, sender.window), (4.0, 7.0));
        assert_eq!(burst(&mut sender, 300 * MS), [7]);
        (0..4).for_each(|_| sender.take(301 * MS, 7));
        assert_eq!(burst(&mut sender, 301 * MS), [17]);
        // All is there.
        sender.take(400 * MS, 18);
        assert_eq!((sender.window, sender.recovering_to), (4.0, None));
    }

    #[test]
    fn a_partial_acknowledgement_resends_the_next_hole() {
        let mut sender = with_eight_on_their_way();
        (0..3).for_each(|_| sender.take(300 * MS, 7));
        assert_eq!(burst(&mut sender, 300 * MS), [7]);
        sender.take(400 * MS, 10);
        assert_eq!(burst(&mut sender, 400 * MS)[0], 10);
        assert!(sender.recovering_to.is_some());
        assert_eq!(sender.counts().recoveries, 1);
    }

    #[test]
    fn the_timer_sends_everything_again_from_one_segment_on() {
        let mut sender = with_eight_on_their_way();
        let due_ns = sender.next_ns().unwrap();
        sender.expire(due_ns - 1);
        assert_eq!(sender.counts().timeouts, 0);
        sender.expire(due_ns);
        assert_eq!(burst(&mut sender, due_ns), [7]);
        assert_eq!((sender.threshold, sender.window, sender.counts().timeouts), (4.0, 1.0, 1));
        // Duplicates of what was sent before the timeout tell nothing new, nor do those of all of that.
        (0..3).for_each(|_| sender.take(due_ns + MS, 7));
        sender.take(due_ns + 2 * MS, 8);
        assert_eq!(burst(&mut sender, due_ns + 2 * MS), [8, 9]);
        sender.take(due_ns + 3 * MS, 15);
        burst(&mut sender, due_ns + 3 * MS);
        (0..3).for_each(|_| sender.take(due_ns + 4 * MS, 15));
        assert_eq!(sender.counts().recoveries, 0);
    }

    #[test]
    fn a_timeout_while_losses_are_mended_halves_the_window_without_what_duplicates_added() {
        let mut sender = with_eight_on_their_way();
        (0..10).for_each(|_| sender.take(300 * MS, 7));
        burst(&mut sender, 300 * MS);
        assert_eq!((sender.threshold, sender.window), (4.0, 14.0));
        sender.expire(sender.next_ns().unwrap());
        assert_eq!(sender.threshold, 2.0);
    }

    /// Selective acknowledgements: window 16, 1 to 14 acknowledged, 15 lost, a burst on its way behind it.
    fn selective() -> Sender {
        let mut sender = Sender::new(SenderParams { sack: true, ..PARAMS });
        let mut now_ms = 0;
        let mut acked = 0;
        while sender.acked() < 14 {
            let sent = burst(&mut sender, now_ms * MS);
            now_ms += 100;
            for number in sent {
                acked = (number + 1).min(15);
                sender.take(now_ms * MS, acked);
            }
        }
        assert_eq!((acked, sender.unacked), (15, 15));
        burst(&mut sender, now_ms * MS);
        sender
    }

    fn beyond(next: u64, block: (u32, u32)) -> Ack {
        Ack { next, block }
    }

    #[test]
    fn what_is_lost_is_sent_again_at_once_and_a_loss_at_the_point_of_recovery_is_a_new_one() {
        let mut sender = selective();
        let known_to = sender.highest;
        for behind in 1..=3 {
            sender.take(500 * MS, beyond(15, (1, behind)));
        }
        assert_eq!((sender.poll(500 * MS), sender.counts().recoveries), (Some(15), 1));
        // All has come by then, and the first segment behind it is lost.
        burst(&mut sender, 500 * MS);
        sender.take(600 * MS, known_to);
        burst(&mut sender, 600 * MS);
        for behind in 1..=3 {
            sender.take(700 * MS, beyond(known_to, (1, behind)));
        }
        assert_eq!((sender.poll(700 * MS), sender.counts().recoveries), (Some(known_to), 2));
    }
}
