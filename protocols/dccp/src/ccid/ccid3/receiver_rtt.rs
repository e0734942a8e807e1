// SPDX-License-Identifier: Apache-2.0
//! The receiver's idea of the round trip: the sender's RTT Estimate option (RFC 6323 section 3.3) or, without that
//! feature, the window counter (RFC 4342 section 8.1).

use super::{whole_ns, NS_PER_S};
use crate::ccid::tfrc::MAX_BACKOFF_S;

/// Before the first numeric option (RFC 6323 section 3.4).
const DEFAULT_NS: f64 = 0.5e9;
/// Weight of the old value in the moving average.
const KEEP: f64 = 0.9;
/// The value that says "more than 16.7 s".
const TOO_LARGE: u32 = 0xff_ffff;
/// Window counter values remembered: D is at most 4.
const REMEMBERED: u64 = 8;

/// Estimates the round trip.
#[derive(Debug)]
pub(super) struct ReceiverRtt {
    smoothed_ns: Option<f64>,
    /// The smoothed value comes from the handshake, not yet from this direction.
    is_seed: bool,
    /// The Send RTT Estimate feature is on, or, for as long as nobody said, the option has been seen: a sender uses it
    /// only when the feature is on.
    by_option: bool,
    is_told: bool,
    /// Since when only options without a number came.
    no_number_since_ns: Option<i64>,
    /// Arrival of the first packet with each of the last window counters, and that counter counted on past 15.
    first_arrivals: [(u64, i64); REMEMBERED as usize],
    counter: u64,
}

impl ReceiverRtt {
    pub(super) const fn new() -> Self {
        Self {
            smoothed_ns: None,
            is_seed: true,
            by_option: false,
            is_told: false,
            no_number_since_ns: None,
            first_arrivals: [(u64::MAX, 0); REMEMBERED as usize],
            counter: 0,
        }
    }

    /// Round trip measured by the handshake.
    pub(super) fn seed(&mut self, rtt_ns: i64) {
        if self.is_seed && !self.by_option {
            self.smoothed_ns = Some(rtt_ns.max(1) as f64);
        }
    }

    /// The Send RTT Estimate feature was agreed or not.
    pub(super) fn set_by_option(&mut self, on: bool) {
        if on {
            self.use_option();
        }
        self.by_option = on;
        self.is_told = true;
    }

    /// From now on the option says the round trip, not the handshake.
    fn use_option(&mut self) {
        if self.is_seed && !self.by_option {
            self.smoothed_ns = None;
        }
        self.by_option = true;
    }

    pub(super) const fn is_by_option(&self) -> bool {
        self.by_option
    }

    /// The estimate, ns; `None` before there is one.
    pub(super) fn known_ns(&self) -> Option<i64> {
        //= rfc6323#3.4
        //# Until the first numeric RTT option arrives, the receiver MUST use a
        //# value of 0.5 seconds for receiver_RTT (to match the initial 2-second
        //# timeout of the TFRC nofeedback timer; see [RFC5348], Section 4.2).
        let fallback = self.by_option.then_some(DEFAULT_NS);
        self.smoothed_ns.or(fallback).map(|ns| whole_ns(ns).max(1))
    }

    /// An RTT Estimate option, in us.
    pub(super) fn on_option(&mut self, now_ns: i64, rtt_us: u32) {
        if !self.is_told {
            self.use_option();
        }
        if !self.by_option {
            return;
        }
        if rtt_us == 0 || rtt_us >= TOO_LARGE {
            self.back_off(now_ns);
            return;
        }
        self.no_number_since_ns = None;
        self.average(f64::from(rtt_us) * 1e3);
    }

    /// A data packet arrived that is newer than all before; `follows` says that none is missing in between.
    pub(super) fn on_counter(&mut self, now_ns: i64, ccval: u8, follows: bool) {
        let ahead = u64::from(ccval.wrapping_sub(self.counter as u8) & 0xf);
        self.counter += ahead;
        if !follows {
            // The counter may have gone round in the hole (RFC 6323 section 2.1).
            self.first_arrivals = [(u64::MAX, 0); REMEMBERED as usize];
        } else if ahead == 0 {
            return;
        }
        self.first_arrivals[(self.counter % REMEMBERED) as usize] = (self.counter, now_ns);
        //= rfc6323#3.3
        //# When the Send RTT Estimate Feature is disabled, the receiver MUST
        //# estimate the RTT as previously specified in [RFC4340], [RFC4342], and
        //# [RFC5622].
        if self.by_option {
            return;
        }
        //= rfc4342#8.1
        //# Values of D = 4 SHOULD be preferred for RTT estimation.
        let sample = [4, 3, 2].into_iter().find_map(|quarters| {
            let wanted = self.counter.checked_sub(quarters)?;
            let (counter, first_ns) = self.first_arrivals[(wanted % REMEMBERED) as usize];
            (counter == wanted).then(|| now_ns.saturating_sub(first_ns) as f64 * 4.0 / quarters as f64)
        });
        // Packets of one batch carry one time of arrival: that is no round trip.
        if let Some(sample_ns) = sample.filter(|ns| *ns > 0.0) {
            self.average(sample_ns);
        }
    }

    //= rfc6323#3.3
    //# The receiver SHOULD track the long-term RTT estimate using a moving
    //# average, such as the one specified in [RFC5348], Section 4.3.
    fn average(&mut self, sample_ns: f64) {
        self.smoothed_ns = Some(match self.smoothed_ns {
            Some(old_ns) if !self.is_seed => KEEP * old_ns + (1.0 - KEEP) * sample_ns,
            _ => sample_ns,
        });
        self.is_seed = false;
    }

    fn back_off(&mut self, now_ns: i64) {
        let since_ns = *self.no_number_since_ns.get_or_insert(now_ns);
        let rtt_ns = self.smoothed_ns.unwrap_or(DEFAULT_NS);
        if now_ns.saturating_sub(since_ns) as f64 > rtt_ns {
            //= rfc6323#3.4
            //# To avoid under-estimating the RTT in the absence of numeric options,
            //# the receiver MUST back off receiver_RTT in the following manner: if
            //# the sender supplies no-number RTT options for longer than
            //# receiver_RTT units of time, the receiver sets
            //#
            //# receiver_RTT = MIN(2 * receiver_RTT, t_mbi)
            self.smoothed_ns = Some((2.0 * rtt_ns).min(MAX_BACKOFF_S * NS_PER_S));
            self.no_number_since_ns = Some(now_ns);
        }
    }
}
