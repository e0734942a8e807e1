// SPDX-License-Identifier: Apache-2.0
//! How do messages that are due at the same time go to the kernel?
//!
//! One call each below [`netjoule_transport::message_rate::MANY_PPS`]: every message then has the truest time of its own. Above
//! it `sendmmsg`, and with GSO trains. Nothing waits here for company: what is handed over are messages that are due, and
//! they leave within the call, so no sleep can hold any of them back.

use std::io;
use std::os::fd::AsRawFd;

use netjoule_sockets::datagram::{self, is_gso_refused, GSO_BYTES, GSO_SEGMENTS};
use netjoule_sockets::send_batch::SendBatch;
use netjoule_transport::message_rate::MessageRate;
use netjoule_transport::{FlowSpec, Role};
use socket2::Socket;

/// Messages per `sendmmsg`: more than the engine offers at once.
const MESSAGES_PER_CALL: usize = 64;

/// How a sending end hands over several messages.
#[derive(Debug)]
pub(crate) struct SendMethod {
    call: Call,
    pace: MessageRate,
}

#[derive(Debug)]
enum Call {
    /// One `send` each.
    Single,
    /// One `sendmmsg` for all.
    Batched(SendBatch),
    /// One GSO train for all.
    Train,
}

impl SendMethod {
    /// The way of a flow.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        let pace = MessageRate::of(flow);
        let call = match flow.role {
            Role::Sender if flow.gso => Call::Train,
            Role::Sender if pace.is_fast() => Call::Batched(SendBatch::new(MESSAGES_PER_CALL)),
            Role::Sender | Role::Receiver => Call::Single,
        };
        Self { call, pace }
    }

    /// `messages` per call.
    #[cfg(test)]
    pub(crate) fn batched(messages: usize) -> Self {
        Self { call: Call::Batched(SendBatch::new(messages)), pace: MessageRate::default() }
    }

    /// Messages of `payload_bytes` are about to be handed over.
    pub(crate) fn expect(&mut self, messages: usize, payload_bytes: usize, now_ns: i64) {
        if matches!(self.call, Call::Single) {
            self.pace.count(messages, payload_bytes, now_ns);
            if self.pace.is_fast() {
                self.call = Call::Batched(SendBatch::new(MESSAGES_PER_CALL));
            }
        }
    }

    /// Its name in the flow's statistics.
    pub(crate) fn name(&self) -> &'static str {
        match self.call {
            Call::Single => "send",
            Call::Batched(_) => "sendmmsg",
            Call::Train => "gso",
        }
    }

    /// Whether several messages are one packet to the kernel.
    pub(crate) fn is_one_train(&self) -> bool {
        matches!(self.call, Call::Train)
    }

    /// Messages that one call takes one by one, so that it may stop between them.
    pub(crate) fn room(&self) -> usize {
        match &self.call {
            Call::Batched(batch) => batch.room(),
            Call::Single | Call::Train => 1,
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
        let fd = socket.as_raw_fd();
        let train = match &mut self.call {
            Call::Single => None,
            Call::Batched(outgoing) if messages.len() > payload_bytes => {
                return outgoing.send(fd, messages, payload_bytes)
            }
            Call::Batched(_) => None,
            Call::Train => train(messages, payload_bytes),
        };
        let Some((train, segment_bytes)) = train else {
            return socket.send_with_flags(&messages[..payload_bytes], libc::MSG_DONTWAIT).map(|_| 1);
        };
        match datagram::send_segmented(fd, train, segment_bytes) {
            Ok(()) => Ok(train.len() / payload_bytes),
            Err(error) if is_gso_refused(&error) => {
                self.call = Call::Batched(SendBatch::new(MESSAGES_PER_CALL));
                self.hand_over(socket, messages, payload_bytes)
            }
            Err(error) => Err(error),
        }
    }
}

/// The longest train at the front of `messages` and its segment size; `None` where a train would be one message.
fn train(messages: &[u8], payload_bytes: usize) -> Option<(&[u8], u16)> {
    let segment_bytes = u16::try_from(payload_bytes).ok()?;
    let count = (GSO_BYTES / payload_bytes).min(GSO_SEGMENTS).min(messages.len() / payload_bytes);
    (count > 1).then(|| (&messages[..count * payload_bytes], segment_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_sockets::socket;
    use netjoule_transport::Values;

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

    #[test]
    fn a_train_has_what_one_call_may_carry() {
        let messages = vec![0; 6400];
        assert_eq!(train(&messages, 64), Some((&messages[..4096], 64)));
        assert_eq!(train(&messages[..128], 64), Some((&messages[..128], 64)));
        assert_eq!(train(&messages[..64], 64), None);
        let long = vec![0; 130_000];
        assert_eq!(train(&long, 1440).map(|(train, _)| train.len()), Some(45 * 1440));
        assert_eq!(train(&long, 40_000), None);
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
            assert_eq!(socket::receive_from(&far, &mut buffer).unwrap().map(|(length, _)| length), Some(64));
        }
        assert_eq!(socket::receive_from(&far, &mut buffer).unwrap(), None);
    }
}
