// SPDX-License-Identifier: Apache-2.0
//! What a flow takes of its host: CPU time of this process, its context switches, and the host's time in interrupts.
//!
//! A network interface's interrupts are served in whichever process happens to run, or in none, so the time for packets
//! that is charged to no process is the host's as a whole (`irq` and `softirq` of /proc/stat, proc_stat(5)), in ticks of
//! usually 10 ms.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::host::{self, CpuTime};

/// Reading /proc/stat may take one in so many parts of the time: it is slow on hosts with many CPUs and interrupts.
const READING_SHARE: i64 = 1_000;
/// Where a reading takes longer, it is taken at the begin and at the end only: a message might be due meanwhile. In ns.
const DEAREST_NS: i64 = 200_000;
/// With less CPU time than this nobody knows how it was split: the kernel samples user and system at ticks, of up to 10 ms.
const SAMPLED_NS: i64 = 10_000_000;
/// The first line of /proc/stat is shorter.
const FIRST_LINE_BYTES: usize = 512;

/// Time of all CPUs of the host in interrupts since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqTime {
    /// In interrupt handlers, ns.
    pub irq_ns: i64,
    /// In soft interrupts, most of the network's work among them; ns.
    pub softirq_ns: i64,
}

/// Counts so far; two readings make a [`Used`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// This process.
    pub cpu: CpuTime,
    /// The host; `None` when it was not read, or cannot be.
    pub irq: Option<IrqTime>,
}

/// What was used between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// CPU time of this process, s.
    pub cpu_s: f64,
    /// In user space, s; `None` when too little was used for a sample.
    pub cpu_user_s: Option<f64>,
    /// In the kernel, s; `None` likewise.
    pub cpu_system_s: Option<f64>,
    /// Context switches because this process waited.
    pub context_switches_voluntary: u64,
    /// Context switches because another process was due.
    pub context_switches_involuntary: u64,
    /// The host's time in interrupt handlers, s.
    pub host_irq_s: Option<f64>,
    /// The host's time in soft interrupts, s.
    pub host_softirq_s: Option<f64>,
}

impl Usage {
    /// What was used since `start`.
    pub fn since(&self, start: &Self) -> Used {
        let total_ns = (self.cpu.total_ns - start.cpu.total_ns).max(0);
        let part = |of: fn(&CpuTime) -> i64| (of(&self.cpu) - of(&start.cpu)).max(0);
        let (user, system) = (part(|cpu| cpu.user_ns) as f64, part(|cpu| cpu.system_ns) as f64);
        let is_sampled = total_ns >= SAMPLED_NS && user + system > 0.0;
        let user_ns = is_sampled.then(|| (total_ns as f64 * (user / (user + system))).round() as i64);
        let irq = |of: fn(&IrqTime) -> i64| Some(seconds((of(&self.irq?) - of(&start.irq?)).max(0)));
        Used {
            cpu_s: seconds(total_ns),
            cpu_user_s: user_ns.map(seconds),
            cpu_system_s: user_ns.map(|user_ns| seconds(total_ns - user_ns)),
            context_switches_voluntary: part(|cpu| cpu.switches_voluntary) as u64,
            context_switches_involuntary: part(|cpu| cpu.switches_involuntary) as u64,
            host_irq_s: irq(|irq| irq.irq_ns),
            host_softirq_s: irq(|irq| irq.softirq_ns),
        }
    }

    /// From where the next difference counts: what was not read this time goes on from where it was read last.
    pub fn carried_from(self, before: &Self) -> Self {
        Self { irq: self.irq.or(before.irq), ..self }
    }
}

/// Divided, not multiplied: whole nanoseconds keep their shortest form as text.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Takes readings.
#[derive(Debug)]
pub struct UsageReader {
    /// /proc/stat; `None` where it cannot be opened.
    stat: Option<File>,
    ticks_per_s: i64,
    /// Not worth its cost before this time.
    not_before_ns: i64,
}

impl Default for UsageReader {
    fn default() -> Self {
        // SAFETY: a plain query.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Self { stat: File::open("/proc/stat").ok(), ticks_per_s: ticks_per_s.max(1), not_before_ns: i64::MIN }
    }
}

impl UsageReader {
    /// Read now; the host's part only when that is not too dear yet.
    pub fn read(&mut self) -> Usage {
        let now_ns = host::now_ns();
        let irq = if now_ns >= self.not_before_ns { self.read_irq(now_ns) } else { None };
        Usage { cpu: CpuTime::now(), irq }
    }

    /// Read everything now.
    pub fn read_whole(&mut self) -> Usage {
        Usage { irq: self.read_irq(host::now_ns()), cpu: CpuTime::now() }
    }

    fn read_irq(&mut self, now_ns: i64) -> Option<IrqTime> {
        let mut bytes = [0; FIRST_LINE_BYTES];
        let length = self.stat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let took_ns = host::now_ns() - now_ns;
        self.not_before_ns = next_reading_ns(now_ns, took_ns);
        irq_time(std::str::from_utf8(&bytes[..length]).ok()?, self.ticks_per_s)
    }
}

/// When a reading is worth its cost again.
fn next_reading_ns(now_ns: i64, took_ns: i64) -> i64 {
    match took_ns {
        ..=DEAREST_NS => now_ns.saturating_add(took_ns.saturating_mul(READING_SHARE)),
        _ => i64::MAX,
    }
}

/// From the first line of /proc/stat: `cpu user nice system idle iowait irq softirq ...`, in ticks.
fn irq_time(stat: &str, ticks_per_s: i64) -> Option<IrqTime> {
    let mut words = stat.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let mut ticks = words.skip(5).map(|word| word.parse::<i64>().ok());
    let mut next_ns = || Some(ticks.next()??.saturating_mul(1_000_000_000 / ticks_per_s));
    Some(IrqTime { irq_ns: next_ns()?, softirq_ns: next_ns()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n";

    #[test]
    fn the_sixth_and_seventh_number_are_the_hosts_interrupts() {
        let irq = IrqTime { irq_ns: 600_000_000, softirq_ns: 700_000_000 };
        assert_eq!(irq_time(STAT, 100), Some(irq));
        for other in ["", "cpu0 1 2 3 4 5 6 7", "cpu 1 2 3 4 5 6", "cpu 1 2 3 4 5 six 7"] {
            assert_eq!(irq_time(other, 100), None, "{other}");
        }
    }

    fn usage(
        total_ns: i64,
        user_ns: i64,
        system_ns: i64,
        switches: (i64, i64),
        softirq: Option<i64>,
    ) -> Usage {
        Usage {
            cpu: CpuTime {
                total_ns,
                user_ns,
                system_ns,
                switches_voluntary: switches.0,
                switches_involuntary: switches.1,
            },
            irq: softirq.map(|softirq_ns| IrqTime { irq_ns: 0, softirq_ns }),
        }
    }

    #[test]
    fn the_split_follows_the_ticks_and_adds_up_to_the_exact_total() {
        let used = usage(20_000_000, 3_000, 1_000, (7, 2), Some(5)).since(&usage(0, 0, 0, (3, 2), Some(1)));
        assert_eq!((used.cpu_s, used.cpu_user_s, used.cpu_system_s), (0.02, Some(0.015), Some(0.005)));
        assert_eq!((used.context_switches_voluntary, used.context_switches_involuntary), (4, 0));
        assert_eq!((used.host_irq_s, used.host_softirq_s), (Some(0.0), Some(4e-9)));
    }

    #[test]
    fn where_nothing_can_have_been_sampled_there_is_no_split() {
        for (total_ns, user_ns) in [(SAMPLED_NS, 0), (SAMPLED_NS - 1, 3_000), (0, 0)] {
            let used = usage(total_ns, user_ns, 0, (0, 0), None).since(&Usage::default());
            assert_eq!((used.cpu_user_s, used.cpu_system_s, used.host_irq_s), (None, None, None));
            assert_eq!(used.cpu_s, total_ns as f64 * 1e-9);
        }
    }

    #[test]
    fn a_reading_that_was_left_out_is_made_good_by_the_next() {
        let first = usage(0, 0, 0, (0, 0), Some(10));
        let second = usage(1, 0, 0, (0, 0), None);
        assert_eq!(second.since(&first).host_softirq_s, None);
        let third = usage(2, 0, 0, (0, 0), Some(40));
        assert_eq!(third.since(&second.carried_from(&first)).host_softirq_s, Some(30e-9));
    }

    #[test]
    fn this_host_is_read_unless_it_is_too_dear() {
        let mut reader = UsageReader::default();
        let start = reader.read_whole();
        assert!(start.irq.is_some(), "this host has a /proc/stat");
        reader.not_before_ns = i64::MAX;
        assert_eq!(reader.read().irq, None);
        reader.not_before_ns = i64::MIN;
        assert!(reader.read().irq.is_some());
        assert!(reader.not_before_ns > i64::MIN);
    }

    #[test]
    fn a_reading_takes_a_thousandth_of_the_time_or_is_left_out() {
        assert_eq!(next_reading_ns(5, 30_000), 30_000_005);
        assert_eq!(next_reading_ns(5, DEAREST_NS + 1), i64::MAX);
    }

    #[test]
    fn work_shows_in_the_cpu_time_and_its_parts_add_up() {
        let start = Usage { cpu: CpuTime::now(), irq: None };
        let mut value = 1_u64;
        while host::total_ns() - start.cpu.total_ns < 60_000_000 {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let used = Usage { cpu: CpuTime::now(), irq: None }.since(&start);
        assert!(used.cpu_s >= 0.06 && used.context_switches_voluntary >= 1, "{used:?}");
        let split_s = used.cpu_user_s.zip(used.cpu_system_s).map(|(user_s, system_s)| user_s + system_s);
        assert!((split_s.unwrap() - used.cpu_s).abs() < 1e-9, "{used:?}");
    }
}
