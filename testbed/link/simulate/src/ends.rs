// SPDX-License-Identifier: Apache-2.0
//! What does the world need of the two ends of a flow, whatever its transport? What they send and when, and what has come.

use serde::Serialize;

use crate::segment::Segment;

/// Towards which end a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the sender.
    Up,
    /// Back to it.
    Down,
}

/// What a packet carries.
#[derive(Clone, Debug)]
pub enum Content {
    /// Of TCP, which is modelled in segments.
    Tcp(Segment),
    /// Of DCCP, as it is on the wire.
    Dccp(Box<[u8]>),
}

/// A packet that leaves an end.
#[derive(Debug)]
pub struct Packet {
    /// Where it goes.
    pub way: Way,
    /// What it carries.
    pub content: Content,
    /// Its size with the IP header.
    pub ip_bytes: u32,
}

/// A sender that always has something to send, and its receiver.
pub trait Ends: std::fmt::Debug {
    /// When one of them has something to do without a packet that comes; nothing before the first [`Self::poll`].
    fn next_ns(&self) -> Option<u64>;

    /// The next packet that leaves at `now_ns`; asked until there is none.
    fn poll(&mut self, now_ns: u64) -> Option<Packet>;

    /// Takes in what has come.
    fn take(&mut self, now_ns: u64, way: Way, content: Content);

    /// Counts since the start.
    fn totals(&self) -> FlowTotals;

    /// What may be on its way, packets.
    fn window(&self) -> f64;
}

impl Ends for Box<dyn Ends> {
    fn next_ns(&self) -> Option<u64> {
        (**self).next_ns()
    }

    fn poll(&mut self, now_ns: u64) -> Option<Packet> {
        (**self).poll(now_ns)
    }

    fn take(&mut self, now_ns: u64, way: Way, content: Content) {
        (**self).take(now_ns, way, content);
    }

    fn totals(&self) -> FlowTotals {
        (**self).totals()
    }

    fn window(&self) -> f64 {
        (**self).window()
    }
}

/// Totals of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowTotals {
    /// Packets of data acknowledged in order; of DCCP, which repeats none, those that came.
    pub acked_packets: u64,
    /// Packets of data sent, those sent again included.
    pub sent_packets: u64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// Timeouts; with CCID 3 of the timer that waits for feedback.
    pub timeouts: u64,
    /// Losses noticed otherwise: by duplicate acknowledgements, by Ack Vectors (CCID 2), as loss events (CCID 3).
    pub recoveries: u64,
}
