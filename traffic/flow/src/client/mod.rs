// SPDX-License-Identifier: Apache-2.0
//! `send`: one flow from the asking end.
//!
//! | question | module |
//! | --- | --- |
//! | what becomes of a flow? | `flow`; of one to nowhere: `null` |
//! | what is said before it? | `greet` |
//! | what does a held one wait for? | `hold` |

pub(crate) mod assemble;
mod flow;
mod greet;
mod hold;
mod null;
mod partial;
mod target;

use netjoule_transport::Protocol;

use crate::arguments::SendArgs;
use crate::client::target::Target;
use crate::control::secret::Secret;
use crate::load::Load;
use crate::registry;
use crate::sender;
use flow::Flow;
use netjoule_measure::failure::{Code, Outcome};
use netjoule_measure::output::Output;
use netjoule_measure::realtime;
use netjoule_measure::wait::Signals;

/// Run `send`; the exit code.
pub fn run(args: &SendArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    let protocol = registry::protocol(&args.transport)?;
    let options = protocol.options(&args.options())?;
    check(args, protocol)?;
    if args.realtime {
        realtime::enter()?;
    }
    let load = Load::of(args, protocol)?;
    if args.transport == "null" {
        return null::run(args, &load, protocol, signals, output);
    }
    let target = Target::resolve(args)?;
    sender::check_size(protocol, &options, load.message_bytes, target.ip_version(), target.mtu_bytes(args))?;
    let request = target.request(args, &load, options)?;
    let secret = Secret::find(args.secret.as_deref(), |name| std::env::var_os(name))?;
    let mut flow = Flow::open(args, &load, protocol, &target, &request, secret.as_ref(), signals)?;
    let outcome = flow.run(output).and_then(|code| flow.linger().map(|()| code));
    flow.say_goodbye(outcome.as_ref().err());
    outcome
}

/// Whether the flags make sense together for this transport.
pub(crate) fn check(args: &SendArgs, protocol: &dyn Protocol) -> Outcome<()> {
    let usage = |message: &str| Code::Usage.fail(message);
    if args.qlog.is_some() && !protocol.description().keeps_event_log {
        let message = format!("{} keeps no record of its events: leave --qlog out", protocol.name());
        return Code::Usage.fail(message);
    }
    if !(0.0..=86_400.0).contains(&args.linger_s) {
        return usage("--linger-s must be between 0 and 86400");
    }
    if args.transport == "null" && args.reverse {
        return usage("the null transport has no other end: -R makes no sense");
    }
    if args.transport == "null" && args.capture.is_some() {
        return usage("the null transport sends no packets: --capture makes no sense");
    }
    if args.transport != "null" && args.to.is_none() {
        return usage("say where to: --to HOST (a netjoule-traffic serve must run there)");
    }
    Ok(())
}
