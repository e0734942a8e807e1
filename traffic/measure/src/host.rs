// SPDX-License-Identifier: Apache-2.0
//! What this host says about time, CPU and itself. The only place of the engine that reads clocks.

use std::io;

pub use netjoule_sockets::timestamps::now_ns;
use netjoule_sockets::timestamps::read_clock;
use nix::sys::resource::{getrlimit, getrusage, setrlimit, Resource, UsageWho};
use nix::sys::time::TimeValLike;

/// CPU time and context switches of this process so far.
///
/// The total is `CLOCK_PROCESS_CPUTIME_ID`: the scheduler's own run-time sum over all threads (the figure of
/// /proc/self/schedstat), exact to the nanosecond. Tick-based accounting would miss a process that wakes for a few
/// microseconds at a time. The split into user and system comes from `getrusage`, which the kernel
/// apportions by sampling at ticks, so it is less sure than the total.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// Run time in ns.
    pub total_ns: i64,
    /// Run time in user space by samples, ns.
    pub user_ns: i64,
    /// Run time in the kernel by samples, ns.
    pub system_ns: i64,
    /// Times that this process gave up a CPU to wait.
    pub switches_voluntary: i64,
    /// Times that it had to leave a CPU to another.
    pub switches_involuntary: i64,
}

impl CpuTime {
    /// Read it now.
    pub fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the kernel knows this process");
        Self {
            total_ns: total_ns(),
            user_ns: usage.user_time().num_nanoseconds(),
            system_ns: usage.system_time().num_nanoseconds(),
            switches_voluntary: usage.voluntary_context_switches(),
            switches_involuntary: usage.involuntary_context_switches(),
        }
    }
}

/// CPU run time of this process so far in ns, cheaper than [`CpuTime::now`].
pub fn total_ns() -> i64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Ask the kernel to wake this thread within 1 ns of a deadline instead of 50 us.
pub fn sharpen_timers() {
    // SAFETY: plain integers. A refusal is impossible for one's own thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Have the allocator keep what is freed, up to 64 MiB, for what is asked for next: to hand it back to the kernel after every
/// buffer, as glibc does from 128 KiB on, costs page faults for each train of a fast flow.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain integers. A refusal leaves the allocator as it was.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
    }
}

/// Name of this host.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}

/// Identity of this boot: two processes with the same one read the same monotonic clock.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".into(), |id| id.trim().to_owned())
}

/// Unpredictable bytes from the kernel.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    netjoule_sockets::random::try_bytes()
}

/// Raise the limit on open files (RLIMIT_NOFILE) to `wanted`, as far as an ordinary process may; what it is then.
///
/// # Errors
/// When the kernel does not tell the limit.
pub fn raise_file_limit(wanted: u64) -> io::Result<u64> {
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = wanted.min(most);
    // Raising up to the hard limit needs no privilege (getrlimit(2)).
    let is_raised = now < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, most).is_ok();
    Ok(if is_raised { wanted } else { now })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_name_and_a_boot() {
        assert!(!host_name().is_empty());
        assert_eq!(boot_id().len(), 36);
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
    }
}
