// SPDX-License-Identifier: Apache-2.0
//! With which settings does a QUIC connection run?

use boring::ssl::SslContextBuilder;
use netjoule_transport::Kind;

use crate::certificate::{Identity, Pin};
use crate::error::QuicError;
use crate::fingerprint::Fingerprint;
use crate::options::Choice;
use crate::path::packet_size::{udp_payload_bytes, CONNECTION_ID_BYTES};

/// Application protocol (ALPN) of a flow.
pub const ALPN: &[u8] = b"netjoule";

/// Messages that may wait in DATAGRAM frames for the congestion window, in bytes; a further one is not sent. That is
/// 35 ms of a 30 Mb/s flow whatever the message size: enough for a peer that the scheduler sets aside.
const DATAGRAM_SEND_QUEUE_BYTES: usize = 128 << 10;

/// DATAGRAM frames that may wait for the reader. quiche drops the oldest when full: generous, because one
/// batch of 64 packets can hold some 1300 messages of 64 bytes.
pub(crate) const DATAGRAM_RECEIVE_QUEUE: usize = 8192;

/// 16 MiB: more than 500 Mb/s times 200 ms (12.5 MB), so that flow control never limits a flow.
const FLOW_CONTROL_WINDOW_BYTES: u64 = 16 << 20;

/// Silence after which the connection is given up; nothing is sent to prevent it. Two hours: the idle windows
/// around the longest flow (one hour) must hold no packet and no wake-up.
const IDLE_TIMEOUT_MS: u64 = 2 * 3600 * 1000;

/// What differs between flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// MTU of the path in bytes, IP header included.
    pub(crate) mtu_bytes: usize,
    /// The user's choices.
    pub(crate) choice: Choice,
    /// Size of every message in bytes.
    pub(crate) payload_bytes: usize,
}

/// Larger packets are not used even where the route would carry them (the loopback device's 65,536 bytes):
/// an emulated flow has the packets of a real one.
pub const MAX_MTU_BYTES: usize = 1500;

impl Options {
    /// These options on a route whose MTU the kernel knows, if it does.
    pub(crate) fn on_route(self, mtu_bytes: Option<u32>) -> Self {
        let known = mtu_bytes.map_or(MAX_MTU_BYTES, |mtu| mtu as usize);
        Self { mtu_bytes: known.min(MAX_MTU_BYTES), ..self }
    }

    /// Messages that the queue of DATAGRAM frames holds before it is full.
    pub(crate) fn datagram_send_queue(&self) -> usize {
        DATAGRAM_SEND_QUEUE_BYTES / self.payload_bytes.clamp(16, 2048)
    }
}

/// The id that the peer's packets will carry, drawn from `seed` (it need not be secret: packets are told apart by
/// address).
///
/// For datagrams 8 bytes, as the size limits say. For the stream one: with 8 a message of 1440 bytes would leave as two
/// packets of 1437 and 3 bytes on IPv4, where TCP needs one. And not none: quiche compares ids for every packet, and empty
/// vectors, which point nowhere, cost glibc's `memcmp` of AVX-512 a tenth of the receiver's time (masked loads that fault).
pub(crate) fn connection_id(kind: Kind, seed: u64) -> Vec<u8> {
    match kind {
        Kind::Datagram => seed.to_be_bytes()[..CONNECTION_ID_BYTES].to_vec(),
        Kind::Stream => seed.to_be_bytes()[..1].to_vec(),
    }
}

/// Settings of the end that accepts, ready for quiche.
pub(crate) fn server(
    options: &Options,
    is_ipv6: bool,
    identity: &Identity,
) -> Result<quiche::Config, QuicError> {
    let resumable = options.choice.early_data;
    let mut config = common(options, is_ipv6, identity.server_context(resumable)?)?;
    if resumable {
        // Each connection has settings of its own: the tickets of one must be good for the next.
        config.set_ticket_key(identity.ticket_key()).map_err(refused)?;
    }
    Ok(config)
}

/// Settings of the end that connects, and its pin on the certificate with `fingerprint`.
pub(crate) fn client(
    options: &Options,
    is_ipv6: bool,
    fingerprint: Fingerprint,
) -> Result<(quiche::Config, Pin), QuicError> {
    let pin = Pin::new(fingerprint);
    let config = common(options, is_ipv6, pin.client_context(options.choice.early_data)?)?;
    Ok((config, pin))
}

fn common(options: &Options, is_ipv6: bool, tls: SslContextBuilder) -> Result<quiche::Config, QuicError> {
    let udp_bytes = udp_payload_bytes(is_ipv6, options.mtu_bytes)
        .ok_or(QuicError::MtuTooSmall { mtu_bytes: options.mtu_bytes })?;

    let mut config =
        quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls).map_err(refused)?;
    config.set_application_protos(&[ALPN]).map_err(refused)?;

    // One size for the whole flow: no path MTU probes, no random extras on the wire.
    config.set_max_send_udp_payload_size(udp_bytes);
    config.set_max_recv_udp_payload_size(udp_bytes);
    config.discover_pmtu(false);
    config.grease(false);

    config.set_initial_max_data(FLOW_CONTROL_WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(FLOW_CONTROL_WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(FLOW_CONTROL_WINDOW_BYTES);
    config.set_max_connection_window(FLOW_CONTROL_WINDOW_BYTES);
    config.set_max_stream_window(FLOW_CONTROL_WINDOW_BYTES);
    config.set_initial_max_streams_bidi(1);
    config.enable_dgram(true, DATAGRAM_RECEIVE_QUEUE, options.datagram_send_queue());

    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    config.set_disable_active_migration(true);
    config.set_cc_algorithm(options.choice.congestion_control.algorithm());
    // The flow's own absolute deadlines pace it. quiche's pacing acts on BBR only, which needs it.
    config.enable_pacing(options.choice.is_paced);
    if options.choice.early_data {
        config.enable_early_data();
    }
    Ok(config)
}

fn refused(source: quiche::Error) -> QuicError {
    QuicError::Library { doing: "setting up the connection", source }
}
