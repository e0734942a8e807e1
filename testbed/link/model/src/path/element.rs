// SPDX-License-Identifier: Apache-2.0
//! What is in the way of a packet? Elements: each takes parcels in, keeps them for a time, and lets them out or drops them.

use crate::scaling::Record;
use crate::tally::Tally;

/// What travels: a packet of a flow, or traffic of the path's own (`packet` is `None`), for which nobody waits.
#[derive(Debug)]
pub struct Parcel<P> {
    /// The packet.
    pub packet: Option<P>,
    /// Its size with the IP header.
    pub ip_bytes: u32,
}

impl<P> Parcel<P> {
    /// Its size in bits.
    pub fn bits(&self) -> u64 {
        u64::from(self.ip_bytes) * 8
    }
}

/// Why a packet did not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Random loss.
    Lost,
    /// The queue was full.
    Full,
}

/// One thing in the way of packets. Time is an argument and never goes back: who holds an element calls [`Self::advance`] at
/// each [`Self::next_event_ns`] and takes with [`Self::poll`] what has left by then.
pub trait Element<P> {
    /// Takes a parcel in at `now_ns`.
    ///
    /// # Errors
    /// [`Dropped`] says why it is gone.
    fn enqueue(&mut self, now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped>;

    /// When something happens inside next; `None` while nothing will, a time that has passed while a parcel is to be taken.
    fn next_event_ns(&self) -> Option<u64>;

    /// Does what is due by `now_ns`.
    fn advance(&mut self, now_ns: u64);

    /// The next parcel that has left, in order.
    fn poll(&mut self) -> Option<Parcel<P>>;

    /// What is inside.
    fn held(&self) -> Tally;

    /// Takes everything out, what came first at the front.
    fn drain(&mut self) -> Vec<Parcel<P>>;

    /// Traffic of its own that it has sent since it was made.
    fn sent(&self) -> Tally {
        Tally::default()
    }

    /// It is `now_ns` on a real clock: whoever holds the element is late for what was due before.
    fn woke(&mut self, _now_ns: u64) {}

    /// Closes the record of an element whose service rate changes: what it did since the last call, until `now_ns`.
    fn record(&mut self, _now_ns: u64) -> Option<Record> {
        None
    }
}

/// The earlier of two moments, either of which may never come.
#[inline]
pub fn earlier(one_ns: Option<u64>, other_ns: Option<u64>) -> Option<u64> {
    match (one_ns, other_ns) {
        (Some(one_ns), Some(other_ns)) => Some(one_ns.min(other_ns)),
        _ => one_ns.or(other_ns),
    }
}

/// Sums up parcels.
pub(crate) fn tally<'a, P: 'a>(parcels: impl IntoIterator<Item = &'a Parcel<P>>) -> Tally {
    let mut sum = Tally::default();
    parcels.into_iter().for_each(|parcel| sum.add(parcel.ip_bytes));
    sum
}
