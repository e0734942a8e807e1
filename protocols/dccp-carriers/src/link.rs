// SPDX-License-Identifier: Apache-2.0
//! A carrier with the packets on their way into it and out of it.

use std::io;
use std::os::fd::AsRawFd;

use netjoule_dccp::ccid::Ecn;
use netjoule_dccp::connection::{Spacing, Transmit};
use netjoule_dccp::options::data_dropped::DropCode;
use netjoule_dccp::Connection;
use netjoule_sockets::datagram::{self, ReceiveBatch};
use netjoule_sockets::send_call::SendCall;
use netjoule_sockets::socket;
use netjoule_sockets::timestamps::TimestampCounts;
use netjoule_transport::message_rate::MessageRate;
use netjoule_transport::{Arrival, FlowSpec, IpVersion, Result, TransportError};

use crate::carrier::Carrier;
use crate::ecn;
use crate::send_queue::SendQueue;

#[derive(Debug)]
pub(crate) struct Link<C> {
    pub(crate) carrier: C,
    pub(crate) send_queue: SendQueue,
    /// Marks are read, and set as the connection asks.
    pub(crate) ecn: bool,
    pace: MessageRate,
    batch: ReceiveBatch,
}

impl<C: Carrier> Link<C> {
    /// The link of `flow`. `slot_bytes`: longest packet, or train, that may arrive. `ecn`: marks are wanted; where the socket
    /// has none the flow goes on without.
    pub(crate) fn new(carrier: C, flow: &FlowSpec, slot_bytes: usize, ecn: bool) -> Result<Self> {
        datagram::enable_rx_timestamps(carrier.socket())?;
        datagram::enable_overflow_counts(carrier.socket())?;
        let ip_version = IpVersion::of(carrier.local()?.ip());
        let ecn = ecn && C::ECN && ecn::switch_on(carrier.socket(), ip_version);
        let pace = MessageRate::of(flow);
        // As over UDP: of a flow that is not fast each message has a call of its own.
        let way = if C::TRAINS && flow.gso {
            SendCall::Train
        } else if pace.is_fast() {
            SendCall::batched()
        } else {
            SendCall::Single
        };
        let send_queue = SendQueue::new(way, ip_version);
        Ok(Self { carrier, send_queue, ecn, pace, batch: ReceiveBatch::new(slot_bytes) })
    }

    /// Messages of `payload_bytes` are about to be offered: of a flow of several sizes they tell whether it is fast.
    pub(crate) fn expect(&mut self, messages: usize, payload_bytes: usize, now_ns: i64) {
        self.pace.count(messages, payload_bytes, now_ns);
        if self.pace.is_fast() {
            self.send_queue.share_calls();
        }
    }

    /// Where the arrival times so far came from.
    pub(crate) fn timestamp_counts(&self) -> TimestampCounts {
        self.batch.timestamp_counts()
    }

    /// Read what has arrived, in at most `calls` system calls, and give every message to `sink`; how many there were.
    /// With `answer`, what the connection has to say about it (acknowledgements) leaves after each packet, and after
    /// each quarter of a train: the peer's congestion window opens by the acknowledgement.
    pub(crate) fn read(
        &mut self,
        connection: &mut Connection,
        calls: usize,
        answer: bool,
        sink: &mut dyn FnMut(Arrival<'_>) -> std::result::Result<(), DropCode>,
    ) -> Result<usize> {
        let mut messages = 0;
        for _ in 0..calls {
            let count = readable(self.batch.receive(self.carrier.socket().as_raw_fd()))?;
            if count == 0 {
                break;
            }
            let read_ns = self.batch.read_ns();
            for index in 0..count {
                let received = self.batch.datagram(index);
                let arrived_ns = received.arrived_ns;
                let (lag_ns, overflows) = (read_ns.saturating_sub(arrived_ns), received.overflows);
                connection.on_receive_buffer(read_ns, lag_ns, overflows.into());
                //= rfc6773#3.5
                //# examining the values received in the ECN fields of incoming IP packets, relaying any packet markings to
                //# the DCCP module.
                let ecn = ecn::field(received.ecn);
                let piece = received.segment_bytes.unwrap_or(received.bytes.len()).max(1);
                let quarter = (received.bytes.len() / piece / 4).max(2) * piece;
                for part in received.bytes.chunks(quarter) {
                    // Where trains are joined (UDP), nothing lies between the packets.
                    let packets = self.carrier.packet(part);
                    connection.handle_train(arrived_ns, ecn, packets, piece, |bytes| {
                        messages += 1;
                        sink(Arrival { bytes, arrived_ns })
                    });
                    if answer {
                        transmit(&self.carrier, &mut self.send_queue, connection, read_ns)?;
                    }
                }
            }
            // A short batch emptied the socket: asking again would cost a call per message of a paced flow.
            if count < datagram::BATCH {
                break;
            }
        }
        Ok(messages)
    }

    /// Send everything that `connection` has to say at `now_ns`, as far as the socket takes it.
    pub(crate) fn transmit(&mut self, connection: &mut Connection, now_ns: i64) -> Result<()> {
        transmit(&self.carrier, &mut self.send_queue, connection, now_ns)?;
        self.heed_mtu(connection);
        Ok(())
    }

    /// When a packet did not fit, tell `connection` what does.
    pub(crate) fn heed_mtu(&mut self, connection: &mut Connection) {
        if self.send_queue.take_too_large() {
            if let Some(mtu_bytes) = self.mtu_bytes() {
                connection.set_mtu_bytes(mtu_bytes);
            }
        }
    }

    /// Hand over what is waiting.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.send_queue.flush(self.carrier.socket())
    }

    /// Let as many of the messages in `batch` leave as may leave now in one train; how many.
    pub(crate) fn send_train(
        &mut self,
        connection: &mut Connection,
        batch: &mut [u8],
        spacing: Spacing,
        now_ns: i64,
    ) -> Result<usize> {
        let (send_queue, socket) = (&mut self.send_queue, self.carrier.socket());
        let most = send_queue.most_batched(spacing.headroom_bytes + spacing.payload_bytes);
        let Some(train) = connection.send_train(now_ns, batch, spacing, most, send_queue.space()) else {
            return Ok(0);
        };
        let Transmit { bytes, ecn, .. } = train.first;
        if train.in_place {
            send_queue.send_train(socket, &batch[..train.packets * bytes], bytes, ecn)?;
        } else {
            send_queue.push(socket, bytes, ecn)?;
        }
        Ok(train.packets)
    }

    /// Send a packet that belongs to no connection; a full socket loses it, and who asked will ask again.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Result<()> {
        if self.send_queue.is_blocked() {
            return self.flush();
        }
        self.send_queue.space().extend_from_slice(packet);
        self.send_queue.push(self.carrier.socket(), packet.len(), Ecn::NotEct)
    }

    /// MTU of the way to the peer, when the socket is connected.
    pub(crate) fn mtu_bytes(&self) -> Option<u32> {
        let ipv4 = self.carrier.local().ok()?.is_ipv4();
        socket::path_mtu_bytes(self.carrier.socket().as_raw_fd(), ipv4)
    }
}

fn transmit<C: Carrier>(
    carrier: &C,
    send_queue: &mut SendQueue,
    connection: &mut Connection,
    now_ns: i64,
) -> Result<()> {
    if send_queue.is_blocked() {
        send_queue.flush(carrier.socket())?;
    }
    while !send_queue.is_blocked() {
        let Some(packet) = connection.poll_transmit(now_ns, send_queue.space()) else { break };
        send_queue.push(carrier.socket(), packet.bytes, packet.ecn)?;
    }
    send_queue.flush(carrier.socket())
}

/// What was read, where trouble on the way to the peer (which may pass) is as good as nothing.
pub(crate) fn readable<T: Default>(outcome: io::Result<T>) -> Result<T> {
    match outcome {
        Err(error) if socket::is_unreachable(&error) => Ok(T::default()),
        other => other.map_err(TransportError::io("receive DCCP packets")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::UdpCarrier;
    use netjoule_transport::{Role, Values};

    /// The link of a sender of messages of 64 bytes.
    fn link(gso: bool, rate_bps: u64) -> Link<UdpCarrier> {
        let flow = FlowSpec {
            payload_bytes: 64,
            role: Role::Sender,
            token: [0; 16],
            gso,
            seed: 0,
            rate_bps,
            options: Values::new(),
            event_log: None,
        };
        let carrier = UdpCarrier::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        Link::new(carrier, &flow, 100, false).unwrap()
    }

    #[test]
    fn calls_are_shared_by_the_rule_that_udp_has() {
        let call = |gso, rate_bps| link(gso, rate_bps).send_queue.send_call();
        assert_eq!(call(false, 30_000_000), "send");
        assert_eq!(call(false, 51_199_999), "send");
        assert_eq!(call(false, 51_200_000), "sendmmsg");
        assert_eq!(call(true, 30_000_000), "gso");
    }

    #[test]
    fn a_flow_of_several_sizes_shares_calls_once_its_messages_are_many() {
        let mut link = link(false, 30_000_000);
        for burst in 0..40 {
            link.expect(1_000, 32, burst * 5_000_000);
        }
        assert_eq!(link.send_queue.send_call(), "sendmmsg");
    }
}
