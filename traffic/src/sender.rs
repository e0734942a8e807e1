// SPDX-License-Identifier: Apache-2.0
//! The sending end: every message at its deadline, never early; what cannot go is counted.

use netjoule_transport::message::Header;
use netjoule_transport::{IpVersion, Kind, Protocol, State, Stop, Values};

use crate::control::FlowRequest;
use crate::failure::{Code, Failure, Outcome};
use crate::host::{self, CpuTime};
use crate::intervals::{Interval, Series};
use crate::output::Output;
use crate::report::{goodput_mbps, EndReason, PathFacts, SenderPart};
use crate::schedule::Schedule;
use crate::session::{Scope, Session};

/// Most messages handed over at once when several are due.
const BATCH_MESSAGES: usize = 32;
/// The same for GSO trains.
const TRAIN_MESSAGES: usize = 64;
/// Most bytes handed over at once (at least one message goes): one GSO train, with room for a header of the transport's
/// own in each packet. A packet more would be a train by itself.
const BATCH_BYTES: usize = 62 << 10;
/// Messages due before the end that were held up may still leave this long after it, ns.
const GRACE_NS: i64 = 50_000_000;
/// Longest coalescing window, us.
pub const LONGEST_WINDOW_US: u64 = 1_000_000;
/// Waits below this look at the data path only, ns.
const SHORT_WAIT_NS: i64 = 1_000_000;
/// Everything else is looked at this often at least, ns.
const LOOK_AROUND_NS: i64 = 10_000_000;
/// How long the end of a flow may wait for data to leave, ns.
const DATAGRAM_DRAIN_NS: i64 = 2_000_000_000;
const STREAM_DRAIN_NS: i64 = 30_000_000_000;
/// How often a transport without a timer of its own is asked whether it has drained, ns.
const DRAIN_STEP_NS: i64 = 1_000_000;

/// What to send and when.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Deadlines.
    pub schedule: Schedule,
    /// Size of a message.
    pub message_bytes: usize,
    /// Length of the flow in ns.
    pub duration_ns: i64,
    /// Messages due within this window leave together, in ns.
    pub window_ns: i64,
    /// Length of an interval in ns.
    pub interval_ns: i64,
    /// Seed of the payload bytes.
    pub seed: u64,
    /// Hand trains to the kernel.
    pub gso: bool,
    /// Datagrams or stream.
    pub kind: Kind,
}

impl Plan {
    /// The plan of a checked request.
    pub fn of(request: &FlowRequest, kind: Kind) -> Self {
        Self {
            schedule: Schedule::new(request.rate_bps, request.payload_bytes, request.duration_ns),
            message_bytes: request.payload_bytes as usize,
            duration_ns: request.duration_ns as i64,
            window_ns: request.window_us.min(LONGEST_WINDOW_US) as i64 * 1_000,
            interval_ns: request.interval_ns as i64,
            seed: request.seed,
            gso: request.gso,
            kind,
        }
    }
}

/// The sending end's half of the report.
#[derive(Debug)]
pub struct Sent {
    /// Counts.
    pub part: SenderPart,
    /// Path and packets.
    pub path: PathFacts,
    /// Intervals.
    pub intervals: Vec<Interval>,
    /// How it ended.
    pub end_reason: EndReason,
}

/// Refuse a size that `protocol` cannot carry unfragmented over this path, naming the limit.
pub fn check_size(
    protocol: &dyn Protocol,
    options: &Values,
    bytes: u64,
    version: IpVersion,
    mtu_bytes: u32,
) -> Outcome<()> {
    let limits = protocol.limits_with(version, mtu_bytes, options);
    let name = protocol.name();
    if bytes > limits.max_message_bytes as u64 {
        return Err(Failure::new(
            Code::TooLarge,
            format!(
                "a message of {bytes} bytes is too large for {name}: the limit is {} bytes ({})",
                limits.max_message_bytes, limits.reason
            ),
        ));
    }
    if bytes < limits.min_message_bytes as u64 {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "a message of {bytes} bytes is too small for {name}: it needs at least {} bytes for its header",
                limits.min_message_bytes
            ),
        ));
    }
    Ok(())
}

/// Send the whole flow, wait until it has left, and report.
pub fn run(session: &mut Session<'_>, plan: &Plan, output: Output) -> Outcome<Sent> {
    let cpu_start = CpuTime::now();
    let headroom_bytes = session.transport.headroom_bytes();
    let mut pump = Pump::new(plan, headroom_bytes, host::now_ns(), cpu_start.total_ns);
    let end_reason = pump.run(session, output)?;
    let stopped_ns = host::now_ns();
    drain(session, plan.kind)?;
    pump.take_back(session.transport.discard_held());
    let cpu = CpuTime::now();
    let end_ns = host::now_ns();
    let path = path_facts(session, plan.kind, pump.sent);
    let span_ns =
        if end_reason == EndReason::Duration { plan.duration_ns } else { stopped_ns - pump.start_ns };
    let scheduled = plan.schedule.count();
    let bytes_sent = pump.sent * plan.message_bytes as u64;
    let part = SenderPart {
        host: host::host_name(),
        boot_id: host::boot_id(),
        start_ns: pump.start_ns,
        first_packet_ns: pump.first_ns,
        last_packet_ns: pump.last_ns,
        end_ns,
        messages_scheduled: scheduled,
        messages_sent: pump.sent,
        // Refused and held back ones were counted; those never offered are what remains of the schedule.
        messages_not_sent: pump.refused + (scheduled - pump.done()),
        bytes_sent,
        goodput_mbps: goodput_mbps(bytes_sent, span_ns),
        cpu: cpu.since(cpu_start).into(),
        transport_stats: session.transport.path_statistics(),
    };
    pump.series.finish(end_ns, None, cpu.total_ns);
    output.intervals(pump.series.fresh())?;
    Ok(Sent { part, path, intervals: pump.series.into_closed(), end_reason })
}

struct Pump<'a> {
    plan: &'a Plan,
    start_ns: i64,
    sent: u64,
    /// Refused by the host, or due while congestion control held a full queue back.
    refused: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    /// Messages, each behind the bytes that the transport wants before it.
    batch: Vec<u8>,
    headroom_bytes: usize,
    batch_messages: usize,
    series: Series,
    looked_around_ns: i64,
}

impl<'a> Pump<'a> {
    fn new(plan: &'a Plan, headroom_bytes: usize, start_ns: i64, cpu_ns: i64) -> Self {
        let most = if plan.gso { TRAIN_MESSAGES } else { BATCH_MESSAGES };
        let batch_messages = (BATCH_BYTES / plan.message_bytes).clamp(1, most);
        Self {
            plan,
            start_ns,
            sent: 0,
            refused: 0,
            first_ns: None,
            last_ns: None,
            batch: batch(batch_messages, headroom_bytes, plan),
            headroom_bytes,
            batch_messages,
            series: Series::sender(plan.interval_ns, start_ns, cpu_ns),
            looked_around_ns: start_ns,
        }
    }

    /// Messages of the schedule that were offered and are accounted for.
    fn done(&self) -> u64 {
        self.sent + self.refused
    }

    fn run(&mut self, session: &mut Session<'_>, output: Output) -> Outcome<EndReason> {
        let count = self.plan.schedule.count();
        let last_call_ns = self.start_ns + self.plan.duration_ns + GRACE_NS;
        loop {
            if session.heard.interrupted {
                return Ok(EndReason::Interrupted);
            }
            if session.heard.stop {
                return Ok(EndReason::PeerInterrupted);
            }
            let now_ns = host::now_ns();
            if now_ns > last_call_ns {
                return Ok(EndReason::Duration);
            }
            self.series.roll(now_ns, None, host::total_ns);
            let stop = self.send_due(session, now_ns, output)?;
            if self.done() == count {
                return Ok(EndReason::Duration);
            }
            output.intervals(self.series.fresh())?;
            self.sleep(session, stop, last_call_ns)?;
        }
    }

    /// Send the first batch of what is due and push it out; why no more goes now.
    fn send_due(&mut self, session: &mut Session<'_>, now_ns: i64, output: Output) -> Outcome<Stop> {
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
        Ok(stop)
    }

    /// Offer the first batch of what is due; why the transport did not take all of it.
    fn offer(&mut self, session: &mut Session<'_>, now_ns: i64, output: Output) -> Outcome<Stop> {
        let due = self.plan.schedule.due_by(now_ns - self.start_ns) - self.done();
        if due == 0 {
            return Ok(Stop::None);
        }
        let messages = (self.batch_messages as u64).min(due) as usize;
        let size = self.plan.message_bytes;
        let stride = self.headroom_bytes + size;
        let batch = &mut self.batch[..messages * stride];
        for (sequence, message) in (self.sent..).zip(batch.chunks_exact_mut(stride)) {
            Header { sequence, sent_ns: now_ns }.write(&mut message[self.headroom_bytes..]);
        }
        let outcome = session.transport.send_batch(batch, size, now_ns)?;
        let sent = outcome.sent as u64;
        if sent > 0 {
            self.sent += sent;
            self.series.count(sent, sent * size as u64);
            self.last_ns = Some(now_ns);
            if self.first_ns.is_none() {
                self.first_ns = Some(now_ns);
                output.event("started", serde_json::json!({ "first_packet_ns": now_ns }))?;
            }
        }
        self.refused += match outcome.stop {
            Stop::None | Stop::WouldBlock => 0,
            Stop::Refused => 1,
            // However many are overdue, it is one subtraction.
            Stop::QueueFull => due - sent,
        };
        Ok(outcome.stop)
    }

    /// Messages that were counted as sent have not left after all.
    fn take_back(&mut self, messages: u64) {
        let messages = messages.min(self.sent);
        self.sent -= messages;
        self.refused += messages;
        self.series.take_back(messages, self.plan.message_bytes as u64);
    }

    /// Until the next message is due (a full stream or queue: until the transport has news), and look around now and
    /// then.
    fn sleep(&mut self, session: &mut Session<'_>, stop: Stop, last_call_ns: i64) -> Outcome<()> {
        let held_up = matches!(stop, Stop::WouldBlock | Stop::QueueFull);
        let until_ns = if held_up { last_call_ns + 1 } else { self.next_departure_ns() };
        session.transport.expect_send((!held_up).then_some(until_ns));
        let now_ns = host::now_ns();
        let look_around =
            until_ns - now_ns >= SHORT_WAIT_NS || now_ns - self.looked_around_ns >= LOOK_AROUND_NS;
        if look_around {
            self.looked_around_ns = now_ns;
        }
        session.wait(Some(until_ns), if look_around { Scope::All } else { Scope::Data })?;
        if session.state == State::Closed {
            return Err(Failure::new(
                Code::DataLost,
                "the peer closed the data connection before the flow's end",
            ));
        }
        Ok(())
    }

    /// When the next message leaves: at its deadline, or at the end of the window that it opens; the last ones do not
    /// wait beyond the end of the flow.
    fn next_departure_ns(&self) -> i64 {
        let due_ns = self.plan.schedule.due_ns(self.done());
        self.start_ns + due_ns.max((due_ns + self.plan.window_ns).min(self.plan.duration_ns))
    }
}

/// Messages of payload bytes, each behind free bytes.
fn batch(messages: usize, headroom_bytes: usize, plan: &Plan) -> Vec<u8> {
    let payload = filler(messages * plan.message_bytes, plan.seed);
    let spaced = |message| std::iter::repeat_n(&0, headroom_bytes).chain(message);
    payload.chunks_exact(plan.message_bytes).flat_map(spaced).copied().collect()
}

/// Payload bytes that look random, the same for the same seed (splitmix64).
fn filler(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    });
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

/// Serve the transport until everything has left, or the time for that is over.
fn drain(session: &mut Session<'_>, kind: Kind) -> Outcome<()> {
    let limit_ns = match kind {
        Kind::Datagram => DATAGRAM_DRAIN_NS,
        Kind::Stream => STREAM_DRAIN_NS,
    };
    let deadline_ns = host::now_ns() + limit_ns;
    session.transport.finish(host::now_ns())?;
    while !session.transport.drained() && host::now_ns() < deadline_ns && session.state != State::Closed {
        session.wait(Some(host::now_ns() + DRAIN_STEP_NS), Scope::All)?;
    }
    Ok(())
}

fn path_facts(session: &mut Session<'_>, kind: Kind, messages_sent: u64) -> PathFacts {
    let packets = session.transport.packetisation(messages_sent);
    let nodelay = session.transport.path_statistics().get("nodelay").and_then(serde_json::Value::as_bool);
    PathFacts {
        mtu_bytes: session.transport.path_mtu_bytes(),
        nodelay: nodelay.filter(|_| kind == Kind::Stream),
        frames_per_message: packets.frames_per_message,
        mean_ip_packet_bytes: packets.mean_ip_packet_bytes,
        packetisation_source: packets.source.name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_depends_on_the_seed_only() {
        assert_eq!(filler(100, 7), filler(100, 7));
        assert_ne!(filler(100, 7), filler(100, 8));
        assert_eq!(filler(13, 7), filler(100, 7)[..13]);
    }

    #[test]
    fn a_window_delays_but_never_advances_a_departure_and_ends_with_the_flow() {
        let plan = Plan {
            schedule: Schedule::new(8_000_000, 1000, 10_000_000),
            message_bytes: 1000,
            duration_ns: 10_000_000,
            window_ns: 2_500_000,
            interval_ns: 100_000_000,
            seed: 0,
            gso: false,
            kind: Kind::Datagram,
        };
        let mut pump = Pump::new(&plan, 0, 100, 0);
        for (done, departure_ns) in [(0, 2_500_100), (1, 3_500_100), (8, 10_000_100), (9, 10_000_100)] {
            pump.sent = done;
            assert_eq!(pump.next_departure_ns(), departure_ns);
        }
    }
}
