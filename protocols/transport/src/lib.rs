// SPDX-License-Identifier: Apache-2.0
//! What every transport offers to the traffic engine, and nothing about when to send.
//!
//! A [`Protocol`] makes [`Transport`]s: one end of one flow. Nothing here blocks and nothing reads a
//! clock: the engine waits (`ppoll` over [`Transport::poll_fds`] until [`Transport::next_wakeup_ns`]),
//! then calls [`Transport::service`] with the time. All times are nanoseconds of this host's
//! `CLOCK_MONOTONIC`.
//!
//! Life of a transport, the same for both ends:
//!
//! 1. [`Protocol::listen`] (server) or [`Protocol::connect`] (client) returns at once, in
//!    [`State::Connecting`]. The server's [`Transport::local_address`] and [`Transport::offer`] travel to the
//!    client over the control channel.
//! 2. The engine polls and services until [`State::Open`]. A listening end opens only to a peer that proved
//!    [`FlowSpec::token`] from an address where it can also receive, so that nobody can aim a flow at
//!    a third party with a forged source address. Wrong tokens are dropped, not errors.
//! 3. The [`Role::Sender`] end calls [`Transport::send_batch`] and [`Transport::flush`]; the
//!    [`Role::Receiver`] end calls [`Transport::receive`]. Either end services acknowledgements and timers.
//! 4. After the last message the sender calls [`Transport::finish`] and services until
//!    [`Transport::drained`]. The connection stays open and silent: an idle window may follow.
//! 5. [`Transport::close`] says goodbye; the engine services until [`Transport::parted`], for a second at most;
//!    dropping the value closes its descriptors.
//!
//! Every message of a flow has the same size, [`FlowSpec::message_bytes`], or in a flow of several sizes at most that;
//! it starts with the 16-byte header of [`message`]. A datagram transport puts one message into one datagram; a stream
//! transport writes messages back to back and its receiving end cuts the stream with a [`cutter::Cutter`]. The messages
//! of one batch always have one size, so only a receiving end meets messages of several.

pub mod cutter;
pub mod datagram;
pub mod departures;
pub mod launch;
pub mod message;
pub mod options;
pub mod outgoing;
mod qdisc;
pub mod socket;
pub mod stamps;
pub mod stream;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Free-form named values: path statistics, offers.
pub type Values = Map<String, Value>;

/// Length of a flow's token in bytes.
pub const TOKEN_BYTES: usize = 16;

/// Whether messages keep their borders on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One message is one datagram; it can be lost, duplicated, reordered.
    Datagram,
    /// Messages lie back to back in a reliable byte stream.
    Stream,
}

/// Which end sends the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This end sends messages.
    Sender,
    /// This end receives messages.
    Receiver,
}

/// Where a transport stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waiting for the peer, or for the end of the handshake.
    Connecting,
    /// Messages can flow.
    Open,
    /// The peer closed; nothing more will arrive or leave. Not an error by itself.
    Closed,
}

/// IP version of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4: 20-byte header.
    V4,
    /// IPv6: 40-byte header.
    V6,
}

impl IpVersion {
    /// Version of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// Length of the IP header without options or extension headers, in bytes.
    pub fn header_bytes(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// 4 or 6.
    pub fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// What one end needs to know about its flow.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// Size of every message in bytes, header included (at least [`message::HEADER_BYTES`]); in a flow of several
    /// sizes the greatest.
    pub message_bytes: usize,
    /// Whether this end sends or receives messages.
    pub role: Role,
    /// Random secret of this flow, given to the client over the control channel.
    pub token: [u8; TOKEN_BYTES],
    /// Let the transport hand batches to the kernel in one call (UDP GSO/GRO). Off means one packet per call.
    pub gso: bool,
    /// Seed for anything a transport draws at random that need not be secret.
    pub seed: u64,
    /// Offered load in payload bit/s (of a flow in bursts: in its bursts): what a transport sizes its queues by. 0 when
    /// not known.
    pub rate_bps: u64,
    /// What [`Protocol::options`] made of the user's choices.
    pub options: Values,
    /// Where this end may write the events of its connection, for transports that can (QUIC's qlog): a file name without
    /// its ending, in a folder that exists. `None`: nothing is written.
    pub event_log: Option<PathBuf>,
}

/// Message sizes a transport can carry unfragmented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Smallest message in bytes.
    pub min_message_bytes: usize,
    /// Largest message in bytes.
    pub max_message_bytes: usize,
    /// What sets the largest size, for the error sentence (e.g. "MTU 1500 - 28 bytes of IPv4 and UDP header").
    pub reason: String,
}

/// What became of a batch handed to [`Transport::send_batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOutcome {
    /// Messages accepted, counted from the front of the batch.
    pub sent: usize,
    /// Why the message after the accepted ones was not accepted; [`Stop::None`] when all were.
    pub stop: Stop,
}

/// Why a batch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Nothing is left of the batch.
    None,
    /// A stream is full: keep the message and try again when writable.
    WouldBlock,
    /// A datagram was refused here (no buffer): it is gone and counts as not sent.
    Refused,
    /// Congestion control holds the queue of a datagram transport full. This message and every other one that is due
    /// by now are not sent; the engine waits for the transport ([`Transport::poll_fds`],
    /// [`Transport::next_wakeup_ns`]) instead of for deadlines, and then offers what is due by that time.
    QueueFull,
}

/// What became of one message handed to [`Transport::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// Accepted: it left, or the transport will carry it.
    Sent,
    /// See [`Stop::WouldBlock`].
    WouldBlock,
    /// See [`Stop::Refused`].
    Refused,
    /// See [`Stop::QueueFull`].
    QueueFull,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The message, as long as it says for streams ([`message::length`]); as received for datagrams.
    pub bytes: &'a [u8],
    /// When it arrived (kernel's stamp where there is one), `CLOCK_MONOTONIC` ns of this host.
    pub arrived_ns: i64,
}

/// A message, or a train of them, on its way out of the sending host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When it was handed over: the time in its header, `CLOCK_MONOTONIC` ns.
    pub sent_ns: i64,
    /// When the device took it, by the kernel's stamp, `CLOCK_MONOTONIC` ns. Not before `sent_ns`, unless a launch time was
    /// not kept.
    pub left_ns: i64,
    /// When it was to leave, for a message with a launch time ([`Transport::send_at`]).
    pub launch_ns: Option<i64>,
}

/// Congestion control of the sending end at one moment. What a transport does not know, or has no such thing as, is
/// `None`. Counts are those of the whole connection so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Congestion {
    /// Congestion window, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Slow-start threshold, bytes; `None` also while it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start_threshold_bytes: Option<u64>,
    /// Rate at which congestion control lets data leave, Mb/s: a pacing rate, or TFRC's allowed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_rate_mbps: Option<f64>,
    /// Sent and neither acknowledged nor taken for lost, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt_ms: Option<f64>,
    /// Mean deviation of the round-trip time, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_variation_ms: Option<f64>,
    /// Packets taken for lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_lost: Option<u64>,
    /// Packets that carried data once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_retransmitted: Option<u64>,
    /// Losses as congestion control counts them: all within a round trip are one event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_events: Option<u64>,
}

/// How messages became IP packets, as seen by the sending end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packetisation {
    /// Data packets per message (1 for datagrams; below 1 when a stream merges messages).
    pub frames_per_message: Option<f64>,
    /// Mean size of a data packet with its IP header, in bytes.
    pub mean_ip_packet_bytes: Option<f64>,
    /// Where the two numbers come from.
    pub source: PacketisationSource,
}

/// Where packetisation figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketisationSource {
    /// From the transport's own counters of packets and bytes.
    Measured,
    /// From header sizes: one message is one packet.
    Computed,
    /// Not known.
    Unknown,
}

impl PacketisationSource {
    /// Name in the flow report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Computed => "computed",
            Self::Unknown => "unknown",
        }
    }
}

/// A descriptor to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollFd {
    /// The descriptor.
    pub fd: RawFd,
    /// Wake when readable.
    pub read: bool,
    /// Wake when writable. Only when there is something to write: a writable idle socket would spin.
    pub write: bool,
}

/// What can go wrong. The text is one clear sentence for a person.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The peer or the host refused (no listener, unreachable, TLS failure).
    #[error("{0}")]
    Refused(String),
    /// The connection was open and broke.
    #[error("{0}")]
    Lost(String),
    /// The request cannot be met by this transport (message too large).
    #[error("{0}")]
    Unsupported(String),
    /// An option makes no sense for this transport.
    #[error("{0}")]
    BadOption(String),
    /// This host lacks what the transport needs (a privilege, a part of the kernel).
    #[error("{0}")]
    HostLacks(String),
    /// The operating system failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, to what.
        context: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl TransportError {
    /// For `map_err`: `TransportError::io("bind UDP socket to 10.0.0.1:0")`.
    pub fn io(context: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        let context = context.to_string();
        move |source| Self::Io { context, source }
    }
}

/// Result of a transport call.
pub type Result<T> = std::result::Result<T, TransportError>;

/// One transport protocol: makes the ends of flows. Values are constants in the engine's registry.
pub trait Protocol: Sync {
    /// Name on the command line and in reports, e.g. "udp", "quic-datagram".
    fn name(&self) -> &'static str;

    /// Datagrams or stream.
    fn kind(&self) -> Kind;

    /// Name in figures and tables.
    fn label(&self) -> &'static str;

    /// Sends less than it is asked when the path is the limit: that is its answer then, not a defect of the sender.
    fn is_congestion_controlled(&self) -> bool;

    /// What may be chosen about this transport. By default nothing.
    fn option_specs(&self) -> &'static [options::OptionSpec] {
        &[]
    }

    /// Whether an end writes [`FlowSpec::event_log`]. By default it does not.
    fn keeps_event_log(&self) -> bool {
        false
    }

    /// Whether [`Transport::send_at`] works, for pacing `so_txtime`. By default it does not.
    fn takes_launch_times(&self) -> bool {
        false
    }

    /// Whether some hosts lack what it needs: only then may [`Self::missing`] say something. By default none does.
    fn is_host_dependent(&self) -> bool {
        false
    }

    /// What this host lacks for this transport, in one sentence; tried as this user in this network namespace, without
    /// sending anything. `None` when it can be used.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The user's choices (names and values) checked and completed with defaults; both ends of a flow do this, and what
    /// comes out stands in the flow's report.
    ///
    /// # Errors
    /// [`TransportError::BadOption`].
    fn options(&self, chosen: &Values) -> Result<Values> {
        options::complete(self.name(), self.option_specs(), chosen)
    }

    /// Number in the IP header of the packets that carry a flow (IANA protocol numbers): 17, UDP, unless said otherwise.
    fn ip_protocol(&self, _options: &Values) -> u8 {
        17
    }

    /// Message sizes this protocol carries unfragmented over `ip_version` and an MTU of `mtu_bytes`.
    fn limits(&self, ip_version: IpVersion, mtu_bytes: u32) -> Limits;

    /// The same with `options` (of [`Self::options`]), for protocols whose limits depend on them.
    fn limits_with(&self, ip_version: IpVersion, mtu_bytes: u32, _options: &Values) -> Limits {
        self.limits(ip_version, mtu_bytes)
    }

    /// Client end: start connecting to `remote` from `local` (address to bind, port 0; `None` = any).
    /// `offer` is what the listening end's [`Transport::offer`] said.
    fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        offer: &Values,
        now_ns: i64,
    ) -> Result<Box<dyn Transport>>;

    /// Server end: start listening on `local` (port 0 = any) for exactly one peer.
    /// With `allowed_peer`, only that address may connect; others are ignored.
    fn listen(
        &self,
        local: SocketAddr,
        allowed_peer: Option<IpAddr>,
        flow: &FlowSpec,
        now_ns: i64,
    ) -> Result<Box<dyn Transport>>;
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
    fn path_mtu_bytes(&self) -> Option<u32>;

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
    fn send(&mut self, message: &[u8], now_ns: i64) -> Result<SendOutcome>;

    /// Free bytes that this transport wants before every message of a batch, for a header of its own: then messages need
    /// not be copied.
    fn headroom_bytes(&self) -> usize {
        0
    }

    /// Offer messages in order, each `message_bytes` long (at most [`FlowSpec::message_bytes`]) and behind
    /// [`Self::headroom_bytes`] free bytes. What the free bytes hold afterwards is nobody's concern; the messages stay as
    /// they are.
    fn send_batch(&mut self, batch: &mut [u8], message_bytes: usize, now_ns: i64) -> Result<BatchOutcome> {
        let headroom_bytes = self.headroom_bytes();
        let mut sent = 0;
        for message in batch.chunks_exact(headroom_bytes + message_bytes) {
            let message = &message[headroom_bytes..];
            match self.send(message, now_ns)? {
                SendOutcome::Sent => sent += 1,
                SendOutcome::WouldBlock => return Ok(BatchOutcome { sent, stop: Stop::WouldBlock }),
                SendOutcome::Refused => return Ok(BatchOutcome { sent, stop: Stop::Refused }),
                SendOutcome::QueueFull => return Ok(BatchOutcome { sent, stop: Stop::QueueFull }),
            }
        }
        Ok(BatchOutcome { sent, stop: Stop::None })
    }

    /// From now on messages are offered by [`Self::send_at`]. By default a transport cannot do so.
    ///
    /// # Errors
    /// [`TransportError::BadOption`] where the transport cannot, [`TransportError::HostLacks`] where the host cannot.
    fn prepare_launch_times(&mut self) -> Result<()> {
        Err(TransportError::BadOption(
            "so_txtime is for udp and null: this transport has no launch times".into(),
        ))
    }

    /// Offer one message that the kernel sends at `launch_ns` (`CLOCK_MONOTONIC`), or at once when that has passed. Only
    /// after [`Self::prepare_launch_times`].
    fn send_at(&mut self, message: &[u8], _launch_ns: i64, now_ns: i64) -> Result<SendOutcome> {
        self.send(message, now_ns)
    }

    /// After [`Self::prepare_launch_times`]: whether [`Self::departures`] tells of every message that was offered by
    /// [`Self::send_at`] when it left this host. Without, nobody knows whether launch times are kept.
    fn stamps_launches(&self) -> bool {
        false
    }

    /// Whether the messages of a batch are one packet to the kernel now (a GSO train): then they leave in one moment.
    fn hands_over_as_one(&self) -> bool {
        false
    }

    /// Push accepted messages towards the wire. The engine calls it before every sleep.
    fn flush(&mut self, now_ns: i64) -> Result<()>;

    /// Hand every message that has arrived to `sink`, in order of arrival. Returns how many there were.
    /// Bounded: may stop after a few hundred messages when more are waiting, and then returns at once when called
    /// again. After a few, nothing is waiting but what a descriptor of [`Self::poll_fds`] announces.
    fn receive(&mut self, now_ns: i64, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize>;

    /// No more messages will be offered: push out what is pending. Does not close the connection.
    fn finish(&mut self, now_ns: i64) -> Result<()>;

    /// Everything accepted has left this host and, where the transport knows, was acknowledged.
    fn drained(&self) -> bool;

    /// Counters of the path and the connection so far (TCP_INFO, QUIC path statistics, socket drops), names
    /// with units. Numbers must be finite and at most 2^53 - 1.
    fn path_statistics(&mut self) -> Values;

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
    fn packetisation(&mut self, messages_sent: u64) -> Packetisation;

    /// Say goodbye to the peer (best effort, never blocks). Dropping then closes the descriptors.
    fn close(&mut self, now_ns: i64);

    /// After [`Self::close`]: nothing is left to be said or answered. The engine services a transport that has not yet
    /// parted for a moment before it drops it.
    fn parted(&self) -> bool {
        true
    }
}
