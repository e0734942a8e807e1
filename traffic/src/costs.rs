// SPDX-License-Identifier: Apache-2.0
//! What a flow takes of its host, from its first moment on: what [`crate::usage`] reads, and the cycles of its thread.

use crate::cycles::CycleCounter;
use crate::report::Cpu;
use crate::usage::{Usage, UsageReader};

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
        assert!(cpu.cpu_s > 0.0 && end.cpu.total_ns > start.cpu.total_ns);
        assert_eq!(cpu.cycles_per_byte, None, "nothing was carried");
    }
}
