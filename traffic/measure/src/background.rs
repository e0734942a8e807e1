// SPDX-License-Identifier: Apache-2.0
//! Leaving the terminal: what is printed goes to a file (`--logfile`), a server into the background (`--daemon`).

use std::fs::{File, OpenOptions};
use std::io::{PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use nix::unistd::{dup2, setsid};

use crate::failure::{Code, Failure, Outcome};
use crate::process::{fork, wait_for, Forked};

/// From now on what is printed is appended to the file.
///
/// # Errors
/// [`Code::Usage`] with the file's name.
pub fn log_to(path: &Path) -> Outcome<()> {
    let refused =
        |error| Failure::new(Code::Usage, format!("cannot write the log {}: {error}", path.display()));
    let file = OpenOptions::new().append(true).create(true).open(path).map_err(refused)?;
    take_as_own(&file, libc::STDOUT_FILENO).map_err(refused)
}

/// Make descriptor `own` (stdin, stdout or stderr, which nothing in this process owns) another name of `file`.
pub fn take_as_own(file: &impl AsRawFd, own: RawFd) -> std::io::Result<()> {
    dup2(file.as_raw_fd(), own)?;
    Ok(())
}

/// A server that has left its terminal and is about to say that it serves.
#[derive(Debug)]
pub struct Background {
    ready: PipeWriter,
    has_log: bool,
}

impl Background {
    /// Go on in a process of its own session. The one that was called ends when that one serves, or as it ends. It must have
    /// no other thread.
    ///
    /// # Errors
    /// [`Code::System`] when the host gives no process or pipe.
    pub fn enter(has_log: bool) -> Outcome<Self> {
        let (mut is_ready, ready) = std::io::pipe().map_err(Failure::system("open a pipe for the server"))?;
        match fork().map_err(Failure::system("start the server's process"))? {
            Forked::Child { .. } => {
                drop(is_ready);
                // A new process leads no group, so it may begin a session.
                let _ = setsid();
                Ok(Self { ready, has_log })
            }
            Forked::Parent { child } => {
                drop(ready);
                if matches!(is_ready.read(&mut [0]), Ok(1)) {
                    std::process::exit(0)
                }
                let status = wait_for(child).filter(|status| libc::WIFEXITED(*status));
                std::process::exit(status.map_or(1, |status| libc::WEXITSTATUS(status)))
            }
        }
    }

    /// It serves: it lets go of the terminal, and whoever called it goes on.
    ///
    /// # Errors
    /// [`Code::System`] when there is no /dev/null.
    pub fn settle(mut self) -> Outcome<()> {
        let failed = || Failure::system("leave the terminal");
        let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed())?;
        take_as_own(&nothing, libc::STDIN_FILENO).map_err(failed())?;
        if !self.has_log {
            take_as_own(&nothing, libc::STDOUT_FILENO).map_err(failed())?;
        }
        take_as_own(&std::io::stdout(), libc::STDERR_FILENO).map_err(failed())?;
        self.ready.write_all(&[1]).map_err(failed())
    }
}
