// SPDX-License-Identifier: Apache-2.0
//! When to try again after the kernel said that its send queue is full. Pure.
//!
//! `poll` says that a kernel DCCP socket is writable even when `send` has no room, so nothing announces room. The rate
//! at which the queue takes messages tells when it will be half empty: trying again then neither spins nor lets the
//! queue run dry.

const SHORTEST_NS: i64 = 250_000;
const LONGEST_NS: i64 = 10_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Retry {
    half_queue: i64,
    pause_ns: i64,
    accepted: i64,
    since_ns: Option<i64>,
    due_ns: Option<i64>,
}

impl Retry {
    /// For a queue of so many messages.
    pub(crate) fn new(queue_messages: usize) -> Self {
        let half_queue = i64::try_from(queue_messages / 2).unwrap_or(i64::MAX).max(1);
        Self { half_queue, pause_ns: SHORTEST_NS, accepted: 0, since_ns: None, due_ns: None }
    }

    /// When the queue is worth another try; `None` while it takes what it is given.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    pub(crate) fn accepted(&mut self) {
        self.accepted += 1;
        self.due_ns = None;
    }

    /// The queue is full.
    pub(crate) fn full(&mut self, now_ns: i64) {
        if let Some(since_ns) = self.since_ns {
            let span_ns = (now_ns - since_ns).max(1);
            self.pause_ns = match self.accepted {
                0 => self.pause_ns.saturating_mul(2),
                accepted => span_ns.saturating_mul(self.half_queue) / accepted,
            }
            .clamp(SHORTEST_NS, LONGEST_NS);
        }
        self.accepted = 0;
        self.since_ns = Some(now_ns);
        self.due_ns = Some(now_ns + self.pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of `most` that lets one message go every `gap_ns`; tries in a second, and messages taken.
    fn second(most: usize, gap_ns: i64) -> (usize, i64) {
        let mut retry = Retry::new(most);
        let (mut now_ns, mut tries, mut taken) = (0, 0, 0);
        while now_ns < 1_000_000_000 {
            tries += 1;
            while taken < now_ns / gap_ns + most as i64 {
                retry.accepted();
                taken += 1;
            }
            retry.full(now_ns);
            now_ns = retry.due_ns().unwrap();
        }
        (tries, taken)
    }

    #[test]
    fn a_full_queue_is_tried_twice_per_content_and_never_runs_dry() {
        let (tries, taken) = second(26, 500_000);
        assert!(tries < 2 * 2_000 / 13, "{tries}");
        assert!(taken >= 2_000, "{taken}");
    }

    #[test]
    fn a_queue_that_stands_still_is_tried_a_hundred_times_a_second() {
        let (tries, _) = second(16, i64::MAX);
        assert!(tries <= 110, "{tries}");
    }
}
