// SPDX-License-Identifier: Apache-2.0
//! The bench's yardstick for pacing: what a wake-up costs a loop that does nothing else. Two timer descriptors with absolute
//! times, armed and waited for in turn as the engine's sender does, so that the processor's own timer is seldom told.
//!
//! ```text
//! two_alarms PERIOD_NS SECONDS    prints {"wake_ups": N, "cpu_s": S, "late_p99_us": L}
//! ```
//! A time that has passed already is skipped: only sleeps count. L: 99 % of the wake-ups came at most so late after their
//! alarm.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use netjoule_measure::distribution::Distribution;
use netjoule_measure::host;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [period_ns, seconds] = &words[..] else { return Err("usage: two_alarms PERIOD_NS SECONDS".into()) };
    let (period_ns, seconds): (i64, f64) = (period_ns.parse()?, seconds.parse()?);
    if period_ns < 1_000 || !(0.0..=3_600.0).contains(&seconds) {
        return Err("two_alarms: a period of at least 1000 ns, and at most 3600 s".into());
    }
    host::sharpen_timers();
    let (mut this, mut next) = (alarm()?, alarm()?);
    let start_ns = host::now_ns();
    let end_ns = start_ns + (seconds * 1e9) as i64;
    let before_ns = host::total_ns();
    let mut late = Distribution::default();
    let mut at_ns = start_ns + period_ns;
    arm(&this, at_ns)?;
    while at_ns < end_ns {
        arm(&next, at_ns + period_ns)?;
        this.read_exact(&mut [0; 8])?;
        std::mem::swap(&mut this, &mut next);
        let now_ns = host::now_ns();
        late.record(now_ns - at_ns);
        at_ns += period_ns;
        let behind_ns = now_ns - at_ns;
        if behind_ns >= 0 {
            at_ns += (behind_ns / period_ns + 1) * period_ns;
            arm(&this, at_ns)?;
        }
    }
    let cpu_s = (host::total_ns() - before_ns) as f64 * 1e-9;
    let late_p99_us = late.told().map_or(0.0, |told| told.quantile_ns(0.99) * 1e-3);
    let wake_ups = late.count();
    println!(r#"{{"wake_ups": {wake_ups}, "cpu_s": {cpu_s:.9}, "late_p99_us": {late_p99_us:.1}}}"#);
    Ok(())
}

fn alarm() -> io::Result<File> {
    // SAFETY: timerfd_create returns a fresh descriptor or -1, checked before it is owned.
    unsafe {
        let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(fd))
    }
}

fn arm(alarm: &File, at_ns: i64) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let at = libc::timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
    let times = libc::itimerspec { it_interval: never, it_value: at };
    // SAFETY: the descriptor is open and `times` is live.
    let outcome = unsafe {
        libc::timerfd_settime(alarm.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &times, std::ptr::null_mut())
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
