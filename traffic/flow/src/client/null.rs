// SPDX-License-Identifier: Apache-2.0
//! A flow to nowhere: built, timed, dropped.

use std::net::{Ipv4Addr, SocketAddr};

use netjoule_transport::{FlowSpec, IpVersion, Kind, Protocol, Role, Values};
use serde_json::json;

use super::hold::{linger, wait_for_go};
use crate::arguments::{SendArgs, PORT};
use crate::client::assemble::{self, Halves};
use crate::client::partial::{self, Remains};
use crate::client::target::Target;
use crate::load::Load;
use crate::sender::{self, Plan};
use crate::session::Session;
use crate::stdin_lines::StdinLines;
use netjoule_measure::clock_offset::ClockOffset;
use netjoule_measure::failure::Outcome;
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::wait::Signals;

/// Run `send` with the transport null; the exit code.
pub(super) fn run(
    args: &SendArgs,
    load: &Load,
    protocol: &dyn Protocol,
    signals: &Signals,
    output: Output,
) -> Outcome<u8> {
    // With another end, the limit follows from the address; here there is none.
    sender::check_size(protocol, &Values::new(), load.message_bytes, IpVersion::V4, u32::from(u16::MAX))?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let target = Target { data: nowhere.ip(), scope: nowhere, control: nowhere };
    let request = target.request(args, load, Values::new())?;
    let spec = FlowSpec {
        payload_bytes: load.message_bytes as usize,
        role: Role::Sender,
        token: [0; 16],
        gso: false,
        seed: args.seed,
        rate_bps: request.burst_rate_bps(),
        options: Values::new(),
        event_log: None,
    };
    let transport = protocol.connect(None, nowhere, &spec, &Values::new(), host::now_ns())?;
    let stdin = args.hold.then(|| StdinLines::after(load.stdin_rest.clone()));
    let mut session = Session::new(transport, None, signals, stdin)?;
    sender::prepare(&mut session, request.pacing)?;
    output.event("ready", json!({ "flow_id": request.flow_id, "transport": "null", "direction": "up" }))?;
    wait_for_go(&mut session)?;
    let plan = Plan::of(&request, load.schedule.clone(), Kind::Datagram);
    let sent = sender::run(&mut session, &plan, output)?;
    if let Some(failure) = sent.failure {
        let remains = Remains { sender: Some(sent.part), receiver: None, intervals: sent.intervals };
        partial::print(&request, remains, &failure, output)?;
        return Err(failure);
    }
    let halves = Halves {
        sender: sent.part,
        path: sent.path,
        receiver: None,
        intervals: sent.intervals,
        from_peer: 0..0,
        congestion: sent.congestion,
        capture: None,
        end_reason: sent.end_reason,
    };
    let limits = args.pacing_limits();
    let code = assemble::finish(&request, None, ClockOffset::SAME_CLOCK, halves, &limits, output)?;
    linger(&mut session, args)?;
    Ok(code)
}
