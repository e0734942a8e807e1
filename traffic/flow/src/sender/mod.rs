// SPDX-License-Identifier: Apache-2.0
//! The sending end: what is asked, the flow itself ([`SendLoop`]), the wait until everything has left, and the report.

mod accepted;
mod batch;
mod instruments;
mod plan;
mod send_loop;

pub use plan::Plan;

use netjoule_transport::message::HEADER_BYTES;
use netjoule_transport::{IpVersion, Kind, PacketisationSource, Protocol, State, Values};

use crate::intervals::{self, Interval};
use crate::pacing::Mode;
use crate::report::{goodput_mbps, EndReason, PathFacts, SenderPart};
use crate::session::{Scope, Session};
use crate::traces::CongestionSample;
use batch::Batch;
use instruments::Instruments;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::realtime::Realtime;
use send_loop::{Counts, SendLoop};

/// How long the end of a flow may wait for data to leave, ns.
const DATAGRAM_DRAIN_NS: i64 = 2_000_000_000;
const STREAM_DRAIN_NS: i64 = 30_000_000_000;
/// How often a transport without a timer of its own is asked whether it has drained, ns.
const DRAIN_STEP_NS: i64 = 1_000_000;

/// The sending end's half of the report.
#[derive(Debug)]
pub struct Sent {
    /// Counts, and the pacing certificate, not yet judged.
    pub part: SenderPart,
    /// Path and packets.
    pub path: PathFacts,
    /// Intervals.
    pub intervals: Vec<Interval>,
    /// Congestion control during the flow; `None` when it was not asked for.
    pub congestion: Option<Vec<CongestionSample>>,
    /// How it ended.
    pub end_reason: EndReason,
    /// What broke, where something did: then this half is all that is known.
    pub failure: Option<Failure>,
}

/// Refuse a size that `protocol` cannot carry unfragmented over this path, naming the limit.
pub fn check_size(
    protocol: &dyn Protocol,
    options: &Values,
    bytes: u64,
    version: IpVersion,
    mtu_bytes: u32,
) -> Outcome<()> {
    let limits = protocol.limits(version, mtu_bytes, options);
    let name = protocol.name();
    let most = limits.max_message_bytes;
    if bytes > most as u64 {
        return Code::TooLarge.fail(format!(
                "a message of {bytes} bytes is too large for {name}: the limit is {most} bytes ({}); use -l {most}",
                limits.reason
            ));
    }
    if bytes < HEADER_BYTES as u64 {
        return Code::Usage.fail(format!(
                "a message of {bytes} bytes is too small for {name}: it needs at least {HEADER_BYTES} bytes for its \
                 header"
            ));
    }
    Ok(())
}

/// Before the flow: see that the transport and this host can time messages so.
///
/// # Errors
/// `so_txtime` on a transport or a host without launch times, in one sentence.
pub fn prepare(session: &mut Session<'_>, pacing: Mode) -> Outcome<()> {
    if pacing == Mode::SoTxtime {
        session.transport.prepare_launch_times()?;
    }
    Ok(())
}

/// Send the whole flow, wait until it has left, and report.
pub fn run(session: &mut Session<'_>, plan: &Plan, output: Output) -> Outcome<Sent> {
    let room = intervals::room(plan.duration_ns, plan.interval_ns);
    let mut batch = Batch::new(plan.message_bytes, session.transport.headroom_bytes(), plan.gso, plan.seed);
    batch.state_lengths(plan.schedule.states_lengths());
    let instruments = Instruments::start(plan.traces);
    let stamps_launches = session.transport.stamps_launches();
    let mut send_loop = SendLoop::new(plan, batch, host::now_ns(), instruments, stamps_launches);
    send_loop.keep_intervals_in(room);
    let ended = send_loop.run(session, output);
    let stopped_ns = host::now_ns();
    send_loop.close_books(stopped_ns);
    let ended = ended.and_then(|reason| drain(session, plan.kind).map(|()| reason));
    let (end_reason, failure) = EndReason::or_failed(ended);
    send_loop.take_back(session.transport.discard_held());
    let end_ns = host::now_ns();
    send_loop.look(session, end_ns, output)?;
    let counts = send_loop.counts();
    let path = path_facts(session, plan, counts);
    let is_unpaced = plan.schedule.is_unpaced();
    let took_the_time = end_reason == EndReason::Duration && !is_unpaced;
    let span_ns = if took_the_time { plan.duration_ns } else { stopped_ns - counts.start_ns };
    let pacer_work = Some(send_loop.pacer_work());
    let (pacing_certificate, readings, mut series) = send_loop.finish(end_ns);
    let part = SenderPart {
        host: host::host_name(),
        boot_id: host::boot_id(),
        start_ns: counts.start_ns,
        first_packet_ns: counts.first_ns,
        last_packet_ns: counts.last_ns,
        end_ns,
        messages_scheduled: counts.scheduled,
        messages_sent: counts.sent,
        messages_not_sent: counts.scheduled - counts.sent,
        bytes_sent: counts.bytes_sent,
        goodput_mbps: goodput_mbps(counts.bytes_sent, span_ns),
        departure_delay_us: readings.departure_delay_us,
        realtime: Realtime::in_force(),
        cpu: readings.cpu,
        transport_stats: session.transport.path_statistics(),
        pacer_work,
        pacing_certificate: (!is_unpaced).then(|| Box::new(pacing_certificate)),
    };
    // What leaves the transport later was handed over by then.
    let over_ns = if took_the_time { counts.start_ns.saturating_add(plan.duration_ns) } else { stopped_ns };
    series.finish(over_ns.max(counts.last_ns.unwrap_or(over_ns)), None, readings.used);
    session.show(series.fresh(), output)?;
    let intervals = series.into_closed();
    Ok(Sent { part, path, intervals, congestion: readings.congestion, end_reason, failure })
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

fn path_facts(session: &mut Session<'_>, plan: &Plan, counts: Counts) -> PathFacts {
    let mut packets = session.transport.packetisation(counts.sent);
    if packets.source == PacketisationSource::Computed && counts.sent > 0 {
        // Computed from the largest message: the mean packet is smaller by as much as the mean message is.
        let spared = plan.message_bytes as f64 - counts.bytes_sent as f64 / counts.sent as f64;
        packets.mean_ip_packet_bytes = packets.mean_ip_packet_bytes.map(|bytes| bytes - spared);
    }
    let nodelay = session.transport.path_statistics().get("nodelay").and_then(serde_json::Value::as_bool);
    PathFacts {
        mtu_bytes: session.transport.path_mtu_bytes(),
        nodelay: nodelay.filter(|_| plan.kind == Kind::Stream),
        frames_per_message: packets.frames_per_message,
        mean_ip_packet_bytes: packets.mean_ip_packet_bytes,
        packetisation_source: packets.source.name().into(),
    }
}
