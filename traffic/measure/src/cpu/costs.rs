// SPDX-License-Identifier: Apache-2.0
//! What a flow takes of its host, from its first moment on: what [`crate::cpu::usage`] reads, and the cycles of its thread.

use serde::{Deserialize, Serialize};

use crate::cpu::cycles::CycleCounter;
use crate::cpu::usage::{Usage, UsageReader, Used};

/// Running account of one end of a flow.
#[derive(Debug)]
pub struct Costs {
    reader: UsageReader,
    start: Usage,
    cycles: Result<CycleCounter, String>,
}

impl Costs {
    /// Begin now.
    pub fn start() -> Self {
        let mut reader = UsageReader::default();
        let cycles = CycleCounter::start();
        Self { start: reader.read_whole(), reader, cycles }
    }

    /// The reading that it began with.
    pub fn at_start(&self) -> Usage {
        self.start
    }

    /// Read now, for an interval.
    pub fn read(&mut self) -> Usage {
        self.reader.read()
    }

    /// The account over a flow of so many payload bytes, and the last reading.
    pub fn close(mut self, payload_bytes: u64) -> (Cpu, Usage) {
        let end = self.reader.read_whole();
        (Cpu::new(end.since(&self.start), self.cycles, payload_bytes), end)
    }
}

/// What an end took of its host from start to end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// CPU time, context switches, interrupts.
    #[serde(flatten)]
    pub used: Used,
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
            used,
            cycles,
            cycles_per_byte: cycles
                .filter(|_| payload_bytes > 0)
                .map(|cycles| cycles as f64 / payload_bytes as f64),
            cycles_scope: scope,
            cycles_reason: reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_of_what_was_used_meanwhile() {
        let mut costs = Costs::start();
        let start = costs.at_start();
        let between = costs.read();
        assert!(between.cpu.total_ns >= start.cpu.total_ns);
        let (cpu, end) = costs.close(0);
        assert!(cpu.used.cpu_s > 0.0 && end.cpu.total_ns > start.cpu.total_ns);
        assert_eq!(cpu.cycles_per_byte, None, "nothing was carried");
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
}
