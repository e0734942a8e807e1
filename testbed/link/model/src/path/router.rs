// SPDX-License-Identifier: Apache-2.0
//! How does a link serve whose rate changes? A serialiser, and a rule that sets its rate at ticks.

use super::element::{Dropped, Element, Parcel};
use super::serialiser::{QueueLimit, Serialiser};
use crate::scaling::{RateRule, Record};
use crate::tally::Tally;

/// A queue and a link whose service rate a rule sets. At one moment a packet ends before the rule is asked.
#[derive(Debug)]
pub struct Router<P> {
    serialiser: Serialiser<P>,
    rule: Box<dyn RateRule>,
    /// Since the last tick, dropped ones included.
    arrived_bits: u64,
    record: Record,
}

impl<P> Router<P> {
    /// An empty router that serves at the rate with which the rule begins.
    pub fn new(limit: QueueLimit, rule: Box<dyn RateRule>, start_ns: u64) -> Self {
        let rate_mbps = rule.first_rate_mbps();
        let record = Record::new(start_ns, rate_mbps, rule.max_rate_mbps());
        Self { serialiser: Serialiser::new(rate_mbps, limit), rule, arrived_bits: 0, record }
    }

    fn tick(&mut self, at_ns: u64) {
        let arrived_bits = std::mem::take(&mut self.arrived_bits);
        if let Some(rate_mbps) = self.rule.tick(at_ns, arrived_bits, self.serialiser.waiting_bits()) {
            self.serialiser.switch(at_ns, rate_mbps, self.rule.stall_ns());
            self.record.switch(at_ns, rate_mbps);
        }
    }
}

impl<P> Element<P> for Router<P> {
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        self.arrived_bits += parcel.bits();
        let (ip_bytes, is_of_flow) = (parcel.ip_bytes, parcel.packet.is_some());
        let taken = self.serialiser.enqueue(now_ns, parcel);
        self.record.arrive(ip_bytes, is_of_flow, taken.is_ok());
        taken
    }

    fn next_event_ns(&self) -> Option<u64> {
        [self.serialiser.next_event_ns(), self.rule.next_tick_ns()].into_iter().flatten().min()
    }

    fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            self.serialiser.advance(at_ns);
            if self.rule.next_tick_ns() == Some(at_ns) {
                self.tick(at_ns);
            }
        }
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        self.serialiser.poll()
    }

    fn held(&self) -> Tally {
        self.serialiser.held()
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.serialiser.drain()
    }

    fn record(&mut self, now_ns: u64) -> Option<Record> {
        Some(self.record.close(now_ns, self.serialiser.waiting()))
    }
}
