// SPDX-License-Identifier: Apache-2.0
//! Sleeping until a descriptor is ready or an absolute time has come, never early; watching the clock only where asked.
//!
//! With nothing to watch, a wait is one `clock_nanosleep` with the absolute deadline. With descriptors, short waits use
//! `ppoll`'s own timeout: with a timer slack of 1 ns it is as sharp. `ppoll` allows itself a slack of 0.1 % of the
//! timeout, however, so waits of a millisecond and more go through a timer descriptor that is armed with the absolute
//! deadline.
//!
//! A sender that wakes every few microseconds spends most of its time in arming timers: the processor's own timer is told
//! of every deadline that is the nearest, which in a virtual machine leaves the machine (7 us on one host, as much as
//! sending three messages). [`Waiter::wait_paced`] therefore arms the alarm after the next one, too: it is not the nearest
//! then, and when the first one rings the kernel tells the processor of the second by itself.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use netjoule_sockets::PollFd;
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::host;
use crate::second_signal;

/// From this length on a wait is armed as an absolute timer, in ns.
const TIMER_FROM_NS: i64 = 1_000_000;

/// An alarm sooner than this after the one before would ring while messages are handed over, and disturb that, ns.
const PACED_FROM_NS: i64 = 25_000;

/// A timer descriptor and what it is armed for, which need not be told again: most waits of a receiver share one
/// deadline, and arming costs a call.
#[derive(Debug)]
struct Alarm {
    fd: OwnedFd,
    at_ns: Option<i64>,
}

/// Waits for descriptors and times.
#[derive(Debug)]
pub struct Waiter {
    timer: Alarm,
    /// Of paced waits: the one that ends this wait and the one that ends the next.
    paced: Option<[Alarm; 2]>,
    polled: Vec<libc::pollfd>,
}

impl Waiter {
    /// A waiter with its timer descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self { timer: Alarm::new()?, paced: None, polled: Vec::new() })
    }

    /// One with the descriptors for [`Self::wait_paced`], too.
    pub fn paced() -> io::Result<Self> {
        Ok(Self { paced: Some([Alarm::new()?, Alarm::new()?]), ..Self::new()? })
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

    /// The same until `until_ns`, where the wait after this one is expected to end at `then_ns`. A waiter of
    /// [`Self::new`] makes no use of that.
    pub fn wait_paced(&mut self, fds: &[PollFd], until_ns: i64, then_ns: i64, now_ns: i64) -> io::Result<()> {
        let helps = then_ns - until_ns >= PACED_FROM_NS && then_ns - now_ns < TIMER_FROM_NS;
        let paced = self.paced.as_mut().filter(|_| until_ns > now_ns && helps);
        let Some([this, next]) = paced else { return self.wait(fds, Some(until_ns), now_ns) };
        // An alarm that nobody waits for any more is armed anew before it is waited for again.
        if next.at_ns == Some(until_ns) {
            std::mem::swap(this, next);
        }
        this.arm(until_ns)?;
        next.arm(then_ns)?;
        if fds.is_empty() {
            return this.sleep();
        }
        let alarm = pollfd(this.fd.as_raw_fd(), true, false);
        self.polled.clear();
        self.polled.extend(fds.iter().map(|fd| pollfd(fd.fd, fd.read, fd.write)));
        self.polled.push(alarm);
        self.poll(None)
    }

    /// Wait with the timer descriptor. One that is armed for an earlier time stays armed: deadlines that are put off with
    /// every packet then cost a call when they come, not with every packet.
    fn wait_by_timer(&mut self, at_ns: i64, now_ns: i64) -> io::Result<()> {
        let timer = self.polled.len();
        self.polled.push(pollfd(self.timer.fd.as_raw_fd(), true, false));
        loop {
            if self.timer.at_ns.is_none_or(|armed| armed <= now_ns || armed > at_ns) {
                self.timer.arm(at_ns)?;
            }
            self.poll(None)?;
            let only_timer = self.ready(timer) && !(0..timer).any(|index| self.ready(index));
            if !only_timer || self.timer.at_ns == Some(at_ns) {
                return Ok(());
            }
            self.timer.at_ns = None;
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

impl Alarm {
    fn new() -> io::Result<Self> {
        // SAFETY: timerfd_create returns a fresh descriptor or -1, checked before it is owned.
        let fd = unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { fd, at_ns: None })
    }

    /// Sleep until it rings, which it may have done already; a signal handler that runs ends it early.
    fn sleep(&mut self) -> io::Result<()> {
        let mut rang = [0_u8; 8];
        // SAFETY: reads the count of expirations into a live buffer of its size.
        let length = unsafe { libc::read(self.fd.as_raw_fd(), rang.as_mut_ptr().cast(), rang.len()) };
        if length > 0 {
            // Read, it is silent until it is armed again.
            self.at_ns = None;
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// Readable from `at_ns` on, and until it is armed again.
    fn arm(&mut self, at_ns: i64) -> io::Result<()> {
        if self.at_ns == Some(at_ns) {
            return Ok(());
        }
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::itimerspec { it_interval: never, it_value: timespec(at_ns) };
        // SAFETY: the descriptor is open and `at` is live. Arming clears expirations that were not read.
        let outcome = unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &at, std::ptr::null_mut())
        };
        self.at_ns = (outcome == 0).then_some(at_ns);
        if outcome == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
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

/// The signals of [`second_signal::ending`] as a descriptor, which a blocked signal reaches even when it is ignored.
/// Create it before any thread, so that all threads inherit the blocked mask.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Block these signals and open the descriptor.
    pub fn new() -> io::Result<Self> {
        let set: SigSet = second_signal::ending().collect();
        set.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Take one pending signal; false when there is none. After one was taken the next ends the process at once.
    pub fn take(&self) -> bool {
        let taken = matches!(self.0.read_signal(), Ok(Some(_)));
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
    fn paced_waits_are_never_early_whether_the_next_end_was_told_truly_or_not() {
        let (reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let silent = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        let mut waiter = Waiter::paced().unwrap();
        let mut armed = Vec::new();
        for fds in [&[][..], &silent] {
            for wrong_ns in [0, -20_000, 20_000, 2_000_000] {
                let start_ns = host::now_ns() + 100_000;
                for step in 0..20 {
                    let until_ns = start_ns + step * 100_000;
                    let now_ns = host::now_ns();
                    waiter.wait_paced(fds, until_ns, until_ns + 100_000 + wrong_ns, now_ns).unwrap();
                    assert!(host::now_ns() >= until_ns);
                    armed.push(
                        waiter
                            .paced
                            .iter()
                            .flatten()
                            .any(|alarm| alarm.at_ns == Some(until_ns + 100_000 + wrong_ns)),
                    );
                }
            }
        }
        assert!(armed.iter().any(|armed| *armed), "the paced way was never taken");
    }

    #[test]
    fn a_descriptor_ends_a_paced_wait_and_its_alarm_still_ends_the_next() {
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let fds = [PollFd { fd: reader.as_raw_fd(), read: true, write: false }];
        let mut waiter = Waiter::paced().unwrap();
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        let now_ns = host::now_ns();
        let until_ns = now_ns + 900_000;
        waiter.wait_paced(&fds, until_ns, until_ns + 10_000, now_ns).unwrap();
        assert!(waiter.ready(0));
        waiter.wait_paced(&[], until_ns, until_ns + 10_000, now_ns).unwrap();
        assert!(host::now_ns() >= until_ns);
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
        assert_eq!(waiter.timer.at_ns, Some(start_ns + 20_000_000));
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
