// SPDX-License-Identifier: Apache-2.0
//! What a user may choose about an SCTP flow. Pure.

use netjoule_transport::options::{Domain, OptionSpec, Setting};
use netjoule_transport::{Result, TransportError, Values};

/// What SCTP offers.
pub(crate) const OPTIONS: [OptionSpec; 4] = [
    OptionSpec {
        name: "nodelay",
        about: "messages are not held back to share a packet (SCTP_NODELAY)",
        domain: Domain::Flag,
        default: Some(Setting::Flag(true)),
        seldom: false,
    },
    OptionSpec {
        name: "ordered",
        about: "messages are handed over in the order in which they were sent; else as they arrive (RFC 9260 section 6.6)",
        domain: Domain::Flag,
        default: Some(Setting::Flag(true)),
        seldom: false,
    },
    OptionSpec {
        name: "lifetime_ms",
        about: "a message that was not acknowledged within this time is given up (RFC 3758); else none is",
        domain: Domain::Integer { least: 1, greatest: 60_000 },
        default: None,
        seldom: false,
    },
    OptionSpec {
        name: "max_retransmissions",
        about: "a message is given up after so many retransmissions (RFC 7496 section 3.2); else none is",
        domain: Domain::Integer { least: 0, greatest: 1000 },
        default: None,
        seldom: false,
    },
];

/// When the sender gives a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reliability {
    /// Never.
    Full,
    /// This long after it was sent, in ms.
    Lifetime(u32),
    /// After so many retransmissions.
    Retransmissions(u32),
}

/// Checked options of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) nodelay: bool,
    pub(crate) ordered: bool,
    pub(crate) reliability: Reliability,
}

impl Choice {
    /// What `values`, each of which was checked, say together.
    ///
    /// # Errors
    /// [`TransportError::BadOption`] for two ways to give messages up.
    pub(crate) fn of(values: &Values) -> Result<Self> {
        let flag = |name: &str| values.get(name).and_then(|value| value.as_bool()).unwrap_or(true);
        let number = |name: &str| {
            values.get(name).and_then(|value| value.as_u64()).and_then(|number| u32::try_from(number).ok())
        };
        let reliability = match (number("lifetime_ms"), number("max_retransmissions")) {
            (None, None) => Reliability::Full,
            (Some(lifetime_ms), None) => Reliability::Lifetime(lifetime_ms),
            (None, Some(most)) => Reliability::Retransmissions(most),
            (Some(_), Some(_)) => {
                return Err(TransportError::BadOption(
                    "sctp gives messages up by lifetime_ms or by max_retransmissions, not by both".into(),
                ))
            }
        };
        Ok(Self { nodelay: flag("nodelay"), ordered: flag("ordered"), reliability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::Protocol;
    use serde_json::{json, Value};

    fn of(chosen: Value) -> Result<Choice> {
        let Value::Object(chosen) = chosen else { panic!("not an object") };
        Choice::of(&crate::Sctp.options(&chosen)?)
    }

    #[test]
    fn without_a_choice_everything_arrives_in_order() {
        let expected = Choice { nodelay: true, ordered: true, reliability: Reliability::Full };
        assert_eq!(of(json!({})).unwrap(), expected);
    }

    #[test]
    fn messages_can_be_given_up_in_one_way_at_a_time() {
        let lifetime = of(json!({ "lifetime_ms": 20, "ordered": false })).unwrap();
        assert_eq!((lifetime.reliability, lifetime.ordered), (Reliability::Lifetime(20), false));
        let never_again = of(json!({ "max_retransmissions": 0 })).unwrap();
        assert_eq!(never_again.reliability, Reliability::Retransmissions(0));
        let both = of(json!({ "lifetime_ms": 20, "max_retransmissions": 0 })).unwrap_err();
        assert!(both.to_string().contains("not by both"), "{both}");
    }
}
