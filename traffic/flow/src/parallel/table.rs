// SPDX-License-Identifier: Apache-2.0
//! The table that a person reads: a line per interval and flow with both ends in it, and the sums. Pure.

use std::collections::VecDeque;

use crate::intervals::{End, Interval};
use crate::report::{goodput_mbps, Direction, EndReason, FlowReport};
use netjoule_measure::units::Format;

/// What an end moved in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Figures {
    messages: u64,
    bytes: u64,
    lost: u64,
    covered_ns: i64,
}

/// A line: both ends in one interval of a flow. Times are since the flow's begin.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    from_ns: i64,
    to_ns: i64,
    sent: Option<Figures>,
    received: Option<Figures>,
    omitted: bool,
}

/// What one end of a flow has told and nobody has read yet.
#[derive(Debug, Default)]
struct EndQueue {
    waiting: VecDeque<Interval>,
    begin_ns: Option<i64>,
    latest_ns: Option<i64>,
}

impl EndQueue {
    /// Take an interval, unless it is here already: live ones stand in the report too.
    fn take(&mut self, interval: &Interval) {
        if self.latest_ns.is_none_or(|latest_ns| interval.start_ns > latest_ns) {
            self.latest_ns = Some(interval.start_ns);
            self.begin_ns.get_or_insert(interval.start_ns);
            self.waiting.push_back(interval.clone());
        }
    }
}

/// One flow's lines.
#[derive(Debug)]
pub(crate) struct Lines {
    format: Format,
    interval_ns: i64,
    /// When the flow's time ends, if that is known; a line beyond it waits for the report.
    ends_ns: Option<i64>,
    one_ended: bool,
    sender: EndQueue,
    receiver: EndQueue,
}

impl Lines {
    /// Of a flow of `ends_ns`, if its time is known, told every `interval_ns`. `one_ended`: nobody receives it.
    pub(crate) fn new(format: Format, interval_ns: i64, ends_ns: Option<i64>, one_ended: bool) -> Self {
        let (sender, receiver) = (EndQueue::default(), EndQueue::default());
        Self { format, interval_ns, ends_ns, one_ended, sender, receiver }
    }

    /// Take an interval; the lines that are whole now.
    pub(crate) fn take(&mut self, interval: &Interval) -> Vec<String> {
        match interval.end {
            End::Sender => self.sender.take(interval),
            End::Receiver => self.receiver.take(interval),
        }
        let mut lines = Vec::new();
        while self.is_whole() {
            if let Some(row) = self.next_row() {
                lines.push(self.line(&row));
            }
        }
        lines
    }

    /// The flow has its report: the lines that are left.
    pub(crate) fn close(&mut self, report: &FlowReport) -> Vec<String> {
        let mut lines: Vec<String> =
            report.intervals.iter().flat_map(|interval| self.take(interval)).collect();
        let ends_ns = *self.ends_ns.get_or_insert((report.duration_s * 1e9).round() as i64);
        let mut rows: Vec<Row> = Vec::new();
        while let Some(row) = self.next_row() {
            let is_rest = row.from_ns >= ends_ns && !rows.is_empty();
            let is_empty = [row.sent, row.received].iter().flatten().all(|end| end.messages + end.lost == 0);
            match rows.last_mut() {
                Some(_) if is_rest && is_empty => {}
                Some(last) if is_rest && row.to_ns - row.from_ns < self.interval_ns / 10 => {
                    last.join(&row, self.interval_ns)
                }
                _ => rows.push(row),
            }
        }
        lines.extend(rows.iter().map(|row| self.line(row)));
        lines
    }

    /// Whether both ends have told the next interval, and it is not the last, which may have a rest.
    fn is_whole(&self) -> bool {
        let begins = |queue: &EndQueue| Some(queue.waiting.front()?.start_ns - queue.begin_ns?);
        let (sender, receiver) = (begins(&self.sender), begins(&self.receiver));
        let Some(from_ns) = sender.filter(|_| self.one_ended || receiver.is_some()) else { return false };
        self.ends_ns.is_none_or(|ends_ns| from_ns + self.interval_ns < ends_ns)
    }

    fn next_row(&mut self) -> Option<Row> {
        let pop = |queue: &mut EndQueue| {
            let interval = queue.waiting.pop_front()?;
            Some((interval.start_ns - queue.begin_ns.unwrap_or(interval.start_ns), interval))
        };
        let (sender, receiver) = (pop(&mut self.sender), pop(&mut self.receiver));
        let (from_ns, told) = sender.as_ref().or(receiver.as_ref())?;
        let length_ns = told.end_ns - told.start_ns;
        let figures = |end: &(i64, Interval)| Figures {
            messages: end.1.messages,
            bytes: end.1.bytes,
            lost: end.1.messages_lost.unwrap_or(0),
            covered_ns: end.1.end_ns - end.1.start_ns,
        };
        Some(Row {
            from_ns: *from_ns,
            to_ns: from_ns + length_ns,
            sent: sender.as_ref().map(figures),
            received: receiver.as_ref().map(figures),
            omitted: told.omitted,
        })
    }

    fn line(&self, row: &Row) -> String {
        let ends_ns = self.ends_ns.filter(|ends_ns| row.from_ns < *ends_ns);
        let to_ns = ends_ns.map_or(row.to_ns, |ends_ns| row.to_ns.min(ends_ns));
        let decimals = if self.interval_ns % 10_000_000 == 0 { 2 } else { 6 };
        let span = span(row.from_ns as f64 * 1e-9, to_ns as f64 * 1e-9, decimals);
        let mbps = |end: Figures| goodput_mbps(end.bytes, end.covered_ns);
        let sent = row.sent.map(|end| (end.bytes, mbps(end)));
        let received = row.received.map(|end| (end.bytes, mbps(end), end.lost, end.messages + end.lost));
        let mark = if row.omitted { "  (omitted)" } else { "" };
        columns(self.format, &span, sent, received) + mark
    }
}

impl Row {
    fn join(&mut self, rest: &Self, interval_ns: i64) {
        for (end, more) in [(&mut self.sent, rest.sent), (&mut self.received, rest.received)] {
            if let (Some(end), Some(more)) = (end.as_mut(), more) {
                end.messages += more.messages;
                end.bytes += more.bytes;
                end.lost += more.lost;
                // A rest of a hundredth of an interval is one that was made so long.
                end.covered_ns += if more.covered_ns > interval_ns / 100 { more.covered_ns } else { 0 };
            }
        }
    }
}

/// What stands over the columns.
pub(crate) fn head() -> String {
    format!(
        "[ ID] {:>13}  {:>11} {:>14}  {:>11} {:>14}  {}",
        "Time s", "Sent", "Rate", "Received", "Rate", "Lost/Total"
    )
}

/// The sum of the flows of each direction, and each flow's own where there are several.
pub(crate) fn sums(format: Format, reports: &[(usize, &FlowReport)]) -> Vec<String> {
    let mut lines = Vec::new();
    if reports.len() > 1 {
        lines.extend(
            reports.iter().map(|(number, report)| format!("[{number:>3}] {}", sum(format, &[report]))),
        );
    }
    let both = [(Direction::Up, "up"), (Direction::Down, "down")];
    let directions: Vec<_> = both
        .into_iter()
        .map(|(direction, name)| {
            let flows = reports.iter().filter(|(_, report)| report.direction == direction);
            (name, flows.map(|(_, report)| *report).collect::<Vec<_>>())
        })
        .filter(|(_, flows)| !flows.is_empty())
        .collect();
    let name = |name: &str| if directions.len() > 1 { format!("  {name}") } else { String::new() };
    lines.extend(directions.iter().map(|(way, flows)| format!("[SUM] {}{}", sum(format, flows), name(way))));
    lines
}

/// Of flows of one direction: what all moved, without what was to be omitted.
fn sum(format: Format, flows: &[&FlowReport]) -> String {
    let omitted_s =
        flows.iter().filter_map(|flow| flow.sums.as_ref()).map(|sums| sums.omitted_s).fold(0.0, f64::max);
    let ends_s = flows.iter().map(|flow| lasted_s(flow)).fold(0.0, f64::max);
    let sent = flows.iter().map(|flow| match &flow.sums {
        Some(sums) => (sums.sender.bytes, sums.sender.goodput_mbps),
        None => (flow.sender.bytes_sent, flow.sender.goodput_mbps),
    });
    let sent = sent.fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let received = flows.iter().map(|flow| {
        let all = flow.receiver.as_ref()?;
        let (lost, messages, bytes, mbps) = match flow.sums.as_ref().and_then(|sums| sums.receiver.as_ref()) {
            Some(sum) => (sum.messages_lost.unwrap_or(0), sum.messages, sum.bytes, sum.goodput_mbps),
            None => {
                (all.messages_lost, all.messages_received_unique, all.bytes_received_unique, all.goodput_mbps)
            }
        };
        Some((bytes, mbps, lost, messages + lost))
    });
    let received = received.collect::<Option<Vec<_>>>().map(|all| {
        all.into_iter()
            .fold((0, 0.0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2, sum.3 + one.3))
    });
    columns(format, &span(omitted_s, ends_s, 2), Some(sent), received)
}

/// How long a flow went on: its duration, or until it was stopped.
fn lasted_s(flow: &FlowReport) -> f64 {
    if flow.end_reason == EndReason::Duration {
        return flow.duration_s;
    }
    // Its rate is over the time that it was on.
    let lasted_s = flow.sender.bytes_sent as f64 * 8e-6 / flow.sender.goodput_mbps;
    if lasted_s.is_finite() {
        lasted_s.min(flow.duration_s)
    } else {
        0.0
    }
}

fn span(from_s: f64, to_s: f64, decimals: usize) -> String {
    format!("{from_s:.decimals$}-{to_s:.decimals$}")
}

/// Bytes and rate of each end, lost and all messages; nothing is cut, however long.
fn columns(
    format: Format,
    span: &str,
    sent: Option<(u64, f64)>,
    received: Option<(u64, f64, u64, u64)>,
) -> String {
    let end = |end: Option<(u64, f64)>| match end {
        Some((bytes, mbps)) => format!("{:>11} {:>14}", amount(bytes), format.rate(mbps)),
        None => format!("{:>11} {:>14}", "-", "-"),
    };
    let lost = received.map_or("-".into(), |(_, _, lost, all)| {
        let percent = if all > 0 { 100.0 * lost as f64 / all as f64 } else { 0.0 };
        format!("{lost}/{all} ({} %)", (percent * 100.0).round() / 100.0)
    });
    format!("{span:>13}  {}  {}  {lost}", end(sent), end(received.map(|(bytes, mbps, ..)| (bytes, mbps))))
}

/// Bytes with a decimal prefix.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.3} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        _ => format!("{:.3} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::Series;
    use netjoule_measure::cpu::usage::Usage;

    const SECOND: i64 = 1_000_000_000;

    /// Intervals of a second of an end that moves 125,000 bytes in each 0.1 s from `begin_ns` on, until `end_ns`.
    fn steady(end: End, begin_ns: i64, end_ns: i64) -> Vec<Interval> {
        let mut series = match end {
            End::Sender => Series::sender(SECOND, begin_ns, Usage::default()),
            End::Receiver => Series::receiver(SECOND, begin_ns, Usage::default()),
        };
        for at_ns in (begin_ns..end_ns).step_by(100_000_000) {
            series.roll(at_ns, None, Usage::default);
            series.count(1, 125_000);
        }
        series.finish(end_ns, None, Usage::default());
        series.into_closed()
    }

    fn lines(ends_ns: Option<i64>, one_ended: bool) -> Lines {
        Lines::new(Format::default(), SECOND, ends_ns, one_ended)
    }

    #[test]
    fn a_steady_flow_has_the_same_rate_in_every_line_and_one_line_per_interval() {
        let mut table = lines(Some(3 * SECOND), false);
        let mut told = Vec::new();
        for (sent, received) in steady(End::Sender, 7, 3 * SECOND + 7).iter().zip(&steady(
            End::Receiver,
            912_345_678,
            3_912_345_678,
        )) {
            assert_eq!(table.take(sent), Vec::<String>::new(), "the other end has not told yet");
            told.extend(table.take(received));
        }
        let line = "1.250 MB   10.0000 Mb/s     1.250 MB   10.0000 Mb/s  0/10 (0 %)";
        assert_eq!(told, [format!("    0.00-1.00     {line}"), format!("    1.00-2.00     {line}")]);
    }

    #[test]
    fn without_a_receiver_its_columns_are_empty() {
        let mut table = lines(Some(2 * SECOND), true);
        let told: Vec<String> =
            steady(End::Sender, 0, 2 * SECOND).iter().flat_map(|interval| table.take(interval)).collect();
        assert_eq!(told.len(), 1, "the last one waits for its rest");
        assert!(told[0].ends_with("10.0000 Mb/s            -              -  -"), "{told:?}");
    }

    #[test]
    fn amounts_and_rates_keep_their_digits() {
        let told: Vec<String> = [0, 999, 1_000, 1_234_567, 98_765_432_100].into_iter().map(amount).collect();
        assert_eq!(told, ["0 B", "999 B", "1.000 kB", "1.235 MB", "98.765 GB"]);
        let line = columns(Format::default(), "0.00-1.00", Some((u64::MAX, 123_456_789.123_4)), None);
        assert!(line.contains("18446744073.710 GB 123456789.1234 Mb/s"), "{line}");
    }
}
