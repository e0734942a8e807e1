// SPDX-License-Identifier: Apache-2.0
//! What may a user choose about a QUIC flow? Pure.

use netjoule_transport::options::{Domain, OptionSpec, Setting};
use netjoule_transport::{Result, TransportError, Values};

/// What QUIC offers, for stream and datagrams alike.
pub(crate) const OPTIONS: [OptionSpec; 3] = [
    OptionSpec {
        name: "congestion_control",
        about: "the sender's congestion control: cubic (RFC 9438), reno (RFC 9002) or bbr2 (BBR version 2)",
        domain: Domain::Words(&["cubic", "reno", "bbr2"]),
        default: Some(Setting::Word("cubic")),
        seldom: false,
    },
    OptionSpec {
        name: "cc_pacing",
        about: "no packet leaves before the time that congestion control gives it; only bbr2 gives times, and by default",
        domain: Domain::Flag,
        default: None,
        seldom: false,
    },
    OptionSpec {
        name: "early_data",
        about: "resume a first, short connection and open the flow with 0-RTT data",
        domain: Domain::Flag,
        default: Some(Setting::Flag(false)),
        seldom: false,
    },
];

/// Congestion control of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 9438, as Linux' TCP does by default.
    Cubic,
    /// RFC 9002 section 7.
    Reno,
    /// BBR version 2; the only one that quiche paces.
    Bbr2,
}

impl CongestionControl {
    const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr2];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr2 => "bbr2",
        }
    }

    pub(crate) fn algorithm(self) -> quiche::CongestionControlAlgorithm {
        match self {
            Self::Cubic => quiche::CongestionControlAlgorithm::CUBIC,
            Self::Reno => quiche::CongestionControlAlgorithm::Reno,
            Self::Bbr2 => quiche::CongestionControlAlgorithm::Bbr2Gcongestion,
        }
    }
}

/// Checked options of one flow, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) congestion_control: CongestionControl,
    /// Packets wait for the times that congestion control gives them.
    pub(crate) is_paced: bool,
    /// The flow opens with 0-RTT data.
    pub(crate) early_data: bool,
}

impl Choice {
    /// What `values`, each of which was checked, say together.
    ///
    /// # Errors
    /// [`TransportError::BadOption`] for pacing by a congestion control that gives no times.
    pub(crate) fn of(values: &Values) -> Result<Self> {
        let flag = |name: &str| values.get(name).and_then(|value| value.as_bool());
        let name = values.get("congestion_control").and_then(|value| value.as_str()).unwrap_or("cubic");
        let congestion_control = CongestionControl::ALL
            .into_iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| TransportError::BadOption(format!("QUIC has no congestion control {name}")))?;
        let gives_times = congestion_control == CongestionControl::Bbr2;
        let is_paced = flag("cc_pacing").unwrap_or(gives_times);
        if is_paced && !gives_times {
            return Err(TransportError::BadOption(format!(
                "quiche's {name} gives packets no times to wait for; cc_pacing needs congestion_control bbr2"
            )));
        }
        Ok(Self { congestion_control, is_paced, early_data: flag("early_data").unwrap_or(false) })
    }

    /// As values for the flow report.
    pub(crate) fn values(self) -> Values {
        Values::from_iter([
            ("congestion_control".to_owned(), self.congestion_control.name().into()),
            ("cc_pacing".to_owned(), self.is_paced.into()),
            ("early_data".to_owned(), self.early_data.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::Protocol;
    use serde_json::{json, Value};

    fn of(chosen: Value) -> Result<Value> {
        let Value::Object(chosen) = chosen else { panic!("not an object") };
        crate::QUIC_DATAGRAM.options(&chosen).map(Value::from)
    }

    #[test]
    fn only_bbr2_is_paced_unless_told_otherwise() {
        let cubic = json!({ "congestion_control": "cubic", "cc_pacing": false, "early_data": false });
        assert_eq!(of(json!({})).unwrap(), cubic);
        assert_eq!(of(cubic.clone()).unwrap(), cubic);
        assert_eq!(of(json!({ "congestion_control": "bbr2" })).unwrap()["cc_pacing"], true);
        let unpaced = json!({ "congestion_control": "bbr2", "cc_pacing": false });
        assert_eq!(of(unpaced).unwrap()["cc_pacing"], false);
    }

    #[test]
    fn senseless_choices_are_refused_by_name() {
        for (chosen, words) in [
            (json!({ "congestion_control": "vegas" }), "cubic or reno or bbr2"),
            (json!({ "congestion_control": "reno", "cc_pacing": true }), "reno gives packets no times"),
            (json!({ "cc_pacing": true }), "cubic gives packets no times"),
            (json!({ "early_data": "yes" }), "true or false"),
            (json!({ "nodelay": true }), "has no option nodelay"),
        ] {
            let error = of(chosen).unwrap_err();
            assert!(matches!(&error, TransportError::BadOption(text) if text.contains(words)), "{error}");
        }
    }

    #[test]
    fn every_congestion_control_goes_by_its_name() {
        for known in CongestionControl::ALL {
            let values = Values::from_iter([("congestion_control".to_owned(), known.name().into())]);
            assert_eq!(Choice::of(&values).unwrap().congestion_control, known);
        }
    }
}
