// SPDX-License-Identifier: Apache-2.0
//! Unpredictable numbers from the kernel.

/// Unpredictable bytes.
///
/// # Panics
/// When the kernel has none, which it never says once it has booted.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the kernel fills a live buffer; requests of up to 256 bytes are never cut short.
    let length = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    assert_eq!(length, N as isize, "the kernel gives no random bytes");
    bytes
}

/// An unpredictable number.
pub(crate) fn number() -> u64 {
    u64::from_ne_bytes(bytes())
}
