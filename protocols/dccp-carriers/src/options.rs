// SPDX-License-Identifier: Apache-2.0
//! What a user can choose about a DCCP flow: congestion control and what carries the packets at each end.

use netjoule_dccp::ccid::Ccid;
use netjoule_transport::options::{complete, Domain, OptionSpec, Setting};
use netjoule_transport::{Result, TransportError, Values};
use serde_json::Value;

const CCID: OptionSpec = OptionSpec {
    name: "ccid",
    about: "congestion control: 2 is TCP-like (RFC 4341), 3 is TFRC (RFC 4342)",
    domain: Domain::Numbers(&[2, 3]),
    default: Some(Setting::Number(3)),
    seldom: false,
};
const CARRIER: OptionSpec = OptionSpec {
    name: "carrier",
    about: "what carries the packets: udp (RFC 6773) or raw (IP protocol 33, needs CAP_NET_RAW at both ends)",
    domain: Domain::Words(&["udp", "raw"]),
    default: Some(Setting::Word("udp")),
    seldom: false,
};
const PEER_CARRIER: OptionSpec = OptionSpec {
    name: "peer_carrier",
    about:
        "what carries the packets at the server, raw or kernel where this end has the other; else the same",
    domain: Domain::Words(&["udp", "raw", "kernel"]),
    default: None,
    seldom: true,
};
const ECN: OptionSpec = OptionSpec {
    name: "ecn",
    about:
        "packets are ECN-capable (RFC 4340 section 12); so they are over carrier udp, over raw they cannot be",
    domain: Domain::Flag,
    default: None,
    seldom: false,
};

/// What the user-space stack offers.
pub(crate) const USER_SPACE: [OptionSpec; 4] = [CCID, CARRIER, PEER_CARRIER, ECN];
/// What the kernel's socket offers.
pub(crate) const KERNEL: [OptionSpec; 2] = [CCID, PEER_CARRIER];

/// What either has once it is completed.
const COMPLETED: [OptionSpec; 4] =
    [CCID, OptionSpec { domain: PEER_CARRIER.domain, default: None, ..CARRIER }, PEER_CARRIER, ECN];

/// What carries the packets at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarrierKind {
    Udp,
    Raw,
    Kernel,
}

impl CarrierKind {
    pub(crate) const ALL: [Self; 3] = [Self::Udp, Self::Raw, Self::Kernel];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Raw => "raw",
            Self::Kernel => "kernel",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether packets of the two look the same on the wire.
    fn meets(self, other: Self) -> bool {
        (self == Self::Udp) == (other == Self::Udp)
    }
}

/// Checked options of one flow, the same at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) ccid: Ccid,
    /// At the end that asked for the flow.
    pub(crate) carrier: CarrierKind,
    /// At the serving end.
    pub(crate) peer_carrier: CarrierKind,
    /// Packets are ECN-capable where the hosts allow it; only over UDP.
    pub(crate) ecn: bool,
}

impl Choice {
    /// What `values` say, completed with CCID 3, the first of the carriers `own` that this protocol's client may
    /// have, and ECN where the carrier has it.
    pub(crate) fn of(protocol: &str, values: &Values, own: &[CarrierKind]) -> Result<Self> {
        let values = complete(protocol, &COMPLETED, values)?;
        let carrier = |name| values.get(name).and_then(Value::as_str).and_then(CarrierKind::named);
        let (own_carrier, peer_carrier) = (carrier("carrier"), carrier("peer_carrier"));
        let carrier = own_carrier.unwrap_or(own[0]);
        if !own.contains(&carrier) {
            let names: Vec<_> = own.iter().map(|kind| kind.name()).collect();
            return Err(TransportError::BadOption(format!(
                "{protocol} has no carrier {}; it has {}",
                carrier.name(),
                names.join(", ")
            )));
        }
        let peer_carrier = peer_carrier.unwrap_or(carrier);
        if !carrier.meets(peer_carrier) {
            return Err(TransportError::BadOption(format!(
                "carrier {} at one end and {} at the other do not understand each other; raw and kernel do",
                carrier.name(),
                peer_carrier.name()
            )));
        }
        let has_ecn = carrier == CarrierKind::Udp;
        let ecn = values.get("ecn").and_then(Value::as_bool).unwrap_or(has_ecn);
        if ecn && !has_ecn {
            return Err(TransportError::BadOption(format!(
                "{protocol} has no ECN over carrier {}; carrier udp has",
                carrier.name()
            )));
        }
        let ccid = if values["ccid"] == 2 { Ccid::TcpLike } else { Ccid::Tfrc };
        Ok(Self { ccid, carrier, peer_carrier, ecn })
    }

    /// As values for the flow report.
    pub(crate) fn values(self) -> Values {
        Values::from_iter([
            ("ccid".to_owned(), self.ccid.number().into()),
            ("carrier".to_owned(), self.carrier.name().into()),
            ("peer_carrier".to_owned(), self.peer_carrier.name().into()),
            ("ecn".to_owned(), self.ecn.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const USER_SPACE: [CarrierKind; 2] = [CarrierKind::Udp, CarrierKind::Raw];

    fn of(values: Value) -> Result<Choice> {
        let Value::Object(values) = values else { panic!("not an object") };
        Choice::of("dccp", &values, &USER_SPACE)
    }

    #[test]
    fn without_a_choice_it_is_ccid_3_over_udp_with_ecn() {
        let values = of(json!({})).unwrap().values();
        let completed = json!({ "ccid": 3, "carrier": "udp", "peer_carrier": "udp", "ecn": true });
        assert_eq!(Value::from(values), completed);
        assert!(!of(json!({ "ecn": false })).unwrap().ecn);
        assert!(!of(json!({ "carrier": "raw" })).unwrap().ecn);
    }

    #[test]
    fn what_is_completed_stays_as_it_is() {
        for chosen in [
            json!({ "ccid": 2 }),
            json!({ "carrier": "raw", "peer_carrier": "kernel" }),
            json!({ "ecn": false }),
        ] {
            let once = of(chosen).unwrap();
            assert_eq!(of(once.values().into()).unwrap(), once);
        }
    }

    #[test]
    fn senseless_choices_are_refused_by_name() {
        for (chosen, word) in [
            (json!({ "ccid": 4 }), "2 or 3"),
            (json!({ "ccid": "3" }), "2 or 3"),
            (json!({ "carrier": "pigeon" }), "pigeon"),
            (json!({ "carrier": "kernel" }), "no carrier kernel"),
            (json!({ "carrier": "udp", "peer_carrier": "kernel" }), "understand"),
            (json!({ "carrier": "raw", "ecn": true }), "no ECN"),
            (json!({ "ecn": 1 }), "true or false"),
            (json!({ "colour": 1 }), "colour"),
        ] {
            let error = of(chosen).unwrap_err();
            assert!(matches!(&error, TransportError::BadOption(text) if text.contains(word)), "{error}");
        }
    }
}
