// SPDX-License-Identifier: Apache-2.0
//! The bench's yardstick for QUIC: the quiche crate driven by as little code as possible, one stream, saturated.
//!
//! ```text
//! quiche_loop serve ADDRESS [--gso]                      prints "listening on ADDRESS:PORT", then the goodput as JSON
//! quiche_loop send ADDRESS:PORT SECONDS BYTES [--gso]    writes messages of BYTES for SECONDS
//! ```
//! Settings are those of a netjoule flow (CUBIC, quiche's pacing off, packets of 1472 bytes, 16 MiB of flow control);
//! nothing is checked, counted or timed per message, and the client takes any certificate.

use std::error::Error;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use boring::asn1::Asn1Time;
use boring::ec::{EcGroup, EcKey};
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    recvmsg, sendmsg, setsockopt, sockopt, ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PACKET_BYTES: usize = 1472;
const TRAIN_PACKETS: usize = 44;
const READ_BATCH: usize = 64;
const WINDOW_BYTES: u64 = 16 << 20;
const BUFFER_BYTES: usize = netjoule_sockets::socket::RECEIVE_BUFFER_BYTES;
const STREAM: u64 = 0;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let gso = words.last().is_some_and(|word| word == "--gso");
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address, ..] => serve(address, gso),
        ["send", to, seconds, bytes, ..] => {
            send(to.parse()?, Duration::from_secs_f64(seconds.parse()?), bytes.parse()?, gso)
        }
        _ => Err("usage: quiche_loop serve ADDRESS | send ADDRESS:PORT SECONDS BYTES, then --gso for trains"
            .into()),
    }
}

fn serve(address: &str, gso: bool) -> Outcome<()> {
    let mut wire = PacketIo::bind(SocketAddr::new(address.parse()?, 0), gso)?;
    println!("listening on {}", wire.local);
    let mut first = [0; PACKET_BYTES];
    wire.wait(None, false)?;
    let (length, peer) = wire.socket.recv_from(&mut first)?;
    wire.socket.connect(peer)?;
    let mut config = config(server_tls()?)?;
    let mut quic =
        quiche::accept(&quiche::ConnectionId::from_ref(&[1; 8]), None, wire.local, peer, &mut config)?;
    quic.recv(&mut first[..length], quiche::RecvInfo { from: peer, to: wire.local })?;

    let mut buffer = vec![0; 64 << 10];
    let (mut bytes, mut finished) = (0, false);
    let mut span: Option<(Instant, Instant)> = None;
    while !quic.is_closed() {
        wire.flush(&mut quic)?;
        wire.wait(quic.timeout(), wire.blocked)?;
        wire.drain(&mut quic, peer)?;
        while let Ok((count, fin)) = quic.stream_recv(STREAM, &mut buffer) {
            let now = Instant::now();
            span = Some((span.map_or(now, |(start, _)| start), now));
            bytes += count;
            finished |= fin;
        }
        if finished {
            // Done: it is closing already.
            let _ = quic.close(true, 0, b"");
        }
        quic.on_timeout();
    }
    let (start, end) = span.ok_or("nothing arrived")?;
    let goodput_mbps = 8e-6 * bytes as f64 / (end - start).as_secs_f64();
    println!("{}", serde_json::json!({ "bytes": bytes, "goodput_mbps": goodput_mbps }));
    Ok(())
}

fn send(peer: SocketAddr, length: Duration, payload_bytes: usize, gso: bool) -> Outcome<()> {
    let any: SocketAddr = if peer.is_ipv4() { "0.0.0.0:0".parse()? } else { "[::]:0".parse()? };
    let mut wire = PacketIo::bind(any, gso)?;
    wire.socket.connect(peer)?;
    wire.local = wire.socket.local_addr()?;
    let mut config = config(SslContextBuilder::new(SslMethod::tls())?)?;
    let mut quic =
        quiche::connect(None, &quiche::ConnectionId::from_ref(&[2; 8]), wire.local, peer, &mut config)?;

    let message = vec![7; payload_bytes];
    let (mut written, mut finished, mut start) = (0, false, None);
    while !quic.is_closed() {
        if quic.is_established() && !finished {
            if start.get_or_insert_with(Instant::now).elapsed() >= length {
                finished = quic.stream_send(STREAM, &[], true).is_ok();
            } else {
                while let Ok(count @ 1..) = quic.stream_send(STREAM, &message[written..], false) {
                    written = (written + count) % payload_bytes;
                }
            }
        }
        wire.flush(&mut quic)?;
        wire.wait(quic.timeout(), wire.blocked)?;
        wire.drain(&mut quic, peer)?;
        quic.on_timeout();
    }
    Ok(())
}

/// A non-blocking UDP socket, with trains or without.
struct PacketIo {
    socket: UdpSocket,
    local: SocketAddr,
    gso: bool,
    arrived: Vec<u8>,
    /// Packets that quiche wrote: all of `PACKET_BYTES` but the last.
    train: Vec<u8>,
    train_bytes: usize,
    /// The kernel did not take the train: it waits.
    blocked: bool,
}

impl PacketIo {
    fn bind(local: SocketAddr, gso: bool) -> Outcome<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES)?;
        }
        if gso {
            setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        }
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            gso,
            arrived: vec![0; 1 << 16],
            train: vec![0; TRAIN_PACKETS * PACKET_BYTES],
            train_bytes: 0,
            blocked: false,
        })
    }

    fn wait(&self, timeout: Option<Duration>, for_room: bool) -> Outcome<()> {
        let room = if for_room { PollFlags::POLLOUT } else { PollFlags::empty() };
        let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
            PollTimeout::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
        });
        poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN | room)], timeout)?;
        Ok(())
    }

    /// Give quiche what has arrived, a batch at most.
    fn drain(&mut self, quic: &mut quiche::Connection, peer: SocketAddr) -> Outcome<()> {
        let info = quiche::RecvInfo { from: peer, to: self.local };
        let mut packets = 0;
        while packets < READ_BATCH {
            let Some((length, packet_bytes)) = self.receive()? else { break };
            for packet in self.arrived[..length].chunks_mut(packet_bytes) {
                // quiche keeps the error and closes.
                let _ = quic.recv(packet, info);
                packets += 1;
            }
        }
        Ok(())
    }

    /// Bytes read, and the size of the packets in them.
    fn receive(&mut self) -> io::Result<Option<(usize, usize)>> {
        let mut control = nix::cmsg_space!(i32);
        let mut buffers = [IoSliceMut::new(&mut self.arrived)];
        let control = self.gso.then_some(&mut control);
        match recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut buffers, control, MsgFlags::empty()) {
            Ok(received) => {
                let joined = received.cmsgs()?.find_map(|message| match message {
                    ControlMessageOwned::UdpGroSegments(bytes) => usize::try_from(bytes).ok(),
                    _ => None,
                });
                Ok(Some((received.bytes, joined.unwrap_or(received.bytes).max(1))))
            }
            Err(nix::errno::Errno::EAGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Send what quiche has to send, until it has nothing or the kernel takes no more.
    fn flush(&mut self, quic: &mut quiche::Connection) -> Outcome<()> {
        loop {
            if self.train_bytes == 0 {
                self.fill(quic)?;
            }
            if self.train_bytes == 0 {
                return Ok(());
            }
            match self.hand_over() {
                Ok(()) => (self.train_bytes, self.blocked) = (0, false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn fill(&mut self, quic: &mut quiche::Connection) -> Outcome<()> {
        let most = if self.gso { self.train.len() } else { PACKET_BYTES };
        while self.train_bytes + PACKET_BYTES <= most {
            let room = &mut self.train[self.train_bytes..self.train_bytes + PACKET_BYTES];
            match quic.send(room) {
                Ok((length, _)) => {
                    self.train_bytes += length;
                    if length < PACKET_BYTES {
                        break; // nothing may follow a short packet in a train
                    }
                }
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn hand_over(&self) -> io::Result<()> {
        let train = &self.train[..self.train_bytes];
        if train.len() <= PACKET_BYTES {
            return self.socket.send(train).map(drop);
        }
        let segment_bytes = PACKET_BYTES as u16;
        let control = [ControlMessage::UdpGsoSegments(&segment_bytes)];
        let fd = self.socket.as_raw_fd();
        sendmsg::<SockaddrStorage>(fd, &[IoSlice::new(train)], &control, MsgFlags::empty(), None)?;
        Ok(())
    }
}

fn config(tls: SslContextBuilder) -> Outcome<quiche::Config> {
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_application_protos(&[b"loop"])?;
    config.set_max_send_udp_payload_size(PACKET_BYTES);
    config.set_max_recv_udp_payload_size(PACKET_BYTES);
    config.discover_pmtu(false);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    config.set_initial_max_streams_bidi(1);
    config.set_max_idle_timeout(10_000);
    config.set_cc_algorithm(quiche::CongestionControlAlgorithm::CUBIC);
    config.enable_pacing(false);
    Ok(config)
}

/// A key and a certificate that nobody will check.
fn server_tls() -> Outcome<SslContextBuilder> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&curve)?)?;
    let mut certificate = X509::builder()?;
    certificate.set_version(2)?;
    certificate.set_not_before(&*Asn1Time::from_unix(0)?)?;
    certificate.set_not_after(&*Asn1Time::from_unix(4_102_444_800)?)?;
    certificate.set_pubkey(&key)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_certificate(&certificate.build())?;
    tls.set_private_key(&key)?;
    Ok(tls)
}
