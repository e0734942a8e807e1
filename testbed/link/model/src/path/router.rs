// SPDX-License-Identifier: Apache-2.0
//! How does a link serve that changes? A serialiser, and what governs it: a rule that sets its rate at ticks, or sleep.

use super::element::{earlier, Dropped, Element, Parcel};
use super::serialiser::{QueueLimit, Serialiser};
use crate::scaling::{RateRule, Record};
use crate::tally::Tally;

/// A queue with its link, and the record of what is done to them.
#[derive(Debug)]
pub struct Served<P> {
    /// Queue and link.
    pub serialiser: Serialiser<P>,
    /// What they did.
    pub record: Record,
}

/// Changes how a link serves.
pub trait Governor<P>: std::fmt::Debug {
    /// When it wants to act next, as things stand.
    fn next_ns(&self, served: &Served<P>) -> Option<u64>;

    /// Acts at `at_ns`, after what the link itself does then.
    fn act(&mut self, at_ns: u64, served: &mut Served<P>);

    /// So many bits have come, whether they found room or not.
    fn arrived(&mut self, now_ns: u64, bits: u64, served: &mut Served<P>);
}

/// A queue and a link that is governed.
#[derive(Debug)]
pub struct Router<P> {
    served: Served<P>,
    governor: Box<dyn Governor<P>>,
    /// The real clock when it last was read; `None` in simulated time.
    clock_ns: Option<u64>,
}

impl<P: 'static> Router<P> {
    /// An empty router that serves at the rate with which the rule begins, and the way of `delay_ns` behind it.
    pub fn ruled(limit: QueueLimit, delay_ns: u64, rule: Box<dyn RateRule>, start_ns: u64) -> Self {
        let (rate_mbps, max_rate_mbps) = (rule.first_rate_mbps(), rule.max_rate_mbps());
        let governor = Box::new(Ruled { rule, arrived_bits: 0 });
        let record = Record::new(start_ns, rate_mbps, max_rate_mbps);
        Self::new(Serialiser::new(rate_mbps, limit, delay_ns), record, governor, start_ns)
    }

    /// A queue and its link, which are new, with what governs them.
    pub fn new(
        serialiser: Serialiser<P>,
        record: Record,
        mut governor: Box<dyn Governor<P>>,
        start_ns: u64,
    ) -> Self {
        let mut served = Served { serialiser, record };
        governor.act(start_ns, &mut served);
        Self { served, governor, clock_ns: None }
    }
}

impl<P> Element<P> for Router<P> {
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        let (bits, ip_bytes, is_of_flow) = (parcel.bits(), parcel.ip_bytes, parcel.packet.is_some());
        let taken = self.served.serialiser.enqueue(now_ns, parcel);
        self.served.record.arrive(ip_bytes, is_of_flow, taken.is_ok());
        self.governor.arrived(now_ns, bits, &mut self.served);
        taken
    }

    fn next_event_ns(&self) -> Option<u64> {
        earlier(self.served.serialiser.next_event_ns(), self.governor.next_ns(&self.served))
    }

    fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.governor.next_ns(&self.served).filter(|at_ns| *at_ns <= now_ns) {
            self.served.serialiser.advance(at_ns);
            self.governor.act(at_ns, &mut self.served);
            // After a pause several ticks are due, each of them late.
            if let Some(late_ns) = self.clock_ns.map(|clock_ns| clock_ns.saturating_sub(at_ns)) {
                self.served.record.ticks.add(late_ns);
            }
        }
        self.served.serialiser.advance(now_ns);
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        self.served.serialiser.poll()
    }

    fn held(&self) -> Tally {
        self.served.serialiser.held()
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.served.serialiser.drain()
    }

    fn woke(&mut self, now_ns: u64) {
        self.clock_ns = Some(now_ns);
    }

    fn record(&mut self, now_ns: u64) -> Option<Record> {
        Some(self.served.record.close(now_ns, self.served.serialiser.waiting()))
    }
}

/// A rule is asked for the rate at its ticks.
#[derive(Debug)]
struct Ruled {
    rule: Box<dyn RateRule>,
    /// Since the last tick, dropped ones included.
    arrived_bits: u64,
}

impl<P> Governor<P> for Ruled {
    fn next_ns(&self, _served: &Served<P>) -> Option<u64> {
        self.rule.next_tick_ns()
    }

    fn act(&mut self, at_ns: u64, served: &mut Served<P>) {
        if self.rule.next_tick_ns().is_none_or(|tick_ns| tick_ns > at_ns) {
            return;
        }
        let arrived_bits = std::mem::take(&mut self.arrived_bits);
        if let Some(rate_mbps) = self.rule.tick(at_ns, arrived_bits, served.serialiser.waiting_bits()) {
            served.serialiser.switch(at_ns, rate_mbps, self.rule.stall_ns());
            served.record.switch(at_ns, rate_mbps);
        }
    }

    fn arrived(&mut self, _now_ns: u64, bits: u64, _served: &mut Served<P>) {
        self.arrived_bits += bits;
    }
}
