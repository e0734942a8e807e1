// SPDX-License-Identifier: Apache-2.0
//! Hands messages over when the pacer says so, counts what cannot go, and has every departure certified.
//!
//! The clock is read twice per wake-up: after the wait, which is the time of departure, and before the next one, which
//! tells how long handing over took.

use netjoule_transport::message::Header;
use netjoule_transport::{BatchOutcome, State, Stop};

use super::accepted::Accepted;
use super::batch::Batch;
use super::instruments::{Instruments, Readings};
use super::plan::Plan;
use crate::certificate::{Basis, Certifier, HandOver, PacingCertificate, Totals};
use crate::intervals::{Interval, Series};
use crate::pacing::{Mode, Pacer, PacerWork, Rest};
use crate::report::EndReason;
use crate::session::{Scope, Session};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;

/// Messages due before the end that were held up may still leave this long after it, ns.
const GRACE_NS: i64 = 50_000_000;
/// Waits below this look at the data path only, ns.
const SHORT_WAIT_NS: i64 = 1_000_000;
/// Everything else is looked at this often at least, ns.
const LOOK_AROUND_NS: i64 = 10_000_000;
/// After so many messages with a launch time the transport is asked when they left: it keeps few.
const LAUNCHES_PER_LOOK: u64 = 4_096;

/// What was counted. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Begin of the schedule.
    pub(crate) start_ns: i64,
    /// First message handed over.
    pub(crate) first_ns: Option<i64>,
    /// Last message handed over.
    pub(crate) last_ns: Option<i64>,
    /// Messages of the schedule.
    pub(crate) scheduled: u64,
    /// Messages that the transport accepted.
    pub(crate) sent: u64,
    /// Their payload bytes.
    pub(crate) bytes_sent: u64,
}

/// Sends the messages of one plan.
pub(crate) struct SendLoop<'a> {
    plan: &'a Plan,
    pacer: Pacer,
    batch: Batch,
    counts: Counts,
    accepted: Accepted,
    /// Refused by the host, or due while congestion control held a full queue back.
    refused: u64,
    series: Series,
    instruments: Instruments,
    certifier: Certifier,
    /// What left since the clock was read last, until it is read again.
    handed: Option<HandOver>,
    /// The messages of the last hand-over left in one moment.
    handed_as_one: bool,
    /// Messages with a launch time since the transport was asked when such left.
    launched_unseen: u64,
    /// The transport had no room for the message that comes next.
    held_up: bool,
    /// Messages before this one were due while the transport had no room.
    held_back_below: u64,
    looked_around_ns: i64,
}

impl<'a> SendLoop<'a> {
    /// A loop that starts at `start_ns`, where the costs are those that `instruments` began with. `stamps_launches`: see
    /// [`netjoule_transport::Transport`].
    pub(crate) fn new(
        plan: &'a Plan,
        batch: Batch,
        start_ns: i64,
        instruments: Instruments,
        stamps_launches: bool,
    ) -> Self {
        Self {
            plan,
            pacer: Pacer::new(plan.pacing, plan.window_ns, plan.duration_ns, &plan.schedule),
            batch,
            counts: Counts { start_ns, scheduled: plan.schedule.count(), ..Counts::default() },
            accepted: Accepted::default(),
            refused: 0,
            series: Series::sender(plan.interval_ns, start_ns, instruments.at_start()).omitting(plan.omit_ns),
            instruments,
            certifier: Certifier::new(basis_of(plan.pacing, stamps_launches)),
            handed: None,
            handed_as_one: false,
            launched_unseen: 0,
            held_up: false,
            held_back_below: 0,
            looked_around_ns: start_ns,
        }
    }

    /// Memory for the intervals, taken beforehand.
    pub(crate) fn keep_intervals_in(&mut self, room: Vec<Interval>) {
        self.series.move_into(room);
    }

    fn launches(&self) -> bool {
        self.plan.pacing == Mode::SoTxtime
    }

    fn is_unpaced(&self) -> bool {
        self.plan.schedule.is_unpaced()
    }

    /// Messages of the schedule that were offered and are accounted for.
    fn done(&self) -> u64 {
        self.accepted.messages() + self.refused
    }

    /// How many messages of the schedule may have left by now.
    fn released(&self, now_ns: i64) -> u64 {
        self.pacer.released(&self.plan.schedule, self.done(), now_ns - self.counts.start_ns)
    }

    /// Send until the schedule is done, its time is over, or somebody says stop.
    pub(crate) fn run(&mut self, session: &mut Session<'_>, output: Output) -> Outcome<EndReason> {
        // What has no deadline is not late.
        let grace_ns = if self.is_unpaced() { 0 } else { GRACE_NS };
        let last_call_ns = self.counts.start_ns + self.plan.duration_ns + grace_ns;
        let mut now_ns = host::now_ns();
        loop {
            if session.events.interrupted {
                return Ok(EndReason::Interrupted);
            }
            if session.events.stop {
                return Ok(EndReason::PeerInterrupted);
            }
            if now_ns > last_call_ns {
                return Ok(EndReason::Duration);
            }
            let interval_ended = self.series.turn(now_ns, None);
            self.send_due(session, now_ns, output)?;
            if interval_ended {
                // What leaves now does not wait for these readings, and its hand-over is not as long as they are.
                self.certify(host::now_ns());
                self.series.charge(self.instruments.read());
                self.look(session, now_ns, output)?;
            }
            if self.done() >= self.counts.scheduled {
                return self.sit_out(session, output);
            }
            session.show(self.series.fresh(), output)?;
            now_ns = self.rest(session, last_call_ns)?;
        }
    }

    /// Send the first batch of what is due and push it out: nothing waits in the transport while this end sleeps.
    fn send_due(&mut self, session: &mut Session<'_>, now_ns: i64, output: Output) -> Outcome<()> {
        let mut stop = self.offer(session, now_ns, output)?;
        session.transport.flush(now_ns)?;
        // What flushing a stream makes room for is announced by no descriptor: try again until nothing moves.
        while stop == Stop::WouldBlock {
            let before = self.done();
            stop = self.offer(session, now_ns, output)?;
            if self.done() == before {
                break;
            }
            session.transport.flush(now_ns)?;
        }
        self.held_up = matches!(stop, Stop::WouldBlock | Stop::QueueFull);
        Ok(())
    }

    /// Offer the first batch of what is due; why the transport did not take all of it.
    fn offer(&mut self, session: &mut Session<'_>, now_ns: i64, output: Output) -> Outcome<Stop> {
        let first = self.done();
        let released = self.released(now_ns);
        let due = released - first;
        if due == 0 {
            return Ok(Stop::None);
        }
        let size = self.plan.schedule.message_bytes(first);
        let messages = self.plan.schedule.alike(first, due.min(self.batch.most(size) as u64)) as usize;
        let outcome = if self.launches() {
            self.hand_ahead(session, messages, size, now_ns)?
        } else {
            let sequence = self.accepted.messages();
            let header = |index: usize| Header { sequence: sequence + index as u64, sent_ns: now_ns };
            session.transport.send_batch(self.batch.fill(messages, size, header), size, now_ns)?
        };
        let sent = outcome.sent as u64;
        if sent > 0 {
            self.handed_as_one = session.transport.hands_over_as_one();
            self.book(first, sent, size, now_ns);
            self.launched_unseen += if self.launches() { sent } else { 0 };
            if self.counts.first_ns.is_none() {
                self.counts.first_ns = Some(now_ns);
                output.event("started", serde_json::json!({ "first_packet_ns": now_ns }))?;
            }
        }
        match outcome.stop {
            Stop::None | Stop::WouldBlock => {}
            Stop::Refused => self.refused += 1,
            // What has no deadline waits for room.
            Stop::QueueFull if self.is_unpaced() => {}
            // However many are overdue, it is one subtraction.
            Stop::QueueFull => {
                self.refused += due - sent;
                self.certifier.hold_back(due - sent, false);
            }
        }
        self.pacer.advance(&self.plan.schedule, self.done(), released);
        Ok(outcome.stop)
    }

    /// Give the kernel messages with their deadlines as launch times; those that had found no room leave at once.
    fn hand_ahead(
        &mut self,
        session: &mut Session<'_>,
        messages: usize,
        size: usize,
        now_ns: i64,
    ) -> Outcome<BatchOutcome> {
        let first = self.done();
        let (start_ns, schedule) = (self.counts.start_ns, &self.plan.schedule);
        let launch_ns = |index: usize| start_ns + schedule.due_ns(first + index as u64);
        let sequence = self.accepted.messages();
        let header = |index: usize| Header {
            sequence: sequence + index as u64,
            sent_ns: launch_ns(index).max(now_ns),
        };
        let late = self.held_back_below.saturating_sub(first).min(messages as u64) as usize;
        if late > 0 {
            return Ok(session.transport.send_batch(self.batch.fill(late, size, header), size, now_ns)?);
        }
        let batch = self.batch.fill(messages, size, header);
        Ok(session.transport.send_ahead(batch, size, &launch_ns, now_ns)?)
    }

    /// Count messages that left.
    fn book(&mut self, first: u64, sent: u64, size: usize, now_ns: i64) {
        self.accepted.add(sent, size);
        self.series.count(sent, sent * size as u64);
        self.counts.last_ns = Some(now_ns);
        let late = self.held_back_below.saturating_sub(first).min(sent);
        if late > 0 {
            self.certifier.hold_back(late, true);
        }
        if late < sent {
            match &mut self.handed {
                Some(over) => over.messages += sent,
                None => {
                    let (first, messages) = (first + late, sent - late);
                    self.handed = Some(HandOver { first, messages, from_ns: now_ns, to_ns: now_ns });
                }
            }
        }
    }

    /// Certify what left since the clock was read last; it is read anyway before every wait.
    fn certify(&mut self, now_ns: i64) {
        if let Some(over) = self.handed.take() {
            // The messages of a train leave together.
            let to_ns = if self.handed_as_one { over.from_ns } else { now_ns };
            let since_start = HandOver {
                from_ns: over.from_ns - self.counts.start_ns,
                to_ns: to_ns - self.counts.start_ns,
                ..over
            };
            self.certifier.depart(&self.plan.schedule, &since_start);
        }
    }

    /// Nothing more will be offered.
    pub(crate) fn close_books(&mut self, now_ns: i64) {
        self.certify(now_ns);
        // Also where there was room again, but no time left to hand over all that had waited for it.
        let waited_below = if self.held_up { self.released(now_ns) } else { self.held_back_below };
        self.certifier.hold_back(waited_below.saturating_sub(self.done()), false);
    }

    /// Messages that were counted as sent have not left after all.
    pub(crate) fn take_back(&mut self, messages: u64) {
        for _ in 0..messages {
            let Some(size) = self.accepted.take_back() else { return };
            self.refused += 1;
            self.series.take_back(1, size as u64);
            self.certifier.take_back(1);
        }
    }

    /// What the pacer did so far.
    pub(crate) fn pacer_work(&self) -> PacerWork {
        self.pacer.work()
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> Counts {
        let scheduled = if self.is_unpaced() { self.done() } else { self.counts.scheduled };
        Counts { scheduled, sent: self.accepted.messages(), bytes_sent: self.accepted.bytes(), ..self.counts }
    }

    /// Look at the transport, for what was asked for beside the messages.
    pub(crate) fn look(&mut self, session: &mut Session<'_>, now_ns: i64, output: Output) -> Outcome<()> {
        self.see_departures(session)?;
        self.instruments.look(&mut *session.transport, now_ns, output)
    }

    /// Ask the transport what has left when.
    fn see_departures(&mut self, session: &mut Session<'_>) -> Outcome<()> {
        self.launched_unseen = 0;
        let start_ns = self.counts.start_ns;
        let Self { instruments, certifier, .. } = self;
        session.transport.departures(&mut |departure| {
            instruments.saw(departure);
            if let Some(launch_ns) = departure.launch_ns {
                certifier.leave(launch_ns - start_ns, departure.left_ns - start_ns);
            }
        })?;
        Ok(())
    }

    /// The certificate, the instruments and the intervals of a flow that ended at `end_ns`.
    pub(crate) fn finish(self, end_ns: i64) -> (PacingCertificate, Readings, Series) {
        let Counts { scheduled, sent, start_ns, bytes_sent, .. } = self.counts();
        let readings = self.instruments.close(bytes_sent);
        let totals = Totals { scheduled, sent, cpu_s: readings.cpu.used.cpu_s, span_ns: end_ns - start_ns };
        (self.certifier.finish(&self.plan.schedule, &totals), readings, self.series)
    }

    /// Until the next message leaves (a full stream or queue: until the transport has news), and look around now and
    /// then; the time afterwards.
    fn rest(&mut self, session: &mut Session<'_>, last_call_ns: i64) -> Outcome<i64> {
        let now_ns = host::now_ns();
        self.certify(now_ns);
        if self.launched_unseen >= LAUNCHES_PER_LOOK {
            self.see_departures(session)?;
        }
        let expected_ns = (!self.held_up).then(|| self.counts.start_ns + self.pacer.departure_ns());
        session.transport.expect_send(expected_ns);
        let rest = if self.held_up {
            // An interval that ends meanwhile is told then, not when there is room again.
            let until_ns = (last_call_ns + 1).min(self.series.next_end_ns());
            Rest::Sleep { until_ns: until_ns - self.counts.start_ns }
        } else {
            self.pacer.rest(now_ns - self.counts.start_ns)
        };
        let after_ns = self.wait(session, rest, now_ns)?;
        if let (Rest::Sleep { until_ns }, false) = (rest, self.held_up) {
            let start_ns = self.counts.start_ns;
            self.pacer.woke(now_ns - start_ns, until_ns, after_ns - start_ns);
        }
        if self.held_up {
            self.held_back_below = self.released(after_ns);
        }
        if session.state == State::Closed {
            return Err(closed_by_peer());
        }
        Ok(after_ns)
    }

    /// All has been sent: the flow of a profile may end in silence, which is part of it.
    fn sit_out(&mut self, session: &mut Session<'_>, output: Output) -> Outcome<EndReason> {
        let end_ns = self.counts.start_ns + self.plan.duration_ns;
        let mut now_ns = host::now_ns();
        self.certify(now_ns);
        session.transport.expect_send(None);
        while self.plan.schedule.states_lengths() && now_ns < end_ns {
            now_ns = session.wait_from(now_ns, Some(end_ns), Scope::All)?;
            if self.series.turn(now_ns, None) {
                self.series.charge(self.instruments.read());
                self.look(session, now_ns, output)?;
            }
            session.show(self.series.fresh(), output)?;
            match (session.events.interrupted, session.events.stop, session.state) {
                (true, ..) => return Ok(EndReason::Interrupted),
                (_, true, _) => return Ok(EndReason::PeerInterrupted),
                (.., State::Closed) => return Err(closed_by_peer()),
                _ => {}
            }
        }
        Ok(EndReason::Duration)
    }

    fn wait(&mut self, session: &mut Session<'_>, rest: Rest, now_ns: i64) -> Outcome<i64> {
        let (Rest::Sleep { until_ns } | Rest::Spin { until_ns }) = rest;
        let until_ns = self.counts.start_ns + until_ns;
        if until_ns > now_ns {
            self.certifier.pause();
        }
        let sleeps_long = matches!(rest, Rest::Sleep { .. }) && until_ns - now_ns >= SHORT_WAIT_NS;
        let look_around = sleeps_long || now_ns - self.looked_around_ns >= LOOK_AROUND_NS;
        if look_around {
            self.looked_around_ns = now_ns;
        }
        match rest {
            Rest::Sleep { .. } => {
                let scope = if look_around { Scope::All } else { Scope::Data };
                let then_ns = (!self.held_up).then(|| self.counts.start_ns + self.pacer.following_ns());
                session.wait_towards(now_ns, Some(until_ns), then_ns, scope)
            }
            // A glance; the clock is watched next time.
            Rest::Spin { .. } if look_around => session.wait_from(now_ns, Some(now_ns), Scope::All),
            Rest::Spin { .. } => {
                session.spin_from(now_ns, until_ns.min(self.looked_around_ns + LOOK_AROUND_NS))
            }
        }
    }
}

fn closed_by_peer() -> Failure {
    Failure::new(Code::DataLost, "the peer closed the data connection before the flow's end")
}

fn basis_of(pacing: Mode, stamps_launches: bool) -> Basis {
    match pacing {
        Mode::SoTxtime if stamps_launches => Basis::LaunchTimeMeasured,
        Mode::SoTxtime => Basis::LaunchTime,
        Mode::Absolute | Mode::Hybrid | Mode::Spin | Mode::Burst(_) => Basis::HandOver,
    }
}

#[cfg(test)]
#[path = "send_loop_tests.rs"]
mod tests;
