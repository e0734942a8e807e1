// SPDX-License-Identifier: Apache-2.0
//! 48-bit circular sequence numbers (RFC 4340 sections 3.1 and 7.1).

use std::fmt;

const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;
const HALF: u64 = 1 << (BITS - 1);

/// The low 24 bits, which the short form carries, and half their circle.
const LOW_MASK: u64 = (1 << 24) - 1;
const LOW_HALF: u64 = 1 << 23;

/// A sequence or acknowledgement number modulo 2^48.
///
/// Deliberately not `Ord`: "less than" is circular (section 3.1) and therefore no order. Use
/// [`Self::is_before`] and [`Self::distance_to`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq48(u64);

impl Seq48 {
    /// The number modulo 2^48.
    pub const fn new(value: u64) -> Self {
        Self(value & MASK)
    }

    /// The number, 0 to 2^48 - 1.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// `self + count` modulo 2^48.
    #[must_use]
    pub const fn add(self, count: u64) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// `self - count` modulo 2^48.
    #[must_use]
    pub const fn sub(self, count: u64) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// Signed circular distance from `self` to `other`, -2^47 to 2^47 - 1; positive when `other` is later.
    pub const fn distance_to(self, other: Self) -> i64 {
        let forward = other.0.wrapping_sub(self.0) & MASK;
        if forward < HALF {
            forward as i64
        } else {
            forward as i64 - (1 << BITS)
        }
    }

    /// `self` is earlier than `other` on the circle.
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_to(other) > 0
    }

    /// `self` lies in the window from `low` to `high`, both included.
    pub const fn is_within(self, low: Self, high: Self) -> bool {
        (self.0.wrapping_sub(low.0) & MASK) <= (high.0.wrapping_sub(low.0) & MASK)
    }

    /// The later of two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.is_before(other) {
            other
        } else {
            self
        }
    }

    /// Extend the 24-bit number `short` to the 48-bit number nearest to `reference` (section 7.6).
    pub const fn extend(short: u32, reference: Self) -> Self {
        let short = short as u64 & LOW_MASK;
        let low = reference.0 & LOW_MASK;
        let high = reference.0 & !LOW_MASK;
        let ahead = short.wrapping_sub(low) & LOW_MASK;
        let behind = low.wrapping_sub(short) & LOW_MASK;
        //= rfc4340#7.6
        //# If REF_low (<) S           /* circular comparison mod 2^24 */
        //# and S |<| REF_low,   /* conventional, non-circular comparison */
        //# Return (((REF_hi + 1) mod 2^24) << 24) | S
        if ahead <= LOW_HALF && short < low {
            Self::new((high | short).wrapping_add(LOW_MASK + 1))
        //= rfc4340#7.6
        //# Otherwise, if S (<) REF_low and REF_low |<| S,
        //# Return (((REF_hi - 1) mod 2^24) << 24) | S
        } else if behind <= LOW_HALF && low < short {
            Self::new((high | short).wrapping_sub(LOW_MASK + 1))
        } else {
            Self::new(high | short)
        }
    }
}

impl fmt::Debug for Seq48 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl fmt::Display for Seq48 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
