// SPDX-License-Identifier: Apache-2.0
//! One end of a UDP flow: a connected socket after the handshake.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_sockets::datagram::{self, ReceiveBatch, UDP_HEADER_BYTES};
use netjoule_sockets::launch_times::LaunchTimes;
use netjoule_sockets::socket;
use netjoule_sockets::socket::is_unreachable;
use netjoule_sockets::tx_timestamps::{Call, TxTimestamps};
use netjoule_transport::{
    timestamp_counts, Arrival, BatchOutcome, Departure, FlowSpec, IpVersion, Packetisation, PollFd, Result,
    Role, State, Stop, Transport, TransportError, Values,
};
use socket2::Socket;

use crate::backpressure::Backpressure;
use crate::handshake::{is_handshake, DATAGRAM_BYTES};
use crate::opening::Opening;
use crate::options::TX_TIMESTAMPS;
use crate::receive_coalescing::ReceiveCoalescing;
use crate::send_method::SendMethod;

/// `recvmmsg` calls per [`Transport::receive`].
const CALLS_PER_RECEIVE: usize = 8;

pub(crate) struct End {
    socket: Socket,
    opening: Opening,
    role: Role,
    way: SendMethod,
    launch_times: Option<LaunchTimes>,
    batch: ReceiveBatch,
    rest: ReceiveCoalescing,
    /// Room in the socket for messages to send.
    room: Backpressure,
    any_message_sent: bool,
    /// Messages that the kernel took, and their bytes: as many packets, since fragmentation is forbidden.
    datagrams_sent: u64,
    bytes_sent: u64,
    /// Transmit stamps are wanted; asked for with the first message, so that handshake datagrams have none.
    stamps_departures: bool,
    departures: Option<TxTimestamps>,
    refused_no_buffer: u64,
    refused_unreachable: u64,
}

impl End {
    pub(crate) fn connect(
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        now_ns: i64,
    ) -> Result<Self> {
        let local = local.map_or_else(|| socket::unspecified_like(remote), |ip| SocketAddr::new(ip, 0));
        let socket = socket::datagram(local)?;
        socket.connect(&remote.into()).map_err(TransportError::io(format!("reach {remote} over UDP")))?;
        Self::new(socket, Opening::initiate(flow.token, remote, now_ns), flow)
    }

    pub(crate) fn listen(local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> Result<Self> {
        let socket = socket::datagram(local)?;
        Self::new(socket, Opening::accept(flow.token, allowed_peer), flow)
    }

    fn new(socket: Socket, opening: Opening, flow: &FlowSpec) -> Result<Self> {
        let receives = flow.role == Role::Receiver;
        if receives {
            datagram::enable_rx_timestamps(&socket)?;
        }
        let joins = receives && flow.gso;
        if joins {
            datagram::enable_gro(&socket)?;
        }
        // One byte more than a message, so that a longer datagram is seen to be longer.
        let slot_bytes = if receives { flow.payload_bytes.max(DATAGRAM_BYTES) } else { DATAGRAM_BYTES } + 1;
        Ok(Self {
            batch: if joins { ReceiveBatch::of_trains() } else { ReceiveBatch::new(slot_bytes) },
            socket,
            opening,
            role: flow.role,
            way: SendMethod::of(flow),
            launch_times: None,
            rest: if receives { ReceiveCoalescing::of(flow) } else { ReceiveCoalescing::default() },
            room: Backpressure::default(),
            any_message_sent: false,
            datagrams_sent: 0,
            bytes_sent: 0,
            stamps_departures: flow.role == Role::Sender
                && flow.options.get(TX_TIMESTAMPS) == Some(&true.into()),
            departures: None,
            refused_no_buffer: 0,
            refused_unreachable: 0,
        })
    }

    /// A sending server answers repeated PROOFs until its first message shows that the client is open.
    fn answers_proofs(&self) -> bool {
        self.role == Role::Sender && self.opening.has_accepted() && !self.any_message_sent
    }

    /// Before a call that sends messages: have it stamped, if that is wanted.
    fn before_sending(&mut self) -> Result<()> {
        match &mut self.departures {
            Some(departures) => departures.before_sending(&self.socket).map_err(no_stamps)?,
            None if self.stamps_departures => self.departures = Some(TxTimestamps::ask(&self.socket)?),
            None => {}
        }
        Ok(())
    }

    /// Messages of `bytes` in all have gone to the kernel in `calls`: a train is one, each datagram of a `sendmmsg` is one.
    fn after_sending(
        &mut self,
        datagrams: usize,
        bytes: usize,
        calls: impl Iterator<Item = Call>,
    ) -> Result<()> {
        self.any_message_sent = true;
        self.datagrams_sent += datagrams as u64;
        self.bytes_sent += bytes as u64;
        match &mut self.departures {
            Some(departures) => departures.sent(&self.socket, calls).map_err(no_stamps),
            None => Ok(()),
        }
    }

    /// Hand a batch over, with launch times where there are such; see [`Transport::send_batch`].
    fn hand_over_all(
        &mut self,
        batch: &[u8],
        payload_bytes: usize,
        launch_ns: Option<&dyn Fn(usize) -> i64>,
        now_ns: i64,
    ) -> Result<BatchOutcome> {
        let messages = batch.len() / payload_bytes;
        let mut sent = 0;
        while sent < messages {
            self.before_sending()?;
            let rest = &batch[sent * payload_bytes..];
            let launch_ns = launch_ns.map(|launch_ns| move |index| launch_ns(sent + index));
            let (taken, room) = match (&mut self.launch_times, &launch_ns) {
                (Some(times), Some(launch_ns)) => {
                    (times.send(self.socket.as_raw_fd(), rest, payload_bytes, launch_ns), times.room())
                }
                _ => (self.way.hand_over(&self.socket, rest, payload_bytes), self.way.room()),
            };
            let taken = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    return Ok(BatchOutcome { sent, stop: self.refusal(error, payload_bytes, now_ns)? })
                }
            };
            let is_cut = taken < room.min(messages - sent);
            let calls = if self.way.is_one_train() { 1 } else { taken };
            let call = |index| match &launch_ns {
                Some(launch_ns) => {
                    Call { sent_ns: launch_ns(index).max(now_ns), launch_ns: Some(launch_ns(index)) }
                }
                None => Call { sent_ns: now_ns, launch_ns: None },
            };
            self.after_sending(taken, taken * payload_bytes, (0..calls).map(call))?;
            if let Some(departures) = self.departures.as_mut().filter(|_| is_cut) {
                departures.refused(&self.socket).map_err(no_stamps)?;
            }
            sent += taken;
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    /// What becomes of a message that the kernel did not take.
    fn refusal(&mut self, error: io::Error, payload_bytes: usize, now_ns: i64) -> Result<Stop> {
        if let Some(departures) = &mut self.departures {
            departures.refused(&self.socket).map_err(no_stamps)?;
        }
        if self.room.is_wanting(&error, now_ns) {
            self.refused_no_buffer += 1;
            return Ok(Stop::QueueFull);
        }
        if is_unreachable(&error) {
            // Left to the control channel to judge: a link that comes back goes on.
            self.refused_unreachable += 1;
            return Ok(Stop::Refused);
        }
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            let mtu = self
                .path_mtu_bytes()
                .map_or_else(|| "the path's MTU".into(), |mtu| format!("the path's MTU of {mtu} bytes"));
            return Err(TransportError::Unsupported(format!(
                "a message of {payload_bytes} bytes does not fit {mtu}"
            )));
        }
        Err(TransportError::io("send a UDP datagram")(error))
    }
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        socket::local_address(&self.socket, "UDP")
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        socket::path_mtu_bytes(self.socket.as_raw_fd(), self.opening.peer()?.is_ipv4())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let awaits_messages = self.role == Role::Receiver && self.rest.until_ns().is_none();
        let read = !self.opening.is_done() || awaits_messages || self.answers_proofs();
        let write = self.room.awaits_writable();
        if read || write {
            fds.push(PollFd { fd: self.socket.as_raw_fd(), read, write });
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        let waits = [self.opening.due_ns(), self.rest.until_ns(), self.room.retry_ns()];
        waits.into_iter().flatten().min()
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        if !self.opening.is_done() {
            self.opening.step(&self.socket, now_ns)?;
        } else {
            self.room.may_be_back(now_ns);
            if self.answers_proofs() {
                self.opening.answer_waiting(&self.socket)?;
            }
            if let Some(departures) = &mut self.departures {
                departures.collect(&self.socket).map_err(no_stamps)?;
            }
        }
        Ok(if self.opening.is_done() { State::Open } else { State::Connecting })
    }

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<Stop> {
        self.hand_over_all(message, message.len(), None, now_ns).map(|outcome| outcome.stop)
    }

    fn send_batch(&mut self, batch: &mut [u8], payload_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        self.way.expect(batch.len() / payload_bytes, payload_bytes, now_ns);
        self.hand_over_all(batch, payload_bytes, None, now_ns)
    }

    fn prepare_launch_times(&mut self) -> Result<()> {
        let peer = self.opening.peer().ok_or_else(|| TransportError::Lost("UDP has no peer yet".into()))?;
        self.launch_times = Some(LaunchTimes::prepare(self.socket.as_raw_fd(), peer)?);
        // Whether the kernel keeps them is measured, not assumed.
        self.stamps_departures = true;
        Ok(())
    }

    fn send_ahead(
        &mut self,
        batch: &mut [u8],
        payload_bytes: usize,
        launch_ns: &dyn Fn(usize) -> i64,
        now_ns: i64,
    ) -> Result<BatchOutcome> {
        let outcome = self.hand_over_all(batch, payload_bytes, Some(launch_ns), now_ns)?;
        Ok(match outcome.stop {
            // What waits in the kernel for its launch fills the buffer: the message may follow when one has left.
            Stop::QueueFull => BatchOutcome { stop: Stop::WouldBlock, ..outcome },
            _ => outcome,
        })
    }

    fn stamps_launches(&self) -> bool {
        self.launch_times.is_some()
    }

    fn hands_over_as_one(&self) -> bool {
        self.way.is_one_train()
    }

    fn receive(&mut self, now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        if self.rest.lasts(now_ns) {
            return Ok(0);
        }
        let mut total = 0;
        let mut proofs = Vec::new();
        for _ in 0..CALLS_PER_RECEIVE {
            let count = match self.batch.receive(self.socket.as_raw_fd()) {
                Ok(count) => count,
                Err(error) if is_unreachable(&error) => 0,
                Err(error) => return Err(TransportError::io("receive UDP datagrams")(error)),
            };
            if count < self.batch.most() {
                self.rest.emptied(total + count > 0, datagram::now_ns());
            }
            if count == 0 {
                break;
            }
            for index in 0..count {
                let received = self.batch.datagram(index);
                if is_handshake(received.bytes) {
                    proofs.push(received.bytes.to_vec());
                    continue;
                }
                let arrived_ns = received.arrived_ns;
                let piece = received.segment_bytes.unwrap_or(received.bytes.len()).max(1);
                for bytes in received.bytes.chunks(piece) {
                    sink(Arrival { bytes, arrived_ns });
                    total += 1;
                }
            }
            // A short batch emptied the socket: asking again would cost a call per message of a paced flow.
            if count < self.batch.most() {
                break;
            }
        }
        for proof in proofs {
            self.opening.answer(&self.socket, &proof);
        }
        Ok(total)
    }

    fn drained(&self) -> bool {
        socket::unsent_bytes(self.socket.as_raw_fd()).unwrap_or(0) == 0
    }

    fn path_statistics(&mut self) -> Values {
        let fd = self.socket.as_raw_fd();
        let mut values = Values::new();
        let option = |name| socket::get_option(fd, libc::SOL_SOCKET, name).unwrap_or(0);
        values.insert("receive_buffer_bytes".into(), option(libc::SO_RCVBUF).into());
        values.insert("send_buffer_bytes".into(), option(libc::SO_SNDBUF).into());
        if let Some(drops) = socket::dropped_datagrams(fd) {
            values.insert("kernel_drops".into(), drops.into());
        }
        if self.role == Role::Sender {
            values.insert("refused_no_buffer".into(), self.refused_no_buffer.into());
            values.insert("send_call".into(), self.way.name().into());
            values.insert("refused_unreachable".into(), self.refused_unreachable.into());
            if let Some(departures) = &self.departures {
                values.insert("departures_not_stamped".into(), departures.missing().into());
            }
        } else {
            values.insert("receive_rest_us".into(), self.rest.length_us().into());
            timestamp_counts::report(self.batch.timestamp_counts(), &mut values);
        }
        values
    }

    fn departures(&mut self, sink: &mut dyn FnMut(Departure)) -> Result<()> {
        match &mut self.departures {
            Some(departures) => departures.take(&self.socket, sink).map_err(no_stamps),
            None => Ok(()),
        }
    }

    fn packetisation(&mut self, messages_sent: u64) -> Packetisation {
        let headers =
            self.opening.peer().map(|peer| IpVersion::of(peer.ip()).header_bytes() + UDP_HEADER_BYTES);
        let headers = headers.filter(|_| self.datagrams_sent > 0 && messages_sent > 0);
        Packetisation::measured(headers.map(|headers| {
            let mean_bytes = self.bytes_sent as f64 / self.datagrams_sent as f64;
            (self.datagrams_sent as f64 / messages_sent as f64, mean_bytes + headers as f64)
        }))
    }
}

/// The error queue cannot be read.
fn no_stamps(error: io::Error) -> TransportError {
    TransportError::io("read the transmit time stamps of a UDP socket")(error)
}

#[cfg(test)]
mod tests;
