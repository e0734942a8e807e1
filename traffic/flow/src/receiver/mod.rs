// SPDX-License-Identifier: Apache-2.0
//! The receiving end: what arrived, what did not, how late and how evenly.

use netjoule_transport::message::{self, Header};
use netjoule_transport::{Arrival, Kind};

use crate::control::{FlowRequest, Message};
use crate::intervals::{self, Interval, Series};
use crate::metrics::delay::{Delays, CLOCKS_NOT_COMPARABLE};
use crate::metrics::ipdv::Ipdv;
use crate::metrics::jitter::Jitter;
use crate::metrics::tracker::{Arrived, Tracker};
use crate::report::{arrival_stamp_source, goodput_mbps, Direction, EndReason, ReceiverPart};
use crate::session::{Scope, Session, COMPARE_EVERY_NS};
use netjoule_measure::clock_offset::{Ahead, Side};
use netjoule_measure::cpu::costs::Costs;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;

#[doc(hidden)]
pub mod any_arrivals;

/// After the sender finished, this long without an arrival means that nothing more comes, ns.
const DATAGRAM_QUIET_NS: i64 = 500_000_000;
const STREAM_QUIET_NS: i64 = 3_000_000_000;
/// A sender that has not finished this long after its time is given up, ns. Covers a stream's drain.
const OVERTIME_NS: i64 = 60_000_000_000;
/// Receive calls before control and signals are looked at again.
const RECEIVES_PER_LOOK: usize = 4;
/// A receive call that gave fewer messages emptied the socket, or the descriptor says so at once: asking again would
/// cost a call per message of a paced flow.
const MANY_MESSAGES: usize = 32;
/// An interrupted flow waits this long for the sender to hear of it, ns.
const STOP_NS: i64 = 5_000_000_000;

/// What to expect.
#[derive(Debug, Clone, Copy)]
pub struct Expectation {
    /// Size of a message, or of the largest.
    pub message_bytes: usize,
    /// Length of the flow in ns.
    pub duration_ns: i64,
    /// A number of messages may end it sooner.
    pub is_counted: bool,
    /// Length of an interval in ns.
    pub interval_ns: i64,
    /// Intervals that begin before this, ns after the first arrival, are in no sum.
    pub omit_ns: i64,
    /// This end's clock minus the sender's as known at the start, ns.
    pub clock_ahead_ns: i64,
    /// Which of the compared clocks this end reads.
    pub side: Side,
    /// Datagrams or stream.
    pub kind: Kind,
}

impl Expectation {
    /// What a checked request leads to. `clock_ahead_ns`: this end's clock minus the sender's.
    pub fn of(request: &FlowRequest, kind: Kind, clock_ahead_ns: i64) -> Self {
        Self {
            message_bytes: request.payload_bytes as usize,
            duration_ns: request.duration_ns as i64,
            is_counted: request.messages.is_some(),
            interval_ns: request.interval_ns as i64,
            omit_ns: request.omit_ns as i64,
            clock_ahead_ns,
            side: match request.direction {
                Direction::Up => Side::Server,
                Direction::Down => Side::Client,
            },
            kind,
        }
    }
}

/// The receiving end's half of the report.
#[derive(Debug)]
pub struct Received {
    /// Counts.
    pub part: ReceiverPart,
    /// Intervals.
    pub intervals: Vec<Interval>,
    /// How it ended.
    pub end_reason: EndReason,
    /// What broke, where something did: then this half is all that is known.
    pub failure: Option<Failure>,
}

/// Receive until the sender has finished and nothing more comes, and report.
pub fn run(session: &mut Session<'_>, expected: &Expectation, output: Output) -> Outcome<Received> {
    let follows = !session.events.exchanges.is_empty();
    let room = intervals::room(expected.duration_ns, expected.interval_ns);
    let started_ns = host::now_ns();
    let mut books = Books::new(expected, started_ns, follows, Costs::start());
    books.series.move_into(room);
    let (end_reason, failure) = EndReason::or_failed(listen(session, &mut books, output));
    session.close_books();
    let closed_ns = host::now_ns();
    session.keep_comparing(false);
    let counts = books.tracker.finish(session.events.finished);
    // Messages lost after the last arrival belong to no gap; they show in the last interval.
    books.series.count_lost(session.events.finished.unwrap_or(0).saturating_sub(books.tracker.next()));
    let bytes = books.unique_bytes;
    if session.compares_clocks() {
        // Where it fails, the clocks are known as they were, with the residual to show for it; and what ails the control
        // connection shows when the peer's half of the report is awaited.
        let _ = session.compare_clocks();
    }
    books.delays_follow(session, 1);
    let (one_way_delay_ms, pdv_ms) = books.delays.summary().unzip();
    // The client's request to start is before the first message, and its way here is soon over.
    let within_ns = closed_ns.saturating_sub(started_ns).saturating_add(OVERTIME_NS);
    let one_clock = follows || one_way_delay_ms.is_none_or(|delay| delay.can_be_of_one_clock(within_ns));
    let (cpu, used) = books.costs.close(bytes);
    let arrivals_ns = books.first_ns.zip(books.last_ns).map_or(0, |(first, last)| last - first);
    let took_the_time = end_reason == EndReason::Duration && !expected.is_counted;
    let span_ns = if took_the_time { arrivals_ns.max(expected.duration_ns) } else { arrivals_ns };
    let mut transport_stats = session.transport.path_statistics();
    transport_stats.insert("messages_foreign".into(), books.foreign.into());
    let sent = counts.unique + counts.lost;
    let loss_bursts = books.tracker.loss_bursts(session.events.finished).summary();
    let part = ReceiverPart {
        host: host::host_name(),
        boot_id: host::boot_id(),
        first_packet_ns: books.first_ns,
        last_packet_ns: books.last_ns,
        messages_received_unique: counts.unique,
        messages_lost: counts.lost,
        messages_duplicate: counts.duplicate,
        messages_reordered: counts.reordered,
        bytes_received_unique: bytes,
        goodput_mbps: goodput_mbps(bytes, span_ns),
        loss_ratio: (sent > 0).then(|| counts.lost as f64 / sent as f64),
        jitter_ms: books.jitter.ms(),
        one_way_delay_ms: one_way_delay_ms.filter(|_| one_clock),
        one_way_delay_reason: (!one_clock).then(|| CLOCKS_NOT_COMPARABLE.into()),
        pdv_ms,
        ipdv_ms: books.ipdv.summary(),
        loss_bursts: Some(loss_bursts),
        arrival_stamp_source: arrival_stamp_source(&transport_stats),
        cpu,
        transport_stats,
    };
    let jitter_ms = books.jitter.ms();
    let over_ns = match books.last_ns {
        _ if took_the_time => books.series.begin_ns().saturating_add(expected.duration_ns),
        Some(last_ns) if end_reason == EndReason::Duration => last_ns,
        _ => closed_ns,
    };
    books.series.finish(over_ns.max(books.last_ns.unwrap_or(over_ns)), jitter_ms, used);
    session.show(books.series.fresh(), output)?;
    Ok(Received { part, intervals: books.series.into_closed(), end_reason, failure })
}

fn listen(session: &mut Session<'_>, books: &mut Books<'_>, output: Output) -> Outcome<EndReason> {
    let expected = books.expected;
    let mut deadline_ns = host::now_ns().saturating_add(expected.duration_ns).saturating_add(OVERTIME_NS);
    let quiet_ns = match expected.kind {
        Kind::Datagram => DATAGRAM_QUIET_NS,
        Kind::Stream => STREAM_QUIET_NS,
    };
    let mut finished_ns = None;
    let mut asked_to_stop = false;
    loop {
        let more = take_arrivals(session, books, output)?;
        // Those after the messages come many at a time: the line is looked for once, with all of them.
        books.delays_follow(session, COMPARE_EVERY_NS / 2);
        let now_ns = host::now_ns();
        if session.events.interrupted && !asked_to_stop {
            asked_to_stop = true;
            deadline_ns = deadline_ns.min(now_ns + STOP_NS);
            session.tell(&Message::Stop)?;
        }
        let mut until_ns = if more { now_ns } else { deadline_ns };
        if let Some(sent) = session.events.finished {
            let since_ns = *finished_ns.get_or_insert(now_ns);
            let quiet_from_ns = books.last_ns.unwrap_or(since_ns).max(since_ns);
            until_ns = until_ns.min(quiet_from_ns + quiet_ns);
            if books.tracker.unique() >= sent || now_ns >= quiet_from_ns + quiet_ns {
                return Ok(end_reason(session));
            }
        }
        if now_ns >= deadline_ns {
            if session.events.interrupted {
                return Ok(EndReason::Interrupted);
            }
            return Code::Timeout.fail("the sending end did not finish the flow in time");
        }
        session.wait(Some(until_ns), Scope::All)?;
    }
}

fn end_reason(session: &Session<'_>) -> EndReason {
    if session.events.interrupted {
        EndReason::Interrupted
    } else if session.events.stop {
        EndReason::PeerInterrupted
    } else {
        EndReason::Duration
    }
}

/// Book what has arrived, within bounds; whether more may be waiting.
fn take_arrivals(session: &mut Session<'_>, books: &mut Books<'_>, output: Output) -> Outcome<bool> {
    let had_none = books.first_ns.is_none();
    let mut more = true;
    for _ in 0..RECEIVES_PER_LOOK {
        let taken = session.transport.receive(host::now_ns(), &mut |arrival| books.arrive(arrival))?;
        more = taken >= MANY_MESSAGES;
        if !more {
            break;
        }
    }
    if let (true, Some(first_ns)) = (had_none, books.first_ns) {
        output.event("started", serde_json::json!({ "first_packet_ns": first_ns }))?;
    }
    books.series.roll(host::now_ns(), books.jitter.ms(), || books.costs.read());
    session.show(books.series.fresh(), output)?;
    Ok(more)
}

/// Everything counted about arrivals.
struct Books<'a> {
    expected: &'a Expectation,
    tracker: Tracker,
    jitter: Jitter,
    delays: Delays,
    /// The comparison of clocks that the delays follow by now, by this end's clock; `None`: there is nothing to follow.
    followed_ns: Option<i64>,
    ipdv: Ipdv,
    costs: Costs,
    series: Series,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    /// Payload bytes of first copies.
    unique_bytes: u64,
    /// Datagrams that were no messages of this flow.
    foreign: u64,
}

impl<'a> Books<'a> {
    fn new(expected: &'a Expectation, start_ns: i64, follows: bool, costs: Costs) -> Self {
        Self {
            expected,
            tracker: Tracker::default(),
            jitter: Jitter::default(),
            followed_ns: follows.then_some(i64::MIN),
            delays: Delays::new(Ahead::new(0, expected.clock_ahead_ns, 0.0), follows),
            ipdv: Ipdv::default(),
            series: Series::receiver(expected.interval_ns, start_ns, costs.at_start())
                .omitting(expected.omit_ns),
            costs,
            first_ns: None,
            last_ns: None,
            unique_bytes: 0,
            foreign: 0,
        }
    }

    /// Have delays follow the comparisons of clocks, once the newest is by `after_ns` younger than the last followed.
    fn delays_follow(&mut self, session: &Session<'_>, after_ns: i64) {
        let (Some(followed_ns), Some(newest)) = (self.followed_ns, session.events.exchanges.last()) else {
            return;
        };
        let newest_ns = self.expected.side.seen_ns(newest);
        if newest_ns.saturating_sub(followed_ns) >= after_ns {
            self.followed_ns = Some(newest_ns);
            self.delays.correct(self.expected.side, &session.clock_offset(), newest_ns);
        }
    }

    fn arrive(&mut self, arrival: Arrival<'_>) {
        let header = Header::read(arrival.bytes)
            .filter(|_| message::is_whole(arrival.bytes, self.expected.message_bytes));
        let Some(header) = header else {
            self.foreign += 1;
            return;
        };
        if self.first_ns.is_none() {
            self.series.begin_with(arrival.arrived_ns);
        }
        self.series.roll(arrival.arrived_ns, self.jitter.ms(), || self.costs.read());
        match self.tracker.record(header.sequence) {
            Arrived::Duplicate => {
                self.series.count_duplicate();
                return;
            }
            Arrived::Reordered => self.series.count_reordered(),
            Arrived::InOrder { skipped: 0 } => {}
            Arrived::InOrder { skipped } => self.series.count_lost(skipped),
        }
        self.unique_bytes += arrival.bytes.len() as u64;
        self.series.count(1, arrival.bytes.len() as u64);
        self.jitter.record(header.sent_ns, arrival.arrived_ns);
        let transit_ns = arrival.arrived_ns.saturating_sub(header.sent_ns);
        self.delays.record(arrival.arrived_ns, transit_ns);
        self.ipdv.record(header.sequence, arrival.arrived_ns, transit_ns, self.delays.drift());
        self.first_ns.get_or_insert(arrival.arrived_ns);
        self.last_ns = self.last_ns.max(Some(arrival.arrived_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Expectation = Expectation {
        message_bytes: 20,
        duration_ns: 1_000,
        is_counted: false,
        interval_ns: 100,
        omit_ns: 0,
        clock_ahead_ns: 1_000_000,
        side: Side::Server,
        kind: Kind::Datagram,
    };

    fn arrive(books: &mut Books<'_>, sequence: u64, sent_ns: i64, arrived_ns: i64, length: usize) {
        let mut message = vec![0; length];
        Header { sequence, sent_ns }.write(&mut message);
        books.arrive(Arrival { bytes: &message, arrived_ns });
    }

    #[test]
    fn arrivals_are_booked_once_with_their_delay_on_one_clock() {
        let mut books = Books::new(&EXPECTED, 1_000_000, false, Costs::start());
        arrive(&mut books, 0, 0, 1_000_050, 20);
        arrive(&mut books, 2, 100, 1_000_150, 20);
        arrive(&mut books, 2, 100, 1_000_160, 20);
        arrive(&mut books, 1, 50, 1_000_250, 20);
        arrive(&mut books, 3, 0, 1_000_260, 19);
        let counts = books.tracker.finish(Some(4));
        assert_eq!((counts.unique, counts.duplicate, counts.reordered, counts.lost), (3, 1, 1, 1));
        assert_eq!((books.foreign, books.unique_bytes), (1, 60));
        let (delay, _) = books.delays.summary().unwrap();
        assert!((delay.max - 200e-6).abs() < 1e-12 && (delay.min - 50e-6).abs() < 1e-12, "{delay:?}");
        // Of 0, 1 and 2 the delays are 50, 200 and 50 ns, in whichever order they came.
        let ipdv = books.ipdv.summary().unwrap();
        assert_eq!((ipdv.pairs, (ipdv.max * 1e6).round(), (ipdv.min * 1e6).round()), (2, 150.0, -150.0));
        let bursts = books.tracker.loss_bursts(Some(4)).summary();
        assert_eq!((bursts.count, bursts.max_messages), (1, 1));
        let used = books.costs.read();
        books.series.finish(1_000_260, None, used);
        let intervals = books.series.into_closed();
        let lost: Vec<_> = intervals.iter().map(|interval| interval.messages_lost.unwrap()).collect();
        assert_eq!(lost, [0, 0, 0]);
        assert_eq!(intervals.iter().map(|interval| interval.messages).sum::<u64>(), 3);
    }

    #[test]
    fn messages_of_several_sizes_are_booked_with_their_own() {
        let mut books = Books::new(&EXPECTED, 1_000_000, false, Costs::start());
        for (sequence, length) in [(0, 20), (1, 16), (1, 16), (2, 19)] {
            let mut message = vec![0; length];
            Header { sequence, sent_ns: 0 }.write_with_length(&mut message);
            books.arrive(Arrival { bytes: &message, arrived_ns: 1_000_050 });
        }
        // A datagram that was cut off on its way says so.
        let mut message = vec![0; 18];
        Header { sequence: 3, sent_ns: 0 }.write_with_length(&mut message);
        books.arrive(Arrival { bytes: &message[..17], arrived_ns: 1_000_060 });
        assert_eq!((books.tracker.unique(), books.unique_bytes, books.foreign), (3, 55, 1));
    }
}
