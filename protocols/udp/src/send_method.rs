// SPDX-License-Identifier: Apache-2.0
//! How do messages that are due at the same time go to the kernel?
//!
//! One call each below [`netjoule_transport::message_rate::MANY_PPS`]: every message then has the truest time of its own. Above
//! it `sendmmsg`, and with GSO trains. Nothing waits here for company: what is handed over are messages that are due, and
//! they leave within the call, so no sleep can hold any of them back.

use std::io;

use netjoule_sockets::datagram::is_gso_refused;
use netjoule_sockets::send_call::SendCall;
use netjoule_transport::message_rate::MessageRate;
use netjoule_transport::{FlowSpec, Role};
use socket2::Socket;

/// How a sending end hands over several messages.
#[derive(Debug)]
pub(crate) struct SendMethod {
    call: SendCall,
    pace: MessageRate,
}

impl SendMethod {
    /// The way of a flow.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        let pace = MessageRate::of(flow);
        let call = match flow.role {
            Role::Sender if flow.gso => SendCall::Train,
            Role::Sender if pace.is_fast() => SendCall::batched(),
            Role::Sender | Role::Receiver => SendCall::Single,
        };
        Self { call, pace }
    }

    /// `messages` per call.
    #[cfg(test)]
    pub(crate) fn batched(messages: usize) -> Self {
        let batch = netjoule_sockets::send_batch::SendBatch::new(messages);
        Self { call: SendCall::Batched(batch), pace: MessageRate::default() }
    }

    /// Messages of `payload_bytes` are about to be handed over.
    pub(crate) fn expect(&mut self, messages: usize, payload_bytes: usize, now_ns: i64) {
        if matches!(self.call, SendCall::Single) {
            self.pace.count(messages, payload_bytes, now_ns);
            if self.pace.is_fast() {
                self.call = SendCall::batched();
            }
        }
    }

    /// Its name in the flow's statistics.
    pub(crate) fn name(&self) -> &'static str {
        self.call.name()
    }

    /// Whether several messages are one packet to the kernel.
    pub(crate) fn is_one_train(&self) -> bool {
        matches!(self.call, SendCall::Train)
    }

    /// Messages that one call takes one by one, so that it may stop between them.
    pub(crate) fn room(&self) -> usize {
        match &self.call {
            SendCall::Batched(batch) => batch.room(),
            SendCall::Single | SendCall::Train => 1,
        }
    }

    /// Give the kernel messages of `payload_bytes` that lie back to back; how many it took from the front, at least one.
    ///
    /// # Errors
    /// Why it took none. A device that takes no trains is no error: from then on messages go together without.
    pub(crate) fn hand_over(
        &mut self,
        socket: &Socket,
        messages: &[u8],
        payload_bytes: usize,
    ) -> io::Result<usize> {
        self.call.send(socket, messages, payload_bytes, is_gso_refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_sockets::datagram::receive_one;
    use netjoule_sockets::socket;
    use netjoule_transport::Values;
    use std::os::fd::AsRawFd;

    fn flow(role: Role, gso: bool, rate_bps: u64) -> FlowSpec {
        FlowSpec {
            payload_bytes: 64,
            role,
            token: [0; 16],
            gso,
            seed: 0,
            rate_bps,
            options: Values::new(),
            event_log: None,
        }
    }

    #[test]
    fn a_thin_flow_goes_singly_a_fast_one_together_and_gso_in_trains() {
        let name = |role, gso, rate_bps| SendMethod::of(&flow(role, gso, rate_bps)).name();
        assert_eq!(name(Role::Sender, false, 30_000_000), "send");
        assert_eq!(name(Role::Sender, false, 51_199_999), "send");
        assert_eq!(name(Role::Sender, false, 51_200_000), "sendmmsg");
        assert_eq!(name(Role::Sender, true, 30_000_000), "gso");
        assert_eq!(name(Role::Receiver, true, 51_200_000), "send");
        assert_eq!(name(Role::Sender, false, 0), "send");
    }

    #[test]
    fn a_flow_of_several_sizes_goes_together_once_its_messages_are_many() {
        let mut way = SendMethod::of(&flow(Role::Sender, false, 30_000_000));
        for burst in 0..40 {
            way.expect(1_000, 32, burst * 5_000_000);
        }
        assert_eq!(way.name(), "sendmmsg");
    }

    /// `SO_NO_CHECK` (asm-generic/socket.h): the simplest way to make a kernel refuse trains.
    const SO_NO_CHECK: libc::c_int = 11;

    #[test]
    fn where_trains_are_refused_messages_go_together() {
        let [near, far] = [(); 2].map(|()| socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap());
        near.connect(&far.local_addr().unwrap()).unwrap();
        socket::set_option(near.as_raw_fd(), libc::SOL_SOCKET, SO_NO_CHECK, 1).unwrap();
        let mut way = SendMethod::of(&flow(Role::Sender, true, 0));
        assert_eq!(way.hand_over(&near, &[7; 640], 64).unwrap(), 10);
        assert_eq!(way.name(), "sendmmsg");
        let mut buffer = [0; 100];
        for _ in 0..10 {
            assert_eq!(receive_one(far.as_raw_fd(), &mut buffer).unwrap().map(|one| one.length), Some(64));
        }
        assert_eq!(receive_one(far.as_raw_fd(), &mut buffer).unwrap(), None);
    }
}
