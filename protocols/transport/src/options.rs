// SPDX-License-Identifier: Apache-2.0
//! What may be chosen about a transport. Its crate describes every choice once; the command line, the check of a
//! workload and the list of transports are made from that. Pure.

use serde_json::{json, Value};

use crate::{Result, TransportError, Values};

/// Longest [`Domain::Name`], as the kernel's names of congestion control are.
const LONGEST_NAME: usize = 15;

/// One choice that a transport offers.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Name in workloads and reports; on the command line `_` is `-`.
    pub name: &'static str,
    /// What it does, for people: half a sentence that names its unit, if it has one.
    pub about: &'static str,
    /// Values that it takes.
    pub domain: Domain,
    /// Value when nobody chooses; `None` where the host or another choice decides.
    pub default: Option<Setting>,
    /// Only on the command line and not in its short help: for trying implementations against each other.
    pub seldom: bool,
}

/// Values that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// True or false.
    Flag,
    /// A whole number from `least` to `greatest`.
    Integer {
        /// Least value.
        least: u32,
        /// Greatest value.
        greatest: u32,
    },
    /// One of these numbers.
    Numbers(&'static [u32]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A name that only the host can judge: 1 to 15 letters, digits, dashes and underscores.
    Name,
}

/// A default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Of a [`Domain::Flag`].
    Flag(bool),
    /// Of a [`Domain::Integer`] or [`Domain::Numbers`].
    Number(u32),
    /// Of [`Domain::Words`] or a [`Domain::Name`].
    Word(&'static str),
}

impl From<Setting> for Value {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Flag(flag) => flag.into(),
            Setting::Number(number) => number.into(),
            Setting::Word(word) => word.into(),
        }
    }
}

impl OptionSpec {
    /// The description as the list of transports has it.
    pub fn document(&self) -> Value {
        let mut document = json!({ "name": self.name, "description": self.about });
        let domain = match self.domain {
            Domain::Flag => json!({ "type": "boolean" }),
            Domain::Integer { least, greatest } => {
                json!({ "type": "integer", "minimum": least, "maximum": greatest })
            }
            Domain::Numbers(numbers) => json!({ "type": "integer", "enum": numbers }),
            Domain::Words(words) => json!({ "type": "string", "enum": words }),
            Domain::Name => {
                json!({ "type": "string", "pattern": format!("^[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}$") })
            }
        };
        document["value"] = domain;
        if let Some(default) = self.default {
            document["default"] = default.into();
        }
        if self.seldom {
            document["seldom"] = true.into();
        }
        document
    }

    fn takes(&self, value: &Value) -> bool {
        match self.domain {
            Domain::Flag => value.is_boolean(),
            Domain::Integer { least, greatest } => value
                .as_u64()
                .is_some_and(|number| (u64::from(least)..=u64::from(greatest)).contains(&number)),
            Domain::Numbers(numbers) => {
                numbers.iter().any(|number| value.as_u64() == Some(u64::from(*number)))
            }
            Domain::Words(words) => words.iter().any(|word| value.as_str() == Some(word)),
            Domain::Name => value.as_str().is_some_and(is_name),
        }
    }

    fn expectation(&self) -> String {
        match self.domain {
            Domain::Flag => "true or false".to_owned(),
            Domain::Integer { least, greatest } => format!("a whole number from {least} to {greatest}"),
            Domain::Numbers(numbers) => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" or "),
            Domain::Words(words) => words.join(" or "),
            Domain::Name => format!("a name of at most {LONGEST_NAME} letters, digits, - and _"),
        }
    }
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// What was `chosen` of a transport's options, checked against `specs` and completed with their defaults.
///
/// # Errors
/// [`TransportError::BadOption`] for an unknown name or a value outside its domain.
pub fn complete(transport: &str, specs: &[OptionSpec], chosen: &Values) -> Result<Values> {
    for (name, value) in chosen {
        let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
            return Err(TransportError::BadOption(format!("{transport} has no option {name}")));
        };
        if !spec.takes(value) {
            let expected = spec.expectation();
            return Err(TransportError::BadOption(format!(
                "{transport}'s option {name} is {expected}, not {value}"
            )));
        }
    }
    let defaults = specs.iter().filter_map(|spec| Some((spec.name.to_owned(), spec.default?.into())));
    let mut values = Values::from_iter(defaults);
    values.extend(chosen.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn spec(name: &'static str, domain: Domain, default: Option<Setting>) -> OptionSpec {
        OptionSpec { name, about: "what it does", domain, default, seldom: false }
    }

    const SPECS: [OptionSpec; 5] = [
        spec("nodelay", Domain::Flag, Some(Setting::Flag(true))),
        spec("bytes", Domain::Integer { least: 1, greatest: 9 }, Some(Setting::Number(5))),
        spec("ccid", Domain::Numbers(&[2, 3]), None),
        spec("carrier", Domain::Words(&["udp", "raw"]), Some(Setting::Word("udp"))),
        spec("congestion_control", Domain::Name, None),
    ];

    fn of(chosen: Value) -> Result<Values> {
        let Value::Object(chosen) = chosen else { panic!("not an object") };
        complete("tcp", &SPECS, &chosen)
    }

    #[test]
    fn choices_are_completed_with_the_defaults_and_stay_as_they_are_the_second_time() {
        let once = of(json!({ "ccid": 2, "nodelay": false })).unwrap();
        let expected = json!({ "bytes": 5, "carrier": "udp", "ccid": 2, "nodelay": false });
        assert_eq!(Value::from(once.clone()), expected);
        assert_eq!(of(once.clone().into()).unwrap(), once);
    }

    #[test]
    fn what_is_not_in_the_domain_is_refused_by_name() {
        for (chosen, words) in [
            (json!({ "colour": 1 }), "tcp has no option colour"),
            (json!({ "nodelay": 1 }), "nodelay is true or false, not 1"),
            (json!({ "bytes": 10 }), "from 1 to 9, not 10"),
            (json!({ "bytes": -1 }), "from 1 to 9, not -1"),
            (json!({ "ccid": 4 }), "2 or 3, not 4"),
            (json!({ "carrier": "pigeon" }), "udp or raw, not \"pigeon\""),
            (json!({ "congestion_control": "../cubic" }), "letters, digits"),
            (json!({ "congestion_control": "" }), "letters, digits"),
            (json!({ "congestion_control": "a-name-of-16-xxx" }), "at most 15"),
        ] {
            let error = of(chosen).unwrap_err();
            assert!(matches!(&error, TransportError::BadOption(text) if text.contains(words)), "{error}");
        }
    }

    #[test]
    fn the_description_says_what_is_taken() {
        assert_eq!(
            SPECS[1].document(),
            json!({
                "name": "bytes", "description": "what it does", "default": 5,
                "value": { "type": "integer", "minimum": 1, "maximum": 9 },
            })
        );
        assert_eq!(SPECS[4].document()["value"]["pattern"], "^[A-Za-z0-9_-]{1,15}$");
        let seldom = OptionSpec { seldom: true, ..SPECS[2] };
        assert_eq!(seldom.document()["seldom"], true);
        assert_eq!(seldom.document()["value"]["enum"], json!([2, 3]));
    }
}
