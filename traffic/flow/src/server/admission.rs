// SPDX-License-Identifier: Apache-2.0
//! The flows that are on, each in a process of its own.
//!
//! So a flow's CPU time is that of its process and nobody else's, its memory goes with it, and one that fails takes no
//! other along. The server itself has no second thread, which makes forking safe, and stays small.

use std::io::{PipeReader, PipeWriter};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};

use netjoule_transport::PollFd;

use super::peer_counts::PeerCounts;
use crate::arguments::MOST_FLOWS;
use crate::control::FlowRequest;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::process::{fork, lead_own_life, terminate, wait_for, Forked, BROKEN};

/// Exit status of a flow's process that was told to stop.
const INTERRUPTED: i32 = 1;

/// Room for flows.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: FlowLimit,
    running: Vec<RunningFlow>,
}

/// How many flows may be on at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FlowLimit {
    /// One, or the several of one command, so that nobody else's traffic is beside what is measured.
    OneCommand,
    /// So many, whose ever they are.
    Flows {
        /// In all.
        all: usize,
        /// Of one host.
        per_peer: usize,
    },
}

impl FlowLimit {
    /// The greatest number.
    pub(crate) fn flows(self) -> usize {
        match self {
            Self::OneCommand => MOST_FLOWS,
            Self::Flows { all, .. } => all,
        }
    }
}

#[derive(Debug)]
struct RunningFlow {
    process: libc::pid_t,
    peer: IpAddr,
    flow_id: String,
    command_id: Option<String>,
    /// Ends when the process does: it alone has the other end.
    exit_pipe: PipeReader,
}

/// How a flow's process ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It has said itself how.
    Told,
    /// It was told to stop, and has said so.
    Interrupted,
    /// It died without a word.
    Broken {
        /// The flow's name.
        flow_id: String,
        /// What became of the process.
        how: String,
    },
}

impl Admission {
    /// Room for so many flows.
    pub(crate) fn new(limit: FlowLimit) -> Self {
        Self { limit, running: Vec::new() }
    }

    /// Whether no flow is on.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether a flow of this peer may begin, which belongs to the command named, if to one with several.
    pub(crate) fn has_room_for(&self, peer: IpAddr, command_id: Option<&str>) -> bool {
        let of_that_command = |flow: &RunningFlow| {
            flow.peer == peer && command_id.is_some() && flow.command_id.as_deref() == command_id
        };
        match self.limit {
            _ if self.running.len() >= self.limit.flows() => false,
            FlowLimit::OneCommand => self.running.iter().all(of_that_command),
            FlowLimit::Flows { per_peer, .. } => {
                self.running.iter().map(|flow| flow.peer).collect::<PeerCounts>().count(peer) < per_peer
            }
        }
    }

    /// Descriptors to wait for: one per flow, readable when its process has ended.
    pub(crate) fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let exit_pipes = self.running.iter().map(|flow| flow.exit_pipe.as_raw_fd());
        fds.extend(exit_pipes.map(|fd| PollFd { fd, read: true, write: false }));
    }

    /// Do `work` in a process of its own; it says whether it was told to stop meanwhile. This process must have no other
    /// thread.
    ///
    /// # Errors
    /// [`Code::System`] when the host gives no process or descriptor; nothing was begun then.
    pub(crate) fn start(
        &mut self,
        peer: IpAddr,
        flow: &FlowRequest,
        work: impl FnOnce() -> bool,
    ) -> Outcome<libc::pid_t> {
        let (exit_pipe, held_open) = std::io::pipe().map_err(Failure::system("open a pipe for a flow"))?;
        match fork().map_err(Failure::system("start a process for a flow"))? {
            Forked::Child { parent } => {
                drop(exit_pipe);
                self.running.clear();
                lead_own_life(parent);
                let outcome = catch_unwind(AssertUnwindSafe(work));
                end(
                    held_open,
                    outcome.map_or(BROKEN, |interrupted| if interrupted { INTERRUPTED } else { 0 }),
                )
            }
            Forked::Parent { child: process } => {
                let (flow_id, command_id) = (flow.flow_id.clone(), flow.command_id.clone());
                self.running.push(RunningFlow { process, peer, flow_id, command_id, exit_pipe });
                Ok(process)
            }
        }
    }

    /// Tell every flow to stop.
    pub(crate) fn stop(&self) {
        for flow in &self.running {
            terminate(flow.process);
        }
    }

    /// Forget the flows whose processes have ended. `ready` is of [`Self::poll_fds`]'s descriptors.
    pub(crate) fn clear(&mut self, ready: &dyn Fn(usize) -> bool) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut index = 0;
        self.running.retain(|flow| {
            index += 1;
            if ready(index - 1) {
                ended.push(how_it_ended(wait_for(flow.process), &flow.flow_id));
            }
            !ready(index - 1)
        });
        ended
    }
}

/// Ends this process; its exit_pipe with it.
fn end(held_open: PipeWriter, status: i32) -> ! {
    // Held open until here, and closed by the kernel with everything else.
    std::mem::forget(held_open);
    std::process::exit(status)
}

fn how_it_ended(status: Option<libc::c_int>, flow_id: &str) -> Ended {
    let how = match status {
        Some(status) if libc::WIFEXITED(status) => match libc::WEXITSTATUS(status) {
            0 => return Ended::Told,
            INTERRUPTED => return Ended::Interrupted,
            code => format!("ended with code {code}"),
        },
        Some(status) => format!("was killed by signal {}", libc::WTERMSIG(status)),
        None => "is gone".into(),
    };
    Ended::Broken { flow_id: flow_id.to_owned(), how }
}

impl Ended {
    /// What there is to complain about.
    pub(crate) fn failure(&self) -> Option<(&str, Failure)> {
        match self {
            Self::Broken { flow_id, how } => {
                Some((flow_id, Failure::new(Code::System, format!("the flow's process {how}"))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_told_apart_from_one_that_dies() {
        // As wait(2) encodes them.
        assert_eq!(how_it_ended(Some(0), "a"), Ended::Told);
        assert_eq!(how_it_ended(Some(1 << 8), "a"), Ended::Interrupted);
        for (status, words) in [(101 << 8, "code 101"), (9, "signal 9")] {
            let ended = how_it_ended(Some(status), "a");
            let (flow_id, failure) = ended.failure().unwrap();
            assert!(flow_id == "a" && failure.message.contains(words), "{failure}");
        }
        assert_eq!(Ended::Told.failure(), None);
    }

    #[test]
    fn places_are_bounded_in_all_and_by_peer() {
        let peers: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let mut admission = Admission::new(FlowLimit::Flows { all: 3, per_peer: 2 });
        for (peer, room) in [(0, true), (0, true), (0, false), (1, true), (1, false)] {
            assert_eq!(admission.has_room_for(peers[peer], None), room);
            if room {
                admission.running.push(flow(peers[peer], None));
            }
        }
        assert!(!admission.is_empty());
        admission.running.clear();
    }

    fn flow(peer: IpAddr, command_id: Option<&str>) -> RunningFlow {
        let (exit_pipe, _) = std::io::pipe().unwrap();
        RunningFlow {
            process: 0,
            peer,
            flow_id: "f".into(),
            command_id: command_id.map(str::to_owned),
            exit_pipe,
        }
    }

    #[test]
    fn unless_told_a_server_has_the_flows_of_one_command() {
        let peers: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let mut admission = Admission::new(FlowLimit::OneCommand);
        assert!(admission.has_room_for(peers[0], None) && admission.has_room_for(peers[1], Some("a")));
        admission.running.push(flow(peers[0], Some("a")));
        assert!(admission.has_room_for(peers[0], Some("a")));
        for (peer, command_id) in [(peers[0], None), (peers[0], Some("b")), (peers[1], Some("a"))] {
            assert!(!admission.has_room_for(peer, command_id), "{peer} {command_id:?}");
        }
        admission.running.extend((1..MOST_FLOWS).map(|_| flow(peers[0], Some("a"))));
        assert!(!admission.has_room_for(peers[0], Some("a")), "there is an end");
        // One that belongs to no command is alone.
        admission.running = vec![flow(peers[0], None)];
        assert!(!admission.has_room_for(peers[0], None));
        admission.running.clear();
    }
}
