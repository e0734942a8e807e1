// SPDX-License-Identifier: Apache-2.0
//! One end of a UDP flow: a connected socket after the handshake.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use netjoule_transport::datagram::{self, Batch, GRO_BYTES};
use netjoule_transport::departures::Departures;
use netjoule_transport::launch::LaunchTimes;
use netjoule_transport::socket::is_unreachable;
use netjoule_transport::{
    socket, stamps, Arrival, BatchOutcome, Departure, FlowSpec, IpVersion, Packetisation,
    PacketisationSource, PollFd, Result, Role, SendOutcome, State, Stop, Transport, TransportError, Values,
    TOKEN_BYTES,
};
use socket2::Socket;

use crate::departure::Way;
use crate::handshake::{is_handshake, Acceptor, Initiator, DATAGRAM_BYTES};
use crate::rest::Rest;
use crate::{TX_TIMESTAMPS, UDP_HEADER_BYTES};

/// `recvmmsg` calls per [`Transport::receive`].
const CALLS_PER_RECEIVE: usize = 8;

enum Phase {
    Accepting(Acceptor),
    Initiating(Initiator),
    Open,
}

pub(crate) struct End {
    socket: Socket,
    phase: Phase,
    /// The server's half stays after opening: a repeated PROOF means that our ACCEPTED was lost.
    acceptor: Option<Acceptor>,
    peer: Option<SocketAddr>,
    role: Role,
    way: Way,
    launch_times: Option<LaunchTimes>,
    batch: Batch,
    rest: Rest,
    any_message_sent: bool,
    /// Messages that the kernel took, and their bytes: as many packets, since fragmentation is forbidden.
    datagrams_sent: u64,
    bytes_sent: u64,
    /// Transmit stamps are wanted; asked for with the first message, so that handshake datagrams have none.
    stamps_departures: bool,
    departures: Option<Departures>,
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
        let phase = Phase::Initiating(Initiator::new(flow.token, now_ns));
        Self::new(socket, phase, Some(remote), flow)
    }

    pub(crate) fn listen(local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> Result<Self> {
        let socket = socket::datagram(local)?;
        Self::new(socket, Phase::Accepting(Acceptor::new(flow.token, allowed_peer)), None, flow)
    }

    fn new(socket: Socket, phase: Phase, peer: Option<SocketAddr>, flow: &FlowSpec) -> Result<Self> {
        let receives = flow.role == Role::Receiver;
        if receives {
            datagram::ask_for_stamps(&socket)?;
        }
        let joins = receives && flow.gso;
        if joins {
            datagram::join_trains(&socket)?;
        }
        // One byte more than a message, so that a longer datagram is seen to be longer.
        let slot_bytes = if joins { GRO_BYTES } else { flow.message_bytes.max(DATAGRAM_BYTES) + 1 };
        Ok(Self {
            batch: Batch::new(if receives { slot_bytes } else { DATAGRAM_BYTES + 1 }),
            socket,
            phase,
            acceptor: None,
            peer,
            role: flow.role,
            way: Way::of(flow),
            launch_times: None,
            rest: if receives { Rest::of(flow) } else { Rest::default() },
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

    /// Read one datagram with its sender during the handshake.
    fn read_one(&self) -> Result<Option<([u8; DATAGRAM_BYTES + 1], usize, SocketAddr)>> {
        let mut bytes = [0_u8; DATAGRAM_BYTES + 1];
        match socket::receive_from(&self.socket, &mut bytes) {
            Ok(received) => Ok(received.map(|(length, from)| (bytes, length, from))),
            Err(error) if is_unreachable(&error) => self.refused_while_connecting(&error).map(|()| None),
            Err(error) => Err(TransportError::io("receive a UDP datagram")(error)),
        }
    }

    fn accept_step(&mut self, mut acceptor: Acceptor) -> Result<Phase> {
        while let Some((bytes, length, from)) = self.read_one()? {
            let verdict = acceptor.on_datagram(&bytes[..length], from, &mut random_nonce);
            if verdict.proven {
                self.socket
                    .connect(&from.into())
                    .map_err(TransportError::io(format!("connect UDP to {from}")))?;
                self.peer = Some(from);
                self.discard_waiting()?;
                self.send_quietly(verdict.reply.as_ref());
                self.acceptor = Some(acceptor);
                return Ok(Phase::Open);
            }
            if let Some(reply) = verdict.reply {
                // A lost reply is repeated when the client asks again.
                let _ = self.socket.send_to(&reply, &from.into());
            }
        }
        Ok(Phase::Accepting(acceptor))
    }

    /// Before the socket was connected anyone could have queued datagrams; the peer sends none before ACCEPTED.
    fn discard_waiting(&self) -> Result<()> {
        while self.read_one()?.is_some() {}
        Ok(())
    }

    fn initiate_step(&mut self, mut initiator: Initiator, now_ns: i64) -> Result<Phase> {
        while let Some((bytes, length, _)) = self.read_one()? {
            if initiator.on_datagram(&bytes[..length], now_ns) {
                return Ok(Phase::Open);
            }
        }
        if let Some(datagram) = initiator.on_time(now_ns) {
            if let Err(error) = self.socket.send(&datagram) {
                self.refused_while_connecting(&error)?;
            }
        }
        Ok(Phase::Initiating(initiator))
    }

    /// A closed port ends a client's attempt; any other trouble on the way may pass and is left to repetition.
    fn refused_while_connecting(&self, error: &io::Error) -> Result<()> {
        match self.peer {
            Some(peer) if self.acceptor.is_none() && error.raw_os_error() == Some(libc::ECONNREFUSED) => {
                Err(TransportError::Refused(format!("nobody listens on UDP {peer}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Send a handshake datagram; a failure is like a loss on the way and is repaired by repetition.
    fn send_quietly(&self, datagram: Option<&[u8; DATAGRAM_BYTES]>) {
        if let Some(datagram) = datagram {
            let _ = self.socket.send(datagram);
        }
    }

    /// A sending server answers repeated PROOFs until its first message shows that the client is open.
    fn answers_proofs(&self) -> bool {
        self.role == Role::Sender && self.acceptor.is_some() && !self.any_message_sent
    }

    fn answer(&mut self, bytes: &[u8]) {
        let (Some(acceptor), Some(peer)) = (&mut self.acceptor, self.peer) else { return };
        let verdict = acceptor.on_datagram(bytes, peer, &mut random_nonce);
        self.send_quietly(verdict.reply.as_ref());
    }

    /// Before a call that sends messages: have it stamped, if that is wanted.
    fn before_sending(&mut self) -> Result<()> {
        if self.stamps_departures && self.departures.is_none() {
            self.departures = Some(Departures::ask(&self.socket)?);
        }
        Ok(())
    }

    /// A call has sent messages of `bytes` in all, to leave at once or at `launch_ns`.
    fn after_sending(
        &mut self,
        datagrams: usize,
        bytes: usize,
        now_ns: i64,
        launch_ns: Option<i64>,
    ) -> Result<()> {
        self.any_message_sent = true;
        self.datagrams_sent += datagrams as u64;
        self.bytes_sent += bytes as u64;
        match &mut self.departures {
            Some(departures) => departures.sent(&self.socket, now_ns, launch_ns).map_err(no_stamps),
            None => Ok(()),
        }
    }

    /// One hand-over has sent `taken` messages. The kernel stamps calls, and each datagram of a `sendmmsg` as one.
    fn handed_over(&mut self, taken: usize, message_bytes: usize, now_ns: i64) -> Result<()> {
        if self.way.is_one_train() {
            return self.after_sending(taken, taken * message_bytes, now_ns, None);
        }
        (0..taken).try_for_each(|_| self.after_sending(1, message_bytes, now_ns, None))
    }

    fn refusal(&mut self, error: io::Error, message_bytes: usize) -> Result<()> {
        if let Some(departures) = &mut self.departures {
            departures.refused(&self.socket).map_err(no_stamps)?;
        }
        if error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS) {
            self.refused_no_buffer += 1;
            return Ok(());
        }
        if is_unreachable(&error) {
            // Left to the control channel to judge: a link that comes back goes on.
            self.refused_unreachable += 1;
            return Ok(());
        }
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            let mtu = self
                .path_mtu_bytes()
                .map_or_else(|| "the path's MTU".into(), |mtu| format!("the path's MTU of {mtu} bytes"));
            return Err(TransportError::Unsupported(format!(
                "a message of {message_bytes} bytes does not fit {mtu}"
            )));
        }
        Err(TransportError::io("send a UDP datagram")(error))
    }
}

/// An unpredictable nonce from the kernel.
fn random_nonce() -> [u8; TOKEN_BYTES] {
    let mut nonce = [0; TOKEN_BYTES];
    // SAFETY: the kernel fills a live buffer; requests of up to 256 bytes are never cut short.
    let length = unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), nonce.len(), 0) };
    assert_eq!(length, nonce.len() as isize, "the kernel gives no random bytes");
    nonce
}

impl Transport for End {
    fn local_address(&self) -> Result<SocketAddr> {
        let address = self.socket.local_addr().map_err(TransportError::io("read the local UDP address"))?;
        address.as_socket().ok_or_else(|| TransportError::Lost("the UDP socket has no IP address".into()))
    }

    fn path_mtu_bytes(&self) -> Option<u32> {
        socket::path_mtu_bytes(self.socket.as_raw_fd(), self.peer?.is_ipv4())
    }

    fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let awaits_messages = self.role == Role::Receiver && self.rest.until_ns().is_none();
        let read = !matches!(self.phase, Phase::Open) || awaits_messages || self.answers_proofs();
        if read {
            fds.push(PollFd { fd: self.socket.as_raw_fd(), read: true, write: false });
        }
    }

    fn next_wakeup_ns(&self) -> Option<i64> {
        match &self.phase {
            Phase::Initiating(initiator) => Some(initiator.due_ns()),
            Phase::Accepting(_) => None,
            Phase::Open => self.rest.until_ns(),
        }
    }

    fn service(&mut self, now_ns: i64) -> Result<State> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Open) {
            Phase::Accepting(acceptor) => self.accept_step(acceptor)?,
            Phase::Initiating(initiator) => self.initiate_step(initiator, now_ns)?,
            Phase::Open => {
                while self.answers_proofs() {
                    let Some((bytes, length, _)) = self.read_one()? else { break };
                    self.answer(&bytes[..length]);
                }
                if let Some(departures) = &mut self.departures {
                    departures.collect(&self.socket).map_err(no_stamps)?;
                }
                Phase::Open
            }
        };
        Ok(if matches!(self.phase, Phase::Open) { State::Open } else { State::Connecting })
    }

    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<SendOutcome> {
        self.before_sending()?;
        match self.socket.send_with_flags(message, libc::MSG_DONTWAIT) {
            Ok(_) => self.after_sending(1, message.len(), now_ns, None).map(|()| SendOutcome::Sent),
            Err(error) => self.refusal(error, message.len()).map(|()| SendOutcome::Refused),
        }
    }

    fn send_batch(&mut self, batch: &mut [u8], message_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        let messages = batch.len() / message_bytes;
        let mut sent = 0;
        while sent < messages {
            let rest = &batch[sent * message_bytes..];
            let taken = if messages - sent == 1 {
                usize::from(self.send(rest, now_ns)? == SendOutcome::Sent)
            } else {
                self.before_sending()?;
                match self.way.hand_over(&self.socket, rest, message_bytes) {
                    Ok(taken) => {
                        self.handed_over(taken, message_bytes, now_ns)?;
                        taken
                    }
                    Err(error) => self.refusal(error, message_bytes).map(|()| 0)?,
                }
            };
            if taken == 0 {
                return Ok(BatchOutcome { sent, stop: Stop::Refused });
            }
            sent += taken;
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    fn prepare_launch_times(&mut self) -> Result<()> {
        let peer = self.peer.ok_or_else(|| TransportError::Lost("UDP has no peer yet".into()))?;
        self.launch_times = Some(LaunchTimes::prepare(self.socket.as_raw_fd(), peer)?);
        // Whether the kernel keeps them is measured, not assumed.
        self.stamps_departures = true;
        Ok(())
    }

    fn send_at(&mut self, message: &[u8], launch_ns: i64, now_ns: i64) -> Result<SendOutcome> {
        let Some(times) = self.launch_times else { return self.send(message, now_ns) };
        self.before_sending()?;
        match times.send(self.socket.as_raw_fd(), message, launch_ns) {
            Ok(()) => {
                let sent_ns = launch_ns.max(now_ns);
                self.after_sending(1, message.len(), sent_ns, Some(launch_ns)).map(|()| SendOutcome::Sent)
            }
            Err(error) => self.refusal(error, message.len()).map(|()| SendOutcome::Refused),
        }
    }

    fn stamps_launches(&self) -> bool {
        self.launch_times.is_some()
    }

    fn hands_over_as_one(&self) -> bool {
        self.way.is_one_train()
    }

    fn flush(&mut self, _now_ns: i64) -> Result<()> {
        Ok(())
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
            if count < datagram::BATCH {
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
            if count < datagram::BATCH {
                break;
            }
        }
        for proof in proofs {
            self.answer(&proof);
        }
        Ok(total)
    }

    fn finish(&mut self, _now_ns: i64) -> Result<()> {
        Ok(())
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
            stamps::report(self.batch.stamp_counts(), &mut values);
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
        let headers = self.peer.map(|peer| IpVersion::of(peer.ip()).header_bytes() + UDP_HEADER_BYTES);
        match headers.filter(|_| self.datagrams_sent > 0 && messages_sent > 0) {
            Some(headers) => Packetisation {
                frames_per_message: Some(self.datagrams_sent as f64 / messages_sent as f64),
                mean_ip_packet_bytes: Some(
                    self.bytes_sent as f64 / self.datagrams_sent as f64 + headers as f64,
                ),
                source: PacketisationSource::Measured,
            },
            None => Packetisation {
                frames_per_message: None,
                mean_ip_packet_bytes: None,
                source: PacketisationSource::Unknown,
            },
        }
    }

    fn close(&mut self, _now_ns: i64) {}
}

/// The error queue cannot be read.
fn no_stamps(error: io::Error) -> TransportError {
    TransportError::io("read the transmit time stamps of a UDP socket")(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::message::Header;

    fn flow(role: Role, gso: bool) -> FlowSpec {
        FlowSpec {
            message_bytes: 100,
            role,
            token: [3; TOKEN_BYTES],
            gso,
            seed: 0,
            rate_bps: 0,
            options: Values::new(),
            event_log: None,
        }
    }

    /// Both ends over loopback, opened; time is a counter, nothing sleeps.
    fn open_pair(any_port: &str, gso: bool) -> (End, End) {
        let mut server = End::listen(any_port.parse().unwrap(), None, &flow(Role::Receiver, gso)).unwrap();
        let address = server.local_address().unwrap();
        let mut client = End::connect(None, address, &flow(Role::Sender, gso), 0).unwrap();
        for now_ns in (0..).step_by(50_000_000).take(100) {
            let (one, other) = (client.service(now_ns).unwrap(), server.service(now_ns).unwrap());
            if (one, other) == (State::Open, State::Open) {
                return (client, server);
            }
        }
        panic!("the handshake did not finish");
    }

    fn messages(count: u64) -> Vec<u8> {
        let mut batch = vec![0; 100 * count as usize];
        for (sequence, message) in (0..).zip(batch.chunks_exact_mut(100)) {
            Header { sequence, sent_ns: 1 }.write(message);
        }
        batch
    }

    fn sequences(end: &mut End) -> Vec<u64> {
        let mut seen = Vec::new();
        end.receive(0, &mut |arrival| {
            assert_eq!(arrival.bytes.len(), 100);
            seen.push(Header::read(arrival.bytes).unwrap().sequence);
        })
        .unwrap();
        seen
    }

    #[test]
    fn messages_cross_in_order_with_and_without_gso_over_both_ip_versions() {
        for any_port in ["127.0.0.1:0", "[::1]:0"] {
            for gso in [false, true] {
                let (mut client, mut server) = open_pair(any_port, gso);
                let outcome = client.send_batch(&mut messages(150), 100, 0).unwrap();
                assert_eq!(outcome, BatchOutcome { sent: 150, stop: Stop::None });
                assert_eq!(sequences(&mut server), (0..150).collect::<Vec<_>>());
                assert!(client.drained());
            }
        }
    }

    #[test]
    fn packets_are_counted_with_and_without_trains() {
        for (any_port, headers) in [("127.0.0.1:0", 28), ("[::1]:0", 48)] {
            for gso in [false, true] {
                let (mut client, _server) = open_pair(any_port, gso);
                assert_eq!(client.packetisation(0).source, PacketisationSource::Unknown);
                client.send_batch(&mut messages(150), 100, 0).unwrap();
                let figures = client.packetisation(150);
                assert_eq!(figures.source, PacketisationSource::Measured);
                assert_eq!(figures.frames_per_message, Some(1.0));
                assert_eq!(figures.mean_ip_packet_bytes, Some(f64::from(100 + headers)));
            }
        }
    }

    #[test]
    fn every_call_is_stamped_on_its_way_out_when_asked() {
        for (gso, calls) in [(false, 150), (true, 3)] {
            let mut server =
                End::listen("127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, gso)).unwrap();
            let mut stamped = flow(Role::Sender, gso);
            stamped.options.insert(TX_TIMESTAMPS.into(), true.into());
            let mut client = End::connect(None, server.local_address().unwrap(), &stamped, 0).unwrap();
            for now_ns in (0..).step_by(50_000_000).take(100) {
                client.service(now_ns).unwrap();
                server.service(now_ns).unwrap();
            }
            let sent_ns = stamps::now_ns();
            client.send_batch(&mut messages(150), 100, sent_ns).unwrap();
            let mut told = Vec::new();
            client.departures(&mut |departure| told.push(departure)).unwrap();
            assert_eq!(told.len(), calls);
            assert!(told.iter().all(|departure| departure.sent_ns == sent_ns));
            assert!(told.windows(2).all(|pair| pair[0].left_ns <= pair[1].left_ns), "{told:?}");
            assert_eq!(client.path_statistics()["departures_not_stamped"], 0);
        }
    }

    #[test]
    fn a_batch_crosses_whole_however_many_calls_it_takes() {
        let (mut client, mut server) = open_pair("127.0.0.1:0", false);
        client.way = Way::Together(netjoule_transport::outgoing::Outgoing::new(7));
        let outcome = client.send_batch(&mut messages(150), 100, 0).unwrap();
        assert_eq!(outcome, BatchOutcome { sent: 150, stop: Stop::None });
        assert_eq!(sequences(&mut server), (0..150).collect::<Vec<_>>());
        assert_eq!(client.path_statistics()["send_call"], "sendmmsg");
    }

    #[test]
    fn the_receiver_of_a_fast_flow_rests_and_loses_nothing() {
        let (mut client, mut server) = open_pair("127.0.0.1:0", false);
        server.rest = Rest::of(&FlowSpec { rate_bps: 100_000 * 800, ..flow(Role::Receiver, false) });
        let watches = |end: &End| {
            let mut fds = Vec::new();
            end.poll_fds(&mut fds);
            !fds.is_empty()
        };
        assert!(watches(&server));
        client.send_batch(&mut messages(40), 100, 0).unwrap();
        assert_eq!(sequences(&mut server).len(), 40);
        let until_ns = server.next_wakeup_ns().unwrap();
        assert!(!watches(&server));
        client.send_batch(&mut messages(7), 100, 0).unwrap();
        let mut seen = 0;
        assert_eq!(server.receive(until_ns - 1, &mut |_| seen += 1).unwrap(), 0);
        assert_eq!(server.receive(until_ns, &mut |_| seen += 1).unwrap(), 7);
        assert_eq!(server.receive(2 * until_ns, &mut |_| seen += 1).unwrap(), 0);
        assert_eq!((seen, server.next_wakeup_ns(), watches(&server)), (7, None, true));
    }

    #[test]
    fn strangers_are_not_heard_after_opening() {
        let (_client, mut server) = open_pair("127.0.0.1:0", false);
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(&messages(1), server.local_address().unwrap()).unwrap();
        assert_eq!(sequences(&mut server), Vec::<u64>::new());
    }

    #[test]
    fn connecting_to_a_closed_port_is_refused() {
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut client = End::connect(None, closed, &flow(Role::Sender, false), 0).unwrap();
        let outcome = (0..).step_by(50_000_000).take(20).find_map(|now_ns| client.service(now_ns).err());
        assert!(matches!(outcome, Some(TransportError::Refused(_))), "{outcome:?}");
    }
}
