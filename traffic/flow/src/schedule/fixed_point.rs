// SPDX-License-Identifier: Apache-2.0
//! Logarithm, power of two and square root in whole numbers.
//!
//! The C library's `log`, `exp` and `pow` may differ in their last bit from one machine to the next, and one bit moves a
//! departure. Here every step is integer arithmetic with a stated rounding, so a schedule is the same bit for bit
//! everywhere. Values are fixed point: "Q40" counts units of 2^-40.

/// Fraction bits of logarithms and variates.
pub(crate) const FRACTION_BITS: u32 = 40;

/// ln 2 in units of 2^-63, rounded down.
const LN_2_Q63: u128 = 6_393_154_322_601_327_829;

/// 2^(2^-1), 2^(2^-2), ... 2^(2^-40) in Q62, rounded down: each is the square root of the one before.
const ROOTS_OF_2: [u64; FRACTION_BITS as usize] = {
    let mut roots = [0; FRACTION_BITS as usize];
    let mut root: u64 = 1 << 63;
    let mut place = 0;
    while place < roots.len() {
        root = ((root as u128) << 62).isqrt() as u64;
        roots[place] = root;
        place += 1;
    }
    roots
};

/// log2 of `x` (at least 1) in Q40, rounded down: one binary digit for each squaring of the mantissa.
pub(crate) fn log2(x: u64) -> u64 {
    debug_assert!(x > 0);
    let lead = x.leading_zeros();
    let mut mantissa = x << lead;
    let mut log = u64::from(63 - lead);
    for _ in 0..FRACTION_BITS {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let digit = (square >> 64) as u64;
        mantissa = (square >> digit) as u64;
        log = log << 1 | digit;
    }
    log
}

/// A logarithm to base 2 in Q40 as one to base e.
pub(crate) fn natural(log2: u64) -> u64 {
    ((u128::from(log2) * LN_2_Q63) >> 63) as u64
}

/// 2^`fraction` in Q62, for a `fraction` below 1 in Q40.
pub(crate) fn exp2(fraction: u64) -> u64 {
    debug_assert!(fraction >> FRACTION_BITS == 0);
    let mut power: u64 = 1 << 62;
    for (place, root) in (1..).zip(ROOTS_OF_2) {
        if fraction >> (FRACTION_BITS - place) & 1 == 1 {
            power = ((u128::from(power) * u128::from(root)) >> 62) as u64;
        }
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: f64 = (1_u64 << FRACTION_BITS) as f64;

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in 0..64 {
            assert_eq!(log2(1 << exponent), exponent << FRACTION_BITS);
        }
        assert_eq!(exp2(0), 1 << 62);
        assert_eq!(exp2(1 << 39), ROOTS_OF_2[0]);
        assert_eq!(natural(0), 0);
    }

    // The library's functions are good enough to bound an error with; they decide nothing.
    proptest! {
        #[test]
        fn they_are_what_they_are_called(x in 1..u64::MAX, fraction in 0..1_u64 << FRACTION_BITS) {
            prop_assert!((log2(x) as f64 / ONE - (x as f64).log2()).abs() < 1e-10);
            prop_assert!((natural(log2(x)) as f64 / ONE - (x as f64).ln()).abs() < 1e-10);
            let exact = (fraction as f64 / ONE).exp2();
            prop_assert!((exp2(fraction) as f64 / (1_u64 << 62) as f64 - exact).abs() < 1e-11);
        }
    }
}
