// SPDX-License-Identifier: Apache-2.0
//! The send loop over a transport that writes down what it is given and asked. Real time passes, nothing is said of how much.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use netjoule_transport::{message, Arrival, Departure, Kind, PollFd, Result, Stop, Transport};

use super::*;
use crate::certificate::{Limit, Limits};
use crate::schedule::{text, Schedule};
use crate::sender;
use netjoule_measure::wait::Signals;

/// What a transport was given, and when.
#[derive(Default)]
struct Log {
    /// Sequence numbers with the time of departure in their header.
    messages: Vec<(u64, i64)>,
    /// Their sizes, and what each says of its own.
    sizes: Vec<(usize, Option<usize>)>,
    /// Messages per hand-over.
    batches: Vec<usize>,
    /// Launch times told ahead.
    launches: Vec<i64>,
    /// Accepted and not yet flushed.
    held: usize,
    /// Waits that began with messages held.
    waits_with_held: usize,
    /// Waits while it was full.
    waits_while_full: usize,
}

/// Takes everything, but nothing while it is full, which it is once.
struct Recorder {
    log: Rc<RefCell<Log>>,
    /// Full from this message on for some time ...
    full_from: Option<usize>,
    /// ... until this one.
    full_until_ns: Option<i64>,
    /// What a full recorder says.
    when_full: Stop,
    /// How long it takes to take a batch, ns.
    busy_ns: i64,
    /// Messages that it gives back in the end.
    given_back: u64,
    /// How late its launches leave, in turn; `None`: without a stamp. Empty: it stamps none.
    launched_late_ns: Vec<Option<i64>>,
    /// Launches that were told to have left.
    told: usize,
}

impl Recorder {
    /// One with room for everything.
    fn new(log: &Rc<RefCell<Log>>) -> Self {
        Self {
            log: Rc::clone(log),
            full_from: None,
            full_until_ns: None,
            when_full: Stop::None,
            busy_ns: 0,
            given_back: 0,
            launched_late_ns: Vec::new(),
            told: 0,
        }
    }
}

/// How long the recorder stays full, ns.
const FULL_NS: i64 = 4_000_000;

impl Transport for Recorder {
    fn local_address(&self) -> Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    fn poll_fds(&self, _fds: &mut Vec<PollFd>) {
        let mut log = self.log.borrow_mut();
        log.waits_with_held += usize::from(log.held > 0);
        log.waits_while_full += usize::from(self.full_until_ns.is_some());
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        self.full_until_ns
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        self.full_until_ns = self.full_until_ns.filter(|until| now_ns < *until);
        Ok(State::Open)
    }

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<Stop> {
        let mut log = self.log.borrow_mut();
        if self.full_from == Some(log.messages.len()) {
            self.full_from = None;
            self.full_until_ns = Some(now_ns + FULL_NS);
        }
        if self.full_until_ns.is_some() {
            return Ok(match self.when_full {
                Stop::QueueFull => Stop::QueueFull,
                _ => Stop::WouldBlock,
            });
        }
        let header = Header::read(message).unwrap();
        log.messages.push((header.sequence, header.sent_ns));
        log.sizes.push((message.len(), message::length(message, 0)));
        log.held += 1;
        Ok(Stop::None)
    }

    fn send_batch(&mut self, batch: &mut [u8], message_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        self.log.borrow_mut().batches.push(batch.len() / message_bytes);
        for (sent, message) in batch.chunks_exact(message_bytes).enumerate() {
            let stop = match self.send(message, now_ns)? {
                Stop::None => continue,
                Stop::QueueFull => Stop::QueueFull,
                _ => Stop::WouldBlock,
            };
            return Ok(BatchOutcome { sent, stop });
        }
        while host::now_ns() < now_ns + self.busy_ns {}
        Ok(BatchOutcome { sent: batch.len() / message_bytes, stop: Stop::None })
    }

    fn discard_held(&mut self) -> u64 {
        self.given_back
    }

    fn stamps_launches(&self) -> bool {
        !self.launched_late_ns.is_empty()
    }

    fn departures(&mut self, sink: &mut dyn FnMut(Departure)) -> Result<()> {
        let log = self.log.borrow();
        let late_ns = self.launched_late_ns.iter().cycle();
        for (launch_ns, late_ns) in log.launches.iter().zip(late_ns).skip(self.told) {
            self.told += 1;
            if let Some(late_ns) = late_ns {
                let left_ns = launch_ns + late_ns;
                sink(Departure { sent_ns: *launch_ns, left_ns, launch_ns: Some(*launch_ns) });
            }
        }
        Ok(())
    }

    fn prepare_launch_times(&mut self) -> Result<()> {
        Ok(())
    }

    fn send_ahead(
        &mut self,
        batch: &mut [u8],
        message_bytes: usize,
        launch_ns: &dyn Fn(usize) -> i64,
        now_ns: i64,
    ) -> Result<BatchOutcome> {
        let outcome = self.send_batch(batch, message_bytes, now_ns)?;
        let refused = usize::from(outcome.stop != Stop::None);
        self.log.borrow_mut().launches.extend((0..outcome.sent + refused).map(launch_ns));
        Ok(outcome)
    }

    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        self.log.borrow_mut().held = 0;
        Ok(())
    }

    fn receive(&mut self, _now_ns: i64, _sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        Ok(0)
    }
}

/// 200 messages of 100 bytes, 100 us apart.
fn plan(pacing: Mode, window_ns: i64) -> Plan {
    Plan {
        schedule: Schedule::new(8_000_000, 100, 20_000_000),
        message_bytes: 100,
        duration_ns: 20_000_000,
        pacing,
        window_ns,
        interval_ns: 5_000_000,
        omit_ns: 0,
        seed: 1,
        gso: false,
        kind: Kind::Datagram,
        traces: false,
    }
}

fn fly(plan: &Plan, full_from: Option<usize>, when_full: Stop) -> (sender::Sent, Log) {
    fly_with(plan, |recorder| Recorder { full_from, when_full, ..recorder })
}

fn fly_with(plan: &Plan, change: impl FnOnce(Recorder) -> Recorder) -> (sender::Sent, Log) {
    let log = Rc::new(RefCell::new(Log::default()));
    let recorder = change(Recorder::new(&log));
    let signals = Signals::new().unwrap();
    let mut session = Session::new(Box::new(recorder), None, &signals, None).unwrap();
    sender::prepare(&mut session, plan.pacing).unwrap();
    let sent = sender::run(&mut session, plan, Output::Silent).unwrap();
    drop(session);
    let log = Rc::try_unwrap(log).ok().unwrap().into_inner();
    (sent, log)
}

const MENU: [(Mode, i64); 6] = [
    (Mode::Absolute, 0),
    (Mode::Absolute, 350_000),
    (Mode::Hybrid, 0),
    (Mode::Spin, 0),
    (Mode::Burst(7), 0),
    (Mode::SoTxtime, 0),
];

#[test]
fn every_message_leaves_once_in_order_and_never_early_in_every_mode() {
    for (mode, window_ns) in MENU {
        let plan = plan(mode, window_ns);
        let (sent, log) = fly(&plan, None, Stop::None);
        let sequences: Vec<_> = log.messages.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(sequences, (0..200).collect::<Vec<_>>(), "{mode}");
        for (sequence, sent_ns) in log.messages {
            assert!(sent_ns - sent.part.start_ns >= plan.schedule.due_ns(sequence), "{mode} {sequence}");
        }
        assert_eq!((sent.part.messages_sent, sent.part.bytes_sent), (200, 20_000), "{mode}");
        let certificate = sent.part.pacing_certificate.unwrap();
        assert_eq!((certificate.departures, certificate.messages_early), (200, 0), "{mode}");
        assert_eq!((certificate.achieved_ratio, certificate.held_back_ratio), (1.0, 0.0), "{mode}");
    }
}

#[test]
fn a_profile_is_handed_over_bit_for_bit_in_every_mode_and_to_its_end() {
    let busy = r#"{"schema_version":1,"name":"busy","messages":{
        "size_bytes":{"distribution":"uniform","min":16,"max":900},
        "inter_departure_s":{"distribution":"exponential","mean":0.0002}}}"#;
    let profile = text::read(busy.as_bytes(), "busy").unwrap();
    // What follows is silence: long enough for a host that is busy.
    let schedule = Schedule::of_profile(&profile, 7, 15_000_000).unwrap();
    let sizes: Vec<_> = (0..schedule.count()).map(|index| schedule.message_bytes(index)).collect();
    let due: Vec<_> = (0..schedule.count()).map(|index| schedule.due_ns(index)).collect();
    for (mode, window_ns) in MENU {
        for gso in [false, mode != Mode::SoTxtime] {
            let plan = Plan {
                schedule: schedule.clone(),
                message_bytes: 900,
                gso,
                duration_ns: 100_000_000,
                ..plan(mode, window_ns)
            };
            let (sent, log) = fly(&plan, None, Stop::None);
            let stated: Vec<_> = sizes.iter().map(|size| (*size, Some(*size))).collect();
            assert_eq!(log.sizes, stated, "{mode}");
            for ((_, sent_ns), due_ns) in log.messages.iter().zip(&due) {
                assert!(sent_ns - sent.part.start_ns >= *due_ns, "{mode}");
            }
            if mode == Mode::SoTxtime {
                let launches: Vec<_> = log.launches.iter().map(|at_ns| at_ns - sent.part.start_ns).collect();
                assert_eq!(launches, due);
            }
            assert_eq!(sent.part.bytes_sent, schedule.total_bytes(), "{mode}");
            assert!(sent.part.end_ns - sent.part.start_ns >= plan.duration_ns, "{mode}");
        }
    }
}

#[test]
fn nothing_that_was_accepted_waits_in_the_transport_while_the_sender_does() {
    for (mode, window_ns) in MENU {
        let (_, log) = fly(&plan(mode, window_ns), None, Stop::None);
        assert_eq!((log.waits_with_held, log.held), (0, 0), "{mode}");
    }
}

#[test]
fn a_window_and_a_burst_hand_neighbours_over_together() {
    let (sent, log) = fly(&plan(Mode::Absolute, 350_000), None, Stop::None);
    // How many share a hand-over depends on how late the host wakes, which the window's end allows for.
    assert!(log.batches.len() <= 100, "{:?}", log.batches);
    let certificate = sent.part.pacing_certificate.unwrap();
    assert!(
        certificate.train_messages.unwrap().mean >= 2.0 && certificate.back_to_back_ratio.unwrap() >= 0.5
    );

    let (_, log) = fly(&plan(Mode::Burst(7), 0), None, Stop::None);
    // Every hand-over ends with a burst, but for what a batch cannot hold of several overdue ones.
    let mut left = 0;
    for messages in log.batches {
        left += messages;
        assert!(left % 7 == 0 || messages == 32 || left == 200, "{left} after {messages}");
    }
}

#[test]
fn what_a_window_gathers_leaves_without_a_wait_whatever_sizes_it_has() {
    let mixed = r#"{"schema_version":1,"name":"mixed","messages":{
        "size_bytes":{"distribution":"uniform","min":16,"max":900},
        "inter_departure_s":{"distribution":"constant","value":0.0001}}}"#;
    let profile = text::read(mixed.as_bytes(), "mixed").unwrap();
    let schedule = Schedule::of_profile(&profile, 7, 20_000_000).unwrap();
    let plan = Plan { schedule, message_bytes: 900, ..plan(Mode::Absolute, 2_000_000) };
    let (sent, _) = fly(&plan, None, Stop::None);
    let trains = sent.part.pacing_certificate.unwrap().train_messages.unwrap();
    // 20 messages are due in a window; how early it ends depends on how late the host wakes.
    assert!(trains.mean >= 5.0, "{trains:?}");
    let work = sent.part.pacer_work.unwrap();
    assert!((1..=40).contains(&work.wake_ups) && work.window_lead_us.is_some(), "{work:?}");
}

#[test]
fn launch_times_are_the_deadlines() {
    let plan = plan(Mode::SoTxtime, 0);
    let (sent, log) = fly(&plan, None, Stop::None);
    let due: Vec<_> = (0..200).map(|index| sent.part.start_ns + plan.schedule.due_ns(index)).collect();
    assert_eq!(log.launches, due);
    assert_eq!(sent.part.pacing_certificate.unwrap().error_basis, Basis::LaunchTime);
}

#[test]
fn a_stream_that_was_full_sends_later_and_its_lateness_is_not_the_pacers() {
    let (sent, log) = fly(&plan(Mode::Absolute, 0), Some(50), Stop::WouldBlock);
    assert_eq!((log.messages.len(), sent.part.messages_not_sent), (200, 0));
    let certificate = sent.part.pacing_certificate.unwrap();
    // It was full for 40 messages' time at least.
    let held_back = (200.0 * certificate.held_back_ratio).round() as u64;
    assert!(held_back >= 40, "{certificate:?}");
    assert_eq!(certificate.departures + held_back, 200);
    assert_eq!((certificate.held_back_not_sent_ratio, certificate.achieved_ratio), (0.0, 1.0));
}

#[test]
fn a_full_queue_drops_what_is_due_and_the_certificate_says_whose_doing_it_was() {
    let (sent, log) = fly(&plan(Mode::Absolute, 0), Some(50), Stop::QueueFull);
    let not_sent = sent.part.messages_not_sent;
    assert!(not_sent > 0 && log.messages.len() as u64 + not_sent == 200);
    let certificate = sent.part.pacing_certificate.unwrap();
    assert_eq!((200.0 * certificate.held_back_not_sent_ratio).round() as u64, not_sent);
    assert!((certificate.achieved_ratio + certificate.held_back_not_sent_ratio - 1.0).abs() < 1e-12);
}

#[test]
fn what_the_transport_gives_back_in_the_end_never_left_and_does_not_count_against_the_sender() {
    let (sent, _) = fly_with(&plan(Mode::Absolute, 0), |recorder| Recorder { given_back: 30, ..recorder });
    assert_eq!((sent.part.messages_sent, sent.part.messages_not_sent), (170, 30));
    let certificate = sent.part.pacing_certificate.unwrap();
    assert_eq!((certificate.departures, certificate.messages_early), (170, 0));
    assert_eq!((certificate.held_back_ratio, certificate.held_back_not_sent_ratio), (0.15, 0.15));
    let asked = Limits::from_iter(["min_achieved_ratio=1".parse::<Limit>().unwrap()]);
    assert_eq!(certificate.judged(&asked).passed, Some(true));
}

#[test]
fn messages_are_as_late_as_their_hand_over_lasts_also_where_trains_were_asked_for_and_not_made() {
    let plan = Plan { gso: true, ..plan(Mode::Burst(7), 0) };
    let (sent, _) = fly_with(&plan, |recorder| Recorder { busy_ns: 700_000, ..recorder });
    // In a burst of 7 the first waits 600 us for the last, and the last as long for the hand-over of those before it. At
    // the end there is a rest of 4.
    let within = sent.part.pacing_certificate.unwrap().within_500us_ratio.unwrap();
    assert!(within <= 4.0 / 200.0, "{within}");
}

#[test]
fn with_stamps_a_launch_is_certified_by_when_it_left() {
    let flown = |launched_late_ns: &[Option<i64>]| {
        let launched_late_ns = launched_late_ns.to_vec();
        let (sent, _) =
            fly_with(&plan(Mode::SoTxtime, 0), |recorder| Recorder { launched_late_ns, ..recorder });
        *sent.part.pacing_certificate.unwrap()
    };
    let found = flown(&[Some(20_000)]);
    assert_eq!((found.error_basis, found.departures), (Basis::LaunchTimeMeasured, 200));
    assert_eq!((found.departures_not_stamped, found.error_us.unwrap().max), (Some(0), 20.0));
    assert_eq!((found.within_5us_ratio, found.within_50us_ratio), (Some(0.0), Some(1.0)));
    let early = flown(&[Some(0), Some(-40_000)]);
    assert_eq!(early.messages_early, 100);
    let unseen = flown(&[Some(20_000), None]);
    assert_eq!((unseen.departures_not_stamped, unseen.error_us), (Some(100), None));
}

#[test]
fn a_stream_that_stays_full_to_the_end_leaves_the_rest_held_back() {
    let mut plan = plan(Mode::Absolute, 0);
    // The recorder is full for longer than the flow and its grace.
    plan.duration_ns = FULL_NS / 4;
    plan.schedule = Schedule::new(8_000_000, 100, FULL_NS as u64 / 4);
    plan.interval_ns = 1_000_000;
    let full_until_ns = Some(i64::MAX);
    let (sent, log) =
        fly_with(&plan, |recorder| Recorder { full_until_ns, when_full: Stop::WouldBlock, ..recorder });
    // Its intervals are told when they end, not all at once when the stall does.
    assert!(log.waits_while_full > 2, "{}", log.waits_while_full);
    let certificate = sent.part.pacing_certificate.unwrap();
    assert_eq!((sent.part.messages_sent, certificate.departures), (0, 0));
    assert_eq!((certificate.held_back_not_sent_ratio, certificate.error_us), (1.0, None));
}

#[test]
fn what_waited_for_room_and_got_it_too_late_was_held_back() {
    let mut plan = plan(Mode::Absolute, 0);
    // All of it falls due while the recorder is full; then the first hand-over lasts beyond the flow and its grace.
    plan.duration_ns = FULL_NS / 2;
    plan.schedule = Schedule::new(80_000_000, 100, FULL_NS as u64 / 2);
    let (sent, log) = fly_with(&plan, |recorder| Recorder {
        full_from: Some(0),
        when_full: Stop::WouldBlock,
        busy_ns: 2 * GRACE_NS,
        ..recorder
    });
    let (left, scheduled) = (log.messages.len() as u64, plan.schedule.count());
    assert!(0 < left && left < scheduled, "{left} of {scheduled}");
    let certificate = sent.part.pacing_certificate.unwrap();
    assert_eq!((certificate.departures, certificate.held_back_ratio), (0, 1.0));
    assert!(
        (certificate.held_back_not_sent_ratio - (scheduled - left) as f64 / scheduled as f64).abs() < 1e-12
    );
    let asked = Limits::from_iter(["min_achieved_ratio=1".parse::<Limit>().unwrap()]);
    assert_eq!(certificate.judged(&asked).passed, Some(true));
}
