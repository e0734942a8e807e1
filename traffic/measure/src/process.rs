// SPDX-License-Identifier: Apache-2.0
//! Processes of one's own: how one begins, and how its end is waited for.

use std::io;
use std::sync::OnceLock;

use nix::sys::signal::{kill, Signal};
use nix::unistd::{getpid, ForkResult, Pid};

static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Say once, first of all, what this program is called in what it prints.
pub fn call_program(name: &'static str) {
    PROGRAM.get_or_init(|| name);
}

/// What this program is called.
pub fn program() -> &'static str {
    PROGRAM.get().unwrap_or(&"netjoule")
}

/// Exit status of a process that broke (as Rust's own).
pub const BROKEN: i32 = 101;

/// On which side of a [`fork`] this process is.
#[derive(Debug, Clone, Copy)]
pub enum Forked {
    /// In the new process.
    Child {
        /// The one that it came from.
        parent: libc::pid_t,
    },
    /// In the old one.
    Parent {
        /// The new process.
        child: libc::pid_t,
    },
}

/// Go on in two processes. This one must have no other thread: then the child has everything that this process has.
///
/// # Errors
/// When the host gives no process.
pub fn fork() -> io::Result<Forked> {
    let parent = getpid().as_raw();
    // SAFETY: there is one thread.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Child => Ok(Forked::Child { parent }),
        ForkResult::Parent { child } => Ok(Forked::Parent { child: child.as_raw() }),
    }
}

/// Tell a child that has not been waited for to end in order (SIGTERM).
pub fn terminate(child: libc::pid_t) {
    // Until it is waited for, the number is still its own.
    let _ = kill(Pid::from_raw(child), Signal::SIGTERM);
}

/// What a flow's process does first: it ends with the process that started it, and what a terminal says to that one's group
/// it hears from that one, once.
pub fn lead_own_life(server: libc::pid_t) {
    // SAFETY: plain integers and constants.
    unsafe {
        libc::setpgid(0, 0);
        // Words on a terminal that stops background groups (stty tostop) must not stop the flow.
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It may have ended before that took effect.
        if libc::getppid() != server {
            libc::_exit(BROKEN);
        }
    }
}

/// Status of a child that has ended or is ending.
pub fn wait_for(process: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    // SAFETY: writes into a live integer.
    while unsafe { libc::waitpid(process, &mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    Some(status)
}
