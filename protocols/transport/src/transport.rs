// SPDX-License-Identifier: Apache-2.0
//! What does one end of a flow offer to the engine?

use std::net::SocketAddr;

use netjoule_sockets::tx_timestamps::Departure;

use crate::{Congestion, Packetisation, PollFd, Result, State, TransportError, Values};

/// What became of a batch handed to [`Transport::send_batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOutcome {
    /// Messages accepted, counted from the front of the batch.
    pub sent: usize,
    /// Why the message after the accepted ones was not accepted; [`Stop::None`] when all were.
    pub stop: Stop,
}

/// Why a batch stopped, or a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It did not: all was accepted.
    None,
    /// A stream is full: keep the message and try again when writable.
    WouldBlock,
    /// A datagram was refused here (no way to the peer): it is gone and counts as not sent.
    Refused,
    /// The queue of a datagram transport is full, because congestion control or this host's network device takes less than
    /// is offered. This message and every other one that is due by now are not sent; the engine waits for the transport
    /// ([`Transport::poll_fds`], [`Transport::next_wakeup_ns`]) instead of for deadlines, and then offers what is due by
    /// that time.
    QueueFull,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The message, as long as it says for streams ([`crate::message::length`]); as received for datagrams.
    pub bytes: &'a [u8],
    /// When it arrived (kernel's stamp where there is one), `CLOCK_MONOTONIC` ns of this host. Messages that came in one
    /// packet, or in packets that the kernel joined to a train (GRO), have one arrival.
    pub arrived_ns: i64,
}

/// One end of one flow. See the crate's page for the order of calls.
pub trait Transport {
    /// Address this end is bound to. For a listener with the port that the client must connect to.
    fn local_address(&self) -> Result<SocketAddr>;

    /// What the client must know to connect (e.g. a certificate's fingerprint); empty by default.
    fn offer(&self) -> Values {
        Values::new()
    }

    /// MTU of the path as far as this host knows it, in bytes; asked when [`State::Open`]. `None` = unknown.
    fn path_mtu_bytes(&self) -> Option<u32> {
        None
    }

    /// The engine will offer its next message at `at_ns`; `None`: not known, or not before the transport has room. A
    /// transport that can read acknowledgements when it sends need not be woken by them while messages are due soon.
    fn expect_send(&mut self, _at_ns: Option<i64>) {}

    /// Throw away messages that were accepted and have not left this host, and say how many: they count as not sent.
    /// Called once, when the time to drain is over.
    fn discard_held(&mut self) -> u64 {
        0
    }

    /// Descriptors to wait for, appended to `fds` (which is not cleared). May change after every call.
    fn poll_fds(&self, fds: &mut Vec<PollFd>);

    /// Latest time at which [`Transport::service`] must be called even when no descriptor is ready.
    fn next_wakeup_ns(&self) -> Option<i64> {
        None
    }

    /// Do what is due at `now_ns`: handshake, read acknowledgements, run timers, write what is pending.
    /// Never blocks. At a receiving end it may leave messages in the kernel or in the transport for
    /// [`Transport::receive`]. Called whenever a descriptor is ready or the wake-up time has come; calling it
    /// more often does no harm.
    fn service(&mut self, now_ns: i64) -> Result<State>;

    /// Offer one message for sending. Behind its header is filler that means nothing: a transport that has to keep messages
    /// until they were acknowledged may send the filler of another message of the flow in its place.
    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<Stop>;

    /// Free bytes that this transport wants before every message of a batch, for a header of its own: then messages need
    /// not be copied.
    fn headroom_bytes(&self) -> usize {
        0
    }

    /// Offer messages in order, each `payload_bytes` long (at most [`FlowSpec::payload_bytes`]) and behind
    /// [`Self::headroom_bytes`] free bytes. What the free bytes hold afterwards is nobody's concern; the messages stay as
    /// they are.
    fn send_batch(&mut self, batch: &mut [u8], payload_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        let headroom_bytes = self.headroom_bytes();
        let mut sent = 0;
        for message in batch.chunks_exact(headroom_bytes + payload_bytes) {
            let message = &message[headroom_bytes..];
            match self.send(message, now_ns)? {
                Stop::None => sent += 1,
                stop => return Ok(BatchOutcome { sent, stop }),
            }
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    /// From now on messages are offered by [`Self::send_ahead`]. By default a transport cannot do so.
    ///
    /// # Errors
    /// [`TransportError::BadOption`] where the transport cannot, [`TransportError::HostLacks`] where the host cannot.
    fn prepare_launch_times(&mut self) -> Result<()> {
        Err(TransportError::BadOption(
            "so_txtime is for udp and null: this transport has no launch times".into(),
        ))
    }

    /// [`Self::send_batch`] of messages of which the kernel sends number `index` at `launch_ns(index)` (`CLOCK_MONOTONIC`), or
    /// at once when that has passed. Only after [`Self::prepare_launch_times`].
    fn send_ahead(
        &mut self,
        batch: &mut [u8],
        payload_bytes: usize,
        _launch_ns: &dyn Fn(usize) -> i64,
        now_ns: i64,
    ) -> Result<BatchOutcome> {
        self.send_batch(batch, payload_bytes, now_ns)
    }

    /// After [`Self::prepare_launch_times`]: whether [`Self::departures`] tells of every message that was offered by
    /// [`Self::send_ahead`] when it left this host. Without, nobody knows whether launch times are kept.
    fn stamps_launches(&self) -> bool {
        false
    }

    /// Whether the messages of a batch are one packet to the kernel now (a GSO train): then they leave in one moment.
    fn hands_over_as_one(&self) -> bool {
        false
    }

    /// Push accepted messages towards the wire. The engine calls it before every sleep.
    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        Ok(())
    }

    /// Hand every message that has arrived to `sink`, in order of arrival. Returns how many there were.
    /// Bounded: may stop after a few hundred messages when more are waiting, and then returns at once when called
    /// again. After a few, nothing is waiting but what a descriptor of [`Self::poll_fds`] announces.
    fn receive(&mut self, now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize>;

    /// No more messages will be offered: push out what is pending. Does not close the connection.
    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        Ok(())
    }

    /// Everything accepted has left this host and, where the transport knows, was acknowledged.
    fn drained(&self) -> bool {
        true
    }

    /// Counters of the path and the connection so far (TCP_INFO, QUIC path statistics, socket drops), names
    /// with units. Numbers must be finite and at most 2^53 - 1.
    fn path_statistics(&mut self) -> Values {
        Values::new()
    }

    /// Congestion control of the sending end now; `None` for a transport that has none. Costs a system call at most.
    fn congestion(&mut self) -> Option<Congestion> {
        None
    }

    /// Give every message that was stamped on its way out since the last call to `sink`. Nothing unless the transport
    /// has the option `tx_timestamps` and was asked for it, or [`Self::stamps_launches`]; trains are one entry.
    fn departures(&mut self, _sink: &mut dyn FnMut(Departure)) -> Result<()> {
        Ok(())
    }

    /// How messages became packets; asked at the sending end after [`Transport::drained`].
    fn packetisation(&mut self, _messages_sent: u64) -> Packetisation {
        Packetisation::measured(None)
    }

    /// Say goodbye to the peer (best effort, never blocks). Dropping then closes the descriptors.
    fn close(&mut self, _now_ns: i64) {}

    /// After [`Self::close`]: nothing is left to be said or answered. The engine services a transport that has not yet
    /// parted for a moment before it drops it.
    fn parted(&self) -> bool {
        true
    }
}
