// SPDX-License-Identifier: Apache-2.0
//! What a second SIGINT, SIGTERM or SIGHUP does: ends the process at once, whatever it is waiting for.
//!
//! The first one ends a flow in order, which takes as long as the other end takes to send its half of the report. Who
//! asks again does not want to wait for that. What comes within half a second of the first is the same one, told twice:
//! timeout(1) signals its child and then the whole group, a terminal the group and a parent its child.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::OnceLock;

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};

use crate::host;
use crate::process::program;

/// A signal within this time of the first is not a second one, ns.
const SAME_SIGNAL_NS: i64 = 500_000_000;

/// From when on a signal ends this process, `CLOCK_MONOTONIC` ns.
static FROM_NS: AtomicI64 = AtomicI64::new(i64::MAX);
/// What it says then; made beforehand, as a handler may not ask for memory.
static WORDS: OnceLock<String> = OnceLock::new();

/// What asks this process to end: SIGHUP does not where it is ignored, as nohup(1) has it.
pub(crate) fn ending() -> impl Iterator<Item = Signal> {
    // SAFETY: the structure is live; sigaction(2) only reads the disposition into it.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    [Signal::SIGINT, Signal::SIGTERM].into_iter().chain((!ignored).then_some(Signal::SIGHUP))
}

/// From now on, but for a moment, the signals of [`ending`] end this process.
pub(crate) fn ends_at_once() {
    let from_ns = host::now_ns() + SAME_SIGNAL_NS;
    if FROM_NS.compare_exchange(i64::MAX, from_ns, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    WORDS.get_or_init(|| {
        format!("{}: told to stop twice: ended at once, without the other end's report\n", program())
    });
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::SA_RESTART, SigSet::empty());
    for signal in ending() {
        // SAFETY: the handler does nothing that signal-safety(7) forbids.
        let _ = unsafe { sigaction(signal, &action) };
    }
    // Signals stay blocked in all other threads, so that the handler runs here.
    let _ = ending().collect::<SigSet>().thread_unblock();
}

extern "C" fn end(_signal: libc::c_int) {
    // clock_gettime(2) is async-signal-safe.
    if host::now_ns() < FROM_NS.load(Ordering::Relaxed) {
        return;
    }
    let words = WORDS.get().map_or("", String::as_str);
    // SAFETY: writes what was made before and ends, both allowed in a signal handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
        libc::_exit(1);
    }
}
