// SPDX-License-Identifier: Apache-2.0
//! CPU cycles of a flow, by the processor's own counter where there is one (perf_event_open(2)).
//!
//! What is counted is this thread: the one that runs the flow. Virtual machines often have no counter, and without a
//! privilege the kernel's cycles may be kept back; the report says which.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// `PERF_TYPE_HARDWARE` and `PERF_COUNT_HW_CPU_CYCLES` (include/uapi/linux/perf_event.h).
const TYPE_HARDWARE: u32 = 0;
const CPU_CYCLES: u64 = 0;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 1 | 2;
/// Bits `exclude_kernel` and `exclude_hv`.
const USER_ONLY: u64 = (1 << 5) | (1 << 6);
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// The first published form of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Whose cycles are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of this thread.
    UserAndKernel,
    /// Its user space only: the kernel keeps the rest back.
    User,
}

impl Scope {
    /// Name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserAndKernel => "user_and_kernel",
            Self::User => "user",
        }
    }
}

/// A running counter of this thread's cycles.
#[derive(Debug)]
pub struct CycleCounter {
    file: File,
    scope: Scope,
}

impl CycleCounter {
    /// Start counting; why it cannot be done, as a sentence, where it cannot.
    pub fn start() -> Result<Self, String> {
        let counted = open(EXCLUDE_HYPERVISOR).map(|file| Self { file, scope: Scope::UserAndKernel });
        counted
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => {
                    open(USER_ONLY).map(|file| Self { file, scope: Scope::User })
                }
                _ => Err(error),
            })
            .map_err(|error| reason(&error))
    }

    /// Whose cycles are counted.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Cycles so far; why they cannot be told, as a sentence, where they cannot.
    pub fn read(&mut self) -> Result<u64, String> {
        let mut bytes = [0; 24];
        self.file.read_exact(&mut bytes).map_err(|error| reason(&error))?;
        let word = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default());
        scaled(word(0), word(1), word(2)).ok_or_else(|| "the counter was never given to this process".into())
    }
}

fn open(flags: u64) -> io::Result<File> {
    let attributes = Attributes {
        kind: TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CYCLES,
        read_format: WITH_TIMES,
        flags,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads the live structure up to its own `size`; this thread, any CPU, no group. A descriptor that
    // comes back is ours alone.
    unsafe {
        let (this_thread, any_cpu, no_group): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(fd as i32))
    }
}

/// A counter that was shared with others is scaled to the whole time; `None` when it never ran.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
    match running_ns {
        0 => None,
        running if running >= enabled_ns => Some(count),
        running => Some((count as f64 * enabled_ns as f64 / running as f64) as u64),
    }
}

/// Why there is no count, as a sentence without its full stop.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) => {
            "this machine offers no hardware counter of CPU cycles (virtual machines often have none)".into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "the kernel lets only privileged users count cycles (sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON)"
                .into()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events".into(),
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_as_long_as_the_kernels_first_one() {
        assert_eq!(size_of::<Attributes>(), 64);
    }

    #[test]
    fn a_shared_counter_is_scaled() {
        assert_eq!(scaled(100, 10, 10), Some(100));
        assert_eq!(scaled(100, 10, 5), Some(200));
        assert_eq!(scaled(0, 10, 0), None);
    }

    #[test]
    fn every_refusal_is_a_sentence() {
        for errno in [libc::ENOENT, libc::EACCES, libc::ENOSYS, libc::EMFILE] {
            let sentence = reason(&io::Error::from_raw_os_error(errno));
            assert!(sentence.len() > 20 && !sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn work_shows_as_cycles_where_there_is_a_counter() {
        let mut counter = match CycleCounter::start() {
            Ok(counter) => counter,
            Err(reason) => return assert!(!reason.is_empty()),
        };
        let before = counter.read().unwrap();
        let value = (0..1_000_000_u64).fold(1, |value, step| std::hint::black_box(value ^ step));
        let after = counter.read().unwrap();
        assert!(after - before > 100_000, "{value}: {before} to {after}");
    }
}
