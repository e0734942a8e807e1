// SPDX-License-Identifier: Apache-2.0
//! How does a packet get through several elements? Each hands on what leaves it, at the moment at which it leaves.

use std::collections::VecDeque;

use super::element::{Dropped, Element, Parcel};
use crate::scaling::Record;
use crate::tally::Tally;

/// What became of some traffic since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// What came in.
    pub entered: Tally,
    /// What is through.
    pub left: Tally,
    /// What random loss took.
    pub lost: Tally,
    /// What found a queue full.
    pub full: Tally,
}

impl Traffic {
    fn drop(&mut self, why: Dropped, ip_bytes: u32) {
        match why {
            Dropped::Lost => self.lost.add(ip_bytes),
            Dropped::Full => self.full.add(ip_bytes),
        }
    }
}

/// Elements in a row, in one direction.
pub struct Chain<P> {
    elements: Vec<Box<dyn Element<P>>>,
    // Of each element: asked after whatever it did, for it is read more often than it changes.
    next_ns: Vec<u64>,
    // The least of them: it is read at each event of any path.
    first_ns: u64,
    out: VecDeque<(u64, Parcel<P>)>,
    flows: Traffic,
    own: Traffic,
}

const NEVER: u64 = u64::MAX;

fn next_ns_of<P>(element: &dyn Element<P>) -> u64 {
    element.next_event_ns().unwrap_or(NEVER)
}

fn first_ns_of(next_ns: &[u64]) -> u64 {
    next_ns.iter().copied().fold(NEVER, u64::min)
}

impl<P> std::fmt::Debug for Chain<P> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Chain")
            .field("next_ns", &self.next_ns)
            .field("flows", &self.flows)
            .finish_non_exhaustive()
    }
}

impl<P> Chain<P> {
    /// These elements, the first one met first.
    pub fn new(elements: Vec<Box<dyn Element<P>>>) -> Self {
        let next_ns: Vec<_> = elements.iter().map(|element| next_ns_of(element.as_ref())).collect();
        let first_ns = first_ns_of(&next_ns);
        let (flows, own) = (Traffic::default(), Traffic::default());
        Self { elements, next_ns, first_ns, out: VecDeque::new(), flows, own }
    }

    /// Other elements take the place of those that there are. Packets inside are taken along, in their order, and enter
    /// anew at `now_ns`: those for which the new queues have no room are dropped, so this is for a path between two runs.
    /// Traffic of the path's own is gone with its source, and records begin anew.
    pub fn change(&mut self, now_ns: u64, elements: Vec<Box<dyn Element<P>>>) {
        self.advance(now_ns);
        self.own.entered = self.own().entered;
        let before = std::mem::take(&mut self.elements);
        self.next_ns = elements.iter().map(|element| next_ns_of(element.as_ref())).collect();
        self.elements = elements;
        // The last element has what came first.
        for parcel in before.into_iter().rev().flat_map(|mut element| element.drain()) {
            match parcel.packet {
                Some(_) => self.enter(0, now_ns, parcel),
                None => self.own.left.add(parcel.ip_bytes),
            }
        }
        self.first_ns = first_ns_of(&self.next_ns);
    }

    /// Takes a packet in at `now_ns`.
    pub fn enqueue(&mut self, now_ns: u64, packet: P, ip_bytes: u32) {
        self.advance(now_ns);
        self.flows.entered.add(ip_bytes);
        self.enter(0, now_ns, Parcel { packet: Some(packet), ip_bytes });
        self.first_ns = first_ns_of(&self.next_ns);
    }

    fn enter(&mut self, index: usize, now_ns: u64, parcel: Parcel<P>) {
        let (is_own, ip_bytes) = (parcel.packet.is_none(), parcel.ip_bytes);
        let Some(element) = self.elements.get_mut(index) else {
            if is_own {
                self.own.left.add(ip_bytes);
            } else {
                self.flows.left.add(ip_bytes);
                self.out.push_back((now_ns, parcel));
            }
            return;
        };
        if let Err(why) = element.enqueue(now_ns, parcel) {
            if is_own { &mut self.own } else { &mut self.flows }.drop(why, ip_bytes);
        }
        self.next_ns[index] = next_ns_of(element.as_ref());
        if self.next_ns[index] <= now_ns {
            self.hand_on(index, now_ns);
        }
    }

    fn hand_on(&mut self, index: usize, now_ns: u64) {
        loop {
            let parcel = self.elements[index].poll();
            self.next_ns[index] = next_ns_of(self.elements[index].as_ref());
            let Some(parcel) = parcel else { return };
            self.enter(index + 1, now_ns, parcel);
            // Where something is to be taken, its time has come.
            if self.next_ns[index] > now_ns {
                return;
            }
        }
    }

    /// When something happens inside next.
    pub fn next_event_ns(&self) -> Option<u64> {
        (self.first_ns != NEVER).then_some(self.first_ns)
    }

    /// Does what is due by `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            self.step(at_ns);
        }
    }

    /// Does what is due first, at [`Self::next_event_ns`].
    fn step(&mut self, at_ns: u64) {
        if let Some(index) = self.next_ns.iter().position(|next_ns| *next_ns == at_ns) {
            self.elements[index].advance(at_ns);
            self.hand_on(index, at_ns);
        }
        self.first_ns = first_ns_of(&self.next_ns);
    }

    /// True when [`Self::poll`] has a packet.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// The next packet that is through, and when it was.
    pub fn poll(&mut self) -> Option<(u64, P)> {
        // Traffic of the path's own never comes to `out`.
        let (at_ns, parcel) = self.out.pop_front()?;
        parcel.packet.map(|packet| (at_ns, packet))
    }

    /// The packets of flows.
    pub fn flows(&self) -> Traffic {
        self.flows
    }

    /// Traffic of the path's own, from the elements that are sources of it.
    pub fn own(&self) -> Traffic {
        let sent = self.elements.iter().map(|element| element.sent());
        Traffic { entered: sent.fold(self.own.entered, Tally::plus), ..self.own }
    }

    /// What is inside the elements, traffic of the path's own included.
    pub fn held(&self) -> Tally {
        self.elements.iter().map(|element| element.held()).fold(Tally::default(), Tally::plus)
    }

    /// It is `now_ns` on a real clock; see [`Element::woke`]. To be called before [`Self::advance`].
    pub fn woke(&mut self, now_ns: u64) {
        self.elements.iter_mut().for_each(|element| element.woke(now_ns));
    }

    /// The records of the elements that change their rate, in their order, until `now_ns`.
    pub fn records(&mut self, now_ns: u64) -> Vec<Record> {
        self.advance(now_ns);
        self.elements.iter_mut().filter_map(|element| element.record(now_ns)).collect()
    }
}
