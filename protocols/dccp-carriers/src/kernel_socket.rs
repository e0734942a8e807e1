// SPDX-License-Identifier: Apache-2.0
//! The DCCP socket of Linux up to 6.15 (include/uapi/linux/dccp.h): how to open one, and what it says of itself.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use netjoule_dccp::ccid::Ccid;
use netjoule_sockets::socket::{get_option, get_option_bytes, set_option, set_option_bytes};
use netjoule_transport::{FlowSpec, Result, TransportError, Values};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{queue_length, raw, SERVICE_CODE};

const SOCK_DCCP: i32 = 6;
const SOL_DCCP: i32 = 269;
const OPTION_SERVICE: i32 = 2;
const OPTION_CURRENT_MPS: i32 = 5;
const OPTION_CCID: i32 = 13;
const OPTION_SEND_QUEUE_MESSAGES: i32 = 17;
const OPTION_CCID_SENDER: i32 = 192;

/// First kernel without DCCP.
const REMOVED_IN: (u32, u32) = (6, 16);

/// `struct tfrc_tx_info`: x, x_recv (u64, 64 byte/s); x_calc, rtt, p, rto, ipi (u32).
const TFRC_BYTES: usize = 2 * 8 + 5 * 4;

/// A non-blocking DCCP socket, ready to connect or to listen: service code, congestion control, length of the queue.
pub(crate) fn open(family_of: SocketAddr, flow: &FlowSpec, ccid: Ccid) -> Result<Socket> {
    let socket = bare(family_of)?;
    let prepare = || {
        let fd = socket.as_raw_fd();
        socket.set_nonblocking(true)?;
        if family_of.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        set_option_bytes(fd, SOL_DCCP, OPTION_SERVICE, &SERVICE_CODE.to_be_bytes())?;
        set_option_bytes(fd, SOL_DCCP, OPTION_CCID, &[ccid.number()])?;
        set_option(fd, SOL_DCCP, OPTION_SEND_QUEUE_MESSAGES, queue_length::messages(flow) as libc::c_int)
    };
    prepare().map_err(TransportError::io(format!("prepare a DCCP socket with CCID {}", ccid.number())))?;
    Ok(socket)
}

fn bare(family_of: SocketAddr) -> Result<Socket> {
    let (kind, protocol) = (Type::from(SOCK_DCCP), Protocol::from(raw::PROTOCOL));
    Socket::new(Domain::for_address(family_of), kind, Some(protocol)).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT | libc::EAFNOSUPPORT | libc::EINVAL) => {
                TransportError::HostLacks(absence(&release(), family_of))
            }
            _ => TransportError::io("open a DCCP socket")(error),
        }
    })
}

/// Whether this kernel has DCCP, and if not, why.
pub(crate) fn available() -> Result<()> {
    bare(SocketAddr::from(([127, 0, 0, 1], 0))).map(drop)
}

fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Why a kernel of this release gives no DCCP socket, and what to do.
fn absence(release: &str, family_of: SocketAddr) -> String {
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    if version.is_none_or(|version| version >= REMOVED_IN) {
        return format!(
            "this kernel ({release}) has no DCCP (removed in Linux 6.16); use --transport dccp, or netjoule guest run"
        );
    }
    let module = if family_of.is_ipv4() { "dccp_ipv4" } else { "dccp_ipv6" };
    format!("this kernel ({release}) has no DCCP loaded: modprobe {module}, or use --transport dccp")
}

/// Largest message now, in bytes.
pub(crate) fn most_bytes(fd: RawFd) -> io::Result<usize> {
    get_option(fd, SOL_DCCP, OPTION_CURRENT_MPS).map(|bytes| usize::try_from(bytes).unwrap_or(0))
}

/// What the sender's congestion control says; CCID 2 says nothing.
pub(crate) fn figures(fd: RawFd, values: &mut Values) {
    let mut bytes = [0; TFRC_BYTES + 4];
    let written = get_option_bytes(fd, SOL_DCCP, OPTION_CCID_SENDER, &mut bytes);
    if written.is_ok_and(|length| length >= TFRC_BYTES) {
        tfrc_figures(&bytes, values);
    }
}

fn tfrc_figures(bytes: &[u8; TFRC_BYTES + 4], values: &mut Values) {
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let figures = [
        ("allowed_rate_bytes_per_s", long(0) as f64 / 64.0),
        ("receive_rate_bytes_per_s", long(8) as f64 / 64.0),
        ("rtt_us", f64::from(word(20))),
        ("loss_event_rate", f64::from(word(24)) / 1e6),
        ("nofeedback_timeout_us", f64::from(word(28))),
        ("packet_interval_us", f64::from(word(32))),
    ];
    values.extend(figures.map(|(name, value)| (name.to_owned(), value.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_dccp_is_named_with_the_way_out() {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        for (release, words) in [
            ("6.18.44-x", ["removed in Linux 6.16", "--transport dccp"]),
            ("7.0.1", ["removed", "guest"]),
            ("6.1.0-30-amd64", ["modprobe dccp_ipv4", "--transport dccp"]),
            ("", ["removed", "guest"]),
        ] {
            let sentence = absence(release, any);
            assert!(words.iter().all(|word| sentence.contains(word)), "{sentence}");
        }
    }

    #[test]
    fn the_senders_structure_is_read_in_the_kernels_units() {
        let mut bytes = [0; TFRC_BYTES + 4];
        bytes[..8].copy_from_slice(&(64_u64 * 5_000).to_ne_bytes());
        bytes[20..24].copy_from_slice(&10_240_u32.to_ne_bytes());
        bytes[24..28].copy_from_slice(&10_000_u32.to_ne_bytes());
        let mut values = Values::new();
        tfrc_figures(&bytes, &mut values);
        assert_eq!(values["allowed_rate_bytes_per_s"], 5_000.0);
        assert_eq!(
            (values["rtt_us"].as_f64(), values["loss_event_rate"].as_f64()),
            (Some(10_240.0), Some(0.01))
        );
    }
}
