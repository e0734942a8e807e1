// SPDX-License-Identifier: Apache-2.0
//! What this host says about time, CPU and itself. The only place of the engine that reads clocks.

use std::io;

/// `CLOCK_MONOTONIC` in ns.
pub fn now_ns() -> i64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills a live timespec; the clocks asked for exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CPU time of this process so far.
///
/// The total is `CLOCK_PROCESS_CPUTIME_ID`: the scheduler's own run-time sum over all threads (the figure of
/// /proc/self/schedstat), exact to the nanosecond. Tick-based accounting would miss a process that wakes for a few
/// microseconds at a time. The split into user and system comes from `getrusage`, which the kernel
/// apportions by sampling at ticks, so it is less sure than the total.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// Run time in ns.
    pub total_ns: i64,
    user_ns: i64,
    system_ns: i64,
}

/// CPU seconds used between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUse {
    /// All of it.
    pub cpu_s: f64,
    /// In user space.
    pub cpu_user_s: f64,
    /// In the kernel.
    pub cpu_system_s: f64,
}

impl CpuTime {
    /// Read it now.
    pub fn now() -> Self {
        // SAFETY: all-zero bytes are a valid rusage, which the kernel then fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000;
        Self { total_ns: total_ns(), user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }

    /// Use since an earlier reading.
    pub fn since(self, start: Self) -> CpuUse {
        let total = (self.total_ns - start.total_ns).max(0) as f64;
        let user = (self.user_ns - start.user_ns).max(0) as f64;
        let system = (self.system_ns - start.system_ns).max(0) as f64;
        let user_share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        CpuUse {
            cpu_s: total * 1e-9,
            cpu_user_s: total * user_share * 1e-9,
            cpu_system_s: total * (1.0 - user_share) * 1e-9,
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
    let mut bytes = [0; N];
    // SAFETY: the kernel fills a live buffer; requests of up to 256 bytes are never cut short.
    let length = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if length == N as isize {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_cpu_time_and_its_parts_add_up() {
        let start = CpuTime::now();
        let mut value = 1_u64;
        while total_ns() - start.total_ns < 2_000_000 {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        let used = CpuTime::now().since(start);
        assert!(used.cpu_s >= 0.002, "{used:?}");
        assert!((used.cpu_user_s + used.cpu_system_s - used.cpu_s).abs() < 1e-9, "{used:?}");
    }

    #[test]
    fn the_host_has_a_name_and_a_boot() {
        assert!(!host_name().is_empty());
        assert_eq!(boot_id().len(), 36);
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
    }
}
