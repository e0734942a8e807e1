// SPDX-License-Identifier: Apache-2.0
//! How long is a packet on its way? The same time for each.

use std::collections::VecDeque;

use super::element::{tally, Dropped, Element, Parcel};
use crate::tally::Tally;

/// A fixed delay that keeps the order.
#[derive(Debug)]
pub struct Delay<P> {
    delay_ns: u64,
    last_ns: u64,
    now_ns: u64,
    on_their_way: VecDeque<(u64, Parcel<P>)>,
}

impl<P> Delay<P> {
    /// A way of `delay_ns`.
    pub fn new(delay_ns: u64) -> Self {
        Self { delay_ns, last_ns: 0, now_ns: 0, on_their_way: VecDeque::new() }
    }
}

impl<P> Element<P> for Delay<P> {
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        self.now_ns = now_ns;
        self.last_ns = self.last_ns.max(now_ns + self.delay_ns);
        self.on_their_way.push_back((self.last_ns, parcel));
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.on_their_way.front().map(|(at_ns, _)| *at_ns)
    }

    fn advance(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn poll(&mut self) -> Option<Parcel<P>> {
        if self.next_event_ns()? > self.now_ns {
            return None;
        }
        self.on_their_way.pop_front().map(|(_, parcel)| parcel)
    }

    fn held(&self) -> Tally {
        tally(self.on_their_way.iter().map(|(_, parcel)| parcel))
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.on_their_way.drain(..).map(|(_, parcel)| parcel).collect()
    }
}
