// SPDX-License-Identifier: Apache-2.0
//! Takes the place of libc's readings of the wall clock (LD_PRELOAD): each one is an hour before or behind the last.
//! All other clocks are the kernel's.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// As in time.h.
#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

/// As in sys/time.h.
#[repr(C)]
pub struct Timeval {
    seconds: i64,
    microseconds: c_long,
}

const CLOCK_REALTIME: c_int = 0;
#[cfg(target_arch = "x86_64")]
const CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const CLOCK_GETTIME: c_long = 113;
const STEP_S: i64 = 3_600;

extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

static AHEAD: AtomicBool = AtomicBool::new(false);

fn read(clock: c_int) -> (c_int, Timespec) {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the kernel fills a live timespec.
    let outcome = unsafe { syscall(CLOCK_GETTIME, c_long::from(clock), &mut time as *mut Timespec) } as c_int;
    if clock == CLOCK_REALTIME {
        let ahead = AHEAD.fetch_xor(true, Ordering::Relaxed);
        time.seconds += if ahead { -STEP_S } else { STEP_S };
    }
    (outcome, time)
}

/// # Safety
/// As clock_gettime(2).
#[no_mangle]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    let (outcome, now) = read(clock);
    // SAFETY: the caller's.
    unsafe { time.write(now) };
    outcome
}

/// # Safety
/// As gettimeofday(2).
#[no_mangle]
pub unsafe extern "C" fn gettimeofday(time: *mut Timeval, _zone: *mut c_void) -> c_int {
    let (outcome, now) = read(CLOCK_REALTIME);
    let now = Timeval { seconds: now.seconds, microseconds: now.nanoseconds / 1_000 };
    // SAFETY: the caller's.
    unsafe { time.write(now) };
    outcome
}
