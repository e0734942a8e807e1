// SPDX-License-Identifier: Apache-2.0
//! Which transports this build has. A new one is one line here.

use netjoule_transport::Protocol;

use netjoule_measure::failure::{Code, Failure, Outcome};

/// Transports of this build.
const PROTOCOLS: &[&dyn Protocol] = &[
    &netjoule_udp::Udp,
    &netjoule_tcp::TCP,
    &netjoule_tcp::MPTCP,
    &netjoule_sctp::Sctp,
    &netjoule_dccp_carriers::DCCP,
    &netjoule_dccp_carriers::DCCP_KERNEL,
    &netjoule_quic::QUIC,
    &netjoule_quic::QUIC_DATAGRAM,
    &netjoule_null::Null,
];

/// The transport of this name.
pub fn protocol(name: &str) -> Outcome<&'static dyn Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.name() == name).copied().ok_or_else(|| {
        let known: Vec<_> = names().collect();
        Failure::new(Code::Usage, format!("unknown transport {name:?}; known are {}", known.join(", ")))
    })
}

/// Every transport.
pub fn all() -> impl Iterator<Item = &'static dyn Protocol> {
    PROTOCOLS.iter().copied()
}

/// Every name that the command line takes.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_go_by_their_names_and_unknown_ones_are_a_usage_error() {
        for name in names() {
            assert_eq!(protocol(name).map(Protocol::name).unwrap(), name);
        }
        let unknown = protocol("carrier-pigeon").map(Protocol::name).unwrap_err();
        assert_eq!(unknown.code, Code::Usage);
        assert!(unknown.message.contains("dccp-kernel"), "{unknown}");
    }
}
