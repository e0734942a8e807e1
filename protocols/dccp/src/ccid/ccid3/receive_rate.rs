// SPDX-License-Identifier: Apache-2.0
//! X_recv, the rate at which data arrives (RFC 5348 section 6.2, which errata 610 and 611 of RFC 4342 refer to).

use super::{MIN_FEEDBACK_INTERVAL_NS, NS_PER_S};

/// Bytes that had arrived at some time.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    time_ns: i64,
    bytes: u64,
}

/// Counts data bytes.
#[derive(Debug, Default)]
pub(super) struct ReceiveRate {
    /// Data bytes so far.
    bytes: u64,
    last_data_ns: i64,
    /// The newest two reports that were at least one measuring interval apart.
    newest: Mark,
    previous: Mark,
    /// Of them, covered by a report.
    reported_bytes: u64,
    is_started: bool,
    greatest: f64,
}

impl ReceiveRate {
    /// Data of `bytes` arrived; `rtt_ns` is the round trip, 0 when not known.
    pub(super) fn on_data(&mut self, now_ns: i64, bytes: usize, rtt_ns: i64) {
        if !self.is_started {
            self.is_started = true;
            // The first packet opens the first interval: its own bytes came in no time.
            self.bytes = bytes as u64;
            self.newest = Mark { time_ns: now_ns, bytes: self.bytes };
            self.previous = self.newest;
            self.last_data_ns = now_ns;
            return;
        }
        let (now_ns, interval_ns) = (now_ns.max(self.last_data_ns), interval_ns(rtt_ns));
        // After a pause the rate is that of the last interval, not of the pause: RFC 5348's timer would have expired
        // in between without anything to report. This gives at least one packet per interval.
        if now_ns - self.last_data_ns > interval_ns && self.reported_bytes == self.bytes {
            self.previous = self.newest;
            self.newest = Mark { time_ns: now_ns - interval_ns, bytes: self.bytes };
        }
        self.bytes += bytes as u64;
        self.last_data_ns = now_ns;
    }

    /// X_recv, bytes per second: over the time since the last report, or since the one before when that is less than
    /// a round trip ago.
    pub(super) fn bytes_per_s(&self, rtt_ns: i64) -> f64 {
        let interval_ns = interval_ns(rtt_ns);
        let since =
            if self.last_data_ns - self.newest.time_ns >= interval_ns { self.newest } else { self.previous };
        let elapsed_ns = (self.last_data_ns - since.time_ns).max(interval_ns);
        (self.bytes - since.bytes) as f64 * NS_PER_S / elapsed_ns as f64
    }

    /// [`Self::bytes_per_s`] was reported.
    pub(super) fn on_report(&mut self, rtt_ns: i64) {
        self.greatest = self.greatest.max(self.bytes_per_s(rtt_ns));
        self.reported_bytes = self.bytes;
        if self.last_data_ns - self.newest.time_ns >= interval_ns(rtt_ns) {
            self.previous = self.newest;
            self.newest = Mark { time_ns: self.last_data_ns, bytes: self.bytes };
        }
    }

    /// Greatest X_recv so far.
    pub(super) fn greatest_bytes_per_s(&self, rtt_ns: i64) -> f64 {
        self.greatest.max(self.bytes_per_s(rtt_ns))
    }

    /// Data bytes so far.
    pub(super) const fn total_bytes(&self) -> u64 {
        self.bytes
    }
}

/// Least time over which a rate is measured; never 0.
fn interval_ns(rtt_ns: i64) -> i64 {
    rtt_ns.max(MIN_FEEDBACK_INTERVAL_NS)
}
