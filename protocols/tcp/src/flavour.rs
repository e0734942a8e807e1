// SPDX-License-Identifier: Apache-2.0
//! TCP or MPTCP (RFC 8684): which socket is opened, and what an MPTCP connection became.
//!
//! Both are one stream with the same calls. A peer or a box on the way that does not speak MPTCP makes the kernel fall back
//! to TCP without a word; the report says so.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use netjoule_sockets::socket;
use netjoule_transport::kernel_structure::{Field, KernelStructure};
use netjoule_transport::opening::Stream;
use netjoule_transport::{Result, Values};
use socket2::{Protocol, Socket};

/// Level and option of `struct mptcp_info` (include/uapi/linux/mptcp.h, Linux 5.16).
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
/// Longest structure that is read, in bytes.
const INFO_BYTES: usize = 128;
/// Offset of `mptcpi_flags` and its bit for a fall-back.
const FLAGS_OFFSET: usize = 8;
const FLAG_FALLBACK: u32 = 1;

/// The fields that go into the report.
const FIELDS: [Field; 7] = [
    ("mptcp_additional_subflows", 0, 1),
    ("mptcp_addresses_announced", 1, 1),
    ("mptcp_addresses_accepted", 2, 1),
    ("mptcp_retransmissions", 44, 4),
    ("mptcp_bytes_retransmitted", 48, 8),
    ("mptcp_bytes_sent", 56, 8),
    ("mptcp_bytes_received", 64, 8),
];

const TCP: Stream =
    Stream { name: "TCP", connection: "connection", magic: b"NJTC", under_way: &[libc::ENOTCONN] };

/// What kind of socket a flow has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Tcp,
    Mptcp,
}

impl Flavour {
    /// How its connections are opened.
    pub(crate) fn stream(self) -> &'static Stream {
        match self {
            Self::Tcp => &TCP,
            Self::Mptcp => &Stream { name: "MPTCP", ..TCP },
        }
    }

    /// A socket that is neither bound nor connected.
    ///
    /// # Errors
    /// `HostLacks` without MPTCP in the kernel, or with it switched off (sysctl net.mptcp.enabled).
    pub(crate) fn open(self, family_of: SocketAddr) -> Result<Socket> {
        let name = "MPTCP (Linux 5.6 or newer with sysctl net.mptcp.enabled = 1)";
        match self {
            Self::Tcp => socket::stream(family_of),
            Self::Mptcp => socket::stream_of(Protocol::MPTCP, name, family_of),
        }
    }

    /// What became of the connection `fd`, for the report; nothing for TCP.
    pub(crate) fn values(self, fd: RawFd) -> Values {
        if self == Self::Tcp {
            return Values::new();
        }
        let info = mptcp_info(fd);
        let mut values = info.as_ref().map_or_else(Values::new, KernelStructure::values);
        values.insert("mptcp_fell_back_to_tcp".into(), fell_back(fd, info.as_ref()).into());
        values
    }

    /// Whether TCP_INFO speaks of the whole connection: not of one with several subflows.
    pub(crate) fn has_one_path(self, fd: RawFd) -> bool {
        self == Self::Tcp || mptcp_info(fd).is_none_or(|info| info.number(0, 1) == Some(0))
    }

    /// Bytes of MPTCP's options in a data segment: DSS with a 64-bit acknowledgement and mapping, without checksum, is 26
    /// bytes (RFC 8684 section 3.3), padded to 28.
    pub(crate) fn option_bytes(self, fd: RawFd) -> u64 {
        match self {
            Self::Mptcp if !fell_back(fd, mptcp_info(fd).as_ref()) => 28,
            _ => 0,
        }
    }
}

/// The kernel's `struct mptcp_info`; a connection that fell back has none.
fn mptcp_info(fd: RawFd) -> Option<KernelStructure> {
    KernelStructure::read(fd, (SOL_MPTCP, MPTCP_INFO), INFO_BYTES, &FIELDS)
}

/// A listener gives a plain TCP socket to a peer that never spoke MPTCP (`SO_PROTOCOL`); a connection that began as MPTCP
/// and lost it has the flag, or answers no MPTCP question any more.
fn fell_back(fd: RawFd, info: Option<&KernelStructure>) -> bool {
    let protocol = socket::get_option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL).ok();
    let flags = info.and_then(|info| info.number(FLAGS_OFFSET, 4));
    protocol != Some(libc::IPPROTO_MPTCP) || flags.is_none_or(|flags| flags as u32 & FLAG_FALLBACK != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_an_older_kernels_structure_are_left_out() {
        let mut info = vec![0; 48];
        info[0] = 2;
        info[44..48].copy_from_slice(&7_u32.to_ne_bytes());
        let values = KernelStructure { fields: &FIELDS, bytes: info }.values();
        assert_eq!(values["mptcp_additional_subflows"], 2);
        assert_eq!(values["mptcp_retransmissions"], 7);
        assert!(!values.contains_key("mptcp_bytes_sent"));
    }
}
