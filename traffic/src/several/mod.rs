// SPDX-License-Identifier: Apache-2.0
//! `send` with several flows at once: transports side by side, several of each, both directions.
//!
//! Each flow is a process of its own (`member`), as at the server, with its own report. All open their data paths first; then
//! all are told "go"; sockets stay open until the last flow has its report. At the end stands one summary.

mod member;
mod members;
mod summary;

use std::io::Read;
use std::os::fd::AsRawFd;

use netjoule_transport::PollFd;
use serde_json::{json, Value};

use crate::certificate::NOT_CERTIFIED;
use crate::cli::SendArgs;
use crate::client;
use crate::failure::{Code, Failure, Outcome};
use crate::host;
use crate::intervals::Interval;
use crate::output::{self, Output};
use crate::registry;
use crate::wait::{Signals, Waiter};
use member::Member;
use summary::FlowsSummary;

/// Run `send`, be it of one flow or of several; the exit code: of several the worst.
pub fn run(args: &SendArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    if !members::are_asked_for(args) {
        return client::run(args, signals, output);
    }
    let flows = members::of(args)?;
    // What is wrong with one is said once, before any begins.
    flows.iter().try_for_each(|flow| client::check(flow, registry::protocol(&flow.transport)?))?;
    let mut group = Group {
        args,
        signals,
        output,
        members: Vec::with_capacity(flows.len()),
        waiter: Waiter::new().map_err(Failure::system("open a timer"))?,
        fds: Vec::new(),
        lines: Lines::default(),
        stopped: false,
        worst: 0,
    };
    for (place, flow) in flows.iter().enumerate() {
        let member = Member::start(place + 1, flow, signals, &mut group.members)?;
        group.members.push(member);
    }
    group.run()
}

/// The flows of one command, and everything that this process waits for meanwhile.
struct Group<'a> {
    args: &'a SendArgs,
    signals: &'a Signals,
    output: Output,
    members: Vec<Member>,
    waiter: Waiter,
    fds: Vec<PollFd>,
    lines: Lines,
    /// All flows were told to stop.
    stopped: bool,
    /// The worst exit code so far.
    worst: u8,
}

impl Group<'_> {
    fn run(&mut self) -> Outcome<u8> {
        self.until(|group| group.members.iter().all(|member| member.is_ready || member.exit.is_some()))?;
        // Flows that do not all begin are not the comparison that was asked for.
        if self.members.iter().any(|member| member.exit.is_some()) {
            self.stop();
        }
        if !self.stopped {
            self.output.event("flows_ready", json!({ "flows": self.members.len() }))?;
            self.wait_for_go()?;
        }
        if !self.stopped {
            self.say("go");
            self.until(|group| {
                group.members.iter().all(|member| member.report.is_some() || member.exit.is_some())
            })?;
            self.linger()?;
            self.say("end");
        }
        self.until(|group| group.members.iter().all(|member| member.exit.is_some()))?;
        self.summarise()?;
        Ok(self.worst)
    }

    /// Serve everything until `done`.
    fn until(&mut self, done: impl Fn(&Self) -> bool) -> Outcome<()> {
        while !done(self) {
            self.look(None)?;
        }
        Ok(())
    }

    /// With --hold: nothing happens until "go".
    fn wait_for_go(&mut self) -> Outcome<()> {
        while self.args.hold && !self.stopped {
            match self.lines.take().as_deref() {
                Some("go") => return Ok(()),
                Some(other) => {
                    self.output.complain(&format!("expected \"go\" on stdin, got {other:?}"));
                    self.worst = self.worst.max(Code::Usage.exit());
                    self.stop();
                }
                None if self.lines.ended => {
                    self.output.complain("stdin ended before \"go\"");
                    self.stop();
                }
                None => self.look(None)?,
            }
        }
        Ok(())
    }

    /// With --hold until "end" or the end of stdin, with --linger-s that long; the sockets stay open and idle.
    fn linger(&mut self) -> Outcome<()> {
        let until_ns = host::now_ns() + (self.args.linger_s * 1e9) as i64;
        loop {
            let told = self.lines.ended || self.lines.take().as_deref() == Some("end");
            let over = if self.args.hold { told } else { host::now_ns() >= until_ns };
            if over || self.stopped || self.members.iter().all(|member| member.exit.is_some()) {
                return Ok(());
            }
            self.look((!self.args.hold).then_some(until_ns))?;
        }
    }

    /// Sleep until something happens, at most until `until_ns`, and see to it.
    fn look(&mut self, until_ns: Option<i64>) -> Outcome<()> {
        let readable = |fd| PollFd { fd, read: true, write: false };
        let heeds_stdin = self.args.hold && !self.lines.ended;
        let live: Vec<usize> =
            (0..self.members.len()).filter(|place| self.members[*place].exit.is_none()).collect();
        self.fds.clear();
        self.fds.push(readable(self.signals.fd()));
        self.fds.extend(live.iter().map(|place| readable(self.members[*place].fd())));
        if heeds_stdin {
            self.fds.push(readable(std::io::stdin().as_raw_fd()));
        }
        self.waiter.wait(&self.fds, until_ns, host::now_ns()).map_err(Failure::system("wait for the flows"))?;
        if self.signals.take() {
            self.stop();
        }
        if heeds_stdin && self.waiter.ready(1 + live.len()) {
            self.lines.read()?;
        }
        for (index, place) in live.into_iter().enumerate() {
            if self.waiter.ready(1 + index) {
                self.hear(place)?;
            }
        }
        Ok(())
    }

    /// Take what a flow says and pass it on.
    fn hear(&mut self, place: usize) -> Outcome<()> {
        let events = self.members[place].listen()?;
        for event in events {
            self.pass_on(place, event)?;
        }
        let member = &self.members[place];
        if let Some(exit) = member.exit {
            if exit > NOT_CERTIFIED {
                let words = format!("flow {} ({}): its process broke", member.number, member.name);
                self.output.complain(&words);
            }
            let known = if exit > NOT_CERTIFIED { Code::System.exit() } else { exit };
            self.worst = self.worst.max(known);
        }
        Ok(())
    }

    fn pass_on(&self, place: usize, mut event: Value) -> Outcome<()> {
        let member = &self.members[place];
        // That a flow stopped because all were told to is no news.
        let is_echo = self.stopped && event["code"] == Code::Interrupted.name();
        if event["event"] == "error" && !is_echo {
            let message = event["message"].as_str().unwrap_or("failed");
            let hint = match event["code"].as_str() {
                Some("busy") => " (as many flows as this: serve --max-flows)",
                _ => "",
            };
            self.output.complain(&format!("flow {} ({}): {message}{hint}", member.number, member.name));
        }
        match self.output {
            Output::Json => {
                event["flow"] = member.number.into();
                output::write(&event.to_string())
            }
            Output::Plain => plain(member.number, &event),
            Output::Silent => Ok(()),
        }
    }

    /// Say a line to every flow.
    fn say(&mut self, line: &str) {
        self.members.iter_mut().for_each(|member| member.say(line));
    }

    /// Tell every flow to stop, once.
    fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.worst = self.worst.max(Code::Interrupted.exit());
            self.members.iter().for_each(Member::stop);
        }
    }

    fn summarise(&self) -> Outcome<()> {
        let reports: Vec<_> = self
            .members
            .iter()
            .filter_map(|member| Some((member.number, member.report.as_ref()?)))
            .collect();
        let summary = FlowsSummary::of(self.members.len(), &reports);
        match self.output {
            Output::Json => self.output.event("summary", json!(summary)),
            Output::Plain => {
                for (number, report) in &reports {
                    for line in output::plain_report(report).lines() {
                        output::write(&format!("[{number:>3}] {line}"))?;
                    }
                }
                summary.lines().iter().try_for_each(|line| output::write(line))
            }
            Output::Silent => Ok(()),
        }
    }
}

/// A flow's event for a person; its report is printed at the end, with the others'.
fn plain(number: usize, event: &Value) -> Outcome<()> {
    if event["event"] != "interval" {
        return Ok(());
    }
    let mut fields = event.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("event");
    }
    match serde_json::from_value::<Interval>(fields) {
        Ok(interval) => output::write(&format!("[{number:>3}] {}", output::plain_interval(&interval))),
        Err(_) => Ok(()),
    }
}

/// Lines on stdin.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    ended: bool,
}

impl Lines {
    /// Read what is there; call when stdin is readable.
    fn read(&mut self) -> Outcome<()> {
        // Greater than the library's buffer, which is passed by then: nothing may stay where poll does not see it.
        let mut block = vec![0; 64 << 10];
        let length = std::io::stdin().read(&mut block).map_err(Failure::system("read stdin"))?;
        self.ended |= length == 0;
        self.bytes.extend_from_slice(&block[..length]);
        Ok(())
    }

    /// The next whole line.
    fn take(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_one_by_one_and_only_whole() {
        let mut lines = Lines { bytes: b"go\nend".to_vec(), ended: false };
        assert_eq!((lines.take().as_deref(), lines.take()), (Some("go"), None));
        lines.bytes.push(b'\n');
        assert_eq!(lines.take().as_deref(), Some("end"));
    }
}
