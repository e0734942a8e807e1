// SPDX-License-Identifier: Apache-2.0
//! When a question that may get lost is asked again: after 100, 200, 400, then every 800 ms. Pure.

/// Until the first repetition, ns.
pub const FIRST_RETRY_NS: i64 = 100_000_000;
/// Longest time between two, ns.
const LONGEST_RETRY_NS: i64 = 800_000_000;

/// The times of one question.
#[derive(Debug, Clone)]
pub struct Backoff {
    due_ns: i64,
    pause_ns: i64,
}

impl Backoff {
    /// Due at once.
    pub fn new(now_ns: i64) -> Self {
        Self { due_ns: now_ns, pause_ns: FIRST_RETRY_NS }
    }

    /// When the question is due.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Whether it is due at `now_ns`; then the next time is further away.
    pub fn take_due(&mut self, now_ns: i64) -> bool {
        let is_due = now_ns >= self.due_ns;
        if is_due {
            self.due_ns = now_ns + self.pause_ns;
            self.pause_ns = (2 * self.pause_ns).min(LONGEST_RETRY_NS);
        }
        is_due
    }

    /// There is something new to say: it is due now.
    pub fn hurry(&mut self, now_ns: i64) {
        self.due_ns = now_ns;
    }
}
