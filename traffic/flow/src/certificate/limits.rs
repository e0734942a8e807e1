// SPDX-License-Identifier: Apache-2.0
//! What a pacing certificate may be held to: `pacing_limits` of a workload, `--pacing-limit` on the command line.

use std::str::FromStr;

use super::document::{Limits, PacingCertificate};

/// On which side of its limit a figure must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    AtMost,
    AtLeast,
}

/// A figure of a certificate that can have a limit.
struct Rule {
    name: &'static str,
    side: Side,
    figure: fn(&PacingCertificate) -> Option<f64>,
}

const RULES: [Rule; 11] = [
    at_most("max_error_p50_us", |found| found.error_us.map(|error| error.p50)),
    at_most("max_error_p99_us", |found| found.error_us.map(|error| error.p99)),
    at_most("max_error_p99_9_us", |found| found.error_us.map(|error| error.p99_9)),
    at_most("max_error_us", greatest_error_us),
    at_least("min_within_5us_ratio", |found| found.within_5us_ratio),
    at_least("min_within_50us_ratio", |found| found.within_50us_ratio),
    at_least("min_within_500us_ratio", |found| found.within_500us_ratio),
    at_most("max_back_to_back_ratio", |found| found.back_to_back_ratio),
    at_most("max_train_messages", |found| found.train_messages.map(|train| train.max as f64)),
    at_least("min_achieved_ratio", kept_ratio),
    at_most("max_cpu_ratio", |found| found.cpu_ratio),
];

const fn at_most(name: &'static str, figure: fn(&PacingCertificate) -> Option<f64>) -> Rule {
    Rule { name, side: Side::AtMost, figure }
}

const fn at_least(name: &'static str, figure: fn(&PacingCertificate) -> Option<f64>) -> Rule {
    Rule { name, side: Side::AtLeast, figure }
}

/// The greatest error, where that of every departure is known.
fn greatest_error_us(found: &PacingCertificate) -> Option<f64> {
    found.error_us.filter(|_| found.not_stamped() == 0).map(|error| error.max)
}

/// Sent over scheduled, where what the transport held back counts as sent: less than asked is its answer to that load.
fn kept_ratio(found: &PacingCertificate) -> Option<f64> {
    Some(found.achieved_ratio + found.held_back_not_sent_ratio)
}

/// One limit as it is written: `max_error_p99_us=60`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    name: &'static str,
    value: f64,
}

impl Limit {
    /// The limit of a figure; `None` for a name that there is not.
    pub fn new(name: &str, value: f64) -> Option<Self> {
        RULES.iter().find(|rule| rule.name == name).map(|rule| Self { name: rule.name, value })
    }
}

/// A text that is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no limit: write NAME=NUMBER, with a name of {names}", names = names())]
pub struct BadLimit {
    text: String,
}

fn names() -> String {
    RULES.map(|rule| rule.name).join(", ")
}

impl FromStr for Limit {
    type Err = BadLimit;

    fn from_str(text: &str) -> Result<Self, BadLimit> {
        let bad = || BadLimit { text: text.chars().take(60).collect() };
        let (name, number) = text.split_once('=').ok_or_else(bad)?;
        let value: f64 = number.parse().map_err(|_| bad())?;
        Self::new(name, value).filter(|_| value.is_finite() && value >= 0.0).ok_or_else(bad)
    }
}

impl FromIterator<Limit> for Limits {
    fn from_iter<I: IntoIterator<Item = Limit>>(limits: I) -> Self {
        Self(limits.into_iter().map(|limit| (limit.name.to_owned(), limit.value)).collect())
    }
}

/// What came of holding a certificate to limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What did not keep its limit, a sentence each.
    pub failed: Vec<String>,
}

impl Limits {
    /// Hold a certificate to them. A figure that is missing, because nothing left or nobody saw when, keeps no limit. With
    /// any limit nothing may have left early: that is promised by every pacing.
    pub fn judge(&self, found: &PacingCertificate) -> Verdict {
        let early = (!self.is_empty() && found.messages_early > 0)
            .then(|| format!("messages_early 0: it is {}", found.messages_early));
        let rules = RULES.iter().filter_map(|rule| Some((rule, *self.0.get(rule.name)?)));
        let broken = rules.filter_map(|(rule, limit)| rule.broken(found, limit));
        Verdict { failed: early.into_iter().chain(broken).collect() }
    }
}

impl PacingCertificate {
    /// The same with the verdict of `limits`; none when there are none.
    pub fn judged(mut self, limits: &Limits) -> Self {
        let verdict = limits.judge(&self);
        self.passed = (!limits.is_empty()).then_some(verdict.failed.is_empty());
        self.failed = verdict.failed;
        self.limits = limits.clone();
        self
    }
}

impl Rule {
    fn broken(&self, found: &PacingCertificate, limit: f64) -> Option<String> {
        let name = self.name;
        let Some(figure) = (self.figure)(found) else {
            let why = match (found.not_stamped(), found.departures) {
                (0, _) => "nothing left".to_owned(),
                (some, all) => format!("the kernel did not stamp {some} of {all} departures"),
            };
            return Some(format!("{name} {limit}: {why}, so there is no figure"));
        };
        match self.side {
            Side::AtMost if figure > limit => Some(format!("{name} {limit}: it is {figure:.4}")),
            Side::AtLeast if figure < limit => Some(format!("{name} {limit}: it is {figure:.4}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Basis, Certifier, HandOver, Totals};
    use crate::schedule::Schedule;

    /// Ten messages, a millisecond apart, each 100 us late.
    fn found() -> PacingCertificate {
        let schedule = Schedule::new(8_000_000, 1000, 10_000_000);
        let mut certifier = Certifier::new(Basis::HandOver);
        for index in 0..10 {
            let at_ns = schedule.due_ns(index) + 100_000;
            certifier
                .depart(&schedule, &HandOver { first: index, messages: 1, from_ns: at_ns, to_ns: at_ns });
            certifier.pause();
        }
        certifier.finish(&schedule, &Totals { scheduled: 10, sent: 10, cpu_s: 0.001, span_ns: 10_000_000 })
    }

    fn limits(texts: &[&str]) -> Limits {
        texts.iter().map(|text| text.parse::<Limit>().unwrap()).collect()
    }

    #[test]
    fn every_figure_can_fail_and_pass_its_limit() {
        for (rule, passing, failing) in [
            ("max_error_p50_us", "100", "99"),
            ("max_error_p99_us", "100", "99"),
            ("max_error_p99_9_us", "100", "99"),
            ("max_error_us", "100", "99.9"),
            ("min_within_5us_ratio", "0", "0.1"),
            ("min_within_50us_ratio", "0", "0.1"),
            ("min_within_500us_ratio", "1", "1.1"),
            ("max_back_to_back_ratio", "0", "-"),
            ("max_train_messages", "1", "0"),
            ("min_achieved_ratio", "1", "1.1"),
            ("max_cpu_ratio", "0.11", "0.09"),
        ] {
            let judged = found().judged(&limits(&[&format!("{rule}={passing}")]));
            assert_eq!((judged.passed, judged.failed.len()), (Some(true), 0), "{rule}");
            if failing == "-" {
                continue;
            }
            let judged = found().judged(&limits(&[&format!("{rule}={failing}")]));
            assert_eq!(judged.passed, Some(false), "{rule}");
            assert!(judged.failed[0].contains(rule), "{:?}", judged.failed);
        }
    }

    #[test]
    fn without_limits_a_certificate_is_reported_and_not_judged() {
        let judged = found().judged(&Limits::default());
        assert_eq!((judged.passed, judged.failed.len()), (None, 0));
    }

    #[test]
    fn all_limits_are_named_at_once() {
        let judged = found().judged(&limits(&["max_error_us=1", "max_error_p50_us=1", "max_cpu_ratio=1"]));
        assert_eq!(judged.failed.len(), 2);
    }

    #[test]
    fn trains_are_judged_by_the_longest() {
        let certificate = PacingCertificate { back_to_back_ratio: Some(0.5), ..found() };
        let judged = certificate.judged(&limits(&["max_back_to_back_ratio=0.4"]));
        assert_eq!(judged.failed, ["max_back_to_back_ratio 0.4: it is 0.5000"]);
    }

    #[test]
    fn a_flow_in_which_nothing_left_keeps_no_limit_on_errors() {
        let schedule = Schedule::new(8_000_000, 1000, 10_000_000);
        let totals = Totals { scheduled: 5, sent: 0, cpu_s: 0.0, span_ns: 1 };
        let nothing = Certifier::new(Basis::HandOver).finish(&schedule, &totals);
        assert_eq!(nothing.judged(&limits(&["max_error_us=100"])).passed, Some(false));
    }

    #[test]
    fn a_departure_before_its_deadline_keeps_no_limits_at_all() {
        let early = PacingCertificate { messages_early: 3, ..found() };
        assert_eq!(early.clone().judged(&Limits::default()).passed, None);
        let judged = early.judged(&limits(&["max_cpu_ratio=1"]));
        assert_eq!(
            (judged.passed, judged.failed),
            (Some(false), vec!["messages_early 0: it is 3".to_owned()])
        );
    }

    #[test]
    fn what_the_kernel_did_not_stamp_keeps_no_limit_on_the_greatest_error() {
        let unseen = PacingCertificate { departures_not_stamped: Some(1), ..found() };
        let judged = unseen.clone().judged(&limits(&["max_error_us=1000", "max_error_p99_us=1000"]));
        let said = ["max_error_us 1000: the kernel did not stamp 1 of 10 departures, so there is no figure"];
        assert_eq!(judged.failed, said);
        let nothing = PacingCertificate { error_us: None, within_5us_ratio: None, ..unseen };
        let judged = nothing.judged(&limits(&["max_error_p50_us=1000", "min_within_5us_ratio=0"]));
        assert_eq!(judged.failed.len(), 2, "{:?}", judged.failed);
    }

    #[test]
    fn what_the_transport_held_back_does_not_count_against_the_sender() {
        let schedule = Schedule::new(8_000_000, 1000, 10_000_000);
        let certificate = |held_back, refused: u64| {
            let mut certifier = Certifier::new(Basis::HandOver);
            let at_ns = schedule.due_ns(3);
            certifier.depart(&schedule, &HandOver { first: 0, messages: 4, from_ns: at_ns, to_ns: at_ns });
            certifier.hold_back(held_back, false);
            let scheduled = 4 + held_back + refused;
            certifier.finish(&schedule, &Totals { scheduled, sent: 4, cpu_s: 0.0, span_ns: 1 })
        };
        let asked = limits(&["min_achieved_ratio=0.99"]);
        assert_eq!(certificate(6, 0).judged(&asked).passed, Some(true));
        assert_eq!(certificate(0, 6).judged(&asked).passed, Some(false));
        let judged = certificate(3, 3).judged(&asked);
        assert_eq!(judged.failed, ["min_achieved_ratio 0.99: it is 0.7000"]);
    }

    #[test]
    fn a_text_that_is_no_limit_is_told_the_names() {
        for text in ["", "max_error_us", "max_error_us=", "max_error_us=-1", "max_error_us=inf", "speed=1"] {
            let error = text.parse::<Limit>().unwrap_err().to_string();
            assert!(error.contains("max_train_messages"), "{text}: {error}");
        }
        assert_eq!(limits(&["max_error_us=2.5"]).to_string(), "max_error_us 2.5");
    }
}
