// SPDX-License-Identifier: Apache-2.0
//! What is one end of the link to the relay? A descriptor that gives and takes whole IP packets.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::config::Io;
use crate::end::EndConfig;
use crate::error::LinkError;
use crate::interface::configure;
use crate::netns::{ip_batch, Netns};
use crate::{tun, veth};

/// One end of the link.
#[derive(Debug)]
pub struct PacketPort {
    kind: Kind,
    ifname: String,
    /// /proc/net/dev of the interface's namespace, for its drop counter.
    dev_table: File,
}

#[derive(Debug)]
enum Kind {
    Tun(File),
    Packet { socket: OwnedFd, peer: libc::sockaddr_ll },
}

/// All ends, and what has to be undone.
#[derive(Debug)]
pub struct Ports {
    /// The ends, in the order of the configuration: stations, then wired.
    pub ports: Vec<PacketPort>,
    /// How packets get in and out: `Tun` or `Packet`.
    pub io: Io,
    relay_netns: Option<Netns>,
}

impl Ports {
    /// Makes and configures the interfaces of all ends.
    ///
    /// # Errors
    /// [`LinkError`] says what is missing; nothing made so far stays.
    pub fn open(ends: &[&EndConfig], io: Io) -> std::result::Result<Self, LinkError> {
        let namespaces: Vec<Netns> =
            ends.iter().map(|end| Netns::open(&end.netns)).collect::<std::result::Result<_, _>>()?;
        check_distinct(ends, &namespaces)?;
        let pairs: Vec<(&EndConfig, &Netns)> = ends.iter().copied().zip(&namespaces).collect();
        match io {
            Io::Tun => Self::open_tun(&pairs),
            Io::Packet => Self::open_packet(&pairs),
            Io::Auto if tun::probe().is_ok() => Self::open_tun(&pairs),
            Io::Auto => Self::open_packet(&pairs),
        }
    }

    fn open_tun(pairs: &[(&EndConfig, &Netns)]) -> std::result::Result<Self, LinkError> {
        let mut ports = Vec::new();
        for (end, netns) in pairs {
            let port = netns.run(|| {
                let file = tun::open(&end.ifname)?;
                configure(end, netns, false)?;
                PacketPort::new(Kind::Tun(file), &end.ifname)
            })?;
            ports.push(port);
        }
        Ok(Self { ports, io: Io::Tun, relay_netns: None })
    }

    fn open_packet(pairs: &[(&EndConfig, &Netns)]) -> std::result::Result<Self, LinkError> {
        // The relay's halves live in a namespace of their own: when the relay dies, however it
        // dies, the namespace goes, and with it both halves of every pair.
        let relay_netns = Netns::create()?;
        let mut ports = Vec::new();
        for (index, (end, netns)) in pairs.iter().enumerate() {
            let (socket, peer) = relay_netns.run(|| veth::make(index, end, netns))?;
            let port = netns.run(|| {
                configure(end, netns, true)?;
                PacketPort::new(Kind::Packet { socket, peer }, &end.ifname)
            })?;
            ports.push(port);
        }
        Ok(Self { ports, io: Io::Packet, relay_netns: Some(relay_netns) })
    }

    /// Removes the interfaces now, not only when the kernel gets round to it.
    pub fn close(self) {
        let count = self.ports.len();
        drop(self.ports);
        if let Some(netns) = self.relay_netns {
            let lines: Vec<String> =
                (0..count).map(|index| format!("link del {}", veth::relay_ifname(index))).collect();
            // Nothing to report: the kernel removes what is left together with the namespace.
            let _ = netns.run(|| ip_batch(&lines));
        }
    }
}

impl PacketPort {
    fn new(kind: Kind, ifname: &str) -> std::result::Result<Self, LinkError> {
        let path = "/proc/thread-self/net/dev";
        let dev_table = File::open(path)
            .map_err(|error| LinkError::Host(format!("cannot open {path}: {error}; mount /proc")))?;
        Ok(Self { kind, ifname: ifname.to_owned(), dev_table })
    }

    /// Reads one IP packet; `None` when there is none now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        let outcome = match &self.kind {
            Kind::Tun(file) => (&mut &*file).read(buffer),
            Kind::Packet { socket, .. } => veth::receive(socket, buffer),
        };
        match outcome {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_temporary(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands one IP packet to the namespace. A packet the namespace does not want is gone, as on any
    /// interface.
    ///
    /// # Errors
    /// The kernel's, when the interface is gone.
    pub fn write(&self, packet: &[u8]) -> Result<()> {
        let outcome = match &self.kind {
            Kind::Tun(file) => (&mut &*file).write(packet).map(|_| ()),
            Kind::Packet { socket, peer } => veth::send(socket, peer, packet),
        };
        match outcome {
            Err(error) if is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Packets that the kernel dropped before the relay could read them.
    pub fn kernel_drops(&self) -> u64 {
        match &self.kind {
            Kind::Packet { socket, .. } => veth::socket_drops(socket),
            Kind::Tun(_) => self.tun_drops().unwrap_or(0),
        }
    }

    fn tun_drops(&self) -> Option<u64> {
        let mut table = String::new();
        (&self.dev_table).seek(SeekFrom::Start(0)).ok()?;
        (&self.dev_table).read_to_string(&mut table).ok()?;
        transmit_drops(&table, &self.ifname)
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tun(file) => file.as_fd(),
            Kind::Packet { socket, .. } => socket.as_fd(),
        }
    }
}

impl AsRawFd for PacketPort {
    fn as_raw_fd(&self) -> i32 {
        self.as_fd().as_raw_fd()
    }
}

fn is_temporary(error: &Error) -> bool {
    // ENETDOWN is reported once when an AF_PACKET interface goes down and up again.
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(libc::ENETDOWN)
}

fn is_gone(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADFD | libc::EBADF | libc::ENXIO | libc::ENODEV))
}

/// Transmit drops of an interface in /proc/net/dev: 8 receive columns, then bytes, packets, errors, drops.
fn transmit_drops(table: &str, ifname: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(ifname)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

fn check_distinct(ends: &[&EndConfig], namespaces: &[Netns]) -> std::result::Result<(), LinkError> {
    for (index, netns) in namespaces.iter().enumerate() {
        if let Some(other) = namespaces[..index].iter().position(|other| other.is_same(netns)) {
            return Err(LinkError::Usage(format!(
                "{:?} and {:?} are in the same network namespace, where packets would pass the link by; \
                 give each end its own",
                ends[other].name, ends[index].name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_found_in_the_kernel_table() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls\n    \
            lo:       0       0    0    1    0     0          0         0        0       0    0    2    0     0 0 0\n \
            wlan0:     10       1    0    3    0     0          0         0       20       2    0   17    0     0 0 0\n";
        assert_eq!(transmit_drops(table, "wlan0"), Some(17));
        assert_eq!(transmit_drops(table, "wlan"), None);
    }
}
