// SPDX-License-Identifier: Apache-2.0
//! What does a transport protocol offer before there is a flow?

use std::net::{IpAddr, SocketAddr};

use netjoule_sockets::IpVersion;

use crate::options::{complete, OptionSpec};
use crate::{FlowSpec, Kind, Limits, Result, Transport, Values};

/// One end of a flow that has begun to connect or to listen, or why it could not.
pub type NewTransport = Result<Box<dyn Transport>>;

/// What is true of a protocol wherever it runs.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Name on the command line and in reports, e.g. "udp", "quic-datagram".
    pub name: &'static str,
    /// Name in figures and tables.
    pub label: &'static str,
    /// Datagrams or stream.
    pub kind: Kind,
    /// Sends less than it is asked when the path is the limit: that is its answer then, not a defect of the sender.
    pub is_congestion_controlled: bool,
    /// What may be chosen about it.
    pub options: &'static [OptionSpec],
    /// Whether an end writes [`FlowSpec::event_log`].
    pub keeps_event_log: bool,
    /// Whether [`Transport::send_ahead`] works, for pacing `so_txtime`.
    pub takes_launch_times: bool,
    /// Where some hosts lack what it needs: tries it as this user in this network namespace, without sending anything.
    pub trial: Option<fn() -> Result<()>>,
}

impl Description {
    /// A protocol that sends what it is asked, without anything of the rest.
    pub const fn new(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self {
            name,
            label,
            kind,
            is_congestion_controlled: false,
            options: &[],
            keeps_event_log: false,
            takes_launch_times: false,
            trial: None,
        }
    }
}

/// One transport protocol: makes the ends of flows. Values are constants in the engine's registry.
pub trait Protocol: Sync {
    /// What it is.
    fn description(&self) -> &Description;

    /// [`Description::name`].
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// [`Description::kind`].
    fn kind(&self) -> Kind {
        self.description().kind
    }

    /// What this host lacks for this transport, in one sentence; `None` when it can be used.
    fn missing(&self) -> Option<String> {
        let trial = self.description().trial?;
        trial().err().map(|error| error.to_string())
    }

    /// The user's choices (names and values) checked and completed with defaults; both ends of a flow do this, and what
    /// comes out stands in the flow's report.
    ///
    /// # Errors
    /// [`TransportError::BadOption`].
    fn options(&self, chosen: &Values) -> Result<Values> {
        complete(self.name(), self.description().options, chosen)
    }

    /// Number in the IP header of the packets that carry a flow (IANA protocol numbers): 17, UDP, unless said otherwise.
    fn ip_protocol(&self, _options: &Values) -> u8 {
        17
    }

    /// Message sizes this protocol carries unfragmented over `ip_version` and an MTU of `mtu_bytes` with `options` (of
    /// [`Self::options`]).
    fn limits(&self, ip_version: IpVersion, mtu_bytes: u32, options: &Values) -> Limits;

    /// Client end: start connecting to `remote` from `local` (address to bind, port 0; `None` = any).
    /// `offer` is what the listening end's [`Transport::offer`] said.
    fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        flow: &FlowSpec,
        offer: &Values,
        now_ns: i64,
    ) -> NewTransport;

    /// Server end: start listening on `local` (port 0 = any) for exactly one peer.
    /// With `allowed_peer`, only that address may connect; others are ignored.
    fn listen(&self, local: SocketAddr, allowed_peer: Option<IpAddr>, flow: &FlowSpec) -> NewTransport;
}
