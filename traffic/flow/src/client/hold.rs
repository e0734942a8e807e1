// SPDX-License-Identifier: Apache-2.0
//! What a held flow waits for: "go" before it, "end" or its time after it.

use crate::arguments::SendArgs;
use crate::session::{Scope, Session};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;

/// With --hold: nothing happens until "go".
pub(super) fn wait_for_go(session: &mut Session<'_>, hold: bool) -> Outcome<()> {
    if !hold {
        return Ok(());
    }
    session.wait_for("go", i64::MAX, |session| {
        let Some(line) = (!session.events.lines.is_empty()).then(|| session.events.lines.remove(0)) else {
            return match session.events.stdin_ended {
                true => Err(Failure::new(Code::Interrupted, "stdin ended before \"go\"")),
                false => Ok(false),
            };
        };
        match line.as_str() {
            "go" => Ok(true),
            other => Err(Failure::new(Code::Usage, format!("expected \"go\" on stdin, got {other:?}"))),
        }
    })
}

/// With --hold until "end" or the end of stdin, with --linger-s that long; the sockets stay open and idle.
pub(super) fn linger(session: &mut Session<'_>, args: &SendArgs) -> Outcome<()> {
    let until_ns = host::now_ns() + (args.linger_s * 1e9) as i64;
    loop {
        let told = session.events.lines.iter().any(|line| line == "end") || session.events.stdin_ended;
        let held = args.hold && !told;
        let now_ns = host::now_ns();
        if session.events.interrupted || (!held && now_ns >= until_ns) || (args.hold && told) {
            return Ok(());
        }
        session.wait((!held).then_some(until_ns), Scope::All)?;
    }
}
