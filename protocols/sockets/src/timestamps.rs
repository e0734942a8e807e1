// SPDX-License-Identifier: Apache-2.0
//! The kernel's packet time stamps on `CLOCK_MONOTONIC`, however the wall clock is set meanwhile.
//!
//! A socket stamps packets with `CLOCK_REALTIME` (Documentation/networking/timestamping.rst). Both clocks are slewed
//! alike, so their difference is constant until somebody sets the wall clock (`clock_settime`, `ADJ_SETOFFSET`, a leap
//! second) or the host sleeps. A [`ClockReading`] brackets the difference between two readings of the monotonic clock; what
//! all looks have in common narrows it down, and a look that has nothing in common with those before it tells of a step.
//! Stamps that were taken around a step are believed only where one of both differences makes sense of them.
//!
//! [`TimestampClock`] is pure; [`ClockReading::take`] is the only place of this crate that reads clocks.

/// Differences that contradict each other by less are told apart by the clocks' own noise, ns.
const NOISE_NS: i64 = 1_000;

/// A look whose two monotonic readings are further apart was interrupted, ns.
const UNDISTURBED_NS: i64 = 2_000;

/// Looks taken at once at most; the narrowest counts.
const ATTEMPTS: usize = 4;

/// A stamp older than this against the clock is not believed, ns.
const OLDEST_NS: i64 = 60_000_000_000;

/// Packets of one flow may be stamped on several CPUs and queued out of order by this much, ns.
const REORDERED_NS: i64 = 1_000_000;

/// `CLOCK_REALTIME`, read between two readings of `CLOCK_MONOTONIC`; ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Monotonic, first.
    pub before_ns: i64,
    /// Real.
    pub real_ns: i64,
    /// Monotonic, last: the time of the look.
    pub after_ns: i64,
}

impl ClockReading {
    /// Look now. A look during which this thread was held up says little, so it is repeated a few times.
    pub fn take() -> Self {
        let mut best = Self::once();
        for _ in 1..ATTEMPTS {
            if best.width_ns() <= UNDISTURBED_NS {
                break;
            }
            let again = Self::once();
            if again.width_ns() < best.width_ns() {
                best = again;
            }
        }
        best
    }

    fn once() -> Self {
        let before_ns = read_clock(libc::CLOCK_MONOTONIC);
        let real_ns = read_clock(libc::CLOCK_REALTIME);
        Self { before_ns, real_ns, after_ns: read_clock(libc::CLOCK_MONOTONIC) }
    }

    fn width_ns(self) -> i64 {
        self.after_ns.saturating_sub(self.before_ns)
    }

    /// How far the real clock is ahead of the monotonic one.
    fn ahead(self) -> Bracket {
        Bracket {
            least_ns: self.real_ns.saturating_sub(self.after_ns),
            most_ns: self.real_ns.saturating_sub(self.before_ns),
        }
    }
}

/// `CLOCK_MONOTONIC` in ns: when something was read that has no kernel stamp. A time from before the read would let a
/// message arrive before it was sent, where the reader was held up in between.
pub fn now_ns() -> i64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Any clock of clock_gettime(2) that this kernel has, in ns.
pub fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills a live timespec; of a clock that it does not have it leaves 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    wide(time.tv_sec) * 1_000_000_000 + wide(time.tv_nsec)
}

/// A `long` or a `time_t`: no wider than i64 on any machine, and narrower on some.
#[allow(clippy::useless_conversion)]
pub(crate) fn wide(number: libc::c_long) -> i64 {
    i64::from(number)
}

/// A difference of clocks lies between these, ends included; ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bracket {
    least_ns: i64,
    most_ns: i64,
}

impl Bracket {
    /// What both brackets allow. Where they miss each other by no more than noise, the first; else nothing.
    fn common(self, other: Self) -> Option<Self> {
        let common =
            Self { least_ns: self.least_ns.max(other.least_ns), most_ns: self.most_ns.min(other.most_ns) };
        match common.least_ns.saturating_sub(common.most_ns) {
            missed if missed <= 0 => Some(common),
            missed if missed <= NOISE_NS => Some(self),
            _ => None,
        }
    }

    fn middle_ns(self) -> i64 {
        self.least_ns + self.most_ns.saturating_sub(self.least_ns) / 2
    }

    /// The middle is wrong by no more, clocks' noise included.
    fn error_ns(self) -> i64 {
        self.most_ns.saturating_sub(self.least_ns) / 2 + NOISE_NS
    }
}

/// Where stamps came from, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimestampCounts {
    /// Arrivals with a stamp of the kernel that was believed.
    pub kernel: u64,
    /// Arrivals without one: the time of reading stands for it.
    pub read: u64,
    /// Times that the wall clock was found set.
    pub clock_steps: u64,
}

/// Converts stamps of `CLOCK_REALTIME`. Look at the clocks after every batch of packets, then convert its stamps.
#[derive(Debug, Clone)]
pub struct TimestampClock {
    ahead: Bracket,
    /// The difference before the step that the last look found.
    stepped_from: Option<Bracket>,
    /// Time of the last look.
    now_ns: i64,
    /// Latest arrival told so far: nothing that waits behind it is much older.
    latest_ns: i64,
    counts: TimestampCounts,
}

impl TimestampClock {
    /// Begin with a first look, taken before any packet that will be asked for.
    pub fn new(look: ClockReading) -> Self {
        Self {
            ahead: look.ahead(),
            stepped_from: None,
            now_ns: look.after_ns,
            latest_ns: look.before_ns,
            counts: TimestampCounts::default(),
        }
    }

    /// Take the look that follows a batch of packets.
    pub fn look(&mut self, look: ClockReading) {
        let seen = look.ahead();
        self.now_ns = look.after_ns;
        self.stepped_from = None;
        match self.ahead.common(seen) {
            Some(common) => self.ahead = common,
            None => {
                self.stepped_from = Some(std::mem::replace(&mut self.ahead, seen));
                self.counts.clock_steps += 1;
            }
        }
    }

    /// The monotonic time of a stamp from before the last look; `None` when it cannot be told: then the packet counts
    /// as arrived when it was read. Never later than the last look.
    pub fn monotonic_ns(&mut self, stamp_ns: Option<i64>) -> Option<i64> {
        let arrived_ns = stamp_ns.and_then(|stamp_ns| self.credible_ns(stamp_ns));
        match arrived_ns {
            Some(at_ns) => {
                self.latest_ns = self.latest_ns.max(at_ns);
                self.counts.kernel += 1;
            }
            None => self.counts.read += 1,
        }
        arrived_ns
    }

    /// Time of the last look.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// A time that [`Self::monotonic_ns`] tells is wrong by no more, ns.
    pub fn error_ns(&self) -> i64 {
        self.ahead.error_ns()
    }

    /// Where stamps came from.
    pub fn counts(&self) -> TimestampCounts {
        self.counts
    }

    fn credible_ns(&self, stamp_ns: i64) -> Option<i64> {
        let Some(before) = self.stepped_from else {
            return self.by(self.ahead, stamp_ns, self.now_ns.saturating_sub(OLDEST_NS));
        };
        // The clock was set since the look before: the stamp is from before or from after that.
        let earliest_ns = self.latest_ns.saturating_sub(REORDERED_NS);
        match (self.by(before, stamp_ns, earliest_ns), self.by(self.ahead, stamp_ns, earliest_ns)) {
            (Some(one), None) | (None, Some(one)) => Some(one),
            _ => None,
        }
    }

    /// The stamp by one difference, if it lies between `earliest_ns` and the last look.
    fn by(&self, ahead: Bracket, stamp_ns: i64, earliest_ns: i64) -> Option<i64> {
        let at_ns = stamp_ns.saturating_sub(ahead.middle_ns());
        let error_ns = ahead.error_ns();
        let possible = earliest_ns.saturating_sub(error_ns)..=self.now_ns.saturating_add(error_ns);
        possible.contains(&at_ns).then_some(at_ns.min(self.now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A look at `at_ns` that took `width_ns`, with the real clock `ahead_ns` ahead and read `share` percent into it.
    fn look(at_ns: i64, width_ns: i64, share: i64, ahead_ns: i64) -> ClockReading {
        let before_ns = at_ns - width_ns;
        ClockReading { before_ns, real_ns: before_ns + width_ns * share / 100 + ahead_ns, after_ns: at_ns }
    }

    #[test]
    fn looks_narrow_the_difference_and_noise_is_no_step() {
        let mut clock = TimestampClock::new(look(10_000, 4_000, 50, 1_000_000));
        assert_eq!(clock.ahead, Bracket { least_ns: 998_000, most_ns: 1_002_000 });
        clock.look(look(20_000, 100, 0, 1_000_000));
        assert_eq!(clock.ahead, Bracket { least_ns: 999_900, most_ns: 1_000_000 });
        clock.look(look(30_000, 100, 0, 1_000_000 + NOISE_NS));
        assert_eq!(clock.ahead.most_ns, 1_000_000);
        assert_eq!(clock.counts().clock_steps, 0);
        clock.look(look(40_000, 100, 0, 1_000_000 + 2 * NOISE_NS));
        assert_eq!(clock.counts().clock_steps, 1);
    }

    #[test]
    fn a_step_between_two_looks_is_seen_through() {
        let hour_ns = 3_600_000_000_000;
        let mut clock = TimestampClock::new(look(1_000_000_000, 100, 50, 0));
        clock.look(look(2_000_000_000, 100, 50, hour_ns));
        // One packet came before the clock was set, the next one after that.
        assert_eq!(clock.monotonic_ns(Some(1_500_000_000)), Some(1_500_000_000));
        assert_eq!(clock.monotonic_ns(Some(1_600_000_000 + hour_ns)), Some(1_600_000_000));
        assert_eq!(clock.monotonic_ns(Some(1_700_000_000 + hour_ns / 2)), None);
        clock.look(look(3_000_000_000, 100, 50, hour_ns));
        assert_eq!(clock.monotonic_ns(Some(2_500_000_000 + hour_ns)), Some(2_500_000_000));
        assert_eq!(clock.monotonic_ns(None), None);
        assert_eq!(clock.counts(), TimestampCounts { kernel: 3, read: 2, clock_steps: 1 });
    }

    #[test]
    fn a_stamp_from_the_future_or_from_long_ago_is_not_believed() {
        let mut clock = TimestampClock::new(look(100 * OLDEST_NS, 100, 50, 0));
        for (stamp_ns, told) in [
            (100 * OLDEST_NS, Some(100 * OLDEST_NS)),
            (100 * OLDEST_NS + NOISE_NS, Some(100 * OLDEST_NS)),
            (100 * OLDEST_NS + 3 * NOISE_NS, None),
            (99 * OLDEST_NS, Some(99 * OLDEST_NS)),
            (98 * OLDEST_NS, None),
            (i64::MIN, None),
            (i64::MAX, None),
        ] {
            assert_eq!(clock.monotonic_ns(Some(stamp_ns)), told, "{stamp_ns}");
        }
    }

    #[test]
    fn the_clocks_of_this_host_are_looked_at() {
        let (first, second) = (ClockReading::take(), ClockReading::take());
        assert!(first.before_ns <= first.after_ns && first.after_ns <= second.before_ns);
        assert!(second.after_ns <= now_ns());
    }

    proptest! {
        /// Packets arrive in order, looks are taken now and then, and the wall clock is set once by any amount, at any
        /// moment: every stamp that is told is right to within what the looks can show.
        #[test]
        fn what_is_told_is_right(
            ahead_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            step_ns in prop_oneof![-4_000_000_i64..4_000_000, -1_000_000_000_000_i64..1_000_000_000_000],
            stepped_at_ns in 0_i64..100_000_000,
            batches in proptest::collection::vec(
                (proptest::collection::vec(0_i64..200_000, 0..6), 0_i64..2_000, 0_i64..=100),
                1..60,
            ),
        ) {
            let ahead = |at_ns: i64| ahead_ns + if at_ns >= stepped_at_ns { step_ns } else { 0 };
            let mut now_ns = 0;
            let mut clock = TimestampClock::new(look(0, 1_000, 50, ahead(-1)));
            for (gaps, width_ns, share) in batches {
                let mut arrivals = Vec::new();
                for gap in gaps {
                    now_ns += gap;
                    arrivals.push(now_ns);
                }
                let read_ns = now_ns + width_ns * share / 100;
                now_ns += width_ns;
                let before_ns = now_ns - width_ns;
                clock.look(ClockReading { before_ns, real_ns: read_ns + ahead(read_ns), after_ns: now_ns });
                for arrived_ns in arrivals {
                    let told = clock.monotonic_ns(Some(arrived_ns + ahead(arrived_ns)));
                    let stepped = clock.stepped_from.is_some();
                    if !stepped && step_ns.abs() > 10_000 {
                        prop_assert!(told.is_some(), "a stamp without any step was not believed");
                    }
                    // The looks are up to 2 us wide here and their noise is 1 us: smaller steps cannot be seen.
                    let error_ns = told.map_or(0, |told| (told - arrived_ns).abs());
                    prop_assert!(error_ns <= 4_000 + step_ns.abs().min(4_000), "{error_ns}");
                    prop_assert!(told.is_none_or(|told| told <= clock.now_ns()));
                }
            }
        }
    }
}
