// SPDX-License-Identifier: Apache-2.0
//! Where does chance come from? From a seed and a stream name, never from the machine.
//!
//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): tiny, and its sequence never changes with a library.

/// A seeded stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Stream `stream` of `seed`; different streams of one seed do not follow each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = Self { state: seed };
        let base = mixer.next_u64();
        Self { state: base ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93) }
    }

    /// Uniform in all 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..=greatest`.
    pub fn up_to(&mut self, greatest: u32) -> u32 {
        // Multiply-shift; the bias is below 2^-32 for the windows used here.
        ((u128::from(self.next_u64()) * (u128::from(greatest) + 1)) >> 64) as u32
    }

    /// Uniform in `low..high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Uniform in `0..1`.
    fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `ratio` (0 to 1).
    pub fn chance(&mut self, ratio: f64) -> bool {
        ratio > 0.0 && self.unit() < ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_streams_differ() {
        let draw = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            (0..8).map(|_| rng.up_to(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }

    #[test]
    fn draws_are_uniform_and_chances_hold() {
        let mut rng = Rng::new(7, 3);
        let mut counts = [0u32; 16];
        (0..160_000).for_each(|_| counts[rng.up_to(15) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        let hits = (0..100_000).filter(|_| rng.chance(0.1)).count();
        assert!((9_600..10_400).contains(&hits), "{hits}");
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
