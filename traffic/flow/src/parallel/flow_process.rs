// SPDX-License-Identifier: Apache-2.0
//! One of several flows, in a process of its own: so its CPU time is nobody else's, and one that fails takes no other along.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::arguments::SendArgs;
use crate::client;
use crate::client::assemble::not_certified;
use crate::parallel::common_window::Finished;
use crate::parallel::flow_event::{self, FlowEvent};
use netjoule_measure::background::take_as_own;
use netjoule_measure::failure::{Failure, Outcome};
use netjoule_measure::output::Output;
use netjoule_measure::process::{fork, lead_own_life, terminate, wait_for, Forked};
use netjoule_measure::wait::Signals;

/// Exit status of a flow's process that broke (as Rust's own).
pub(crate) const BROKEN: u8 = 101;

/// A flow of a command with several.
pub(crate) struct FlowProcess {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Its transport and direction, for people.
    name: String,
    /// Its data path stands and it waits for "go".
    pub(crate) is_ready: bool,
    /// Its report, once it has one.
    pub(crate) report: Option<Finished>,
    /// The exit code of its process, once that has ended.
    pub(crate) exit: Option<u8>,
    process: libc::pid_t,
    tell: PipeWriter,
    hear: PipeReader,
    unparsed: Vec<u8>,
}

impl FlowProcess {
    /// Start a flow in a process of its own. This process must have no other thread. `earlier` flows' pipes are closed in the
    /// new one, so that each pipe ends with its own flow.
    ///
    /// # Errors
    /// [`netjoule_measure::failure::Code::System`] when the host gives no process or descriptor.
    pub(crate) fn start(
        number: usize,
        args: &SendArgs,
        signals: &Signals,
        earlier: &mut Vec<Self>,
    ) -> Outcome<Self> {
        let pipe = || std::io::pipe().map_err(Failure::system("open a pipe for a flow"));
        let ((stdin, tell), (hear, stdout)) = (pipe()?, pipe()?);
        match fork().map_err(Failure::system("start a process for a flow"))? {
            Forked::Child { parent } => {
                earlier.clear();
                drop((tell, hear));
                lead_own_life(parent);
                let exit = match take_as_own(&stdin, libc::STDIN_FILENO)
                    .and_then(|()| take_as_own(&stdout, libc::STDOUT_FILENO))
                {
                    Ok(()) => {
                        drop((stdin, stdout));
                        catch_unwind(AssertUnwindSafe(|| run(args, signals))).unwrap_or(BROKEN)
                    }
                    Err(_) => BROKEN,
                };
                std::process::exit(exit.into())
            }
            Forked::Parent { child: process } => Ok(Self {
                number,
                name: name(args),
                is_ready: false,
                report: None,
                exit: None,
                process,
                tell,
                hear,
                unparsed: Vec::new(),
            }),
        }
    }

    /// What people know it by among `flows`; alone it needs no name.
    pub(crate) fn title(&self, flows: usize) -> String {
        if flows > 1 {
            format!("flow {} ({})", self.number, self.name)
        } else {
            String::new()
        }
    }

    /// What is wrong with its report, in sentences: why it exits with another code than 0 though it has one. (That a report is
    /// partial is said of all together.)
    pub(crate) fn flaws(&self) -> Vec<String> {
        let Some(Finished { report, .. }) = &self.report else { return Vec::new() };
        let capture = report.capture.as_ref().and_then(|capture| capture.failure.clone());
        not_certified(report).into_iter().chain(capture).collect()
    }

    /// The descriptor that is readable when the flow has said something or has ended.
    pub(crate) fn fd(&self) -> RawFd {
        self.hear.as_raw_fd()
    }

    /// Say a line to the flow. One that has ended does not hear it, and its end is seen elsewhere.
    pub(crate) fn say(&mut self, line: &str) {
        let _ = self.tell.write_all(format!("{line}\n").as_bytes());
    }

    /// Tell the flow to stop, as a signal would.
    pub(crate) fn stop(&self) {
        if self.exit.is_none() {
            terminate(self.process);
        }
    }

    /// What the flow has said since; call when its descriptor is ready. At its end the exit code is known.
    ///
    /// # Errors
    /// [`netjoule_measure::failure::Code::System`] when it cannot be read.
    pub(crate) fn listen(&mut self) -> Outcome<Vec<FlowEvent>> {
        let mut block = [0; 64 << 10];
        let length = self.hear.read(&mut block).map_err(Failure::system("hear a flow"))?;
        if length == 0 {
            self.exit = Some(exit_code(wait_for(self.process)));
        }
        let all = flow_event::whole_lines(&mut self.unparsed, &block[..length])?;
        for said in &all {
            match said.name() {
                "ready" => self.is_ready = true,
                "report" => self.report = Some(Finished::of(said.report()?)),
                _ => {}
            }
        }
        Ok(all)
    }

    /// Hear no more of it, and wait until it has ended.
    pub(crate) fn part(self) {
        let Self { process, exit, tell, hear, .. } = self;
        drop((tell, hear));
        if exit.is_none() {
            wait_for(process);
        }
    }
}

/// In the flow's process: the flow, and its exit code. Whoever started it tells people what failed.
fn run(args: &SendArgs, signals: &Signals) -> u8 {
    client::run(args, signals, Output::Relayed).unwrap_or_else(|failure| {
        Output::Relayed.failure(&failure);
        failure.code.exit()
    })
}

fn name(args: &SendArgs) -> String {
    format!("{} {}", args.transport, if args.reverse { "down" } else { "up" })
}

fn exit_code(status: Option<libc::c_int>) -> u8 {
    match status {
        Some(status) if libc::WIFEXITED(status) => libc::WEXITSTATUS(status) as u8,
        _ => BROKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_broken() {
        // As wait(2) encodes them.
        assert_eq!((exit_code(Some(3 << 8)), exit_code(Some(9)), exit_code(None)), (3, BROKEN, BROKEN));
    }
}
