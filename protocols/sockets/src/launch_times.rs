// SPDX-License-Identifier: Apache-2.0
//! Datagrams with a launch time: the kernel holds each back until then (`SO_TXTIME`, Linux 4.19).
//!
//! The option is accepted everywhere, and is obeyed only where the device's queueing discipline is `fq` (tc-fq(8), times
//! of `CLOCK_MONOTONIC`) or `etf`; most others send at once. So the discipline is looked up, and where it is not `fq`, the host
//! lacks what is needed. `etf` will not do: it drops every packet without a launch time, this flow's own handshake and
//! address resolution among them, and every one that is handed over late (tc-etf(8)); what it drops would count as lost on
//! the way.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use crate::qdisc::{self, Discipline};
use crate::send_batch::{SendBatch, SCM_TXTIME};
use crate::socket::{set_option, set_option_bytes};
use crate::{Result, TransportError};

/// Socket option of asm-generic/socket.h, which libc lacks.
const SO_TXTIME: libc::c_int = SCM_TXTIME;
/// Datagrams per call: more than the engine offers at once.
const DATAGRAMS_PER_CALL: usize = 64;
/// Send buffer asked for: datagrams that wait for their launch count against it. The kernel may grant less.
const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;

/// Gives the datagrams of one socket their launch times.
#[derive(Debug)]
pub struct LaunchTimes(SendBatch);

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
        if !are_obeyed(&disciplines) {
            return Err(TransportError::HostLacks(lacking(&name, &disciplines)));
        }
        set_option_bytes(fd, libc::SOL_SOCKET, SO_TXTIME, &option()).map_err(|error| {
            TransportError::HostLacks(format!(
                "the kernel takes no launch times for {name}: {error} (so_txtime needs Linux 4.19)"
            ))
        })?;
        // What was granted shows when datagrams are refused for want of room.
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, SEND_BUFFER_BYTES);
        Ok(Self::new())
    }

    fn new() -> Self {
        Self(SendBatch::with_launch_times(DATAGRAMS_PER_CALL))
    }

    /// Datagrams that one call takes.
    pub fn room(&self) -> usize {
        self.0.room()
    }

    /// Send datagrams of `payload_bytes` that lie back to back on a connected socket, in one call; how many the kernel took,
    /// counted from the front. Number `index` of them leaves at `launch_ns(index)` (`CLOCK_MONOTONIC`), or at once when that
    /// has passed.
    ///
    /// # Errors
    /// Why the first was not taken ([`SendBatch::send`]).
    pub fn send(
        &mut self,
        fd: RawFd,
        datagrams: &[u8],
        payload_bytes: usize,
        launch_ns: &dyn Fn(usize) -> i64,
    ) -> io::Result<usize> {
        self.0.send_at(fd, datagrams, payload_bytes, launch_ns)
    }
}

/// `struct sock_txtime` of linux/net_tstamp.h: the clock of fq, and no flags.
fn option() -> Vec<u8> {
    [libc::CLOCK_MONOTONIC.to_ne_bytes(), 0_i32.to_ne_bytes()].concat()
}

/// Whether every datagram meets a discipline that holds it back.
fn are_obeyed(disciplines: &[Discipline]) -> bool {
    !disciplines.is_empty() && disciplines.iter().all(|one| one.kind == "fq")
}

fn lacking(device: &str, disciplines: &[Discipline]) -> String {
    let mut kinds: Vec<&str> = disciplines.iter().map(|one| one.kind.as_str()).collect();
    kinds.dedup();
    let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    let why = match kinds.contains(&"etf") {
        true => "etf drops what is handed over late or without a launch time",
        false => "nothing holds packets back until their launch time",
    };
    format!(
        "{why} on {device}: its queueing discipline is {found}, and so_txtime needs fq (as root: tc qdisc replace dev \
         {device} root fq)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket;
    use crate::timestamps::now_ns;
    use std::os::fd::AsRawFd;

    #[test]
    fn fq_alone_holds_datagrams_back_and_the_sentence_says_why_etf_does_not() {
        let disciplines =
            |kinds: &[&str]| kinds.iter().map(|kind| Discipline::of_kind(kind)).collect::<Vec<_>>();
        for (kinds, obeyed, word) in [
            (&["fq"][..], true, ""),
            (&["fq", "fq"], true, ""),
            (&[], false, "discipline is none"),
            (&["fq_codel"], false, "nothing holds packets back"),
            (&["fq", "fq_codel"], false, "fq, fq_codel"),
            (&["etf"], false, "etf drops what is handed over late"),
        ] {
            let disciplines = disciplines(kinds);
            assert_eq!(are_obeyed(&disciplines), obeyed, "{kinds:?}");
            let sentence = lacking("eth0", &disciplines);
            assert!(obeyed || sentence.contains(word) && sentence.contains("needs fq "), "{sentence}");
        }
    }

    #[test]
    fn launch_times_are_given_where_the_loopback_obeys_them_and_refused_by_name_elsewhere() {
        let near = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let far = socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let peer = far.local_addr().unwrap().as_socket().unwrap();
        near.connect(&peer.into()).unwrap();
        let device = qdisc::device_towards(peer).unwrap();
        let obeyed = are_obeyed(&qdisc::disciplines_of(device).unwrap());
        match LaunchTimes::prepare(near.as_raw_fd(), peer) {
            Ok(mut times) => {
                assert!(obeyed);
                let due_ns = now_ns() + 20_000_000;
                let at_ns = |index| due_ns + 20_000_000 * index as i64;
                assert_eq!(times.send(near.as_raw_fd(), b"onetwo", 3, &at_ns).unwrap(), 2);
                for index in 0..2 {
                    while crate::datagram::receive_one(far.as_raw_fd(), &mut [0; 16]).unwrap().is_none() {}
                    assert!(now_ns() >= at_ns(index));
                }
            }
            Err(TransportError::HostLacks(sentence)) => {
                assert!(!obeyed && sentence.contains("lo") && sentence.contains("needs fq "), "{sentence}");
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
        set_option_bytes(near.as_raw_fd(), libc::SOL_SOCKET, SO_TXTIME, &option()).unwrap();
        let mut times = LaunchTimes::new();
        assert_eq!(times.send(near.as_raw_fd(), b"nowand", 3, &|_| now_ns()).unwrap(), 2);
        for word in [b"now", b"and"] {
            let mut buffer = [0; 16];
            let begun_ns = now_ns();
            while crate::datagram::receive_one(far.as_raw_fd(), &mut buffer).unwrap().is_none() {
                assert!(now_ns() - begun_ns < 10_000_000_000, "it never arrived");
            }
            assert_eq!(&buffer[..3], word);
        }
    }
}
