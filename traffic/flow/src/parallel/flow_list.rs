// SPDX-License-Identifier: Apache-2.0
//! Which flows a command asks for: transports side by side, several of each, both directions. Pure.

use std::path::{Path, PathBuf};

use netjoule_transport::Protocol;

use crate::arguments::{SendArgs, MOST_FLOWS};
use crate::registry;
use netjoule_measure::failure::{Code, Outcome};
use netjoule_measure::units;

/// Whether the command asks for more than one flow.
pub(crate) fn are_asked_for(args: &SendArgs) -> bool {
    args.parallel > 1 || args.bidir || args.transport.contains(',')
}

/// The arguments of each flow: for each transport as often as asked, up, and down too with --bidir.
///
/// # Errors
/// [`Code::Usage`] for what several flows cannot share.
pub(crate) fn of(args: &SendArgs) -> Outcome<Vec<SendArgs>> {
    let transports =
        args.transport.split(',').map(|name| registry::protocol(name.trim())).collect::<Outcome<Vec<_>>>()?;
    check(args, &transports)?;
    let directions: &[bool] = if args.bidir { &[false, true] } else { &[args.reverse] };
    // Where one transport keeps a record of its events, the others need not; where none does, each refuses.
    let is_alone = !are_asked_for(args);
    let any_keeps_log = transports.iter().any(|protocol| protocol.description().keeps_event_log);
    let mut flows = Vec::new();
    for protocol in transports {
        let keeps_log = protocol.description().keeps_event_log || !any_keeps_log;
        for _ in 0..args.parallel {
            for reverse in directions {
                let mut flow = flow(args, protocol, *reverse, flows.len());
                flow.qlog = flow.qlog.filter(|_| keeps_log);
                if is_alone {
                    flow.capture = args.capture.clone();
                }
                flows.push(flow);
            }
        }
    }
    Ok(flows)
}

fn check(args: &SendArgs, transports: &[&dyn Protocol]) -> Outcome<()> {
    let usage = |message: String| Code::Usage.fail(message);
    let count = transports.len() * args.parallel as usize * if args.bidir { 2 } else { 1 };
    if count > MOST_FLOWS {
        return usage(format!("{count} flows at once are too many: {MOST_FLOWS} at most"));
    }
    if args.bidir && transports.iter().any(|protocol| protocol.name() == "null") {
        return usage("the null transport has no other end: --bidir makes no sense".into());
    }
    // An option that no transport here has is told by the transport itself, which names those that it has.
    for name in args.transport_options.chosen.keys() {
        if !transports.iter().any(|protocol| has_option(*protocol, name)) {
            let names: Vec<_> = transports.iter().map(|protocol| protocol.name()).collect();
            return usage(format!(
                "none of {} has an option --{}: leave it out",
                names.join(", "),
                name.replace('_', "-")
            ));
        }
    }
    Ok(())
}

fn has_option(protocol: &dyn Protocol, name: &str) -> bool {
    protocol.description().options.iter().any(|spec| spec.name == name)
}

/// Arguments of one flow; `place` counts from 0.
fn flow(args: &SendArgs, protocol: &dyn Protocol, reverse: bool, place: usize) -> SendArgs {
    let mut flow = args.clone();
    flow.transport = protocol.name().into();
    flow.parallel = 1;
    flow.bidir = false;
    flow.reverse = reverse;
    flow.hold = true;
    flow.transport_options.chosen.retain(|name, _| has_option(protocol, name));
    // Calls of several people are not the same call; flow k is the same whichever transport carries it.
    flow.seed = following(args.seed, place);
    flow.schedule_seed = following(args.schedule_seed, place);
    flow.capture = args.capture.as_deref().map(|path| numbered(path, place + 1));
    flow
}

/// The seed `place` after this one, back at 0 after the last.
fn following(seed: u64, place: usize) -> u64 {
    (seed + place as u64) % (units::LARGEST + 1)
}

/// `folder/flow.pcapng` becomes `folder/flow-2.pcapng`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(ending) => format!("{stem}-{number}.{}", ending.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn args(words: &[&str]) -> SendArgs {
        let cli = Cli::try_parse_from([&["x", "send", "--to", "h"], words].concat()).unwrap();
        let Command::Send(args) = cli.command else { panic!("not send") };
        *args
    }

    fn names(words: &[&str]) -> Vec<(String, bool)> {
        of(&args(words)).unwrap().into_iter().map(|flow| (flow.transport, flow.reverse)).collect()
    }

    fn refusal(words: &[&str]) -> String {
        let failure = of(&args(words)).unwrap_err();
        assert_eq!(failure.code, Code::Usage);
        failure.message
    }

    #[test]
    fn one_flow_is_one_flow() {
        assert!(!are_asked_for(&args(&[])) && !are_asked_for(&args(&["-R", "-P", "1"])));
        for words in [&["-P", "2"][..], &["--bidir"], &["--transport", "udp,tcp"]] {
            assert!(are_asked_for(&args(words)), "{words:?}");
        }
    }

    #[test]
    fn transports_stand_side_by_side_each_as_often_as_asked_and_both_ways() {
        let both = |name: &str| [(name.to_owned(), false), (name.to_owned(), true)];
        let wanted = [both("udp"), both("udp"), both("tcp"), both("tcp")].concat();
        assert_eq!(names(&["--transport", "udp,tcp", "-P", "2", "--bidir"]), wanted);
        assert_eq!(names(&["-P", "2", "-R"]), vec![("udp".to_owned(), true); 2]);
    }

    #[test]
    fn flows_have_seeds_and_captures_of_their_own_and_wait_for_one_another() {
        let flows = of(&args(&["-P", "2", "--seed", "7", "--capture", "a/b.pcapng"])).unwrap();
        assert_eq!((flows[0].seed, flows[1].seed), (7, 8));
        assert_eq!(flows[1].capture.as_deref(), Some(Path::new("a/b-2.pcapng")));
        assert!(flows.iter().all(|flow| flow.hold && !are_asked_for(flow)));
        assert_eq!(numbered(Path::new("bare"), 3), Path::new("bare-3"));
        assert_eq!(following(units::LARGEST, 1), 0);
    }

    #[test]
    fn an_option_goes_to_the_transports_that_have_it() {
        let flows = of(&args(&["--transport", "udp,tcp", "--no-nodelay"])).unwrap();
        assert!(flows[0].transport_options.chosen.is_empty());
        assert_eq!(flows[1].transport_options.chosen["nodelay"], false);
        assert!(refusal(&["--transport", "udp,tcp", "--ccid", "2"]).contains("--ccid"));
    }

    #[test]
    fn events_are_kept_by_the_transports_that_can() {
        let logs = |words: &[&str]| -> Vec<bool> {
            of(&args(words)).unwrap().into_iter().map(|flow| flow.qlog.is_some()).collect()
        };
        assert_eq!(logs(&["--transport", "udp,quic", "--qlog", "x"]), [false, true]);
        assert_eq!(logs(&["-P", "2", "--qlog", "x"]), [true, true], "for the flows themselves to refuse");
    }

    #[test]
    fn what_several_flows_cannot_be_is_refused() {
        assert!(refusal(&["--transport", "udp,pigeon"]).contains("pigeon"));
        assert!(refusal(&["--transport", "null", "--bidir"]).contains("--bidir"));
        assert!(refusal(&["--transport", "udp,tcp,quic", "-P", "32"]).contains("96 flows"));
    }
}
