// SPDX-License-Identifier: Apache-2.0
//! Socket filters (classic BPF): which packets the kernel puts into a carrier's socket at all.

use std::io;

use netjoule_transport::IpVersion;
use socket2::Socket;

const LOAD_HALF_ABSOLUTE: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_HALF_INDEXED: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const LOAD_IP_HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Whole packets pass.
const ALL: u32 = u32::MAX;

/// Offsets of DCCP's ports in its header.
const SOURCE_PORT: u32 = 0;
const DESTINATION_PORT: u32 = 2;

/// Offsets of length and checksum in UDP's header, with which a UDP socket's packets start here.
const UDP_LENGTH: u32 = 4;
const UDP_CHECKSUM: u32 = 6;
/// UDP header and the shortest DCCP header.
const LEAST_UDP_BYTES: u32 = 20;

const fn plain(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Datagrams that may carry DCCP. The kernel itself drops those whose checksum is wrong; a packet that has no checksum
/// yet because it never left this host holds the sum of its pseudo header there, which is never zero.
fn encapsulated() -> Vec<libc::sock_filter> {
    //= rfc6773#3.3
    //# If the UDP Checksum field, computed using standard UDP methods, is
    //# invalid, the received packet MUST be dropped.
    vec![
        plain(LOAD_HALF_ABSOLUTE, UDP_CHECKSUM),
        //= rfc6773#3.3
        //# If the received UDP Checksum field is zero, the packet MUST be dropped.
        libc::sock_filter { code: JUMP_IF_EQUAL, jt: 2, jf: 0, k: 0 },
        plain(LOAD_HALF_ABSOLUTE, UDP_LENGTH),
        //= rfc6773#3.3
        //# If the UDP Length field of a received packet is less than 20 (the UDP
        //# header length and minimum DCCP-UDP header length), the packet MUST be
        //# dropped.
        libc::sock_filter { code: JUMP_IF_AT_LEAST, jt: 1, jf: 0, k: LEAST_UDP_BYTES },
        plain(RETURN, 0),
        plain(RETURN, ALL),
    ]
}

/// Packets to `local_port` and, when it is known, from `remote_port`. A raw IPv4 socket's packets start with the IP
/// header, an IPv6 one's with DCCP's.
fn program(version: IpVersion, local_port: u16, remote_port: Option<u16>) -> Vec<libc::sock_filter> {
    let load = |offset| match version {
        IpVersion::V4 => plain(LOAD_HALF_INDEXED, offset),
        IpVersion::V6 => plain(LOAD_HALF_ABSOLUTE, offset),
    };
    let mut program = Vec::new();
    if version == IpVersion::V4 {
        program.push(plain(LOAD_IP_HEADER_LENGTH, 0));
    }
    let ports = [Some((DESTINATION_PORT, local_port)), remote_port.map(|port| (SOURCE_PORT, port))];
    for (offset, port) in ports.into_iter().flatten() {
        program.push(load(offset));
        // Equal: go on after the refusal that follows.
        program.push(libc::sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: u32::from(port) });
        program.push(plain(RETURN, 0));
    }
    program.push(plain(RETURN, ALL));
    program
}

/// Let a raw socket receive only packets to `local_port` (from `remote_port`); replaces an earlier filter.
pub(crate) fn admit_ports(
    socket: &Socket,
    version: IpVersion,
    local_port: u16,
    remote_port: Option<u16>,
) -> io::Result<()> {
    socket.attach_filter(&program(version, local_port, remote_port))
}

/// Let a UDP socket receive only what may be DCCP.
pub(crate) fn admit_encapsulated(socket: &Socket) -> io::Result<()> {
    socket.attach_filter(&encapsulated())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_sockets::socket::set_option;
    use socket2::SockRef;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Runs the few instructions that [`program`] uses, as the kernel does.
    fn passes(program: &[libc::sock_filter], packet: &[u8]) -> bool {
        let half = |at: usize| packet.get(at..at + 2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])));
        let (mut accumulator, mut index, mut at) = (0, 0, 0);
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                LOAD_IP_HEADER_LENGTH => index = 4 * usize::from(packet[step.k as usize] & 0xf),
                LOAD_HALF_INDEXED | LOAD_HALF_ABSOLUTE => {
                    let offset = if step.code == LOAD_HALF_INDEXED { index } else { 0 };
                    // A load past the end refuses the packet.
                    let Some(value) = half(offset + step.k as usize) else { return false };
                    accumulator = value;
                }
                JUMP_IF_EQUAL => at += usize::from(if accumulator == step.k { step.jt } else { step.jf }),
                RETURN => return step.k != 0,
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    #[test]
    fn datagrams_without_checksum_or_too_short_for_dccp_are_not_received() {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        far.set_nonblocking(true).unwrap();
        admit_encapsulated(&SockRef::from(&far)).unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let received = || far.recv(&mut [0; 100]).ok();
        near.send(&[0; 11]).unwrap();
        assert_eq!(received(), None);
        near.send(&[0; 12]).unwrap();
        assert_eq!(received(), Some(12));
        set_option(near.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        near.send(&[0; 12]).unwrap();
        assert_eq!(received(), None);
    }

    #[test]
    fn only_the_own_ports_pass() {
        let dccp = [0x12, 0x34, 0xab, 0xcd, 4, 0, 0, 0];
        let behind_options = [&[0x46; 24][..], &dccp].concat();
        for (version, packet) in [(IpVersion::V4, &behind_options[..]), (IpVersion::V6, &dccp[..])] {
            let passes = |local, remote| passes(&program(version, local, remote), packet);
            assert!(passes(0xabcd, None) && passes(0xabcd, Some(0x1234)));
            assert!(!passes(0xabce, None) && !passes(0xabcd, Some(0x1235)) && !passes(0x1234, None));
        }
        assert!(!passes(&program(IpVersion::V6, 0, None), &[0, 0]));
    }
}
