// SPDX-License-Identifier: Apache-2.0
//! What lies between the access point and a host behind it? A path: elements, each of which hands its packets to the next.

use crate::rng::Rng;
use crate::station::Item;
use crate::wired::{WiredDrop, WiredParams, WiredPath};

/// A path in both directions: from the access point to the host ([`UP`]), and back ([`DOWN`]).
pub(crate) type Paths<P> = [Path<P>; 2];

pub(crate) const UP: usize = 0;
pub(crate) const DOWN: usize = 1;

/// The empty path with number `index`; its chance is its own.
pub(crate) fn new<P>(seed: u64, index: usize, elements: &[WiredParams]) -> Paths<P> {
    let stream = (index as u64) << 48;
    [
        Path::new(seed, stream + 2, elements.iter().copied()),
        Path::new(seed, stream + 3, elements.iter().rev().copied()),
    ]
}

/// One direction of a path.
#[derive(Debug)]
pub(crate) struct Path<P> {
    seed: u64,
    stream: u64,
    changes: u64,
    elements: Vec<WiredPath<Item<P>>>,
}

impl<P> Path<P> {
    /// An empty path through `elements`; chance is drawn from streams of their own beside `stream`.
    pub(crate) fn new(seed: u64, stream: u64, elements: impl Iterator<Item = WiredParams>) -> Self {
        let mut path = Self { seed, stream, changes: 0, elements: Vec::new() };
        path.elements = path.made(elements);
        path
    }

    /// Other elements take the place of those that there are. Packets on the way stay, in their order: they are given
    /// back, to enter anew.
    pub(crate) fn change(&mut self, elements: impl Iterator<Item = WiredParams>) -> Vec<Item<P>> {
        self.changes += 1;
        let made = self.made(elements);
        let before = std::mem::replace(&mut self.elements, made);
        // The last element has what came first.
        before.into_iter().rev().flat_map(|mut element| std::iter::from_fn(move || element.pop())).collect()
    }

    /// Each element of each path draws from a stream of its own, so that a change repeats no losses.
    fn made(&self, elements: impl Iterator<Item = WiredParams>) -> Vec<WiredPath<Item<P>>> {
        let stream = |index: u64| self.stream + (index << 16) + (self.changes << 32);
        elements
            .zip(0..)
            .map(|(params, index)| WiredPath::new(params, Rng::new(self.seed, stream(index))))
            .collect()
    }

    /// Takes a packet in at `now_ns`; gives it back where no element is in the way.
    pub(crate) fn push(&mut self, now_ns: u64, item: Item<P>) -> Result<Option<Item<P>>, WiredDrop> {
        self.enter(0, now_ns, item)
    }

    fn enter(&mut self, index: usize, now_ns: u64, item: Item<P>) -> Result<Option<Item<P>>, WiredDrop> {
        let Some(element) = self.elements.get_mut(index) else { return Ok(Some(item)) };
        let ip_bytes = item.ip_bytes;
        element.push(now_ns, item, ip_bytes).map(|()| None)
    }

    /// When the next packet leaves an element.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next().map(|(at_ns, _)| at_ns)
    }

    fn next(&self) -> Option<(u64, usize)> {
        (0..self.elements.len()).filter_map(|index| Some((self.elements[index].next_ns()?, index))).min()
    }

    /// Moves the packet that is due at [`Self::next_ns`] into its next element; behind the last one it is out.
    pub(crate) fn step(&mut self) -> Result<Option<Item<P>>, WiredDrop> {
        let Some((at_ns, index)) = self.next() else { return Ok(None) };
        match self.elements[index].pop() {
            Some(item) => self.enter(index + 1, at_ns, item),
            None => Ok(None),
        }
    }

    /// Packets inside.
    pub(crate) fn held(&self) -> usize {
        self.elements.iter().map(WiredPath::held).sum()
    }
}
