// SPDX-License-Identifier: Apache-2.0
//! Both ends of a flow of TCP.

use netjoule_link_model::path::element::earlier;

use super::receiver::Receiver;
use super::sender::{Sender, SenderParams};
use crate::ends::{Content, Ends, FlowTotals, Packet, Way};
use crate::segment::{Ack, Segment, SYN};

/// Parameters of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpParams {
    /// Of the sender.
    pub sender: SenderParams,
    /// True: every second segment is acknowledged.
    pub delayed_acks: bool,
    /// Size of a data packet with its headers.
    pub packet_bytes: u32,
    /// Size of an acknowledgement with its headers.
    pub ack_bytes: u32,
}

/// A sender and a receiver.
#[derive(Debug)]
pub struct TcpEnds {
    sender: Sender,
    receiver: Receiver,
    /// What goes back at once.
    answer: Option<Ack>,
    packet_bytes: u32,
    ack_bytes: u32,
}

impl TcpEnds {
    /// Nothing was sent yet.
    pub fn new(params: TcpParams) -> Self {
        Self {
            sender: Sender::new(params.sender),
            receiver: Receiver::new(params.delayed_acks),
            answer: None,
            packet_bytes: params.packet_bytes,
            ack_bytes: params.ack_bytes,
        }
    }
}

impl Ends for TcpEnds {
    fn next_ns(&self) -> Option<u64> {
        earlier(self.sender.next_ns(), self.receiver.next_ns())
    }

    fn poll(&mut self, now_ns: u64) -> Option<Packet> {
        self.sender.expire(now_ns);
        if let Some(ack) = self.answer.take().or_else(|| self.receiver.poll(now_ns)) {
            let content = Content::Tcp(Segment::Ack(ack));
            return Some(Packet { way: Way::Down, content, ip_bytes: self.ack_bytes });
        }
        let number = self.sender.poll(now_ns)?;
        let ip_bytes = if number == SYN { self.ack_bytes } else { self.packet_bytes };
        Some(Packet { way: Way::Up, content: Content::Tcp(Segment::Data(number)), ip_bytes })
    }

    fn take(&mut self, now_ns: u64, _way: Way, content: Content) {
        match content {
            Content::Tcp(Segment::Data(number)) => self.answer = self.receiver.take(now_ns, number),
            Content::Tcp(Segment::Ack(told)) => self.sender.take(now_ns, told),
            Content::Tcp(Segment::Message(_)) | Content::Dccp(_) => {}
        }
    }

    fn totals(&self) -> FlowTotals {
        self.sender.counts()
    }

    fn window(&self) -> f64 {
        self.sender.window()
    }
}
