// SPDX-License-Identifier: Apache-2.0
//! What the sending end keeps beside its messages: its costs, its congestion control, and when messages left the host.

use netjoule_transport::{Departure, Transport};

use crate::metrics::departure::{Departed, DepartureSummary};
use crate::traces::{CongestionSample, Traces};
use netjoule_measure::cpu::costs::{Costs, Cpu};
use netjoule_measure::cpu::usage::Usage;
use netjoule_measure::failure::Outcome;
use netjoule_measure::output::Output;

/// Instruments of one flow.
#[derive(Debug)]
pub(crate) struct Instruments {
    costs: Costs,
    traces: Traces,
    departed: Departed,
}

/// What they showed in the end.
#[derive(Debug)]
pub(crate) struct Readings {
    /// Costs from start to end.
    pub(crate) cpu: Cpu,
    /// The last reading.
    pub(crate) used: Usage,
    /// Samples of congestion control; `None` when they were not asked for.
    pub(crate) congestion: Option<Vec<CongestionSample>>,
    /// Delay of departures; `None` when none was stamped.
    pub(crate) departure_delay_us: Option<DepartureSummary>,
}

impl Instruments {
    /// Begin now. `traces`: sample congestion control.
    pub(crate) fn start(traces: bool) -> Self {
        Self { costs: Costs::start(), traces: Traces::new(traces), departed: Departed::default() }
    }

    /// The costs that it began with.
    pub(crate) fn at_start(&self) -> Usage {
        self.costs.at_start()
    }

    /// Read the costs for an interval.
    pub(crate) fn read(&mut self) -> Usage {
        self.costs.read()
    }

    /// An interval has begun: look at the transport, and print what was asked for.
    pub(crate) fn look(&mut self, transport: &mut dyn Transport, now_ns: i64, output: Output) -> Outcome<()> {
        self.traces.sample(transport, now_ns);
        // For machines only: a person reads them in the report.
        output.events("congestion", self.traces.fresh())
    }

    /// A message left the host.
    pub(crate) fn saw(&mut self, departure: Departure) {
        self.departed.record(departure);
    }

    /// Close the books of a flow of so many payload bytes.
    pub(crate) fn close(mut self, payload_bytes: u64) -> Readings {
        let (cpu, used) = self.costs.close(payload_bytes);
        Readings {
            cpu,
            used,
            departure_delay_us: self.departed.summary(),
            congestion: self.traces.into_samples(),
        }
    }
}
