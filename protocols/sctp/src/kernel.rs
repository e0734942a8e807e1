// SPDX-License-Identifier: Apache-2.0
//! The kernel's SCTP socket (include/uapi/linux/sctp.h): how it is told what to do, and what it says of itself.
//!
//! Structures are written and read by field offset; they are the ABI of 64-bit Linux.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use libc::c_int;
use netjoule_sockets::socket;
use netjoule_transport::kernel_structure::{Field, KernelStructure};
use netjoule_transport::{Congestion, Result, TransportError, Values};
use socket2::{Protocol, Socket};

use crate::options::{Choice, Reliability};

/// Largest message in bytes. The kernel keeps a message whole in its send buffer (208 KiB unless told otherwise).
pub(crate) const LARGEST_MESSAGE_BYTES: usize = 64 << 10;

const SOL_SCTP: c_int = libc::IPPROTO_SCTP;
const SCTP_GET_ASSOC_STATS: c_int = 112;
const SCTP_DEFAULT_PRINFO: c_int = 114;
const SCTP_PR_ASSOC_STATUS: c_int = 115;

/// `struct sctp_sndinfo`: sid, flags (u16), ppid, context, assoc_id (u32).
const SNDINFO_BYTES: usize = 16;
const SNDINFO_FLAGS: usize = 2;
/// `struct sctp_default_prinfo`: assoc_id, value (u32), policy (u16).
const PRINFO_BYTES: usize = 12;
const PRINFO_VALUE: usize = 4;
const PRINFO_POLICY: usize = 8;
/// `struct sctp_paddrparams`, packed: assoc_id, address (128 bytes), hbinterval, pathmaxrxt (u16), pathmtu, sackdelay,
/// flags, flow label, DSCP.
const PADDRPARAMS_BYTES: usize = 156;
const PADDRPARAMS_FLAGS: usize = 146;
const SPP_HB_DISABLE: u32 = 1 << 1;
/// `struct sctp_prstatus`: assoc_id (u32), sid, policy (u16), abandoned unsent, abandoned sent (u64).
const PRSTATUS_BYTES: usize = 24;
const PRSTATUS_POLICY: usize = 6;
const PRSTATUS_COUNTS: usize = 8;
/// `struct sctp_status`: the primary path's `struct sctp_paddrinfo` begins at 24.
const STATUS_BYTES: usize = 176;
/// `struct sctp_assoc_stats`: assoc_id, an address, then u64 counters.
const STATS_BYTES: usize = 256;
/// Places in what `SO_MEMINFO` returns (include/uapi/linux/sock_diag.h).
const MEMINFO_WMEM_QUEUED: usize = 5;

/// The fields of `sctp_status` that go into the report.
const STATUS_FIELDS: [Field; 6] = [
    ("peer_window_bytes", 8, 4),
    ("fragmentation_point_bytes", 20, 4),
    ("congestion_window_bytes", 160, 4),
    ("srtt_ms", 164, 4),
    ("rto_ms", 168, 4),
    ("path_mtu_bytes", 172, 4),
];

/// The fields of `sctp_assoc_stats` that go into the report.
const STATS_FIELDS: [Field; 11] = [
    ("sacks_received", 144, 8),
    ("sacks_sent", 152, 8),
    ("packets_sent", 160, 8),
    ("packets_received", 168, 8),
    ("data_chunks_retransmitted", 176, 8),
    ("data_chunks_received_twice", 192, 8),
    ("gap_acknowledgements_received", 200, 8),
    ("unordered_data_chunks_sent", 208, 8),
    ("unordered_data_chunks_received", 216, 8),
    ("ordered_data_chunks_sent", 224, 8),
    ("ordered_data_chunks_received", 232, 8),
];

/// A non-blocking socket, not yet bound or connected.
///
/// # Errors
/// [`TransportError::HostLacks`] without SCTP in the kernel.
pub(crate) fn open(family_of: SocketAddr) -> Result<Socket> {
    let name = "SCTP (modprobe sctp loads it where the kernel comes with it)";
    socket::stream_of(Protocol::SCTP, name, family_of)
}

/// Before the association stands: packets are not delayed, and none is sent while nothing is to be said. Without heartbeats
/// an idle association is silent (RFC 9260 section 8.3 would send one every 30 s).
pub(crate) fn prepare(socket: &Socket, choice: Choice) -> Result<()> {
    let fd = socket.as_raw_fd();
    socket::set_option(fd, SOL_SCTP, libc::SCTP_NODELAY, choice.nodelay.into())
        .map_err(TransportError::io("set SCTP_NODELAY"))?;
    let mut parameters = [0; PADDRPARAMS_BYTES];
    put(&mut parameters, PADDRPARAMS_FLAGS, &SPP_HB_DISABLE.to_ne_bytes());
    socket::set_option_bytes(fd, SOL_SCTP, libc::SCTP_PEER_ADDR_PARAMS, &parameters)
        .map_err(TransportError::io("switch SCTP's heartbeats off"))
}

/// At the sending end, once the flow is open: how its messages travel.
///
/// # Errors
/// [`TransportError::HostLacks`] when the kernel gives no message up (sysctl net.sctp.prsctp_enable).
pub(crate) fn prepare_sending(socket: &Socket, choice: Choice) -> Result<()> {
    let fd = socket.as_raw_fd();
    if !choice.ordered {
        let mut info = [0; SNDINFO_BYTES];
        put(&mut info, SNDINFO_FLAGS, &(libc::SCTP_UNORDERED as u16).to_ne_bytes());
        socket::set_option_bytes(fd, SOL_SCTP, libc::SCTP_DEFAULT_SNDINFO, &info)
            .map_err(TransportError::io("send SCTP messages unordered"))?;
    }
    let (policy, value) = match choice.reliability {
        Reliability::Full => return Ok(()),
        Reliability::Lifetime(lifetime_ms) => (libc::SCTP_PR_SCTP_TTL, lifetime_ms),
        Reliability::Retransmissions(most) => (libc::SCTP_PR_SCTP_RTX, most),
    };
    let mut info = [0; PRINFO_BYTES];
    put(&mut info, PRINFO_VALUE, &value.to_ne_bytes());
    put(&mut info, PRINFO_POLICY, &(policy as u16).to_ne_bytes());
    socket::set_option_bytes(fd, SOL_SCTP, SCTP_DEFAULT_PRINFO, &info).map_err(|error| {
        TransportError::HostLacks(format!(
            "this kernel gives no SCTP message up: {error} (sysctl net.sctp.prsctp_enable)"
        ))
    })
}

/// Whether messages leave unordered, and after what they are given up: as the kernel has it.
pub(crate) fn sending(fd: RawFd) -> Option<(bool, Reliability)> {
    let mut info = [0; SNDINFO_BYTES];
    socket::get_option_bytes(fd, SOL_SCTP, libc::SCTP_DEFAULT_SNDINFO, &mut info).ok()?;
    let flags = u16::from_ne_bytes(at(&info, SNDINFO_FLAGS)?);
    let mut info = [0; PRINFO_BYTES];
    socket::get_option_bytes(fd, SOL_SCTP, SCTP_DEFAULT_PRINFO, &mut info).ok()?;
    let value = u32::from_ne_bytes(at(&info, PRINFO_VALUE)?);
    let reliability =
        match c_int::from(u16::from_ne_bytes(at(&info, PRINFO_POLICY)?)) & libc::SCTP_PR_SCTP_MASK {
            libc::SCTP_PR_SCTP_TTL => Reliability::Lifetime(value),
            libc::SCTP_PR_SCTP_RTX => Reliability::Retransmissions(value),
            _ => Reliability::Full,
        };
    Some((flags & libc::SCTP_UNORDERED as u16 != 0, reliability))
}

/// Whether messages are not held back.
pub(crate) fn nodelay(fd: RawFd) -> Option<bool> {
    socket::get_option(fd, SOL_SCTP, libc::SCTP_NODELAY).ok().map(|value| value != 0)
}

/// Bytes of memory that wait to be sent or acknowledged.
pub(crate) fn queued_bytes(fd: RawFd) -> Option<u32> {
    let mut meminfo = [0; 4 * (MEMINFO_WMEM_QUEUED + 1)];
    socket::get_option_bytes(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut meminfo).ok()?;
    Some(u32::from_ne_bytes(at(&meminfo, 4 * MEMINFO_WMEM_QUEUED)?))
}

/// MTU of the path in bytes as SCTP knows it.
pub(crate) fn path_mtu_bytes(fd: RawFd) -> Option<u32> {
    status(fd)?.field("path_mtu_bytes").filter(|mtu| *mtu > 0).map(|mtu| mtu as u32)
}

/// Longest message that is one packet, in bytes; `None` when the kernel does not say.
pub(crate) fn fragmentation_point_bytes(fd: RawFd) -> Option<usize> {
    let bytes = status(fd)?.field("fragmentation_point_bytes")?;
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

/// Congestion control of the primary path now. The kernel tells neither its threshold nor what is in flight in bytes, and
/// round-trip times in whole milliseconds.
pub(crate) fn congestion(fd: RawFd) -> Option<Congestion> {
    congestion_of(&status(fd)?)
}

fn congestion_of(status: &KernelStructure) -> Option<Congestion> {
    Some(Congestion {
        window_bytes: Some(status.field("congestion_window_bytes")?),
        smoothed_rtt_ms: Some(status.field("srtt_ms")? as f64),
        ..Congestion::default()
    })
}

/// Counters of an association; `None` when the kernel does not answer.
pub(crate) fn statistics(fd: RawFd) -> Option<KernelStructure> {
    KernelStructure::read(fd, (SOL_SCTP, SCTP_GET_ASSOC_STATS), STATS_BYTES, &STATS_FIELDS)
}

fn status(fd: RawFd) -> Option<KernelStructure> {
    KernelStructure::read(fd, (SOL_SCTP, libc::SCTP_STATUS), STATUS_BYTES, &STATUS_FIELDS)
}

/// Counters with these values, 0 elsewhere.
#[cfg(test)]
pub(crate) fn statistics_of(values: &[(&str, u64)]) -> KernelStructure {
    let mut bytes = vec![0; STATS_BYTES];
    for (name, value) in values {
        let (_, offset, _) = STATS_FIELDS.iter().find(|(field, ..)| field == name).unwrap();
        put(&mut bytes, *offset, &value.to_ne_bytes());
    }
    KernelStructure { fields: &STATS_FIELDS, bytes }
}

/// Counters of the association and its path so far.
pub(crate) fn values(fd: RawFd) -> Values {
    let structures = [statistics(fd), status(fd)].into_iter().flatten();
    let mut values: Values = structures.flat_map(|structure| structure.values()).collect();
    if let Some(abandoned) = messages_abandoned(fd) {
        values.insert("messages_given_up".to_owned(), abandoned.into());
    }
    values
}

/// Of these some may have arrived: their acknowledgement came when they had been given up.
fn messages_abandoned(fd: RawFd) -> Option<u64> {
    let mut status = [0; PRSTATUS_BYTES];
    put(&mut status, PRSTATUS_POLICY, &(libc::SCTP_PR_SCTP_ALL as u16).to_ne_bytes());
    socket::get_option_bytes(fd, SOL_SCTP, SCTP_PR_ASSOC_STATUS, &mut status).ok()?;
    let count = |offset| Some(u64::from_ne_bytes(at(&status, offset)?));
    Some(count(PRSTATUS_COUNTS)? + count(PRSTATUS_COUNTS + 8)?)
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_sctp_is_named_as_what_is_missing() {
        if let Err(error) = open("127.0.0.1:0".parse().unwrap()) {
            assert!(matches!(error, TransportError::HostLacks(_)), "{error:?}");
            assert!(error.to_string().contains("modprobe sctp"), "{error}");
        }
    }

    #[test]
    fn congestion_control_is_read_from_the_primary_path() {
        let mut status = KernelStructure { fields: &STATUS_FIELDS, bytes: vec![0; STATUS_BYTES] };
        put(&mut status.bytes, 160, &4_380_u32.to_ne_bytes());
        put(&mut status.bytes, 164, &12_u32.to_ne_bytes());
        let told = congestion_of(&status).unwrap();
        assert_eq!((told.window_bytes, told.smoothed_rtt_ms), (Some(4_380), Some(12.0)));
        assert_eq!(told.slow_start_threshold_bytes, None);
    }

    #[test]
    fn counters_that_the_kernel_does_not_have_are_left_out() {
        let mut bytes = vec![0; 232];
        bytes[224..232].copy_from_slice(&9_u64.to_ne_bytes());
        let statistics = KernelStructure { fields: &STATS_FIELDS, bytes };
        assert_eq!(statistics.field("ordered_data_chunks_sent"), Some(9));
        assert_eq!(statistics.field("ordered_data_chunks_received"), None);
    }
}
