// SPDX-License-Identifier: Apache-2.0
//! Which carriers this host has, and why not the others.

use netjoule_transport::{Result, TransportError};

use crate::options::CarrierKind;
use crate::{kernel_socket, raw};

/// One carrier on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierStatus {
    /// "udp", "raw" or "kernel".
    pub name: &'static str,
    /// What it is, for people.
    pub description: &'static str,
    /// Why it cannot be used here; `None` when it can.
    pub missing: Option<String>,
}

/// Try every carrier, as this user, in this network namespace. Opens sockets and closes them again; sends nothing.
pub fn carriers() -> Vec<CarrierStatus> {
    CarrierKind::ALL.map(status).into()
}

fn status(kind: CarrierKind) -> CarrierStatus {
    let (description, outcome) = match kind {
        CarrierKind::Udp => ("DCCP over UDP (RFC 6773)", Ok(())),
        CarrierKind::Raw => ("DCCP over raw IP (protocol 33)", raw::available()),
        CarrierKind::Kernel => ("the kernel's DCCP socket", kernel_socket::available()),
    };
    CarrierStatus { name: kind.name(), description, missing: reason(outcome) }
}

fn reason(outcome: Result<()>) -> Option<String> {
    outcome.err().map(|error: TransportError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_is_there_or_says_why_not() {
        let found = carriers();
        assert_eq!(found.iter().map(|status| status.name).collect::<Vec<_>>(), ["udp", "raw", "kernel"]);
        assert_eq!(found[0].missing, None);
        assert!(found.iter().filter_map(|status| status.missing.as_ref()).all(|reason| reason.len() > 20));
    }
}
