// SPDX-License-Identifier: Apache-2.0
//! A process that nothing else keeps from its deadlines (`--realtime`): SCHED_FIFO, memory that stays, one CPU.

use std::io;
use std::sync::OnceLock;

use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::sys::mman::{mlockall, MlockAllFlags};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::failure::{Code, Failure, Outcome};

/// Above ordinary real-time work, below the kernel's threaded interrupts (50), which bring the packets (sched(7)).
const PRIORITY: u32 = 49;

static IN_FORCE: OnceLock<Realtime> = OnceLock::new();

/// What is in force for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Realtime {
    /// Priority under SCHED_FIFO.
    pub fifo_priority: u32,
    /// The CPU that it stays on.
    pub cpu: u32,
    /// Nothing of its memory is paged out.
    pub memory_locked: bool,
}

impl Realtime {
    /// What is in force; `None`: nothing out of the ordinary.
    pub fn in_force() -> Option<Self> {
        IN_FORCE.get().copied()
    }
}

/// From now on this process, which has one thread, keeps to the last CPU that it may use.
///
/// # Errors
/// [`Code::HostLacks`] with what has to be allowed.
pub fn enter() -> Outcome<()> {
    let lacks = |what: &'static str| {
        move |error: io::Error| Failure::new(Code::HostLacks, format!("--realtime: {what}: {error}"))
    };
    keep_to_fifo().map_err(lacks("SCHED_FIFO is not allowed here (CAP_SYS_NICE, or ulimit -r 49)"))?;
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE).map_err(|error| {
        lacks("memory cannot be locked here (CAP_IPC_LOCK, or ulimit -l unlimited)")(error.into())
    })?;
    let cpu = keep_to_last_cpu().map_err(lacks("no CPU can be kept to here"))?;
    let _ = IN_FORCE.set(Realtime { fifo_priority: PRIORITY, cpu: cpu as u32, memory_locked: true });
    Ok(())
}

fn keep_to_fifo() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRIORITY as libc::c_int };
    // SAFETY: a live structure of plain integers; 0 names this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn keep_to_last_cpu() -> io::Result<usize> {
    let this_thread = Pid::from_raw(0);
    let may_use = sched_getaffinity(this_thread)?;
    let last = (0..CpuSet::count()).rev().find(|cpu| may_use.is_set(*cpu) == Ok(true)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(last)?;
    sched_setaffinity(this_thread, &one)?;
    Ok(last)
}
