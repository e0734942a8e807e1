// SPDX-License-Identifier: Apache-2.0
//! How many bytes does this thread hold? An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    // Fails only while a thread ends.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call goes to the system's allocator unchanged; a Layout's size fits isize.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        System.dealloc(pointer, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has allocated and not given back.
pub(crate) fn live_bytes() -> isize {
    LIVE.with(Cell::get)
}
