// SPDX-License-Identifier: Apache-2.0
//! `send` with several flows at once: transports side by side, several of each, both directions.
//!
//! Each flow is a process of its own (`flow_process`), as at the server, with its own report. All open their data paths first; then
//! all are told "go"; sockets stay open until the last flow has its report. At the end stands one summary.

mod common_window;
pub mod fairness;
mod flow_event;
mod flow_list;
mod flow_process;
mod summary;
mod table;
mod warnings;

use std::path::Path;

use netjoule_transport::PollFd;
use serde_json::json;

use crate::arguments::SendArgs;
use crate::client;
use crate::control;
use crate::load;
use crate::registry;
use crate::report::{self, EndReason};
use crate::stdin_lines::StdinLines;
use flow_event::FlowEvent;
use flow_process::FlowProcess;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::{self, Output};
use netjoule_measure::wait::{Signals, Waiter};
use summary::FlowsSummary;
use table::Lines;
use warnings::Warnings;

/// Run `send`, be it of one flow or of several; the exit code: of several the worst. For people one flow is a group, too.
pub fn run(args: &SendArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    if output != Output::Plain && !flow_list::are_asked_for(args) {
        return client::run(args, signals, output);
    }
    let name = host::random_bytes::<16>().map_err(Failure::system("draw a command name"))?;
    let mut stdin = StdinLines::default();
    let mut args = SendArgs {
        command_id: Some(control::token_text(&name)),
        live: output == Output::Plain,
        ..args.clone()
    };
    if args.profile.as_deref() == Some(Path::new("-")) {
        let (line, rest) = load::first_line_of_stdin()?;
        (args.profile_on_stdin, stdin) = (Some(line), StdinLines::after(rest));
    }
    let args = &args;
    let flows = flow_list::of(args)?;
    // What is wrong with one is said once, before any begins.
    flows.iter().try_for_each(check)?;
    let mut group = FlowGroup {
        args,
        signals,
        output,
        processes: Vec::with_capacity(flows.len()),
        waiter: Waiter::new().map_err(Failure::system("open a timer"))?,
        fds: Vec::new(),
        stdin,
        tables: flows.iter().map(|flow| lines_of(args, flow)).collect(),
        has_head: false,
        warnings: Warnings::default(),
        stopped: false,
        worst: 0,
    };
    let outcome = group.start(&flows).and_then(|()| group.run());
    if outcome.is_err() {
        group.abandon();
    }
    outcome
}

/// The lines of a flow in the table. (With -n or -k only its report says how long it took.)
fn lines_of(args: &SendArgs, flow: &SendArgs) -> Lines {
    let is_counted = args.bytes.is_some() || args.blocks.is_some();
    let ends_ns = args.time.unwrap_or(load::TIME_NS).saturating_add(args.omit.unwrap_or(0));
    let ends_ns = (!is_counted).then(|| i64::try_from(ends_ns).unwrap_or(i64::MAX));
    Lines::new(args.format, args.interval as i64, ends_ns, flow.transport == "null")
}

fn check(flow: &SendArgs) -> Outcome<()> {
    let protocol = registry::protocol(&flow.transport)?;
    protocol.options(&flow.options())?;
    client::check(flow, protocol)
}

/// The flows of one command, and everything that this process waits for meanwhile.
struct FlowGroup<'a> {
    args: &'a SendArgs,
    signals: &'a Signals,
    output: Output,
    processes: Vec<FlowProcess>,
    waiter: Waiter,
    fds: Vec<PollFd>,
    stdin: StdinLines,
    warnings: Warnings,
    /// What a person has yet to read of each flow.
    tables: Vec<Lines>,
    has_head: bool,
    /// All flows were told to stop.
    stopped: bool,
    /// The worst exit code so far.
    worst: u8,
}

impl FlowGroup<'_> {
    fn start(&mut self, flows: &[SendArgs]) -> Outcome<()> {
        for (place, flow) in flows.iter().enumerate() {
            let process = FlowProcess::start(place + 1, flow, self.signals, &mut self.processes)?;
            self.processes.push(process);
        }
        Ok(())
    }

    fn run(&mut self) -> Outcome<u8> {
        while !self.stopped && !self.processes.iter().all(|flow| flow.is_ready) {
            self.look(None)?;
            self.stop_unless_whole();
        }
        if !self.stopped {
            self.output.event("flows_ready", json!({ "flows": self.processes.len() }))?;
            self.wait_for_go()?;
        }
        if !self.stopped {
            self.say("go");
            self.until(|group| {
                group.processes.iter().all(|flow| flow.report.is_some() || flow.exit.is_some())
            })?;
            self.linger()?;
            self.say("end");
        }
        self.until(|group| group.processes.iter().all(|flow| flow.exit.is_some()))?;
        self.summarise()?;
        Ok(self.worst)
    }

    /// Flows that do not all begin are not the comparison that was asked for: one that has ended ends the others.
    fn stop_unless_whole(&mut self) {
        if self.processes.iter().any(|flow| flow.exit.is_some()) {
            self.stop();
        }
    }

    /// End all flows though nothing can be said of them any more.
    fn abandon(&mut self) {
        self.stop();
        self.processes.drain(..).for_each(FlowProcess::part);
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
            match self.stdin.says_go() {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    self.look(None)?;
                    self.stop_unless_whole();
                }
                Err(failure) => self.end_with(&failure),
            }
        }
        Ok(())
    }

    /// End all flows for a reason of this process.
    fn end_with(&mut self, failure: &Failure) {
        self.output.failure(failure);
        self.worst = self.worst.max(failure.code.exit());
        self.stop();
    }

    /// With --hold until "end" or the end of stdin, with --linger-s that long; the sockets stay open and idle.
    fn linger(&mut self) -> Outcome<()> {
        let until_ns = host::now_ns() + (self.args.linger_s * 1e9) as i64;
        loop {
            let over = if self.args.hold { self.stdin.says_end() } else { host::now_ns() >= until_ns };
            if over || self.stopped || self.processes.iter().all(|flow| flow.exit.is_some()) {
                return Ok(());
            }
            self.look((!self.args.hold).then_some(until_ns))?;
        }
    }

    /// Sleep until something happens, at most until `until_ns`, and see to it.
    fn look(&mut self, until_ns: Option<i64>) -> Outcome<()> {
        let readable = |fd| PollFd { fd, read: true, write: false };
        let stdin = self.stdin.fd().filter(|_| self.args.hold);
        let live: Vec<usize> =
            (0..self.processes.len()).filter(|place| self.processes[*place].exit.is_none()).collect();
        self.fds.clear();
        self.fds.push(readable(self.signals.fd()));
        self.fds.extend(live.iter().map(|place| readable(self.processes[*place].fd())));
        self.fds.extend(stdin.map(readable));
        self.waiter
            .wait(&self.fds, until_ns, host::now_ns())
            .map_err(Failure::system("wait for the flows"))?;
        if self.signals.take() {
            self.stop();
        }
        if stdin.is_some() && self.waiter.ready(1 + live.len()) {
            self.stdin.read();
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
        for said in self.processes[place].listen()? {
            self.pass_on(place, &said)?;
        }
        let flow = &self.processes[place];
        match flow.exit {
            Some(flow_process::BROKEN) => {
                let title = flow.title(self.processes.len());
                let words = self.warnings.once(&title, "the flow's process broke");
                words.iter().for_each(|words| self.output.complain(words));
                self.worst = self.worst.max(Code::System.exit());
            }
            Some(exit) => self.worst = self.worst.max(exit),
            None => {}
        }
        Ok(())
    }

    fn pass_on(&mut self, place: usize, said: &FlowEvent) -> Outcome<()> {
        let flow = &self.processes[place];
        match said.failure() {
            // That a flow stopped because all were told to is no news.
            Some((Code::Interrupted, _)) if self.stopped => {}
            Some((code, message)) => {
                let words = self.warnings.about(
                    &flow.title(self.processes.len()),
                    self.processes.len(),
                    code,
                    message,
                );
                words.iter().for_each(|words| self.output.complain(words));
            }
            None => {}
        }
        if said.name() == "report" {
            for flaw in flow.flaws() {
                let words = self.warnings.once(&flow.title(self.processes.len()), &flaw);
                words.iter().for_each(|words| self.output.complain(words));
            }
        }
        if self.output.is_json() {
            return output::write(&said.numbered(flow.number));
        }
        self.tell(place, said)
    }

    /// Tell a person what a flow says: its lines of the table as they become whole.
    fn tell(&mut self, place: usize, said: &FlowEvent) -> Outcome<()> {
        let number = self.processes[place].number;
        let lines = match said.name() {
            "interval" => {
                said.interval().map_or_else(Vec::new, |interval| self.tables[place].take(&interval))
            }
            "report" => self.tables[place].close(&said.report()?),
            _ => {
                let words = said.words();
                return words.map_or(Ok(()), |words| output::write(&format!("[{number:>3}] {words}")));
            }
        };
        if !lines.is_empty() && !std::mem::replace(&mut self.has_head, true) {
            output::write(&table::head())?;
        }
        lines.iter().try_for_each(|line| output::write(&format!("[{number:>3}] {line}")))
    }

    /// Say a line to every flow.
    fn say(&mut self, line: &str) {
        self.processes.iter_mut().for_each(|flow| flow.say(line));
    }

    /// Tell every flow to stop, once.
    fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.processes.iter().for_each(FlowProcess::stop);
        }
    }

    fn summarise(&self) -> Outcome<()> {
        let reports: Vec<_> =
            self.processes.iter().filter_map(|flow| Some((flow.number, flow.report.as_ref()?))).collect();
        let has = |reason| reports.iter().any(|(_, flow)| flow.report.end_reason == reason);
        let partial =
            if self.processes.len() > 1 { "the reports are partial" } else { "the report is partial" };
        if has(EndReason::Interrupted) {
            self.output.complain(&format!("interrupted: {partial}"));
        }
        if has(EndReason::PeerInterrupted) {
            self.output.complain(&format!("the server was stopped: {partial}"));
        }
        let summary = FlowsSummary::of(self.processes.len(), &reports);
        if self.output.is_json() {
            return self.output.event("summary", json!(summary));
        }
        let flows: Vec<_> = reports.iter().map(|(number, flow)| (*number, &flow.report)).collect();
        table::sums(self.args.format, &flows).iter().try_for_each(|line| output::write(line))?;
        let is_alone = self.processes.len() == 1;
        for (number, report) in flows {
            let number = if is_alone { String::new() } else { format!("[{number:>3}] ") };
            let details = if self.args.verbose { report::plain_details(report) } else { String::new() };
            for line in report::plain_report(report).lines().chain(details.lines()) {
                output::write(&format!("{number}{line}"))?;
            }
        }
        if is_alone {
            return Ok(());
        }
        summary.lines().iter().try_for_each(|line| output::write(line))
    }
}
