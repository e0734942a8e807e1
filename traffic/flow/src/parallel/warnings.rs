// SPDX-License-Identifier: Apache-2.0
//! What a person is told of flows that fail, or whose report has a flaw: each reason once, however many flows have it. Pure.

use netjoule_measure::failure::Code;

/// What was told so far.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    told: Vec<String>,
}

impl Warnings {
    /// What is to be said of `flow`, which failed; nothing when the same was said of another. `flows`: how many were to
    /// be on at once.
    pub(crate) fn about(&mut self, flow: &str, flows: usize, code: Code, message: &str) -> Option<String> {
        match code {
            Code::Busy if flows > 1 => {
                let hint = format!("(all {flows} flows at once: serve --max-flows {flows} or more)");
                self.once(flow, &format!("{message} {hint}"))
            }
            _ => self.once(flow, message),
        }
    }

    /// `flow` with the sentence; nothing when the same was said of another.
    pub(crate) fn once(&mut self, flow: &str, sentence: &str) -> Option<String> {
        if self.told.iter().any(|told| told == sentence) {
            return None;
        }
        self.told.push(sentence.to_owned());
        Some(if flow.is_empty() { sentence.to_owned() } else { format!("{flow}: {sentence}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_with_the_first_flow_that_it_ended() {
        let mut warnings = Warnings::default();
        let mut about = |flow, code, message| warnings.about(flow, 8, code, message);
        assert_eq!(about("flow 2", Code::DataLost, "it broke"), Some("flow 2: it broke".into()));
        assert_eq!(about("flow 3", Code::DataLost, "it broke"), None);
        assert_eq!(about("flow 3", Code::DataLost, "it tore"), Some("flow 3: it tore".into()));
        let busy = about("flow 4", Code::Busy, "no room").unwrap();
        assert!(busy.ends_with("serve --max-flows 8 or more)"), "{busy}");
        assert_eq!(warnings.once("flow 5", "it broke"), None);
        assert_eq!(warnings.about("", 1, Code::Busy, "no place"), Some("no place".into()));
    }
}
