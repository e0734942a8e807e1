// SPDX-License-Identifier: Apache-2.0
//! Sockets as every transport over UDP or TCP wants them: non-blocking, with room to receive, IPv6 without IPv4.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::{IpVersion, Result, TransportError};

/// Receive buffer asked for on a datagram socket, in bytes. The kernel may grant less. It counts a small packet as about
/// 800 bytes, so this is some 80 ms of 500,000 packets a second: a receiver may be kept from its core for so long.
pub const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

/// Place of the drop counter in what `SO_MEMINFO` returns (`SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8;

/// The address to bind for talking to `remote` when the user named none: any address, any port.
pub fn unspecified_like(remote: SocketAddr) -> SocketAddr {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(any, 0)
}

/// Where a socket of `protocol` is bound.
pub fn local_address(socket: &Socket, protocol: &str) -> Result<SocketAddr> {
    let address =
        socket.local_addr().map_err(TransportError::io(format!("read the local {protocol} address")))?;
    address
        .as_socket()
        .ok_or_else(|| TransportError::Lost(format!("the {protocol} socket has no IP address")))
}

/// The address of this host from which packets go to `remote`; nothing is sent.
pub fn source_towards(remote: SocketAddr) -> io::Result<IpAddr> {
    let probe = UdpSocket::bind(unspecified_like(remote))?;
    probe.connect(remote)?;
    probe.local_addr().map(|local| local.ip())
}

/// A non-blocking UDP socket bound to `local`, with a big receive buffer and fragmentation forbidden.
pub fn datagram(local: SocketAddr) -> Result<Socket> {
    let socket = open(local, Type::DGRAM, Protocol::UDP)?;
    prepare_datagram(&socket, local)?;
    socket.bind(&local.into()).map_err(TransportError::io(format!("bind UDP {local}")))?;
    Ok(socket)
}

/// Give a socket that carries datagrams a big receive buffer and forbid fragmentation.
pub fn prepare_datagram(socket: &Socket, local: SocketAddr) -> Result<()> {
    grow_receive_buffer(socket);
    forbid_fragmentation(socket, local).map_err(TransportError::io("forbid fragmentation"))
}

/// A non-blocking TCP socket, not yet bound or connected.
pub fn stream(family_of: SocketAddr) -> Result<Socket> {
    stream_of(Protocol::TCP, "TCP", family_of)
}

/// A non-blocking socket of a connection-oriented protocol with TCP's calls (`name` in error sentences), not yet bound or
/// connected.
///
/// # Errors
/// [`TransportError::HostLacks`] when the kernel does not have the protocol, or has it switched off.
pub fn stream_of(protocol: Protocol, name: &str, family_of: SocketAddr) -> Result<Socket> {
    open(family_of, Type::STREAM, protocol).map_err(|error| match error {
        TransportError::Io { source, .. } if lacks_protocol(&source) => {
            TransportError::HostLacks(format!("this kernel has no {name}: {source}"))
        }
        error => error,
    })
}

fn lacks_protocol(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT | libc::ESOCKTNOSUPPORT))
}

fn open(family_of: SocketAddr, kind: Type, protocol: Protocol) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(family_of), kind, Some(protocol))
        .map_err(TransportError::io("open a socket"))?;
    socket.set_nonblocking(true).map_err(TransportError::io("make a socket non-blocking"))?;
    if family_of.is_ipv6() {
        socket.set_only_v6(true).map_err(TransportError::io("restrict a socket to IPv6"))?;
    }
    Ok(socket)
}

/// Ask for a receive buffer of [`RECEIVE_BUFFER_BYTES`], past the system's limit where privileges allow.
pub fn grow_receive_buffer(socket: &impl AsRawFd) {
    let bytes = RECEIVE_BUFFER_BYTES as libc::c_int;
    let fd = socket.as_raw_fd();
    if set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes).is_err() {
        // A smaller buffer is not an error: what was granted is in the flow's statistics.
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes);
    }
}

/// Set "don't fragment", so that a message too large for the path is an error and never two packets.
fn forbid_fragmentation(socket: &Socket, local: SocketAddr) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    if local.is_ipv4() {
        set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    } else {
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    }
}

/// Whether sending or receiving failed because of the way to the peer, or the peer: it may pass.
pub fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN | libc::EPERM)
    )
}

/// Bytes in the socket's send buffer that have not left this host; `None` when the socket does not say.
pub fn unsent_bytes(fd: RawFd) -> Option<usize> {
    let mut queued: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the same number as SIOCOUTQ) writes one int into a live int.
    let outcome = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &mut queued) };
    (outcome == 0).then(|| usize::try_from(queued).unwrap_or(0))
}

/// Whether poll(2) says that the socket takes something now.
pub fn is_writable(socket: &impl AsRawFd) -> bool {
    let mut polled = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one live pollfd, no waiting.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 && polled.revents & libc::POLLOUT != 0 }
}

/// Datagrams that the kernel dropped because the receive buffer was full, so far.
pub fn dropped_datagrams(fd: RawFd) -> Option<u32> {
    let mut meminfo = [0_u8; 4 * (MEMINFO_DROPS + 1)];
    let length = get_option_bytes(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut meminfo).ok()?;
    let drops = meminfo.get(4 * MEMINFO_DROPS..length)?.try_into().ok()?;
    Some(u32::from_ne_bytes(drops))
}

/// MTU that the kernel knows for a connected socket, in bytes.
pub fn path_mtu_bytes(fd: RawFd, ipv4: bool) -> Option<u32> {
    let (level, name) =
        if ipv4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    get_option(fd, level, name).ok().and_then(|mtu| u32::try_from(mtu).ok())
}

/// Set the ECN field (RFC 3168 section 5, 0 to 3) of the packets that leave from now on, and DSCP to 0.
pub fn set_ecn(fd: RawFd, ip_version: IpVersion, field: u8) -> io::Result<()> {
    let (level, name) = match ip_version {
        IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_TOS),
        IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    set_option(fd, level, name, (field & 3).into())
}

/// `setsockopt` of an integer.
pub fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_option_bytes(fd, level, name, &value.to_ne_bytes())
}

/// `setsockopt` of bytes (arrays, structures, big-endian numbers).
pub fn set_option_bytes(fd: RawFd, level: libc::c_int, name: libc::c_int, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the live slice has.
    let outcome =
        unsafe { libc::setsockopt(fd, level, name, bytes.as_ptr().cast(), bytes.len() as libc::socklen_t) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `getsockopt` of an integer.
pub fn get_option(fd: RawFd, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut bytes = [0; size_of::<libc::c_int>()];
    get_option_bytes(fd, level, name, &mut bytes)?;
    Ok(libc::c_int::from_ne_bytes(bytes))
}

/// `getsockopt` into bytes (for structures such as `tcp_info`); returns how many the kernel wrote.
pub fn get_option_bytes(
    fd: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the slice.
    let outcome = unsafe { libc::getsockopt(fd, level, name, bytes.as_mut_ptr().cast(), &mut length) };
    if outcome == 0 {
        Ok(length as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_socket_knows_the_loopback_mtu() {
        let socket = datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        let peer = datagram("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.connect(&peer.local_addr().unwrap()).unwrap();
        assert!(path_mtu_bytes(socket.as_raw_fd(), true).unwrap() >= 1280);
    }

    #[test]
    fn the_unspecified_address_keeps_the_family() {
        assert_eq!(unspecified_like("[::1]:9".parse().unwrap()), "[::]:0".parse().unwrap());
        assert_eq!(unspecified_like("127.0.0.1:9".parse().unwrap()), "0.0.0.0:0".parse().unwrap());
    }
}
