// SPDX-License-Identifier: Apache-2.0
//! Where a flow goes, and what is asked of the server there.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_transport::{IpVersion, Values};

use crate::arguments::SendArgs;
use crate::control::{self, FlowRequest};
use crate::load::Load;
use crate::report::Direction;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::units;

/// Where the flow goes.
pub(crate) struct Target {
    /// The server's address for the data.
    pub(crate) data: IpAddr,
    /// The same with the control port and, for IPv6, its scope.
    pub(crate) scope: SocketAddr,
    /// The server's address for control.
    pub(crate) control: SocketAddr,
}

impl Target {
    pub(crate) fn resolve(args: &SendArgs) -> Outcome<Self> {
        let to = args.to.as_deref().unwrap_or_default();
        let (host, port) = host_and_port(to).map_err(|message| Failure::new(Code::Usage, message))?;
        let port = port.unwrap_or(args.port);
        let scope = resolve(host, port, args)?;
        let control = match &args.control {
            None => scope,
            Some(text) => {
                let (host, own_port) =
                    host_and_port(text).map_err(|message| Failure::new(Code::Usage, message))?;
                resolve_any(host, own_port.unwrap_or(port))?
            }
        };
        Ok(Self { data: scope.ip(), scope, control })
    }

    pub(crate) fn ip_version(&self) -> IpVersion {
        IpVersion::of(self.data)
    }

    /// The data address with a port, keeping an IPv6 scope.
    pub(crate) fn data_address(&self, port: u16) -> SocketAddr {
        let mut address = self.scope;
        address.set_port(port);
        address
    }

    /// MTU of the route to the server; 65535 when the kernel does not say.
    pub(crate) fn mtu_bytes(&self, args: &SendArgs) -> u32 {
        let remote = self.data_address(9);
        let local = args.bind.map_or_else(|| socket::unspecified_like(remote), |ip| SocketAddr::new(ip, 0));
        let probe = socket::datagram(local).ok().filter(|probe| probe.connect(&remote.into()).is_ok());
        probe
            .and_then(|probe| socket::path_mtu_bytes(probe.as_raw_fd(), remote.is_ipv4()))
            .unwrap_or(u32::from(u16::MAX))
    }

    pub(crate) fn request(&self, args: &SendArgs, load: &Load, options: Values) -> Outcome<FlowRequest> {
        let name = host::random_bytes::<16>().map_err(Failure::system("draw a flow name"))?;
        let request = FlowRequest {
            flow_id: control::token_text(&name),
            command_id: args.command_id.clone(),
            transport: args.transport.clone(),
            direction: if args.reverse { Direction::Down } else { Direction::Up },
            payload_bytes: load.message_bytes,
            rate_bps: load.rate_bps,
            messages: load.messages,
            omit_ns: args.omit.unwrap_or(0),
            live: args.live,
            duration_ns: load.duration_ns,
            interval_ns: args.interval,
            pacing: args.pacing,
            window_us: args.window_us,
            gso: args.gso,
            seed: args.seed,
            traces: args.traces,
            data_address: self.data,
            control_apart: self.control.ip() != self.data,
            options,
            profile: load.profile.clone(),
        };
        if request.is_unpaced() && !args.pacing_limit.is_empty() {
            let message = "as fast as possible (-b 0) has no deadlines to certify: leave --pacing-limit out";
            return Code::Usage.fail(message);
        }
        // No caps on this end; the server has its own.
        request.check(control::Caps {
            duration_ns: units::LARGEST,
            rate_bps: units::LARGEST,
            unpaced: true,
            messages: units::LARGEST,
        })?;
        Ok(request)
    }
}

/// The address of this host from which packets go to `remote`; nothing is sent.
pub(crate) fn local_ip_towards(remote: SocketAddr) -> Outcome<IpAddr> {
    socket::source_towards(remote).map_err(Failure::system("find the way to the server"))
}

fn resolve(host: &str, port: u16, args: &SendArgs) -> Outcome<SocketAddr> {
    let wanted = |address: &SocketAddr| match (args.four, args.six, args.bind) {
        (true, ..) => address.is_ipv4(),
        (_, true, _) => address.is_ipv6(),
        (.., Some(local)) => address.is_ipv4() == local.is_ipv4(),
        _ => true,
    };
    addresses(host, port)?.into_iter().find(wanted).ok_or_else(|| {
        Failure::new(Code::Refused, format!("{host} has no address of the IP version that was asked for"))
    })
}

fn resolve_any(host: &str, port: u16) -> Outcome<SocketAddr> {
    addresses(host, port)?
        .first()
        .copied()
        .ok_or_else(|| Failure::new(Code::Refused, format!("{host} has no address")))
}

fn addresses(host: &str, port: u16) -> Outcome<Vec<SocketAddr>> {
    (host, port)
        .to_socket_addrs()
        .map(Iterator::collect)
        .map_err(|error| Failure::new(Code::Refused, format!("cannot resolve {host}: {error}")))
}

/// A host with an optional port, as in `10.0.0.1`, `host:5301`, `fe80::1`, `[fe80::1]:5301`.
fn host_and_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let bad_port = |port: &str| format!("{port:?} in {text:?} is not a port");
    let bad_host = || format!("{text:?} names no host");
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(bad_host)?;
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err(bad_host()),
        }
    } else {
        match text.split_once(':') {
            // More than one colon: a bare IPv6 address.
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(bad_host());
    }
    let port = port.map(|port| port.parse().map_err(|_| bad_port(port))).transpose()?;
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_with_and_without_ports() {
        assert_eq!(host_and_port("10.0.0.1"), Ok(("10.0.0.1", None)));
        assert_eq!(host_and_port("server:5301"), Ok(("server", Some(5301))));
        assert_eq!(host_and_port("fd77::1"), Ok(("fd77::1", None)));
        assert_eq!(host_and_port("[fd77::1]:80"), Ok(("fd77::1", Some(80))));
        assert_eq!(host_and_port("[fd77::1]"), Ok(("fd77::1", None)));
        for bad in ["", ":80", "server:", "server:99999", "[::1", "[::1]x", "[]:1"] {
            assert!(host_and_port(bad).is_err(), "{bad}");
        }
    }
}
