// SPDX-License-Identifier: Apache-2.0
//! When does a socket that took no message take one again?
//!
//! The network device is slower than the load, and what waits for it fills the socket's buffer: nothing is wrong with the
//! sender. iperf3 waits in the call then; here the message is not sent, and the next one is tried when there is room.
//! Pure.

use std::io;

/// Nothing announces that the kernel has memory again (ENOBUFS): try after this, ns.
const RETRY_NS: i64 = 1_000_000;

/// What a full socket waits for.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// The socket will say that it is writable.
    awaits_writable: bool,
    retry_ns: Option<i64>,
}

impl Backpressure {
    /// Whether sending failed at `now_ns` for want of room; then that is waited for.
    pub(crate) fn is_wanting(&mut self, error: &io::Error, now_ns: i64) -> bool {
        if error.kind() == io::ErrorKind::WouldBlock {
            self.awaits_writable = true;
        } else if error.raw_os_error() == Some(libc::ENOBUFS) {
            self.retry_ns = Some(now_ns.saturating_add(RETRY_NS));
        } else {
            return false;
        }
        true
    }

    /// Something happened, or the time has come: what was waited for may be there.
    pub(crate) fn may_be_back(&mut self, now_ns: i64) {
        self.awaits_writable = false;
        self.retry_ns = self.retry_ns.filter(|at_ns| now_ns < *at_ns);
    }

    /// Whether the socket must become writable.
    pub(crate) fn awaits_writable(&self) -> bool {
        self.awaits_writable
    }

    /// When to try again without being told.
    pub(crate) fn retry_ns(&self) -> Option<i64> {
        self.retry_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn a_full_buffer_is_waited_for_until_something_happens() {
        let mut room = Backpressure::default();
        assert!(room.is_wanting(&error(libc::EAGAIN), 7));
        assert_eq!((room.awaits_writable(), room.retry_ns()), (true, None));
        room.may_be_back(7);
        assert!(!room.awaits_writable());
    }

    #[test]
    fn want_of_memory_is_waited_for_by_time() {
        let mut room = Backpressure::default();
        assert!(room.is_wanting(&error(libc::ENOBUFS), 7));
        assert_eq!((room.awaits_writable(), room.retry_ns()), (false, Some(7 + RETRY_NS)));
        room.may_be_back(6 + RETRY_NS);
        assert_eq!(room.retry_ns(), Some(7 + RETRY_NS));
        room.may_be_back(7 + RETRY_NS);
        assert_eq!(room.retry_ns(), None);
    }

    #[test]
    fn other_trouble_is_no_want_of_room() {
        let mut room = Backpressure::default();
        assert!(
            !room.is_wanting(&error(libc::EMSGSIZE), 7) && !room.is_wanting(&error(libc::ENETUNREACH), 7)
        );
        assert!(!room.awaits_writable() && room.retry_ns().is_none());
    }
}
