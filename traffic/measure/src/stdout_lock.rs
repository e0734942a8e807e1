// SPDX-License-Identifier: Apache-2.0
//! Processes that share stdout take turns: a pipe takes lines of over PIPE_BUF bytes in pieces (pipe(7)), between which
//! another's words could get.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};

/// This process's and its children's turns on stdout; none where nobody shares it.
static ON_STDOUT: OnceLock<Lock> = OnceLock::new();

/// From now on this process and those that it forks take turns on stdout.
pub fn share_stdout() -> io::Result<()> {
    if ON_STDOUT.get().is_none() {
        let _ = ON_STDOUT.set(Lock::new()?);
    }
    Ok(())
}

/// Wait for this process's turn on stdout; it lasts as long as the answer is kept.
pub fn on_stdout() -> Option<Turn<'static>> {
    ON_STDOUT.get().map(Lock::take)
}

/// A record lock on a file without a name (fcntl(2), F_SETLKW): forked processes have the file in common, but such a lock
/// is each process's own, and goes with it however it ends.
#[derive(Debug)]
struct Lock(OwnedFd);

/// This process's turn.
#[derive(Debug)]
pub struct Turn<'a>(&'a Lock);

impl Lock {
    fn new() -> io::Result<Self> {
        let file = memfd_create(c"netjoule-turns", MemFdCreateFlag::MFD_CLOEXEC)?;
        Ok(Self(file))
    }

    fn take(&self) -> Turn<'_> {
        self.lock(libc::F_WRLCK);
        Turn(self)
    }

    /// Fails only when the kernel has no memory for a lock: then a line in pieces is the least trouble.
    fn lock(&self, kind: libc::c_int) {
        // SAFETY: plain integers, for which zero is a value (whence: the beginning; length: all).
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        while fcntl(self.0.as_raw_fd(), FcntlArg::F_SETLKW(&lock)) == Err(Errno::EINTR) {}
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock(libc::F_UNLCK);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::process::wait_for;

    const LINES: usize = 50;
    const LETTERS: usize = 20_000;

    /// In a process of its own, with system calls only: the tests have threads.
    fn write_lines(turns: &Lock, pipe: &impl AsRawFd, line: &[u8]) -> libc::pid_t {
        // SAFETY: the child makes system calls on live descriptors and bytes, and ends.
        unsafe {
            match libc::fork() {
                0 => {
                    for _ in 0..LINES {
                        let _turn = turns.take();
                        let mut rest = line;
                        while !rest.is_empty() {
                            let length = libc::write(pipe.as_raw_fd(), rest.as_ptr().cast(), rest.len());
                            rest = &rest[usize::try_from(length).unwrap_or(rest.len())..];
                        }
                    }
                    libc::_exit(0)
                }
                process => process,
            }
        }
    }

    #[test]
    fn lines_that_a_pipe_takes_in_pieces_stay_whole() {
        let turns = Lock::new().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = [b'a', b'b', b'c'].map(|letter| [vec![letter; LETTERS], vec![b'\n']].concat());
        let processes = lines.each_ref().map(|line| write_lines(&turns, &writer, line));
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        for process in processes {
            assert_eq!(wait_for(process), Some(0));
        }
        assert_eq!(text.lines().count(), lines.len() * LINES);
        for line in text.lines() {
            let first = line.chars().next().unwrap();
            assert!(
                line.len() == LETTERS && line.chars().all(|letter| letter == first),
                "{} bytes",
                line.len()
            );
        }
    }
}
