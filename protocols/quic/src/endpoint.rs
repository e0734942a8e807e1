// SPDX-License-Identifier: Apache-2.0
//! How does a connection use its socket? Drain, run timers, flush; never blocking, never early.

use std::net::SocketAddr;
use std::time::Instant;

use netjoule_sockets::timestamps::now_ns;

use crate::driver::Driver;
use crate::error::QuicError;
use crate::messages::datagram::Inbox;
use crate::messages::packetisation::DataPackets;
use crate::path::pacer::{Pacer, Transmit, Waits};
use crate::path::packet_io::{Arrived, PacketIo};
use crate::path::packet_size::holds_a_message;

/// Packets read before any is written. quiche acknowledges at every chance to write: reading in small
/// portions halves the goodput and multiplies the acknowledgements.
pub(crate) const READ_BATCH: usize = 64;

/// A connection with a socket of its own.
pub(crate) struct Endpoint {
    pub(crate) driver: Driver,
    wire: PacketIo,
    /// When what was read last had arrived.
    arrived_ns: i64,
    /// Where the last packet that quiche wrote waits for its time.
    pacer: Pacer,
    data: DataPackets,
}

impl Endpoint {
    /// `packet_io` is connected to the driver's peer.
    pub(crate) fn new(driver: Driver, mut wire: PacketIo) -> Self {
        wire.expect_trains();
        Self { driver, wire, arrived_ns: now_ns(), pacer: Pacer::default(), data: DataPackets::default() }
    }

    pub(crate) fn wire(&self) -> &PacketIo {
        &self.wire
    }

    /// Counts since the start, the token's packet included.
    pub(crate) fn data(&self) -> DataPackets {
        self.data
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.driver.peer()
    }

    /// Reads some `READ_BATCH` packets; returns how many there were. Messages in DATAGRAM frames go to `inbox`.
    pub(crate) fn drain(&mut self, mut inbox: Option<&mut Inbox>) -> Result<usize, QuicError> {
        let mut packets = 0;
        let mut is_emptied = false;
        while packets < READ_BATCH && !is_emptied {
            let (count, is_last) = match self.wire.receive() {
                Ok(read) => read,
                Err(error) => {
                    self.tolerate(error)?;
                    continue;
                }
            };
            is_emptied = is_last;
            for index in 0..count {
                let Arrived { packets: train, arrived_ns } = self.wire.arrival(index);
                packets += train.len();
                train.for_each(|packet| self.driver.receive(packet));
                self.arrived_ns = arrived_ns;
                if let Some(inbox) = &mut inbox {
                    self.take_in(inbox);
                }
            }
        }
        Ok(packets)
    }

    /// Gives `inbox` the messages of what was read last.
    pub(crate) fn take_in(&mut self, inbox: &mut Inbox) {
        inbox.take_in(&mut self.driver.quic, self.arrived_ns);
    }

    /// When the last packet of the last `drain` had arrived, `CLOCK_MONOTONIC` ns: a message of a stream is
    /// there once its last packet is.
    pub(crate) fn arrived_ns(&self) -> i64 {
        self.arrived_ns
    }

    /// Runs the timers that are due.
    pub(crate) fn run_timers(&mut self) {
        if self.driver.timeout_at().is_some_and(|at| at <= Instant::now()) {
            self.driver.on_timeout();
        }
    }

    /// Turns what the connection wants to send into packets. With GSO they may wait for `flush`.
    pub(crate) fn packetise(&mut self) -> Result<(), QuicError> {
        while !self.wire.is_blocked() {
            let Some(next) = self.next_to_leave()? else { return Ok(()) };
            if holds_a_message(next.len, self.driver.quic.destination_id().len()) {
                self.data.packets += 1;
                self.data.bytes += next.len as u64;
            }
            let outcome = self.wire.push();
            self.accept_loss(outcome)?;
        }
        Ok(())
    }

    /// The packet whose time has come, written anew when none is kept; `None` when there is none yet. The wire keeps it.
    fn next_to_leave(&mut self) -> Result<Option<Transmit>, QuicError> {
        if self.pacer.at().is_some() {
            return Ok(self.pacer.release(Instant::now()));
        }
        let Some(written) = self.driver.transmit(self.wire.room())? else { return Ok(None) };
        self.wire.keep(written.len);
        Ok(self.pacer.admit(written, Instant::now))
    }

    /// Hands everything that may leave now to the kernel.
    pub(crate) fn flush(&mut self) -> Result<(), QuicError> {
        if self.wire.is_blocked() {
            let outcome = self.wire.flush();
            self.accept_loss(outcome)?;
        }
        self.packetise()?;
        let outcome = self.wire.flush();
        self.accept_loss(outcome)
    }

    /// When the connection wants attention although no packet comes; `None` for never.
    pub(crate) fn wakeup_at(&self) -> Option<Instant> {
        self.driver.timeout_at().into_iter().chain(self.pacer.at()).min()
    }

    /// Whether a packet is ready that has not left.
    pub(crate) fn has_waiting_packet(&self) -> bool {
        self.pacer.at().is_some() || self.wire.is_blocked()
    }

    /// How packets waited for their times.
    pub(crate) fn waits(&self) -> Waits {
        self.pacer.waits()
    }

    fn accept_loss(&mut self, outcome: Result<(), QuicError>) -> Result<(), QuicError> {
        outcome.or_else(|error| self.tolerate(error))
    }

    /// "Unreachable" ends an attempt to connect. Later it is not trusted: anybody can forge ICMP, a radio
    /// link may come back, and a peer that is really gone is noticed over the control channel.
    fn tolerate(&mut self, error: QuicError) -> Result<(), QuicError> {
        match error {
            QuicError::NobodyListens | QuicError::NoPath { .. } if self.driver.is_established() => {
                self.wire.note_unreachable();
                Ok(())
            }
            error => Err(error),
        }
    }
}
