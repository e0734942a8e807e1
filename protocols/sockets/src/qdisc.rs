// SPDX-License-Identifier: Apache-2.0
//! Which queueing discipline the packets to a destination go through, as rtnetlink(7) tells: the route's device first,
//! then the disciplines of that device. Both may be asked without privileges.
//!
//! Building requests and reading answers is pure; [`query`] is the only part with a socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct nlmsghdr`: length (u32), type (u16), flags (u16), sequence (u32), port (u32).
const HEADER_BYTES: usize = 16;
/// `struct rtmsg`: family, prefix lengths, tos, table, protocol, scope and type (u8 each), flags (u32).
const ROUTE_BYTES: usize = 12;
/// `struct tcmsg`: family and padding (4 bytes), interface (i32), handle, parent and info (u32 each).
const DISCIPLINE_BYTES: usize = 20;
/// An attribute's length and type, u16 each.
const ATTRIBUTE_BYTES: usize = 4;
/// `RTA_DST` of linux/rtnetlink.h.
const RTA_DST: u16 = 1;
/// Parent of a device's outermost discipline (`TC_H_ROOT`).
const ROOT: u32 = 0xffff_ffff;
/// Room for one answer; the kernel fills at most 32 KiB per datagram of a dump.
const ANSWER_BYTES: usize = 64 << 10;

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Discipline {
    /// Name, as `tc` writes it.
    pub(crate) kind: String,
    device: u32,
    handle: u32,
    parent: u32,
}

#[cfg(test)]
impl Discipline {
    /// One of this name.
    pub(crate) fn of_kind(kind: &str) -> Self {
        Self { kind: kind.into(), device: 1, handle: 0, parent: ROOT }
    }
}

/// Index of the device that packets to `destination` leave by.
pub(crate) fn device_towards(destination: SocketAddr) -> io::Result<u32> {
    if let SocketAddr::V6(address) = destination {
        // The scope of a link-local address is its device.
        if address.scope_id() != 0 {
            return Ok(address.scope_id());
        }
    }
    let answers = query(&route_request(destination.ip()), false)?;
    let device = messages(&answers)
        .find_map(|(kind, body)| (kind == libc::RTM_NEWROUTE).then(|| outgoing_device(body)).flatten());
    device.ok_or_else(|| io::Error::other("the kernel names no device for the route"))
}

/// The disciplines that packets leaving by `device` may go through: its outermost one, or those below it where that one
/// only spreads packets over queues.
pub(crate) fn disciplines_of(device: u32) -> io::Result<Vec<Discipline>> {
    let answers = query(&discipline_request(), true)?;
    let all = messages(&answers)
        .filter(|(kind, _)| *kind == libc::RTM_NEWQDISC)
        .filter_map(|(_, body)| discipline(body))
        .collect::<Vec<_>>();
    Ok(in_the_way(&all, device))
}

/// Name of a device.
pub(crate) fn device_name(device: u32) -> String {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the kernel writes at most IF_NAMESIZE bytes, the terminating zero included, into a live buffer.
    let found = unsafe { libc::if_indextoname(device, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return format!("device {device}");
    }
    name.split(|byte| *byte == 0).next().map_or_else(String::new, |text| String::from_utf8_lossy(text).into())
}

fn in_the_way(all: &[Discipline], device: u32) -> Vec<Discipline> {
    let own = || all.iter().filter(move |one| one.device == device);
    let Some(root) = own().find(|one| one.parent == ROOT) else { return Vec::new() };
    if !matches!(root.kind.as_str(), "mq" | "mqprio" | "taprio" | "multiq") {
        return vec![root.clone()];
    }
    let major = |handle: u32| handle >> 16;
    own().filter(|one| one.parent != ROOT && major(one.parent) == major(root.handle)).cloned().collect()
}

fn route_request(destination: IpAddr) -> Vec<u8> {
    let (family, address) = match destination {
        IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let mut body = vec![0; ROUTE_BYTES];
    body[0] = family as u8;
    body[1] = (8 * address.len()) as u8;
    body.extend(((ATTRIBUTE_BYTES + address.len()) as u16).to_ne_bytes());
    body.extend(RTA_DST.to_ne_bytes());
    body.extend(address);
    request(libc::RTM_GETROUTE, libc::NLM_F_REQUEST, &body)
}

fn discipline_request() -> Vec<u8> {
    request(libc::RTM_GETQDISC, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, &[0; DISCIPLINE_BYTES])
}

fn request(kind: u16, flags: libc::c_int, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Type and body of each message; what is cut off is left out.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let kind = u16_at(rest, 4)?;
        let body = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Type and value of each attribute.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        let value = rest.get(ATTRIBUTE_BYTES..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn outgoing_device(route: &[u8]) -> Option<u32> {
    let found = attributes(route.get(ROUTE_BYTES..)?).find(|(kind, _)| *kind == libc::RTA_OIF);
    found.and_then(|(_, value)| u32_at(value, 0))
}

fn discipline(body: &[u8]) -> Option<Discipline> {
    let kind = attributes(body.get(DISCIPLINE_BYTES..)?).find(|(kind, _)| *kind == libc::TCA_KIND)?.1;
    let name = kind.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(Discipline {
        kind: String::from_utf8_lossy(name).into(),
        device: u32_at(body, 4)?,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
    })
}

/// Netlink pads everything to 4 bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Ask the kernel; all its messages. A dump comes in several datagrams and ends with a message of its own.
fn query(request: &[u8], dump: bool) -> io::Result<Vec<u8>> {
    // SAFETY: socket returns a fresh descriptor or -1, checked before it is owned.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: sends a live buffer of the length told. An unconnected netlink socket speaks to the kernel.
    if unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answers = Vec::new();
    let mut buffer = vec![0_u8; ANSWER_BYTES];
    loop {
        // SAFETY: receives into a live buffer of the length told.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        let mut done = !dump;
        for (kind, body) in messages(&buffer[..length]) {
            match libc::c_int::from(kind) {
                libc::NLMSG_ERROR => {
                    // The number is that of an error, negated.
                    let code = u32_at(body, 0).map_or(libc::EPROTO, |code| -(code as i32));
                    return Err(io::Error::from_raw_os_error(code));
                }
                libc::NLMSG_DONE => done = true,
                _ => {}
            }
        }
        answers.extend_from_slice(&buffer[..length]);
        if done || length == 0 {
            return Ok(answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message of type `kind` as the kernel writes it.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, 0, body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn told(device: u32, handle: u32, parent: u32, kind: &str) -> Vec<u8> {
        let mut body = vec![0; 4];
        for field in [device, handle, parent, 0] {
            body.extend(field.to_ne_bytes());
        }
        body.extend(((ATTRIBUTE_BYTES + kind.len() + 1) as u16).to_ne_bytes());
        body.extend(libc::TCA_KIND.to_ne_bytes());
        body.extend(kind.as_bytes());
        body.push(0);
        message(libc::RTM_NEWQDISC, &body)
    }

    fn kinds(dump: &[Vec<u8>], device: u32) -> Vec<String> {
        let bytes = dump.concat();
        let all: Vec<_> = messages(&bytes).filter_map(|(_, body)| discipline(body)).collect();
        in_the_way(&all, device).into_iter().map(|one| one.kind).collect()
    }

    #[test]
    fn the_outermost_discipline_of_the_device_is_in_the_way() {
        let dump = [
            told(1, 0, ROOT, "noqueue"),
            told(2, 0x8001_0000, ROOT, "fq"),
            told(2, 0xffff_0000, 0xffff_fff1, "clsact"),
        ];
        assert_eq!(kinds(&dump, 2), ["fq"]);
        assert_eq!(kinds(&dump, 1), ["noqueue"]);
        assert_eq!(kinds(&dump, 3), Vec::<String>::new());
    }

    #[test]
    fn of_a_device_with_queues_those_of_the_queues_are() {
        let dump = [
            told(4, 0, ROOT, "mq"),
            told(4, 0, 1, "fq"),
            told(4, 0x8002_0000, 2, "fq_codel"),
            told(5, 0x0001_0000, ROOT, "fq"),
        ];
        assert_eq!(kinds(&dump, 4), ["fq", "fq_codel"]);
    }

    #[test]
    fn a_route_request_has_the_address_and_an_answer_its_device() {
        let bytes = route_request("10.1.2.3".parse().unwrap());
        assert_eq!(bytes.len(), HEADER_BYTES + ROUTE_BYTES + 8);
        assert_eq!(bytes[HEADER_BYTES..HEADER_BYTES + 2], [libc::AF_INET as u8, 32]);
        assert_eq!(bytes[bytes.len() - 4..], [10, 1, 2, 3]);
        let mut route = vec![0; ROUTE_BYTES];
        route.extend(8_u16.to_ne_bytes());
        route.extend(libc::RTA_OIF.to_ne_bytes());
        route.extend(7_u32.to_ne_bytes());
        assert_eq!(outgoing_device(&route), Some(7));
        assert_eq!(outgoing_device(&route[..ROUTE_BYTES]), None);
    }

    #[test]
    fn this_kernel_tells_the_device_and_the_discipline_of_the_loopback() {
        let device = device_towards("127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!(device_name(device), "lo");
        // A namespace may have no discipline at all for it; then there is none to name.
        assert!(disciplines_of(device).unwrap().iter().all(|one| !one.kind.is_empty()));
    }

    proptest! {
        #[test]
        fn any_answer_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, body) in messages(&bytes) {
                let _ = (discipline(body), outgoing_device(body));
            }
        }
    }
}
