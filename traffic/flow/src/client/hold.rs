// SPDX-License-Identifier: Apache-2.0
//! What a held flow waits for: "go" before it, "end" or its time after it.

use crate::arguments::SendArgs;
use crate::session::{Scope, Session};
use crate::stdin_lines::StdinLines;
use netjoule_measure::failure::Outcome;
use netjoule_measure::host;

/// With --hold: nothing happens until "go".
pub(super) fn wait_for_go(session: &mut Session<'_>) -> Outcome<()> {
    if session.stdin.is_none() {
        return Ok(());
    }
    session.wait_for("go", i64::MAX, |session| session.stdin.as_mut().map_or(Ok(true), StdinLines::says_go))
}

/// With --hold until "end" or the end of stdin, with --linger-s that long; the sockets stay open and idle.
pub(super) fn linger(session: &mut Session<'_>, args: &SendArgs) -> Outcome<()> {
    let until_ns = host::now_ns() + (args.linger_s * 1e9) as i64;
    loop {
        let is_over = match &mut session.stdin {
            Some(stdin) => stdin.says_end(),
            None => host::now_ns() >= until_ns,
        };
        if session.events.interrupted || is_over {
            return Ok(());
        }
        session.wait(session.stdin.is_none().then_some(until_ns), Scope::All)?;
    }
}
