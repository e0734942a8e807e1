// SPDX-License-Identifier: Apache-2.0
//! Which transports this build has. A new one is one line here.

use netjoule_transport::Protocol;

use crate::failure::{Code, Failure, Outcome};

/// Transports of this build.
const PROTOCOLS: [&dyn Protocol; 5] = [
    &netjoule_udp::Udp,
    &netjoule_tcp::Tcp,
    &netjoule_quic::Quic,
    &netjoule_quic::QuicDatagram,
    &netjoule_null::Null,
];

/// Transports that have a name but no code here yet.
const PLANNED: [&str; 2] = ["dccp", "dccp-kernel"];

/// The transport of this name.
pub fn protocol(name: &str) -> Outcome<&'static dyn Protocol> {
    if let Some(protocol) = PROTOCOLS.iter().find(|protocol| protocol.name() == name) {
        return Ok(*protocol);
    }
    if PLANNED.contains(&name) {
        return Err(Failure::new(Code::NotInThisBuild, format!("{name}: not in this build")));
    }
    let known: Vec<_> = names().collect();
    Err(Failure::new(Code::Usage, format!("unknown transport {name:?}; known are {}", known.join(", "))))
}

/// Every name that the command line takes.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name()).chain(PLANNED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_transports_say_so_and_unknown_ones_are_a_usage_error() {
        assert_eq!(protocol("udp").map(Protocol::name).unwrap(), "udp");
        let planned = protocol("dccp").map(Protocol::name).unwrap_err();
        assert_eq!((planned.code.exit(), planned.message.as_str()), (3, "dccp: not in this build"));
        assert_eq!(protocol("sctp").map(Protocol::name).unwrap_err().code, Code::Usage);
    }
}
