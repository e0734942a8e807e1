// SPDX-License-Identifier: Apache-2.0
//! When does the receiving end of a fast flow look into its socket again?
//!
//! Not with every packet: a receiver that each packet wakes takes few at a time, and the waking is work of the core that
//! delivers packets (over loopback and veth the sender's). So after it has emptied the socket it leaves what arrives
//! with the kernel for a moment. The kernel stamps every arrival, so no figure depends on when a message is read. Pure.

/// Long enough for a dozen messages at 100,000 a second, short against what the receive buffer holds, ns.
const LENGTH_NS: i64 = 100_000;

/// The rests of one receiving end.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Whether the flow is one to rest in.
    fast: bool,
    until_ns: Option<i64>,
}

impl Rest {
    /// For a fast flow, or for one in which every message is read when it arrives.
    pub(crate) fn new(fast: bool) -> Self {
        Self { fast, until_ns: None }
    }

    /// End of the rest, if this is one.
    pub(crate) fn until_ns(&self) -> Option<i64> {
        self.until_ns
    }

    /// Whether it lasts at `now_ns`. Its end is noticed here.
    pub(crate) fn lasts(&mut self, now_ns: i64) -> bool {
        self.until_ns = self.until_ns.filter(|until_ns| now_ns < *until_ns);
        self.until_ns.is_some()
    }

    /// The socket was read at `now_ns` and is empty. One that had nothing to give wakes its reader by itself.
    pub(crate) fn emptied(&mut self, had_any: bool, now_ns: i64) {
        self.until_ns = (self.fast && had_any).then(|| now_ns.saturating_add(LENGTH_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_flow_rests_after_what_was_read_and_an_idle_one_waits_for_the_socket() {
        let mut rest = Rest::new(true);
        assert!(!rest.lasts(0));
        rest.emptied(true, 50);
        assert_eq!(rest.until_ns(), Some(50 + LENGTH_NS));
        assert!(rest.lasts(49 + LENGTH_NS));
        assert!(!rest.lasts(50 + LENGTH_NS));
        assert_eq!(rest.until_ns(), None);
        rest.emptied(false, 60);
        assert_eq!(rest.until_ns(), None);
    }

    #[test]
    fn a_slow_flow_never_rests() {
        let mut rest = Rest::new(false);
        rest.emptied(true, 50);
        assert!(!rest.lasts(50) && rest.until_ns().is_none());
    }
}
