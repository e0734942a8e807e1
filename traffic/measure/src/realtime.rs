// SPDX-License-Identifier: Apache-2.0
//! A process that nothing else keeps from its deadlines (`--realtime`): SCHED_FIFO, memory that stays, one CPU.

use std::io;
use std::mem;
use std::sync::OnceLock;

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
    let parameters = libc::sched_param { sched_priority: PRIORITY as libc::c_int };
    // SAFETY: a live structure of plain integers; 0 names this thread.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) })
        .map_err(lacks("SCHED_FIFO is not allowed here (CAP_SYS_NICE, or ulimit -r 49)"))?;
    // SAFETY: a plain number.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
        .map_err(lacks("memory cannot be locked here (CAP_IPC_LOCK, or ulimit -l unlimited)"))?;
    let cpu = keep_to_last_cpu().map_err(lacks("no CPU can be kept to here"))?;
    let _ = IN_FORCE.set(Realtime { fifo_priority: PRIORITY, cpu: cpu as u32, memory_locked: true });
    Ok(())
}

fn keep_to_last_cpu() -> io::Result<usize> {
    // SAFETY: zero is a value of the set, an array of bits; the kernel writes and reads as many bytes as are told.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        checked(libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set))?;
        let most = libc::CPU_SETSIZE as usize;
        let last = (0..most).rev().find(|cpu| libc::CPU_ISSET(*cpu, &set)).unwrap_or(0);
        let mut one: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(last, &mut one);
        checked(libc::sched_setaffinity(0, mem::size_of_val(&one), &one))?;
        Ok(last)
    }
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
