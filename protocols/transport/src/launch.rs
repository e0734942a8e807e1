// SPDX-License-Identifier: Apache-2.0
//! Datagrams with a launch time: the kernel holds each back until then (`SO_TXTIME`, Linux 4.19).
//!
//! The option is accepted everywhere, and is obeyed only where the device's queueing discipline is `fq` (tc-fq(8), times
//! of `CLOCK_MONOTONIC`) or `etf` (tc-etf(8), times of `CLOCK_TAI`, needs CAP_NET_ADMIN); any other one sends at
//! once. So the discipline is looked up, and where it is another, the host lacks what is needed.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use crate::qdisc::{self, Discipline};
use crate::socket::{set_option, set_option_bytes};
use crate::{Result, TransportError};

/// Socket option and control message type of asm-generic/socket.h, which libc lacks.
const SO_TXTIME: libc::c_int = 61;
const SCM_TXTIME: libc::c_int = SO_TXTIME;
/// Send buffer asked for: datagrams that wait for their launch count against it. The kernel may grant less.
const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;

/// Gives the datagrams of one socket their launch times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchTimes {
    clock: libc::clockid_t,
}

impl LaunchTimes {
    /// Prepare a socket that sends to `peer`.
    ///
    /// # Errors
    /// [`TransportError::HostLacks`] where nothing on the way out of this host would hold datagrams back.
    pub fn prepare(fd: RawFd, peer: SocketAddr) -> Result<Self> {
        let device = qdisc::device_towards(peer)
            .map_err(TransportError::io(format!("look up the device towards {}", peer.ip())))?;
        let name = qdisc::device_name(device);
        let disciplines = qdisc::disciplines_of(device)
            .map_err(TransportError::io(format!("look up the queueing discipline of {name}")))?;
        let clock =
            clock_of(&disciplines).ok_or_else(|| TransportError::HostLacks(lacking(&name, &disciplines)))?;
        set_option_bytes(fd, libc::SOL_SOCKET, SO_TXTIME, &option(clock)).map_err(|error| {
            TransportError::HostLacks(format!(
                "the kernel takes no launch times for {name}: {error} \
                 (so_txtime needs Linux 4.19 and, with etf, CAP_NET_ADMIN)"
            ))
        })?;
        // What was granted shows when datagrams are refused for want of room.
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, SEND_BUFFER_BYTES);
        Ok(Self { clock })
    }

    /// Send one datagram on a connected socket; it leaves at `launch_ns` (`CLOCK_MONOTONIC`), or at once when that has
    /// passed.
    pub fn send(&self, fd: RawFd, bytes: &[u8], launch_ns: i64) -> io::Result<()> {
        send_at(fd, bytes, (launch_ns + self.ahead_of_monotonic_ns()).max(0) as u64)
    }

    /// This clock minus `CLOCK_MONOTONIC`. Read for every datagram: the wall clock is steered.
    fn ahead_of_monotonic_ns(&self) -> i64 {
        match self.clock {
            libc::CLOCK_MONOTONIC => 0,
            other => read_clock(other) - read_clock(libc::CLOCK_MONOTONIC),
        }
    }
}

/// `struct sock_txtime` of linux/net_tstamp.h: the clock, and no flags.
fn option(clock: libc::clockid_t) -> Vec<u8> {
    [clock.to_ne_bytes(), 0_i32.to_ne_bytes()].concat()
}

/// The clock of the one discipline that every datagram meets; `None` where one of them is another.
fn clock_of(disciplines: &[Discipline]) -> Option<libc::clockid_t> {
    let all_are = |kind| !disciplines.is_empty() && disciplines.iter().all(|one| one.kind == kind);
    if all_are("fq") {
        Some(libc::CLOCK_MONOTONIC)
    } else if all_are("etf") {
        Some(libc::CLOCK_TAI)
    } else {
        None
    }
}

fn lacking(device: &str, disciplines: &[Discipline]) -> String {
    let mut kinds: Vec<&str> = disciplines.iter().map(|one| one.kind.as_str()).collect();
    kinds.dedup();
    let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    format!(
        "nothing holds packets back until their launch time on {device}: its queueing discipline is {found}, and \
         so_txtime needs fq or etf (as root: tc qdisc replace dev {device} root fq)"
    )
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills a live timespec; the clocks asked for exist on every Linux with SO_TXTIME.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn send_at(fd: RawFd, bytes: &[u8], launch_ns: u64) -> io::Result<()> {
    let mut control = [0_u64; 4];
    let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the header points at live buffers for the length of the call; the control buffer is large enough for one
    // u64 control message and aligned for cmsghdr; sendmsg does not write through iov_base.
    let sent = unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = std::ptr::from_ref(&vector).cast_mut();
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u64>() as _) as _;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = SCM_TXTIME;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<u64>() as _) as _;
        libc::CMSG_DATA(first).cast::<u64>().write_unaligned(launch_ns);
        libc::sendmsg(fd, &header, libc::MSG_DONTWAIT)
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket;
    use std::os::fd::AsRawFd;

    #[test]
    fn launch_times_are_given_where_the_loopback_obeys_them_and_refused_by_name_elsewhere() {
        let near = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let far = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let peer = far.local_addr().unwrap().as_socket().unwrap();
        near.connect(&peer.into()).unwrap();
        let device = qdisc::device_towards(peer).unwrap();
        let obeyed = clock_of(&qdisc::disciplines_of(device).unwrap()).is_some();
        match LaunchTimes::prepare(near.as_raw_fd(), peer) {
            Ok(times) => {
                assert!(obeyed);
                let due_ns = read_clock(libc::CLOCK_MONOTONIC) + 20_000_000;
                times.send(near.as_raw_fd(), b"later", due_ns).unwrap();
                while socket::receive_from(&far, &mut [0; 16]).unwrap().is_none() {}
                assert!(read_clock(libc::CLOCK_MONOTONIC) >= due_ns);
            }
            Err(TransportError::HostLacks(sentence)) => {
                assert!(!obeyed && sentence.contains("lo") && sentence.contains("fq or etf"), "{sentence}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_kernel_with_the_option_takes_the_control_message() {
        // Without fq the datagram leaves at once: this is about the form of the call alone.
        let near = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let far = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        near.connect(&far.local_addr().unwrap()).unwrap();
        let monotonic = option(libc::CLOCK_MONOTONIC);
        set_option_bytes(near.as_raw_fd(), libc::SOL_SOCKET, SO_TXTIME, &monotonic).unwrap();
        let times = LaunchTimes { clock: libc::CLOCK_MONOTONIC };
        times.send(near.as_raw_fd(), b"now", read_clock(libc::CLOCK_MONOTONIC)).unwrap();
        let mut buffer = [0; 16];
        let begun_ns = read_clock(libc::CLOCK_MONOTONIC);
        while socket::receive_from(&far, &mut buffer).unwrap().is_none() {
            assert!(read_clock(libc::CLOCK_MONOTONIC) - begun_ns < 10_000_000_000, "it never arrived");
        }
        assert_eq!(&buffer[..3], b"now");
    }
}
