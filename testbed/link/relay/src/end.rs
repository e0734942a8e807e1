// SPDX-License-Identifier: Apache-2.0
//! What is one end of the link to the configuration? An interface, its namespace and addresses.

use std::net::IpAddr;
use std::path::PathBuf;

use netjoule_link_model::range::within;

use crate::error::{usage, LinkError};

/// Greatest IP packet in an MSDU of 2304 bytes, LLC/SNAP taken off.
const MTU_MAX: u32 = 2296;
/// Least MTU: IPv4's, and IPv6's when an IPv6 address is given.
const MTU_MIN_IPV4: u32 = 576;
const MTU_MIN_IPV6: u32 = 1280;

/// A network namespace by path, process or as the relay's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetnsRef {
    /// The namespace netjoule-link was started in.
    Own,
    /// A namespace file, for instance /run/netns/client or /proc/123/ns/net.
    Path(PathBuf),
}

/// One end of the link: an interface in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct EndConfig {
    /// Name in messages and statistics.
    pub name: String,
    /// Where the interface is made.
    pub netns: NetnsRef,
    /// Interface name.
    pub ifname: String,
    /// Addresses with their prefix length.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Greatest IP packet, bytes.
    pub mtu: u32,
}

impl NetnsRef {
    /// `self`, `pid:N`, a path, or the name of a file in /run/netns.
    ///
    /// # Errors
    /// A sentence without its place.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "self" {
            return Ok(Self::Own);
        }
        if let Some(pid) = text.strip_prefix("pid:") {
            return match pid.parse::<u32>() {
                Ok(pid) if pid > 0 => Ok(Self::Path(PathBuf::from(format!("/proc/{pid}/ns/net")))),
                _ => Err(format!("netns {text:?} has no process number after pid:")),
            };
        }
        match text {
            "" => Err("netns is empty; use a path, pid:N or self".to_owned()),
            path if path.contains('/') => Ok(Self::Path(PathBuf::from(path))),
            name => Ok(Self::Path(PathBuf::from(format!("/run/netns/{name}")))),
        }
    }
}

impl EndConfig {
    /// Checks what the document says about an end; `place` begins each message.
    ///
    /// # Errors
    /// [`LinkError::Usage`] with one sentence.
    pub(crate) fn check(
        place: &str,
        name: String,
        netns: &str,
        ifname: String,
        addresses: &[String],
        mtu: u32,
    ) -> Result<Self, LinkError> {
        let wrong = |sentence: String| usage(format!("{place}: {sentence}"));
        if name.is_empty() {
            return Err(wrong("name is empty".to_owned()));
        }
        let ifname_fits = (1..=15).contains(&ifname.len())
            && ifname.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !ifname.starts_with(['.', '-']);
        if !ifname_fits {
            return Err(wrong(format!(
                "ifname {:?} is no interface name; use 1 to 15 letters, digits, dots, dashes, underscores",
                ifname
            )));
        }
        if addresses.is_empty() {
            return Err(wrong("addresses is empty; give at least one, for instance 10.77.0.2/24".to_owned()));
        }
        let addresses: Vec<_> =
            addresses.iter().map(|text| cidr(text)).collect::<Result<_, _>>().map_err(wrong)?;
        let least = if addresses.iter().any(|(ip, _)| ip.is_ipv6()) { MTU_MIN_IPV6 } else { MTU_MIN_IPV4 };
        let mtu = within("mtu", mtu, least..=MTU_MAX).map_err(|error| wrong(error.to_string()))?;
        let netns = NetnsRef::parse(netns).map_err(wrong)?;
        Ok(Self { name, netns, ifname, addresses, mtu })
    }
}

fn cidr(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || {
        format!("address {text:?} is not an address with prefix length, such as 10.77.0.2/24 or fd77::2/64")
    };
    let (ip, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
    let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
    let greatest = if ip.is_ipv4() { 32 } else { 128 };
    if prefix > greatest || ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() {
        return Err(wrong());
    }
    Ok((ip, prefix))
}
