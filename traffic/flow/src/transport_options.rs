// SPDX-License-Identifier: Apache-2.0
//! Flags for what the transports let a user choose, made from the transports' own descriptions: a new option, or a new
//! transport with options, needs nothing here.

use clap::{Arg, ArgAction, ArgMatches, Command};
use netjoule_transport::options::{Domain, OptionSpec, Setting};
use netjoule_transport::{Protocol, Values};
use serde_json::Value;

use crate::registry;

const HEADING: &str = "Options of transports";

/// What was chosen on the command line, by the options' own names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransportOptions {
    /// Only what was given; [`Protocol::options`] judges it and adds the defaults.
    pub chosen: Values,
}

/// One option name with every transport that has it.
struct Entry {
    spec: OptionSpec,
    uses: Vec<(&'static str, OptionSpec)>,
}

impl Entry {
    fn flag(&self) -> String {
        self.spec.name.replace('_', "-")
    }

    /// "tcp, mptcp: what it is there; quic: what it is here".
    fn help(&self) -> String {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (transport, spec) in &self.uses {
            match groups.iter_mut().find(|(about, _)| *about == spec.about) {
                Some((_, transports)) => transports.push(transport),
                None => groups.push((spec.about, vec![transport])),
            }
        }
        let texts = groups.iter().map(|(about, transports)| format!("{}: {about}", transports.join(", ")));
        texts.collect::<Vec<_>>().join("; ")
    }
}

/// Every option of `protocols` once, in the order of the registry.
fn entries<'a>(protocols: impl Iterator<Item = &'a dyn Protocol>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for protocol in protocols {
        for spec in protocol.description().options {
            let named = (protocol.name(), *spec);
            match entries.iter_mut().find(|entry| entry.spec.name == spec.name) {
                Some(entry) => entry.uses.push(named),
                None => entries.push(Entry { spec: *spec, uses: vec![named] }),
            }
        }
    }
    entries
}

fn with_flags(command: Command, entries: &[Entry]) -> Command {
    entries.iter().fold(command, |command, entry| match entry.spec.domain {
        Domain::Flag => switches(entry).into_iter().fold(command, Command::arg),
        domain => {
            let number = matches!(domain, Domain::Integer { .. } | Domain::Numbers(_));
            let arg = base(entry, entry.flag()).value_name(if number { "N" } else { "NAME" });
            command.arg(if number { arg.value_parser(clap::value_parser!(u64)) } else { arg })
        }
    })
}

/// `--NAME` and `--no-NAME`; the one that says the default is hidden.
fn switches(entry: &Entry) -> [Arg; 2] {
    let (on, off) = (entry.flag(), format!("no-{}", entry.flag()));
    let default = |flag| entry.spec.default == Some(Setting::Flag(flag));
    [
        base(entry, on.clone()).action(ArgAction::SetTrue).overrides_with(off.clone()).hide(default(true)),
        base(entry, off)
            .action(ArgAction::SetTrue)
            .overrides_with(on)
            .hide(default(false))
            .help(format!("not so: {}", entry.help())),
    ]
}

fn base(entry: &Entry, flag: String) -> Arg {
    let arg = Arg::new(flag.clone()).long(flag.clone());
    // iperf3's letters and names.
    let arg = match flag.as_str() {
        "congestion-control" => arg.short('C').visible_alias("congestion"),
        "zerocopy" => arg.short('Z'),
        "nodelay" => arg.short('N').alias("no-delay"),
        _ => arg,
    };
    arg.help(entry.help())
        .help_heading(HEADING)
        .hide_short_help(entry.uses.iter().all(|(_, spec)| spec.seldom))
}

fn chosen(matches: &ArgMatches, entry: &Entry) -> Option<Value> {
    let flag = entry.flag();
    match entry.spec.domain {
        Domain::Flag => {
            if matches.get_flag(&flag) {
                Some(true.into())
            } else {
                matches.get_flag(&format!("no-{flag}")).then(|| false.into())
            }
        }
        Domain::Integer { .. } | Domain::Numbers(_) => {
            matches.get_one::<u64>(&flag).map(|number| (*number).into())
        }
        Domain::Words(_) | Domain::Name => matches.get_one::<String>(&flag).map(|word| word.clone().into()),
    }
}

impl clap::FromArgMatches for TransportOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let entries = entries(registry::all());
        let given =
            entries.iter().filter_map(|entry| Some((entry.spec.name.to_owned(), chosen(matches, entry)?)));
        Ok(Self { chosen: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.chosen.extend(Self::from_arg_matches(matches)?.chosen);
        Ok(())
    }
}

impl clap::Args for TransportOptions {
    fn augment_args(command: Command) -> Command {
        with_flags(command, &entries(registry::all()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: TransportOptions,
    }

    fn of(words: &[&str]) -> Value {
        let line = Line::try_parse_from(std::iter::once(&"x").chain(words)).unwrap();
        line.options.chosen.into()
    }

    #[test]
    fn only_what_was_given_is_chosen() {
        assert_eq!(of(&[]), json!({}));
        assert_eq!(of(&["--ccid", "2", "--carrier", "raw"]), json!({ "ccid": 2, "carrier": "raw" }));
        assert_eq!(of(&["--no-ecn", "--zerocopy"]), json!({ "ecn": false, "zerocopy": true }));
        assert_eq!(of(&["--no-nodelay", "--nodelay"]), json!({ "nodelay": true }));
        assert_eq!(of(&["--notsent-lowat-bytes", "4096"]), json!({ "notsent_lowat_bytes": 4096 }));
        assert_eq!(of(&["--peer-carrier", "kernel"]), json!({ "peer_carrier": "kernel" }));
    }

    #[test]
    fn an_option_that_several_transports_have_is_of_one_kind_in_all() {
        for entry in entries(registry::all()) {
            let is_flag = |spec: &OptionSpec| spec.domain == Domain::Flag;
            let is_number =
                |spec: &OptionSpec| matches!(spec.domain, Domain::Integer { .. } | Domain::Numbers(_));
            for (transport, spec) in &entry.uses {
                let same = (is_flag(spec), is_number(spec)) == (is_flag(&entry.spec), is_number(&entry.spec));
                assert!(same, "{} of {transport}", spec.name);
            }
        }
    }

    #[test]
    fn the_help_says_which_transport_means_what() {
        let entries = entries(registry::all());
        let help = entries.iter().find(|entry| entry.spec.name == "congestion_control").unwrap().help();
        assert!(help.starts_with("tcp, mptcp: the sender's"), "{help}");
        assert!(help.contains("; quic, quic-datagram: the sender's"), "{help}");
    }
}
