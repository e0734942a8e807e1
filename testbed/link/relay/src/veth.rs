// SPDX-License-Identifier: Apache-2.0
//! How are packets moved where TUN is closed? A veth pair per end; the relay's half is read and
//! written with an AF_PACKET socket that sees IP packets without Ethernet header.

use std::io::{Error, Result};
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use netjoule_sockets::socket::{get_option_bytes, set_option};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};

use crate::end::EndConfig;
use crate::error::LinkError;
use crate::interface::{in_place, KERNEL_QUEUE_PACKETS};
use crate::netns::{ip_batch, Netns};
use crate::tun::zeroed_request;

const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO: with them off, packets come complete with checksum
/// and never larger than the MTU.
const OFFLOADS: [(u32, &str); 3] = [(0x1f, "TSO"), (0x24, "GSO"), (0x17, "tx checksum")];
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// Room for a 4 ms PPDU's worth of small packets, with the kernel's overhead per packet.
const RECEIVE_BUFFER_BYTES: libc::c_int = (KERNEL_QUEUE_PACKETS * 2048) as libc::c_int;

/// Name of the relay's half of pair `index`, in the relay's own namespace.
pub(crate) fn relay_ifname(index: usize) -> String {
    format!("link{index}")
}

/// Makes pair `index` in the namespace of the calling thread, moves one half to `netns`, and opens
/// the socket on the other.
///
/// # Errors
/// [`LinkError`] with the end's name.
pub fn make(
    index: usize,
    end: &EndConfig,
    netns: &Netns,
) -> std::result::Result<(OwnedFd, libc::sockaddr_ll), LinkError> {
    let ours = relay_ifname(index);
    // The far half gets a name of its own first: the asked-for one may be taken here.
    let theirs = format!("end{index}");
    let peer_mac = [0x02, 0x6e, 0x6a, 0x6c, 0, index as u8];
    let mac_text = peer_mac.map(|byte| format!("{byte:02x}")).join(":");
    ip_batch(&[
        format!(
            "link add {ours} mtu {mtu} type veth peer name {theirs} mtu {mtu} address {mac_text}",
            mtu = end.mtu
        ),
        format!("link set dev {ours} arp off"),
    ])
    .map_err(|error| in_place(error, end, netns))?;
    for ifname in [&ours, &theirs] {
        offloads_off(ifname).map_err(|error| in_place(error, end, netns))?;
    }
    let socket = open_socket(&ours, peer_mac).map_err(|error| in_place(socket_error(&error), end, netns))?;
    ip_batch(&[
        format!("link set dev {theirs} netns {} name {}", netns.path(), end.ifname),
        format!("link set dev {ours} up"),
    ])
    .map_err(|error| in_place(error, end, netns))?;
    Ok(socket)
}

/// Reads one IP packet.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most buffer.len() bytes into it.
    let read =
        unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC) };
    match usize::try_from(read) {
        Err(_) => Err(Error::last_os_error()),
        // Longer than the MTU: none of ours. An empty packet goes nowhere.
        Ok(bytes) if bytes > buffer.len() => Ok(0),
        Ok(bytes) => Ok(bytes),
    }
}

/// Sends one IP packet to the other half.
pub(crate) fn send(socket: &OwnedFd, peer: &libc::sockaddr_ll, packet: &[u8]) -> Result<()> {
    let ethertype: u16 = if packet.first().is_some_and(|byte| byte >> 4 == 6) { 0x86dd } else { 0x0800 };
    let mut address = *peer;
    address.sll_protocol = ethertype.to_be();
    // SAFETY: packet and address are valid for the lengths given and outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if sent < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Packets that did not fit into the socket's buffer since the last call.
pub(crate) fn socket_drops(socket: &OwnedFd) -> u64 {
    // struct tpacket_stats: packets and drops, 32 bits each.
    let mut statistics = [0; 8];
    let told = get_option_bytes(socket.as_raw_fd(), libc::SOL_PACKET, PACKET_STATISTICS, &mut statistics);
    let [_, _, _, _, drops @ ..] = statistics;
    told.map_or(0, |_| u32::from_ne_bytes(drops).into())
}

fn socket_error(error: &Error) -> LinkError {
    LinkError::Host(format!("cannot open a packet socket: {error}; run as root, or inside `unshare -Urnm`"))
}

fn open_socket(ifname: &str, peer_mac: [u8; 6]) -> Result<(OwnedFd, libc::sockaddr_ll)> {
    // Protocol 0: nothing is received before the bind below names the interface.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, None)?;
    let fd = socket.as_raw_fd();
    set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    // This half is up before its peer, and the kernel gives it a queueing discipline some time after both are: until then
    // whatever goes through one is dropped in silence (net/core/link_watch.c).
    set_option(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, 1)?;
    // FORCE needs root in the first user namespace; without it the buffer is what the host allows.
    if set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES).is_err() {
        set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES)?;
    }
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = if_nametoindex(ifname)? as libc::c_int;
    // SAFETY: address is valid for the length given.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if outcome < 0 {
        return Err(Error::last_os_error());
    }
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&peer_mac);
    Ok((socket, address))
}

fn offloads_off(ifname: &str) -> std::result::Result<(), LinkError> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|error| socket_error(&error.into()))?;
    for (command, name) in OFFLOADS {
        // struct ethtool_value: command and data.
        let mut value = [command, 0u32];
        let mut request = zeroed_request(ifname);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: request points at value; both outlive the call.
        if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) } < 0 {
            let error = Error::last_os_error();
            return Err(LinkError::Failed(format!("cannot switch off {name} of {ifname}: {error}")));
        }
    }
    Ok(())
}
