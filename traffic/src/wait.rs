// SPDX-License-Identifier: Apache-2.0
//! Sleeping until a descriptor is ready or an absolute time has come, never early; watching the clock only where asked.
//!
//! With nothing to watch, a wait is one `clock_nanosleep` with the absolute deadline. With descriptors, short waits use
//! `ppoll`'s own timeout: with a timer slack of 1 ns it is as sharp. `ppoll` allows itself a slack of 0.1 % of the
//! timeout, however, so waits of a millisecond and more go through a timer descriptor that is armed with the absolute
//! deadline.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use netjoule_transport::PollFd;

use crate::host;
use crate::second_signal;

/// From this length on a wait is armed as an absolute timer, in ns.
const TIMER_FROM_NS: i64 = 1_000_000;

/// Waits for descriptors and times.
#[derive(Debug)]
pub struct Waiter {
    timer: OwnedFd,
    /// What the timer is armed for: most waits of a receiver share one deadline, and arming costs a call.
    armed_ns: Option<i64>,
    polled: Vec<libc::pollfd>,
}

impl Waiter {
    /// A waiter with its timer descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: timerfd_create returns a fresh descriptor or -1, checked before it is owned.
        let timer = unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { timer, armed_ns: None, polled: Vec::new() })
    }

    /// Wait for any of `fds`, at most until `until_ns` (`None`: as long as it takes). `now_ns` is the time now.
    /// Returns early when a signal handler ran; ask [`Self::ready`] what happened.
    pub fn wait(&mut self, fds: &[PollFd], until_ns: Option<i64>, now_ns: i64) -> io::Result<()> {
        self.polled.clear();
        self.polled.extend(fds.iter().map(|fd| pollfd(fd.fd, fd.read, fd.write)));
        let left_ns = until_ns.map(|until| (until - now_ns).max(0));
        match left_ns {
            Some(0) if fds.is_empty() => Ok(()),
            Some(left) if fds.is_empty() => sleep_until(now_ns + left),
            Some(left) if left >= TIMER_FROM_NS => self.wait_by_timer(now_ns + left, now_ns),
            Some(left) => self.poll(Some(libc::timespec { tv_sec: 0, tv_nsec: left })),
            None => self.poll(None),
        }
    }

    /// Wait with the timer descriptor. One that is armed for an earlier time stays armed: deadlines that are put off with
    /// every packet then cost a call when they come, not with every packet.
    fn wait_by_timer(&mut self, at_ns: i64, now_ns: i64) -> io::Result<()> {
        let timer = self.polled.len();
        self.polled.push(pollfd(self.timer.as_raw_fd(), true, false));
        loop {
            if self.armed_ns.is_none_or(|armed| armed <= now_ns || armed > at_ns) {
                arm(self.timer.as_raw_fd(), at_ns)?;
                self.armed_ns = Some(at_ns);
            }
            self.poll(None)?;
            let only_timer = self.ready(timer) && !(0..timer).any(|index| self.ready(index));
            if !only_timer || self.armed_ns == Some(at_ns) {
                return Ok(());
            }
            self.armed_ns = None;
        }
    }

    fn poll(&mut self, timeout: Option<libc::timespec>) -> io::Result<()> {
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the vector is live and its length is given; the timeout is null or a live timespec.
        let ready = unsafe {
            libc::ppoll(self.polled.as_mut_ptr(), self.polled.len() as _, timeout, std::ptr::null())
        };
        if ready >= 0 {
            return Ok(());
        }
        for fd in &mut self.polled {
            fd.revents = 0;
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// Whether descriptor `index` of the last [`Self::wait`] is ready (errors and hang-ups count).
    pub fn ready(&self, index: usize) -> bool {
        self.polled.get(index).is_some_and(|fd| fd.revents != 0)
    }
}

/// Sleep until `at_ns`; a signal handler that runs ends it early.
fn sleep_until(at_ns: i64) -> io::Result<()> {
    let at = timespec(at_ns);
    // SAFETY: `at` is live; with an absolute time nothing is written back.
    let outcome = unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
    };
    match outcome {
        0 | libc::EINTR => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Watch the clock until `at_ns`: the time that it then shows.
pub fn spin_until(at_ns: i64) -> i64 {
    loop {
        let now_ns = host::now_ns();
        if now_ns >= at_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

fn timespec(at_ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 }
}

fn pollfd(fd: RawFd, read: bool, write: bool) -> libc::pollfd {
    let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
    libc::pollfd { fd, events, revents: 0 }
}

fn arm(timer: RawFd, at_ns: i64) -> io::Result<()> {
    let at =
        libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: timespec(at_ns) };
    // SAFETY: the timer descriptor is open and `at` is live. Arming clears expirations that were not read.
    let outcome = unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &at, std::ptr::null_mut()) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// SIGINT and SIGTERM as a descriptor. Create it before any thread, so that all threads inherit the blocked mask.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Block the two signals and open the descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before use; signalfd's result is checked before it is owned.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Take one pending signal; false when there is none. After one was taken the next ends the process at once.
    pub fn take(&self) -> bool {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: reads into a live buffer of the structure's size.
        let length = unsafe { libc::read(self.fd(), info.as_mut_ptr().cast(), info.len()) };
        let taken = length == info.len() as isize;
        if taken {
            second_signal::ends_at_once();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_early_with_any_timer() {
        let (reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let silent = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        let mut waiter = Waiter::new().unwrap();
        for fds in [&[][..], &silent] {
            for length_ns in [20_000, 300_000, 3_000_000] {
                for _ in 0..20 {
                    let now_ns = host::now_ns();
                    waiter.wait(fds, Some(now_ns + length_ns), now_ns).unwrap();
                    assert!(host::now_ns() >= now_ns + length_ns);
                }
            }
        }
    }

    #[test]
    fn watching_the_clock_is_never_early_either_and_says_the_time() {
        for length_ns in [-5, 0, 1_000, 200_000] {
            let until_ns = host::now_ns() + length_ns;
            let told_ns = spin_until(until_ns);
            assert!(told_ns >= until_ns && told_ns <= host::now_ns());
        }
    }

    #[test]
    fn a_deadline_that_was_interrupted_still_ends_the_next_wait_in_time() {
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let fds = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        let mut waiter = Waiter::new().unwrap();
        let until_ns = host::now_ns() + 50_000_000;
        waiter.wait(&fds, Some(until_ns), host::now_ns()).unwrap();
        assert!(waiter.ready(0) && host::now_ns() < until_ns);
        let (still, _open) = std::os::unix::net::UnixStream::pair().unwrap();
        let silent = [PollFd { fd: still.as_raw_fd(), read: true, write: false }];
        waiter.wait(&silent, Some(until_ns), host::now_ns()).unwrap();
        assert!(host::now_ns() >= until_ns);
    }

    #[test]
    fn a_deadline_that_is_put_off_is_kept_and_one_that_comes_nearer_too() {
        let mut waiter = Waiter::new().unwrap();
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let fds = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        let (still, _open) = std::os::unix::net::UnixStream::pair().unwrap();
        let silent = [PollFd { fd: still.as_raw_fd(), read: true, write: false }];
        let start_ns = host::now_ns();
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        waiter.wait(&fds, Some(start_ns + 20_000_000), start_ns).unwrap();
        assert_eq!(waiter.armed_ns, Some(start_ns + 20_000_000));
        waiter.wait(&silent, Some(start_ns + 60_000_000), host::now_ns()).unwrap();
        assert!(host::now_ns() >= start_ns + 60_000_000);
        let now_ns = host::now_ns();
        waiter.wait(&fds, Some(now_ns + 900_000_000), now_ns).unwrap();
        waiter.wait(&silent, Some(now_ns + 30_000_000), now_ns).unwrap();
        assert!((now_ns + 30_000_000..now_ns + 800_000_000).contains(&host::now_ns()));
    }

    #[test]
    fn a_readable_descriptor_ends_the_wait() {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let fds = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        let mut waiter = Waiter::new().unwrap();
        waiter.wait(&fds, Some(host::now_ns()), host::now_ns()).unwrap();
        assert!(!waiter.ready(0));
        drop(writer);
        waiter.wait(&fds, None, host::now_ns()).unwrap();
        assert!(waiter.ready(0));
    }
}
