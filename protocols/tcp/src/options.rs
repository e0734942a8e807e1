// SPDX-License-Identifier: Apache-2.0
//! What a user may choose about a TCP or MPTCP flow, and how a socket is told.

use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_transport::options::{Domain, OptionSpec, Setting};
use netjoule_transport::{Result, Role, TransportError, Values};
use socket2::Socket;

use crate::congestion;
use crate::flavour::Flavour;

/// Unsent bytes the kernel may hold before the stream counts as full. Without it a sender could put megabytes
/// into the kernel at once, and a message would count as sent long before it leaves.
const NOT_SENT_LOW_WATER_BYTES: u32 = 128 << 10;

const CONGESTION_CONTROL: OptionSpec = OptionSpec {
    name: "congestion_control",
    about: "the sender's congestion control, one that its kernel has loaded; else the host's default",
    domain: Domain::Name,
    default: None,
    seldom: false,
};
const NODELAY: OptionSpec = OptionSpec {
    name: "nodelay",
    about: "Nagle's algorithm is off, so that each message leaves when it is due",
    domain: Domain::Flag,
    default: Some(Setting::Flag(true)),
    seldom: false,
};
const NOTSENT_LOWAT_BYTES: OptionSpec = OptionSpec {
    name: "notsent_lowat_bytes",
    about: "unsent bytes in the kernel at which the stream counts as full (TCP_NOTSENT_LOWAT); 0 leaves it to the host",
    domain: Domain::Integer { least: 0, greatest: 1 << 30 },
    default: Some(Setting::Number(NOT_SENT_LOW_WATER_BYTES)),
    seldom: false,
};
const ZEROCOPY: OptionSpec = OptionSpec {
    name: "zerocopy",
    about: "send with MSG_ZEROCOPY and count how often the kernel copied anyway",
    domain: Domain::Flag,
    default: Some(Setting::Flag(false)),
    seldom: false,
};

/// What TCP offers.
pub(crate) const TCP_OPTIONS: [OptionSpec; 4] = [CONGESTION_CONTROL, NODELAY, NOTSENT_LOWAT_BYTES, ZEROCOPY];
/// What MPTCP offers: its sockets ignore MSG_ZEROCOPY and tell no completions.
pub(crate) const MPTCP_OPTIONS: [OptionSpec; 3] = [CONGESTION_CONTROL, NODELAY, NOTSENT_LOWAT_BYTES];

/// Checked options of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Of the sending end; `None`: the host's default.
    pub(crate) congestion_control: Option<String>,
    pub(crate) nodelay: bool,
    pub(crate) not_sent_low_water_bytes: u32,
    pub(crate) zero_copy: bool,
}

impl Choice {
    /// What `values`, which were checked, say.
    pub(crate) fn of(values: &Values) -> Self {
        let flag =
            |name: &str, default| values.get(name).and_then(|value| value.as_bool()).unwrap_or(default);
        let low_water = values.get(NOTSENT_LOWAT_BYTES.name).and_then(|value| value.as_u64());
        Self {
            congestion_control: values
                .get(CONGESTION_CONTROL.name)
                .and_then(|value| value.as_str())
                .map(str::to_owned),
            nodelay: flag(NODELAY.name, true),
            not_sent_low_water_bytes: low_water
                .and_then(|bytes| u32::try_from(bytes).ok())
                .unwrap_or(NOT_SENT_LOW_WATER_BYTES),
            zero_copy: flag(ZEROCOPY.name, false),
        }
    }

    /// Tell `socket`, before it connects or listens, or fresh from being accepted.
    ///
    /// # Errors
    /// [`TransportError::HostLacks`] for what this kernel does not have.
    pub(crate) fn apply(&self, socket: &Socket, flavour: Flavour, role: Role) -> Result<()> {
        socket.set_nodelay(self.nodelay).map_err(TransportError::io("set TCP_NODELAY"))?;
        self.limit_unsent(socket, flavour)?;
        if role == Role::Receiver {
            return Ok(());
        }
        if let Some(name) = &self.congestion_control {
            congestion::choose(socket, name)?;
        }
        if self.zero_copy {
            socket::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(
                |error| {
                    TransportError::HostLacks(format!("this kernel has no zero-copy TCP sending: {error}"))
                },
            )?;
        }
        Ok(())
    }

    fn limit_unsent(&self, socket: &Socket, flavour: Flavour) -> Result<()> {
        let bytes = self.not_sent_low_water_bytes as libc::c_int;
        match socket::set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes) {
            // Kernels before 6.10 limit no MPTCP socket; the report says what was in force.
            Err(_)
                if flavour == Flavour::Mptcp && self.not_sent_low_water_bytes == NOT_SENT_LOW_WATER_BYTES =>
            {
                Ok(())
            }
            Err(error) if flavour == Flavour::Mptcp => Err(TransportError::HostLacks(format!(
                "this kernel has no TCP_NOTSENT_LOWAT for MPTCP ({error}); leave notsent_lowat_bytes out"
            ))),
            outcome => outcome.map_err(TransportError::io("set TCP_NOTSENT_LOWAT")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::options::complete;
    use serde_json::json;

    #[test]
    fn without_a_choice_messages_leave_at_once_and_little_waits_unsent() {
        let values = complete("tcp", &TCP_OPTIONS, &Values::new()).unwrap();
        let expected = Choice {
            congestion_control: None,
            nodelay: true,
            not_sent_low_water_bytes: 131_072,
            zero_copy: false,
        };
        assert_eq!(Choice::of(&values), expected);
        assert_eq!(Choice::of(&Values::new()), expected);
    }

    #[test]
    fn mptcp_has_no_zero_copy() {
        let chosen = Values::from_iter([("zerocopy".to_owned(), json!(true))]);
        let error = complete("mptcp", &MPTCP_OPTIONS, &chosen).unwrap_err();
        assert!(error.to_string().contains("mptcp has no option zerocopy"), "{error}");
    }
}
