// SPDX-License-Identifier: Apache-2.0
//! The congestion window (RFC 4341 sections 5 to 5.2), in packets.

use crate::seqno::Seq48;

/// Slow-start threshold of a new connection: "arbitrarily high".
const NO_THRESHOLD: u64 = u64::MAX / 4;
/// A packet size above this is taken as this in the initial window (RFC 3390).
const INITIAL_WINDOW_BYTES: usize = 4380;

/// cwnd and ssthresh with what decides about them.
#[derive(Debug)]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
    initial: u64,
    /// cwnd may not grow beyond this (half the Sequence Window).
    most: u64,
    /// Half packets of growth in slow start that do not make a whole one yet.
    half_packets: u64,
    /// Packets acknowledged since cwnd grew last in congestion avoidance.
    acknowledged: u64,
    /// The newest packet sent when cwnd was reduced last: losses up to it belong to the same congestion event.
    recover: Option<Seq48>,
    /// The newest packet with which the window was full.
    full_at: Option<Seq48>,
    /// No growth before this time (Slow Receiver).
    hold_until_ns: i64,
    usage: Usage,
}

/// How much of the window the application uses (RFC 2861).
#[derive(Debug, Default)]
struct Usage {
    last_sent_ns: Option<i64>,
    /// Since when the window was not full.
    since_ns: i64,
    most_pipe: u64,
}

impl Window {
    /// For packets of about `segment_bytes`.
    pub fn new(segment_bytes: usize) -> Self {
        //= rfc4341#5
        //# The cwnd parameter is initialized to at most four packets for new connections, following the rules from [RFC3390]; the
        //# ssthresh parameter is initialized to an arbitrarily high value.
        let initial = (INITIAL_WINDOW_BYTES / segment_bytes.max(1)).clamp(2, 4) as u64;
        Self {
            cwnd: initial,
            ssthresh: NO_THRESHOLD,
            initial,
            most: u64::MAX,
            half_packets: 0,
            acknowledged: 0,
            recover: None,
            full_at: None,
            hold_until_ns: i64::MIN,
            usage: Usage::default(),
        }
    }

    /// The window.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The slow-start threshold.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Another data packet may leave.
    pub const fn has_room(&self, pipe: u64) -> bool {
        //= rfc4341#5
        //# The sender MAY send a data packet when pipe < cwnd but MUST NOT send a data packet when pipe >= cwnd.
        pipe < self.cwnd
    }

    /// How many more data packets may leave.
    pub const fn room(&self, pipe: u64) -> u64 {
        self.cwnd.saturating_sub(pipe)
    }

    /// The Sequence Window in force. Half of it may be under way: the peer takes numbers up to three quarters of it beyond
    /// the last one it has received (RFC 4340 section 7.5.1), and what is lost must not reach that far.
    pub fn set_sequence_window(&mut self, packets: u64) {
        self.most = (packets / 2).max(1);
        self.cwnd = self.cwnd.min(self.most);
    }

    /// Before a data packet leaves: a window that was not used for long is no longer known to be right (RFC 2861).
    pub fn before_sending(&mut self, now_ns: i64, rto_ns: i64) {
        let Some(last_sent_ns) = self.usage.last_sent_ns.replace(now_ns) else {
            self.usage.since_ns = now_ns;
            return;
        };
        let idle_ns = now_ns.saturating_sub(last_sent_ns);
        if idle_ns < rto_ns.max(1) {
            return;
        }
        let idle_rtos = idle_ns / rto_ns.max(1);
        let restart = self.initial.min(self.cwnd);
        self.ssthresh = self.ssthresh.max(self.cwnd - self.cwnd / 4);
        self.cwnd = (self.cwnd >> idle_rtos.min(63)).max(restart);
        self.usage.since_ns = now_ns;
        self.usage.most_pipe = 0;
    }

    /// A data packet left, `pipe` includes it.
    pub fn on_sent(&mut self, now_ns: i64, seq: Seq48, pipe: u64, rto_ns: i64) {
        if pipe >= self.cwnd {
            self.full_at = Some(seq);
            self.usage.since_ns = now_ns;
            self.usage.most_pipe = 0;
            return;
        }
        self.usage.most_pipe = self.usage.most_pipe.max(pipe);
        if now_ns.saturating_sub(self.usage.since_ns) >= rto_ns {
            // The application used less than the window for a whole timeout.
            let restart = self.initial.min(self.cwnd);
            self.ssthresh = self.ssthresh.max(self.cwnd - self.cwnd / 4);
            self.cwnd = ((self.cwnd + self.usage.most_pipe) / 2).max(restart);
            self.usage.since_ns = now_ns;
            self.usage.most_pipe = 0;
        }
    }

    /// `received` data packets were newly acknowledged without mark, the oldest of them `oldest`.
    pub fn on_acknowledged(&mut self, now_ns: i64, received: u64, oldest: Seq48, ack_ratio: u64) {
        // RFC 2861: a window that the application does not fill does not grow.
        let was_full = self.full_at.is_some_and(|full| !full.is_before(oldest));
        if !was_full || now_ns < self.hold_until_ns || self.cwnd >= self.most {
            return;
        }
        if self.cwnd < self.ssthresh {
            //= rfc4341#5
            //# When cwnd < ssthresh, meaning that the sender is in slow-start, the congestion window is increased by one packet for
            //# every two newly acknowledged data packets with Ack Vector State 0 (not ECN-marked), up to a maximum of Ack Ratio/2
            //# packets per acknowledgement.
            self.half_packets += received.min(ack_ratio.max(1));
            self.cwnd = (self.cwnd + self.half_packets / 2).min(self.ssthresh);
            self.half_packets %= 2;
        } else {
            //= rfc4341#5
            //# When cwnd >= ssthresh, the congestion window is increased by one packet for every window of data acknowledged
            //# without lost or marked packets.
            self.acknowledged += received;
            if self.acknowledged >= self.cwnd {
                self.acknowledged -= self.cwnd;
                self.cwnd += 1;
            }
        }
        self.cwnd = self.cwnd.min(self.most);
    }

    /// Packet `seq` was lost or marked; `newest_sent` is the newest that has left. `true`: a new congestion event.
    pub fn on_congestion(&mut self, seq: Seq48, newest_sent: Seq48) -> bool {
        self.acknowledged = 0;
        self.half_packets = 0;
        //= rfc4341#5
        //# As in TCP, two losses or marks are considered part of a single congestion event when the second packet was sent before
        //# the loss or mark of the first packet was detected.
        if self.recover.is_some_and(|recover| !recover.is_before(seq)) {
            return false;
        }
        self.recover = Some(newest_sent);
        //= rfc4341#5
        //# cwnd is halved, then ssthresh is set to the new cwnd. Cwnd is never reduced below one packet.
        self.cwnd = (self.cwnd / 2).max(1);
        self.ssthresh = self.cwnd.max(2);
        true
    }

    /// A transmit timeout.
    pub fn on_timeout(&mut self, newest_sent: Seq48) {
        //= rfc4341#5
        //# After a timeout, the slow-start threshold is set to cwnd/2, then cwnd is set to one packet.
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.half_packets = 0;
        self.acknowledged = 0;
        self.recover = Some(newest_sent);
        self.full_at = None;
    }

    /// The peer dropped `packets` in its receive buffer (Data Dropped code 2).
    pub fn on_receive_buffer_drops(&mut self, packets: u64) {
        //= rfc4341#5.2
        //# The congestion window "cwnd" is reduced by one for each packet newly acknowledged as Drop Code 2, except that it is
        //# never reduced below one.
        self.cwnd = self.cwnd.saturating_sub(packets).max(1);
        self.leave_slow_start();
    }

    /// The peer is slow: no growth until `until_ns`.
    pub fn hold_until(&mut self, until_ns: i64) {
        self.hold_until_ns = self.hold_until_ns.max(until_ns);
    }

    /// As [`Self::on_receive_buffer_drops`] and Slow Receiver ask.
    pub fn leave_slow_start(&mut self) {
        //= rfc4341#5.2
        //# The sender MUST exit slow start whenever it receives a relevant Data Dropped or Slow Receiver option.
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
