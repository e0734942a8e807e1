// SPDX-License-Identifier: Apache-2.0
//! What all flows of a server share: what it was told, what it allows, where it listens, how it says that a flow failed.

use std::net::{IpAddr, SocketAddr};

use netjoule_transport::{FlowSpec, IpVersion, Protocol, Transport, TransportError};
use serde_json::{json, Value};

use crate::arguments::ServeArgs;
use crate::control::{Caps, FlowRequest};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::output::Output;
use netjoule_measure::wait::Signals;

/// Greatest payload rate where nobody says, bit/s.
const MAX_RATE_BPS: u64 = 10_000_000_000;

/// What every flow of this server shares.
pub(crate) struct Server<'a> {
    pub(crate) args: &'a ServeArgs,
    pub(crate) signals: &'a Signals,
    pub(crate) output: Output,
}

impl Server<'_> {
    /// Say that a flow failed; `half` is this end's half of its report as far as it came.
    pub(crate) fn tell_failure(&self, flow_id: &str, failure: &Failure, half: Option<(&'static str, Value)>) {
        self.output.complain(&format!("flow {flow_id} failed: {failure}"));
        let mut fields =
            json!({ "flow_id": flow_id, "code": failure.code.name(), "message": failure.message });
        if let Some((name, part)) = half {
            fields[name] = part;
        }
        let _ = self.output.event("flow_failed", fields);
    }

    pub(super) fn caps(&self) -> Caps {
        Caps {
            duration_ns: u64::from(self.args.max_duration_s) * 1_000_000_000,
            rate_bps: self.args.max_rate.unwrap_or(MAX_RATE_BPS),
            unpaced: self.args.max_rate.is_none(),
            messages: self.args.max_messages,
        }
    }

    /// Listen for the data where the client will look for it, as far as --bind allows.
    pub(super) fn listen(
        &self,
        protocol: &dyn Protocol,
        request: &FlowRequest,
        allowed_peer: Option<IpAddr>,
        spec: &FlowSpec,
    ) -> Outcome<Box<dyn Transport>> {
        let bind = self.args.bind;
        let wanted = if bind.is_unspecified() { request.data_address } else { bind };
        if IpVersion::of(wanted) != IpVersion::of(request.data_address)
            || (bind.is_ipv4() && wanted.is_ipv6())
        {
            return Code::Refused.fail(format!(
                "the server is bound to {bind} and does not serve data on {}",
                request.data_address
            ));
        }
        let at = |ip| SocketAddr::new(ip, self.args.data_port);
        let mut listening = protocol.listen(at(wanted), allowed_peer, spec);
        if listening.is_err() && bind.is_unspecified() {
            // Behind address translation the client's name for us is not ours.
            listening = protocol.listen(at(bind), allowed_peer, spec);
        }
        listening.map_err(|error| self.without_port(error))
    }

    /// A failure to listen; when it is for want of a port or a descriptor, with what to do about it.
    fn without_port(&self, error: TransportError) -> Failure {
        let hint = match &error {
            TransportError::Io { source, .. } => match (source.raw_os_error(), self.args.data_port) {
                (Some(libc::EADDRINUSE), 0) => "every port is in use: net.ipv4.ip_local_port_range",
                (Some(libc::EADDRINUSE), _) => "another program or flow has it: serve --data-port",
                (Some(libc::EMFILE), _) => "it may open no further file: ulimit -n",
                (Some(libc::ENFILE | libc::ENOBUFS | libc::ENOMEM), _) => {
                    "its host has no memory or files left"
                }
                _ => return error.into(),
            },
            _ => return error.into(),
        };
        let message = format!("the server has no port for the data now: {error} ({hint})");
        Failure::new(Code::Refused, message)
    }
}
