// SPDX-License-Identifier: Apache-2.0
//! At which rate does a link serve now? A rule says so at its ticks, from what has arrived and what waits; what came of it
//! stands in a record.

pub mod fixed;
pub mod practra;
pub mod varying;

use std::fmt::Debug;

use crate::tally::Tally;

/// Sets the service rate of a link; pure: nothing but its arguments and its own state.
pub trait RateRule: Debug {
    /// The rate at the start, Mb/s.
    fn first_rate_mbps(&self) -> f64;

    /// The highest rate that there is, Mb/s.
    fn max_rate_mbps(&self) -> f64;

    /// How long no packet is sent after a switch, ns.
    fn stall_ns(&self) -> u64;

    /// When the rule wants to be asked next.
    fn next_tick_ns(&self) -> Option<u64>;

    /// The new rate in Mb/s, where it changes. `arrived_bits` since the last tick, dropped packets included; `queued_bits`
    /// wait now, without the packet in service.
    fn tick(&mut self, now_ns: u64, arrived_bits: u64, queued_bits: u64) -> Option<f64>;
}

/// How late something was that had its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How often it was due.
    pub count: u64,
    /// All of it.
    pub sum_ns: u64,
    /// The most.
    pub max_ns: u64,
}

impl Lateness {
    /// One more, so late.
    pub fn add(&mut self, late_ns: u64) {
        self.count += 1;
        self.sum_ns += late_ns;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// The mean, us; 0 of none.
    pub fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64 / 1e3
    }

    /// The most, us.
    pub fn max_us(&self) -> f64 {
        self.max_ns as f64 / 1e3
    }
}

/// What a router did in some time, and what the energy of its scaling is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Start of the time.
    pub t_start_ns: u64,
    /// Its end.
    pub t_end_ns: u64,
    /// Service rate at the end, Mb/s.
    pub rate_mbps: f64,
    /// Mean service rate, Mb/s.
    pub mean_rate_mbps: f64,
    /// Mean of (r / r_max)^3 over time, which is not the cube of the mean.
    pub mean_cubic: f64,
    /// Share of the time in which it slept; transitions are not sleep.
    pub asleep_share: f64,
    /// Changes of the rate, or between sleep and waking.
    pub switches: u64,
    /// What came, dropped packets included.
    pub arrived: Tally,
    /// What found the queue full.
    pub dropped: Tally,
    /// Of what came, packets of flows.
    pub flows_arrived: Tally,
    /// Of what found the queue full, packets of flows.
    pub flows_dropped: Tally,
    /// Packets that wait at the end, without the one in service.
    pub queue_packets: usize,
    /// The highest rate that there is, Mb/s.
    pub max_rate_mbps: f64,
    /// How late it was asked what to do; nothing in simulated time.
    pub ticks: Lateness,
    since_ns: u64,
    is_asleep: bool,
}

impl Record {
    pub(crate) fn new(start_ns: u64, rate_mbps: f64, max_rate_mbps: f64) -> Self {
        Self {
            t_start_ns: start_ns,
            t_end_ns: start_ns,
            rate_mbps,
            mean_rate_mbps: 0.0,
            mean_cubic: 0.0,
            asleep_share: 0.0,
            switches: 0,
            arrived: Tally::default(),
            dropped: Tally::default(),
            flows_arrived: Tally::default(),
            flows_dropped: Tally::default(),
            queue_packets: 0,
            max_rate_mbps,
            ticks: Lateness::default(),
            since_ns: start_ns,
            is_asleep: false,
        }
    }

    /// While the record is open the means are integrals over time.
    fn integrate(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.since_ns) as f64;
        self.mean_rate_mbps += self.rate_mbps * span_ns;
        self.mean_cubic += (self.rate_mbps / self.max_rate_mbps).powi(3) * span_ns;
        self.asleep_share += if self.is_asleep { span_ns } else { 0.0 };
        self.since_ns = now_ns;
    }

    pub(crate) fn arrive(&mut self, ip_bytes: u32, is_of_flow: bool, is_taken: bool) {
        self.arrived.add(ip_bytes);
        if is_of_flow {
            self.flows_arrived.add(ip_bytes);
        }
        if !is_taken {
            self.dropped.add(ip_bytes);
        }
        if is_of_flow && !is_taken {
            self.flows_dropped.add(ip_bytes);
        }
    }

    pub(crate) fn sleep(&mut self, now_ns: u64) {
        self.turn(now_ns, true);
    }

    pub(crate) fn wake(&mut self, now_ns: u64) {
        self.turn(now_ns, false);
    }

    fn turn(&mut self, now_ns: u64, is_asleep: bool) {
        self.integrate(now_ns);
        self.is_asleep = is_asleep;
        self.switches += 1;
    }

    pub(crate) fn switch(&mut self, now_ns: u64, rate_mbps: f64) {
        self.integrate(now_ns);
        self.rate_mbps = rate_mbps;
        self.switches += 1;
    }

    /// The record until `now_ns`; the next one begins there.
    pub(crate) fn close(&mut self, now_ns: u64, queue_packets: usize) -> Self {
        self.integrate(now_ns);
        let next =
            Self { is_asleep: self.is_asleep, ..Self::new(now_ns, self.rate_mbps, self.max_rate_mbps) };
        let mut closed = std::mem::replace(self, next);
        let span_ns = (now_ns - closed.t_start_ns) as f64;
        closed.t_end_ns = now_ns;
        closed.queue_packets = queue_packets;
        if span_ns > 0.0 {
            closed.mean_rate_mbps /= span_ns;
            closed.mean_cubic /= span_ns;
            closed.asleep_share /= span_ns;
        }
        closed
    }
}
