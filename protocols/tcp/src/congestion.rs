// SPDX-License-Identifier: Apache-2.0
//! Which congestion control does a TCP socket run, and which could it?

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use netjoule_sockets::socket;
use netjoule_transport::{Result, TransportError};
use socket2::Socket;

/// `TCP_CA_NAME_MAX` (include/uapi/linux/tcp.h, include/net/tcp.h).
const NAME_BYTES: usize = 16;

/// Tell `socket` to use the congestion control `name`.
///
/// # Errors
/// [`TransportError::HostLacks`], with those that there are, when the kernel has not loaded it or keeps it from this
/// user.
pub(crate) fn choose(socket: &Socket, name: &str) -> Result<()> {
    let outcome = socket::set_option_bytes(
        socket.as_raw_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_CONGESTION,
        name.as_bytes(),
    );
    outcome.map_err(|error| refusal(name, error, &listed("available"), &listed("allowed")))
}

/// The name of what `socket` uses.
pub(crate) fn in_use(socket: &Socket) -> Option<String> {
    let mut bytes = [0; NAME_BYTES];
    socket::get_option_bytes(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut bytes).ok()?;
    let name = bytes.split(|byte| *byte == 0).next()?;
    String::from_utf8(name.to_vec()).ok()
}

/// The kernel's list of congestion controls that are `available` (loaded) or `allowed` (to every user).
fn listed(which: &str) -> String {
    let path = format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control");
    let names = fs::read_to_string(path).unwrap_or_default();
    let names: Vec<_> = names.split_whitespace().collect();
    if names.is_empty() {
        "unknown".to_owned()
    } else {
        names.join(", ")
    }
}

fn refusal(name: &str, error: io::Error, available: &str, allowed: &str) -> TransportError {
    match error.raw_os_error() {
        Some(libc::ENOENT) => TransportError::HostLacks(format!(
            "this kernel has no TCP congestion control {name}; available are {available} (modprobe tcp_{name} loads \
             it where the kernel comes with it)"
        )),
        Some(libc::EPERM) => TransportError::HostLacks(format!(
            "TCP congestion control {name} is not open to this user; allowed are {allowed} \
             (sysctl net.ipv4.tcp_allowed_congestion_control)"
        )),
        _ => TransportError::io(format!("choose TCP congestion control {name}"))(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        socket::stream("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    #[test]
    fn every_allowed_one_can_be_chosen_and_is_then_in_use() {
        let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
        for name in allowed.split_whitespace() {
            let socket = socket();
            choose(&socket, name).unwrap();
            assert_eq!(in_use(&socket).as_deref(), Some(name));
        }
    }

    #[test]
    fn one_that_is_not_loaded_is_refused_with_those_that_are() {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        let error = choose(&socket(), "no-such-one").unwrap_err();
        assert!(matches!(error, TransportError::HostLacks(_)), "{error:?}");
        for name in available.split_whitespace() {
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn one_that_is_kept_from_this_user_is_refused_with_those_that_are_allowed() {
        let kept = refusal("cubic", io::Error::from_raw_os_error(libc::EPERM), "reno, cubic", "reno");
        let text = kept.to_string();
        assert!(matches!(kept, TransportError::HostLacks(_)));
        assert!(text.contains("allowed are reno (") && text.contains("cubic is not open"), "{text}");
    }
}
