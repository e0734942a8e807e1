// SPDX-License-Identifier: Apache-2.0
//! The flow report: both ends of one flow in one document (protocols/contracts/schemas/flow_report.schema.json). Pure.

use netjoule_transport::stamps::{KERNEL_STAMPS, READ_STAMPS};
use netjoule_transport::Values;
use serde::{Deserialize, Serialize};

use crate::capture::CaptureSummary;
use crate::certificate::PacingCertificate;
use crate::clock_offset::ClockOffset;
use crate::cycles::CycleCounter;
use crate::delay::{DelaySummary, DelayVariation};
use crate::departure::DepartureSummary;
use crate::failure::{Failure, Outcome};
use crate::intervals::{End, Interval};
use crate::ipdv::IpdvSummary;
use crate::loss::BurstSummary;
use crate::pacing::Mode;
use crate::schedule::ProfileFacts;
use crate::traces::CongestionSample;
use crate::usage::Used;

/// Version of the document.
pub const SCHEMA_VERSION: u32 = 1;

/// Who made the traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// "netjoule-traffic".
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Generator {
    /// This program.
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Direction as seen from the `send` side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// `send` sends, `serve` receives.
    Up,
    /// `serve` sends, `send` receives.
    Down,
}

/// How messages were timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// Which [`crate::pacing::Mode`].
    pub mode: Mode,
    /// Messages due within this window may leave together, late; in us.
    pub window_us: u64,
    /// Messages that leave together go to the kernel as one GSO train.
    pub gso: bool,
    /// How long before a deadline `hybrid` watches the clock, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_us: Option<u64>,
    /// Messages of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
}

impl Pacing {
    /// What was asked for, with what the mode adds.
    pub fn new(mode: Mode, window_us: u64, gso: bool) -> Self {
        Self { mode, window_us, gso, spin_us: mode.spin_us(), burst: mode.burst() }
    }
}

/// How the flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The whole duration was served.
    Duration,
    /// This end was told to stop (signal or end of stdin).
    Interrupted,
    /// The other end was told to stop.
    PeerInterrupted,
    /// Something broke; the report is what this end knows.
    Failed,
}

impl EndReason {
    /// How a flow ended that may have failed, and with what.
    pub fn or_failed(ended: Outcome<Self>) -> (Self, Option<Failure>) {
        match ended {
            Ok(reason) => (reason, None),
            Err(failure) => (Self::Failed, Some(failure)),
        }
    }
}

/// What the sending end knows about the path and its packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFacts {
    /// MTU of the path as far as the sending host knows, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Nagle's algorithm off (streams only).
    pub nodelay: Option<bool>,
    /// Data packets per message.
    pub frames_per_message: Option<f64>,
    /// Mean data packet with IP header, in bytes.
    pub mean_ip_packet_bytes: Option<f64>,
    /// "measured", "computed" or "unknown".
    pub packetisation_source: String,
}

/// The sending end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SenderPart {
    /// Host name.
    pub host: String,
    /// Boot of that host: names its monotonic clock.
    pub boot_id: String,
    /// Begin of the schedule (time of message 0's deadline), ns.
    pub start_ns: i64,
    /// First message handed over, ns.
    pub first_packet_ns: Option<i64>,
    /// Last message handed over, ns.
    pub last_packet_ns: Option<i64>,
    /// When everything had left, or waiting for that ended; ns.
    pub end_ns: i64,
    /// Messages in the schedule.
    pub messages_scheduled: u64,
    /// Messages the transport accepted.
    pub messages_sent: u64,
    /// Messages refused, held back by congestion control, or not accepted by the end.
    pub messages_not_sent: u64,
    /// Payload bytes accepted.
    pub bytes_sent: u64,
    /// Payload rate over the duration.
    pub goodput_mbps: f64,
    /// From handing a message over to leaving the host, by the kernel's stamps; missing when they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure_delay_us: Option<DepartureSummary>,
    /// CPU time of the process from start to end, s.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The transport's own counters.
    pub transport_stats: Values,
    /// How well the schedule was kept. Stands beside the two ends in the report, and only travels here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_certificate: Option<Box<PacingCertificate>>,
}

/// The receiving end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverPart {
    /// Host name.
    pub host: String,
    /// Boot of that host.
    pub boot_id: String,
    /// First arrival, ns.
    pub first_packet_ns: Option<i64>,
    /// Last arrival of a first copy, ns.
    pub last_packet_ns: Option<i64>,
    /// First copies.
    pub messages_received_unique: u64,
    /// Sent and never arrived.
    pub messages_lost: u64,
    /// Further copies.
    pub messages_duplicate: u64,
    /// First copies that a later message had overtaken.
    pub messages_reordered: u64,
    /// Payload bytes of first copies.
    pub bytes_received_unique: u64,
    /// Payload rate of first copies over the duration, or over first to last arrival when that is longer.
    pub goodput_mbps: f64,
    /// Lost over sent.
    pub loss_ratio: Option<f64>,
    /// RFC 3550 jitter at the end, ms.
    pub jitter_ms: Option<f64>,
    /// One-way delay of first copies, ms.
    pub one_way_delay_ms: Option<DelaySummary>,
    /// Packet delay variation: delay above the least one, ms.
    pub pdv_ms: Option<DelayVariation>,
    /// Inter-packet delay variation, ms.
    pub ipdv_ms: Option<IpdvSummary>,
    /// Runs of lost messages.
    pub loss_bursts: Option<BurstSummary>,
    /// Who stamped arrivals: "kernel", "read" (when they were read) or "mixed"; missing without any.
    pub arrival_stamp_source: Option<String>,
    /// CPU time of the process from start to end, s.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The transport's own counters.
    pub transport_stats: Values,
}

/// What an end took of its host from start to end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// CPU time of the process, s.
    pub cpu_s: f64,
    /// In user space.
    pub cpu_user_s: f64,
    /// In the kernel.
    pub cpu_system_s: f64,
    /// Context switches because the process waited.
    pub context_switches_voluntary: u64,
    /// Context switches because another process was due.
    pub context_switches_involuntary: u64,
    /// Time of all CPUs of the host in interrupt handlers, s.
    pub host_irq_s: Option<f64>,
    /// Time of all CPUs of the host in soft interrupts, s.
    pub host_softirq_s: Option<f64>,
    /// CPU cycles of the thread that runs the flow.
    pub cycles: Option<u64>,
    /// Over payload bytes sent, or received for the first time.
    pub cycles_per_byte: Option<f64>,
    /// "user_and_kernel", or "user" where the kernel keeps its own back; missing without a counter.
    pub cycles_scope: Option<String>,
    /// Why there are no cycles.
    pub cycles_reason: Option<String>,
}

impl Cpu {
    /// From what was used, and the counter that was started with the flow, over the flow's payload bytes.
    pub fn new(used: Used, counter: Result<CycleCounter, String>, payload_bytes: u64) -> Self {
        let told = counter.and_then(|mut counter| Ok((counter.read()?, counter.scope())));
        let (cycles, scope, reason) = match told {
            Ok((cycles, scope)) => (Some(cycles), Some(scope.name().to_owned()), None),
            Err(reason) => (None, None, Some(reason)),
        };
        Self {
            cpu_s: used.cpu_s,
            cpu_user_s: used.cpu_user_s,
            cpu_system_s: used.cpu_system_s,
            context_switches_voluntary: used.context_switches_voluntary,
            context_switches_involuntary: used.context_switches_involuntary,
            host_irq_s: used.host_irq_s,
            host_softirq_s: used.host_softirq_s,
            cycles,
            cycles_per_byte: cycles
                .filter(|_| payload_bytes > 0)
                .map(|cycles| cycles as f64 / payload_bytes as f64),
            cycles_scope: scope,
            cycles_reason: reason,
        }
    }
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// "flow_report".
    pub kind: String,
    /// Who made the traffic.
    pub generator: Generator,
    /// Random name of the flow.
    pub flow_id: String,
    /// Transport by its command-line name.
    pub transport: String,
    /// Its options; left out when it has none.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub transport_options: Values,
    /// Direction.
    pub direction: Direction,
    /// 4 or 6; missing for null.
    pub ip_version: Option<u8>,
    /// Size of a message; with a profile the greatest that it can give.
    pub payload_bytes: u64,
    /// Payload rate asked for; with a profile the mean of its schedule.
    pub offered_rate_mbps: f64,
    /// Duration asked for.
    pub duration_s: f64,
    /// Length of an interval.
    pub interval_s: f64,
    /// Seed of the payload bytes.
    pub seed: u64,
    /// Name of the schedule: flows with the same one had the same messages to send at the same times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_digest: Option<String>,
    /// What the schedule amounts to when it came of a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFacts>,
    /// Pacing.
    pub pacing: Pacing,
    /// How well the sending end kept its schedule.
    #[serde(default)]
    pub pacing_certificate: Option<Box<PacingCertificate>>,
    /// MTU, Nagle, packets.
    #[serde(flatten)]
    pub path: PathFacts,
    /// Server's clock against the client's.
    pub clock_offset: ClockOffset,
    /// The sending end.
    pub sender: SenderPart,
    /// The receiving end; missing for null.
    pub receiver: Option<ReceiverPart>,
    /// Intervals of both ends, the sender's first.
    pub intervals: Vec<Interval>,
    /// Congestion control of the sending end, when traces were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Vec<CongestionSample>>,
    /// The flow's packets in a file, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSummary>,
    /// Whether the books balance, see [`reconciles`].
    pub reconciles: bool,
    /// How the flow ended.
    pub end_reason: EndReason,
}

/// Who stamped the arrivals that a transport's statistics count: "kernel", "read" or "mixed"; `None` when they count none.
pub fn arrival_stamp_source(transport_stats: &Values) -> Option<String> {
    let count = |name: &str| transport_stats.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let source = match (count(KERNEL_STAMPS), count(READ_STAMPS)) {
        (0, 0) => return None,
        (_, 0) => "kernel",
        (0, _) => "read",
        _ => "mixed",
    };
    Some(source.into())
}

/// Payload rate in Mb/s; 0 for an empty span.
pub fn goodput_mbps(bytes: u64, span_ns: i64) -> f64 {
    if span_ns <= 0 {
        return 0.0;
    }
    bytes as f64 * 8e3 / span_ns as f64
}

/// Sizes of the messages of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Smallest message in bytes.
    pub least: u64,
    /// Largest message in bytes.
    pub greatest: u64,
    /// All messages of the schedule together, in bytes.
    pub scheduled_bytes: u64,
}

impl Sizes {
    /// `messages` of one size.
    pub fn one(payload_bytes: u64, messages: u64) -> Self {
        let scheduled_bytes = messages.saturating_mul(payload_bytes);
        Self { least: payload_bytes, greatest: payload_bytes, scheduled_bytes }
    }

    /// Whether so many messages can have so many bytes; with one size, only if they have that size.
    fn fit(&self, messages: u64, bytes: Option<u64>) -> bool {
        let range = messages.saturating_mul(self.least)..=messages.saturating_mul(self.greatest);
        bytes.is_some_and(|bytes| range.contains(&bytes))
    }
}

/// Whether the books balance: scheduled = sent + not sent, sent = received + lost, the bytes of each part are such as its
/// messages can have, and intervals add up to the totals at both ends.
pub fn reconciles(
    sender: &SenderPart,
    receiver: Option<&ReceiverPart>,
    intervals: &[Interval],
    sizes: Sizes,
) -> bool {
    let total = |end, value: fn(&Interval) -> u64| {
        intervals.iter().filter(|interval| interval.end == end).map(value).sum::<u64>()
    };
    let sender_balances = sender.messages_scheduled == sender.messages_sent + sender.messages_not_sent
        && sizes.fit(sender.messages_sent, Some(sender.bytes_sent))
        && sizes.fit(sender.messages_not_sent, sizes.scheduled_bytes.checked_sub(sender.bytes_sent))
        && total(End::Sender, |interval| interval.messages) == sender.messages_sent
        && total(End::Sender, |interval| interval.bytes) == sender.bytes_sent;
    let receiver_balances = receiver.is_none_or(|receiver| {
        sender.messages_sent == receiver.messages_received_unique + receiver.messages_lost
            && sizes.fit(receiver.messages_received_unique, Some(receiver.bytes_received_unique))
            && sizes
                .fit(receiver.messages_lost, sender.bytes_sent.checked_sub(receiver.bytes_received_unique))
            && total(End::Receiver, |interval| interval.messages) == receiver.messages_received_unique
            && total(End::Receiver, |interval| interval.bytes) == receiver.bytes_received_unique
            && total(End::Receiver, |interval| interval.messages_lost.unwrap_or(0)) == receiver.messages_lost
    });
    sender_balances && receiver_balances
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> (SenderPart, ReceiverPart, Vec<Interval>) {
        let sender = SenderPart {
            host: "a".into(),
            boot_id: "b".into(),
            start_ns: 0,
            first_packet_ns: None,
            last_packet_ns: None,
            end_ns: 1,
            messages_scheduled: 10,
            messages_sent: 9,
            messages_not_sent: 1,
            bytes_sent: 900,
            goodput_mbps: 1.0,
            departure_delay_us: None,
            cpu: Cpu::default(),
            transport_stats: Values::new(),
            pacing_certificate: None,
        };
        let receiver = ReceiverPart {
            host: "a".into(),
            boot_id: "b".into(),
            first_packet_ns: None,
            last_packet_ns: None,
            messages_received_unique: 7,
            messages_lost: 2,
            messages_duplicate: 0,
            messages_reordered: 0,
            bytes_received_unique: 700,
            goodput_mbps: 1.0,
            loss_ratio: None,
            jitter_ms: None,
            one_way_delay_ms: None,
            pdv_ms: None,
            ipdv_ms: None,
            loss_bursts: None,
            arrival_stamp_source: None,
            cpu: Cpu::default(),
            transport_stats: Values::new(),
        };
        let interval = |end, messages, lost| Interval {
            end,
            start_ns: 0,
            end_ns: 1,
            messages,
            bytes: 100 * messages,
            messages_lost: lost,
            messages_duplicate: None,
            messages_reordered: None,
            jitter_ms: None,
            goodput_mbps: 0.0,
            cpu_s: 0.0,
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            context_switches_voluntary: 0,
            context_switches_involuntary: 0,
            host_irq_s: None,
            host_softirq_s: None,
        };
        let intervals = vec![interval(End::Sender, 9, None), interval(End::Receiver, 7, Some(2))];
        (sender, receiver, intervals)
    }

    #[test]
    fn balanced_books_reconcile_and_any_slip_shows() {
        let (sender, receiver, intervals) = parts();
        let sizes = Sizes::one(100, 10);
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes));
        assert!(reconciles(&sender, None, &intervals[..1], sizes));
        assert!(!reconciles(&sender, Some(&receiver), &intervals[..1], sizes));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes::one(101, 10)));
        let lossy = ReceiverPart { messages_lost: 3, ..receiver.clone() };
        assert!(!reconciles(&sender, Some(&lossy), &intervals, sizes));
        let late = SenderPart { messages_not_sent: 0, ..sender };
        assert!(!reconciles(&late, Some(&receiver), &intervals, sizes));
    }

    #[test]
    fn bytes_of_several_sizes_must_be_such_as_the_messages_can_have() {
        let (sender, receiver, intervals) = parts();
        // One message not sent and two lost: of 64 to 150 bytes each.
        let sizes = |scheduled_bytes| Sizes { least: 64, greatest: 150, scheduled_bytes };
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes(964)));
        assert!(reconciles(&sender, Some(&receiver), &intervals, sizes(1_050)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(963)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(1_051)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, sizes(800)));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes { least: 101, ..sizes(1_050) }));
        assert!(!reconciles(&sender, Some(&receiver), &intervals, Sizes { greatest: 99, ..sizes(999) }));
    }

    #[test]
    fn cycles_are_told_per_byte_or_why_they_are_not() {
        let cpu = Cpu::new(Used::default(), Err("no counter".into()), 100);
        assert_eq!(
            (cpu.cycles, cpu.cycles_per_byte, cpu.cycles_reason),
            (None, None, Some("no counter".into()))
        );
        let counter = CycleCounter::start();
        let has_counter = counter.is_ok();
        let cpu = Cpu::new(Used::default(), counter, 100);
        assert_eq!((cpu.cycles.is_some(), cpu.cycles_reason.is_none()), (has_counter, has_counter));
        assert_eq!(cpu.cycles_per_byte, cpu.cycles.map(|cycles| cycles as f64 / 100.0));
    }

    #[test]
    fn who_stamped_arrivals_is_told_from_the_counts() {
        let stats = |kernel: u64, read: u64| {
            Values::from_iter([
                (KERNEL_STAMPS.to_owned(), kernel.into()),
                (READ_STAMPS.to_owned(), read.into()),
            ])
        };
        for (kernel, read, source) in
            [(0, 0, None), (5, 0, Some("kernel")), (0, 5, Some("read")), (5, 1, Some("mixed"))]
        {
            assert_eq!(arrival_stamp_source(&stats(kernel, read)).as_deref(), source);
        }
        assert_eq!(arrival_stamp_source(&Values::new()), None);
    }

    #[test]
    fn goodput_is_payload_bits_over_time() {
        assert_eq!(goodput_mbps(1_250_000, 1_000_000_000), 10.0);
        assert_eq!(goodput_mbps(1, 0), 0.0);
    }
}
