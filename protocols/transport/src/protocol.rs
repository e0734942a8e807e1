// SPDX-License-Identifier: Apache-2.0
//! What does a transport protocol offer before there is a flow?

use std::net::{IpAddr, SocketAddr};

use netjoule_sockets::IpVersion;

use crate::{options, FlowSpec, Kind, Limits, Result, Transport, Values};

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

    /// Whether [`Transport::send_ahead`] works, for pacing `so_txtime`. By default it does not.
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
    ) -> Result<Box<dyn Transport>>;
}
