// SPDX-License-Identifier: Apache-2.0
//! What a user can choose about a DCCP flow: congestion control and what carries the packets at each end.

use netjoule_dccp::ccid::Ccid;
use netjoule_transport::options::{Domain, OptionSpec, Setting};
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
        let known = ["ccid", "carrier", "peer_carrier", "ecn"];
        if let Some(name) = values.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(TransportError::BadOption(format!("{protocol} has no option {name}")));
        }
        let carrier = carrier(protocol, values, "carrier")?.unwrap_or(own[0]);
        if !own.contains(&carrier) {
            let names: Vec<_> = own.iter().map(|kind| kind.name()).collect();
            return Err(TransportError::BadOption(format!(
                "{protocol} has no carrier {}; it has {}",
                carrier.name(),
                names.join(", ")
            )));
        }
        let peer_carrier = self::carrier(protocol, values, "peer_carrier")?.unwrap_or(carrier);
        if !carrier.meets(peer_carrier) {
            return Err(TransportError::BadOption(format!(
                "carrier {} at one end and {} at the other do not understand each other; raw and kernel do",
                carrier.name(),
                peer_carrier.name()
            )));
        }
        let ecn = ecn(protocol, values, carrier)?;
        Ok(Self { ccid: ccid(protocol, values)?, carrier, peer_carrier, ecn })
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

fn ccid(protocol: &str, values: &Values) -> Result<Ccid> {
    let Some(value) = values.get("ccid") else { return Ok(Ccid::Tfrc) };
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
    number.and_then(Ccid::from_number).ok_or_else(|| {
        TransportError::BadOption(format!(
            "{protocol} has no congestion control {value}; it has CCID 2 and 3"
        ))
    })
}

fn ecn(protocol: &str, values: &Values, carrier: CarrierKind) -> Result<bool> {
    let has_ecn = carrier == CarrierKind::Udp;
    let Some(value) = values.get("ecn") else { return Ok(has_ecn) };
    match value.as_bool() {
        Some(true) if !has_ecn => Err(TransportError::BadOption(format!(
            "{protocol} has no ECN over carrier {}; carrier udp has",
            carrier.name()
        ))),
        Some(wanted) => Ok(wanted),
        None => Err(TransportError::BadOption(format!("{protocol} has ECN true or false, not {value}"))),
    }
}

fn carrier(protocol: &str, values: &Values, name: &str) -> Result<Option<CarrierKind>> {
    let Some(value) = values.get(name) else { return Ok(None) };
    match value.as_str().and_then(CarrierKind::named) {
        Some(kind) => Ok(Some(kind)),
        None => Err(unknown_carrier(protocol, value)),
    }
}

fn unknown_carrier(protocol: &str, value: &Value) -> TransportError {
    TransportError::BadOption(format!("{protocol} has no carrier {value}; known are udp, raw, kernel"))
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
            (json!({ "ccid": 4 }), "CCID 2 and 3"),
            (json!({ "ccid": "3" }), "CCID 2 and 3"),
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
