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

use super::crowd::Crowd;
use crate::arguments::MOST_FLOWS;
use crate::control::FlowRequest;
use crate::failure::{Code, Failure, Outcome};
use crate::process::{lead_own_life, wait_for, BROKEN};

/// Exit status of a flow's process that was told to stop.
const INTERRUPTED: i32 = 1;

/// Room for flows.
#[derive(Debug)]
pub(crate) struct Places {
    most: Most,
    taken: Vec<Place>,
}

/// How many flows may be on at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Most {
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

impl Most {
    /// The greatest number.
    pub(crate) fn flows(self) -> usize {
        match self {
            Self::OneCommand => MOST_FLOWS,
            Self::Flows { all, .. } => all,
        }
    }
}

#[derive(Debug)]
struct Place {
    process: libc::pid_t,
    peer: IpAddr,
    flow_id: String,
    command_id: Option<String>,
    /// Ends when the process does: it alone has the other end.
    leash: PipeReader,
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

impl Places {
    /// Room for `most` flows.
    pub(crate) fn new(most: Most) -> Self {
        Self { most, taken: Vec::new() }
    }

    /// Whether no flow is on.
    pub(crate) fn are_free(&self) -> bool {
        self.taken.is_empty()
    }

    /// Whether a flow of this peer may begin, which belongs to the command named, if to one with several.
    pub(crate) fn has_room_for(&self, peer: IpAddr, command_id: Option<&str>) -> bool {
        let of_that_command = |place: &Place| {
            place.peer == peer && command_id.is_some() && place.command_id.as_deref() == command_id
        };
        match self.most {
            _ if self.taken.len() >= self.most.flows() => false,
            Most::OneCommand => self.taken.iter().all(of_that_command),
            Most::Flows { per_peer, .. } => {
                self.taken.iter().map(|place| place.peer).collect::<Crowd>().count(peer) < per_peer
            }
        }
    }

    /// Descriptors to wait for: one per flow, readable when its process has ended.
    pub(crate) fn poll_fds(&self, fds: &mut Vec<PollFd>) {
        let leashes = self.taken.iter().map(|place| place.leash.as_raw_fd());
        fds.extend(leashes.map(|fd| PollFd { fd, read: true, write: false }));
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
        let (leash, tether) = std::io::pipe().map_err(Failure::system("open a pipe for a flow"))?;
        // SAFETY: no system call with arguments. There is one thread, so the child has everything this process has.
        let (server, process) = unsafe { (libc::getpid(), libc::fork()) };
        match process {
            -1 => Err(Failure::system("start a process for a flow")(std::io::Error::last_os_error())),
            0 => {
                drop(leash);
                self.taken.clear();
                lead_own_life(server);
                let outcome = catch_unwind(AssertUnwindSafe(work));
                end(tether, outcome.map_or(BROKEN, |interrupted| if interrupted { INTERRUPTED } else { 0 }))
            }
            _ => {
                let (flow_id, command_id) = (flow.flow_id.clone(), flow.command_id.clone());
                self.taken.push(Place { process, peer, flow_id, command_id, leash });
                Ok(process)
            }
        }
    }

    /// Tell every flow to stop.
    pub(crate) fn stop(&self) {
        for place in &self.taken {
            // SAFETY: plain integers. The process has not been waited for, so the number is still its own.
            unsafe { libc::kill(place.process, libc::SIGTERM) };
        }
    }

    /// Clear the places of the processes that have ended. `ready` is of [`Self::poll_fds`]'s descriptors.
    pub(crate) fn clear(&mut self, ready: &dyn Fn(usize) -> bool) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut index = 0;
        self.taken.retain(|place| {
            index += 1;
            if ready(index - 1) {
                ended.push(how_it_ended(wait_for(place.process), &place.flow_id));
            }
            !ready(index - 1)
        });
        ended
    }
}

/// Ends this process; its leash with it.
fn end(tether: PipeWriter, status: i32) -> ! {
    // Held open until here, and closed by the kernel with everything else.
    std::mem::forget(tether);
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
        let mut places = Places::new(Most::Flows { all: 3, per_peer: 2 });
        for (peer, room) in [(0, true), (0, true), (0, false), (1, true), (1, false)] {
            assert_eq!(places.has_room_for(peers[peer], None), room);
            if room {
                places.taken.push(place(peers[peer], None));
            }
        }
        assert!(!places.are_free());
        places.taken.clear();
    }

    fn place(peer: IpAddr, command_id: Option<&str>) -> Place {
        let (leash, _) = std::io::pipe().unwrap();
        Place { process: 0, peer, flow_id: "f".into(), command_id: command_id.map(str::to_owned), leash }
    }

    #[test]
    fn unless_told_a_server_has_the_flows_of_one_command() {
        let peers: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let mut places = Places::new(Most::OneCommand);
        assert!(places.has_room_for(peers[0], None) && places.has_room_for(peers[1], Some("a")));
        places.taken.push(place(peers[0], Some("a")));
        assert!(places.has_room_for(peers[0], Some("a")));
        for (peer, command_id) in [(peers[0], None), (peers[0], Some("b")), (peers[1], Some("a"))] {
            assert!(!places.has_room_for(peer, command_id), "{peer} {command_id:?}");
        }
        places.taken.extend((1..MOST_FLOWS).map(|_| place(peers[0], Some("a"))));
        assert!(!places.has_room_for(peers[0], Some("a")), "there is an end");
        // One that belongs to no command is alone.
        places.taken = vec![place(peers[0], None)];
        assert!(!places.has_room_for(peers[0], None));
        places.taken.clear();
    }
}
