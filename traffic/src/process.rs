// SPDX-License-Identifier: Apache-2.0
//! Processes of one's own: how one begins, and how its end is waited for.

/// Exit status of a process that broke (as Rust's own).
pub(crate) const BROKEN: i32 = 101;

/// What a flow's process does first: it ends with the process that started it, and what a terminal says to that one's group
/// it hears from that one, once.
pub(crate) fn lead_own_life(server: libc::pid_t) {
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
pub(crate) fn wait_for(process: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    // SAFETY: writes into a live integer.
    while unsafe { libc::waitpid(process, &mut status, 0) } < 0 {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
    Some(status)
}
