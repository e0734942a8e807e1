// SPDX-License-Identifier: Apache-2.0
//! How is an end's interface set up? Its MTU, addresses and state, whatever moves its packets.

use crate::end::EndConfig;
use crate::error::LinkError;
use crate::netns::{ip_batch, Netns};

/// Packets the kernel may keep for the relay while it is busy. Not part of the model's queue: the
/// relay empties it at least once a millisecond.
pub(crate) const KERNEL_QUEUE_PACKETS: usize = 2000;

/// Addresses, MTU and state of an end's interface, in the namespace of the calling thread.
pub(crate) fn configure(end: &EndConfig, netns: &Netns, ethernet: bool) -> Result<(), LinkError> {
    let name = &end.ifname;
    let mut lines = vec![format!("link set dev {name} mtu {} txqueuelen {KERNEL_QUEUE_PACKETS}", end.mtu)];
    if ethernet {
        // No ARP, no neighbour discovery: as on TUN, only IP packets travel.
        lines.push(format!("link set dev {name} arp off"));
    }
    if end.addresses.iter().any(|(ip, _)| ip.is_ipv6()) {
        if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return Err(LinkError::Host(format!(
                "IPv6 is switched off in this kernel, but {:?} has an IPv6 address; remove it from the configuration",
                end.name
            )));
        }
        // No link-local address, hence no router solicitations on an idle link.
        lines.push(format!("link set dev {name} addrgenmode none"));
    }
    for (ip, prefix) in &end.addresses {
        let nodad = if ip.is_ipv6() { " nodad" } else { "" };
        lines.push(format!("addr add {ip}/{prefix} dev {name}{nodad}"));
    }
    lines.push(format!("link set dev {name} up"));
    ip_batch(&lines).map_err(|error| in_place(error, end, netns))
}

/// Adds which end it was to an error.
pub(crate) fn in_place(error: LinkError, end: &EndConfig, netns: &Netns) -> LinkError {
    let place =
        |text: String| format!("interface {} of {:?} in {}: {text}", end.ifname, end.name, netns.label());
    match error {
        LinkError::Usage(text) => LinkError::Usage(place(text)),
        LinkError::Host(text) => LinkError::Host(place(text)),
        LinkError::Failed(text) => LinkError::Failed(place(text)),
    }
}
