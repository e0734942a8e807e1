// SPDX-License-Identifier: Apache-2.0
//! A link with a fixed delay each way that drops what a script says, a sender, a receiver and an application.

use std::collections::VecDeque;

use super::{packet, Receiver, Sender};
use crate::ccid::{Departure, Ecn, Incoming, ReceivingCcid, SendingCcid};
use crate::packet::PacketType;
use crate::seqno::Seq48;

/// What the application wants to send.
#[derive(Debug, Clone, Copy)]
pub(super) enum Application {
    /// As much as goes.
    Saturated,
    /// One message in this time, none is kept when it may not leave.
    Every(i64),
    /// Nothing.
    Silent,
}

struct Flying {
    arrives_ns: i64,
    seq: Seq48,
    ack: Seq48,
    ccval: u8,
    options: Vec<u8>,
}

/// Two ends and a link.
pub(super) struct Loop {
    pub(super) now_ns: i64,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) application: Application,
    pub(super) one_way_ns: i64,
    pub(super) payload: Vec<u8>,
    pub(super) data_packets: u64,
    pub(super) acks: u64,
    /// Acknowledgements vanish.
    pub(super) is_deaf: bool,
    /// The sender wakes at multiples of this only.
    pub(super) granularity_ns: i64,
    drops: Box<dyn FnMut(u64) -> bool>,
    forward: VecDeque<Flying>,
    backward: VecDeque<Flying>,
    next_seq: Seq48,
    next_ack_seq: Seq48,
    newest: Seq48,
    next_message_ns: i64,
}

impl Loop {
    /// `drops` gets the data packet's index.
    pub(super) fn new(rtt_ns: i64, payload_bytes: usize, drops: impl FnMut(u64) -> bool + 'static) -> Self {
        let first = Seq48::new((1 << 48) - 5);
        let (mut sender, mut receiver) = (Sender::new(0, first, payload_bytes), Receiver::new(0));
        sender.set_rtt_estimate_feature(false);
        receiver.set_rtt_estimate_feature(false);
        Self {
            now_ns: 0,
            sender,
            receiver,
            application: Application::Saturated,
            one_way_ns: rtt_ns / 2,
            payload: vec![0; payload_bytes],
            data_packets: 0,
            acks: 0,
            is_deaf: false,
            granularity_ns: 1,
            drops: Box::new(drops),
            forward: VecDeque::new(),
            backward: VecDeque::new(),
            next_seq: first,
            next_ack_seq: Seq48::new(7),
            newest: first,
            next_message_ns: 0,
        }
    }

    /// Both ends use the RTT Estimate option.
    pub(super) fn use_rtt_option(&mut self) {
        self.sender.set_rtt_estimate_feature(true);
        self.receiver.set_rtt_estimate_feature(true);
    }

    /// Both ends know the round trip from the handshake.
    pub(super) fn shake_hands(&mut self) {
        self.sender.set_initial_rtt(2 * self.one_way_ns);
        self.receiver.set_initial_rtt(2 * self.one_way_ns);
    }

    /// X, bytes per second.
    pub(super) fn allowed_rate(&self) -> f64 {
        super::figure(&self.sender.figures(), "allowed_rate_bytes_per_s")
    }

    /// Data packets sent in the next `span_ns`.
    pub(super) fn run_for(&mut self, span_ns: i64) -> u64 {
        let (before, end_ns) = (self.data_packets, self.now_ns + span_ns);
        loop {
            let wake_ns = self.send();
            self.deliver();
            let due = [
                wake_ns,
                self.forward.front().map(|packet| packet.arrives_ns),
                self.backward.front().map(|packet| packet.arrives_ns),
                self.receiver.ack_due_ns(),
            ];
            let next_ns = due.into_iter().flatten().min().unwrap_or(end_ns);
            if next_ns >= end_ns {
                self.now_ns = end_ns;
                return self.data_packets - before;
            }
            self.now_ns = next_ns.max(self.now_ns);
        }
    }

    /// Send what may go; when to look again.
    fn send(&mut self) -> Option<i64> {
        match self.application {
            Application::Silent => None,
            Application::Saturated => loop {
                match self.sender.departure(self.now_ns, self.payload.len()) {
                    Departure::Now => self.send_one(),
                    Departure::At(at_ns) => {
                        return Some(
                            (at_ns + self.granularity_ns - 1) / self.granularity_ns * self.granularity_ns,
                        );
                    }
                    Departure::OnFeedback => unreachable!("a rate, not a window"),
                }
            },
            Application::Every(interval_ns) => {
                if self.now_ns >= self.next_message_ns {
                    self.next_message_ns = self.now_ns + interval_ns;
                    if self.sender.departure(self.now_ns, self.payload.len()) == Departure::Now {
                        self.send_one();
                    }
                    self.sender.on_queue_empty(self.now_ns);
                }
                Some(self.next_message_ns)
            }
        }
    }

    fn send_one(&mut self) {
        let seq = self.next_seq;
        self.next_seq = seq.add(1);
        let ccval = self.sender.ccval(self.now_ns);
        let mut options = Vec::new();
        self.sender.data_options(self.now_ns, &mut |option| option.emit(&mut options));
        self.sender.on_sent(self.now_ns, seq, Some(self.payload.len()), Ecn::NotEct);
        if !(self.drops)(self.data_packets) {
            let arrives_ns = self.now_ns + self.one_way_ns;
            self.forward.push_back(Flying { arrives_ns, seq, ack: seq, ccval, options });
        }
        self.data_packets += 1;
    }

    fn deliver(&mut self) {
        while self.forward.front().is_some_and(|data| data.arrives_ns <= self.now_ns) {
            let Some(data) = self.forward.pop_front() else { return };
            let packet = packet(PacketType::Data, data.ccval, &data.options, &self.payload);
            super::arrive(&mut self.receiver, data.arrives_ns, data.seq.value(), Ecn::NotEct, &packet);
            self.newest = data.seq;
            self.acknowledge();
        }
        self.acknowledge();
        while self.backward.front().is_some_and(|ack| ack.arrives_ns <= self.now_ns) {
            let Some(ack) = self.backward.pop_front() else { return };
            let packet = packet(PacketType::Ack, 0, &ack.options, &[]);
            let incoming = Incoming {
                arrived_ns: ack.arrives_ns,
                seq: ack.seq,
                ack: Some(ack.ack),
                ecn: Ecn::NotEct,
                packet: &packet,
            };
            self.sender.on_incoming(&incoming).expect("no violation");
        }
    }

    fn acknowledge(&mut self) {
        if self.receiver.ack_due_ns().is_none_or(|due_ns| due_ns > self.now_ns) {
            return;
        }
        self.acks += 1;
        let seq = self.next_ack_seq;
        self.next_ack_seq = seq.add(1);
        let mut options = Vec::new();
        self.receiver
            .ack_options(self.now_ns, seq, self.newest, 200, &mut |option| option.emit(&mut options));
        if !self.is_deaf {
            let arrives_ns = self.now_ns + self.one_way_ns;
            self.backward.push_back(Flying { arrives_ns, seq, ack: self.newest, ccval: 0, options });
        }
    }
}
