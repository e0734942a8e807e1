// SPDX-License-Identifier: Apache-2.0
//! Unpredictable numbers from the kernel.

use std::io;

/// Unpredictable bytes, 256 at most.
///
/// # Errors
/// The kernel has none; it never says so once it has booted.
pub fn try_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: the kernel fills a live buffer; requests of up to 256 bytes are never cut short.
    let length = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if length == N as isize {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Unpredictable bytes, 256 at most.
///
/// # Panics
/// When the kernel has none.
pub fn bytes<const N: usize>() -> [u8; N] {
    try_bytes().expect("the kernel has random bytes once it has booted")
}

/// An unpredictable number.
pub fn number() -> u64 {
    u64::from_ne_bytes(bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        assert_ne!(bytes::<32>(), bytes::<32>());
        assert_ne!(number(), number());
    }
}
