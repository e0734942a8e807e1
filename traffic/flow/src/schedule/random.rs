// SPDX-License-Identifier: Apache-2.0
//! Random numbers of schedules: the same from the same seed on every machine and in every version.
//!
//! xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47(4), 2021), seeded by
//! splitmix64 as its authors advise. Written here, not taken from a library, because a library may change what a seed
//! gives; held to `protocols/contracts/vectors/random.json`. Not for secrets.

/// What a number is drawn for. Each purpose has a sequence of its own, so that another distribution of sizes does not
/// move the departure times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Sizes of messages, or of video chunks.
    Size,
    /// Times between messages.
    InterDeparture,
    /// Lengths of talk spurts.
    On,
    /// Lengths of silences.
    Off,
}

/// Steele, Lea and Flood's splitmix64: spreads a seed over the state of a larger generator.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// xoshiro256++.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of a seed for a purpose: the purpose numbered k starts from words 4k to 4k + 3 of splitmix64.
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut words = SplitMix64::new(seed);
        for _ in 0..4 * purpose as u64 {
            words.next();
        }
        Self { state: std::array::from_fn(|_| words.next()) }
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let word = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        word
    }

    /// A whole number below `bound` (at least 1). One number is drawn each time; the bias of the multiplication is
    /// below bound / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Vectors {
        splitmix64: Vec<SeedCase>,
        xoshiro256plusplus: Vec<StateCase>,
        purposes: Vec<PurposeCase>,
    }

    #[derive(serde::Deserialize)]
    struct SeedCase {
        seed: u64,
        words: Vec<String>,
    }

    #[derive(serde::Deserialize)]
    struct StateCase {
        state: [u64; 4],
        words: Vec<String>,
    }

    #[derive(serde::Deserialize)]
    struct PurposeCase {
        seed: u64,
        purpose: String,
        words: Vec<String>,
    }

    fn vectors() -> Vectors {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/vectors/random.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn assert_words(words: &[String], mut next: impl FnMut() -> u64) {
        assert!(words.len() >= 4);
        words.iter().for_each(|word| assert_eq!(&next().to_string(), word));
    }

    #[test]
    fn shared_vectors_hold() {
        let vectors = vectors();
        for case in vectors.splitmix64 {
            let mut random = SplitMix64::new(case.seed);
            assert_words(&case.words, || random.next());
        }
        for case in vectors.xoshiro256plusplus {
            let mut random = Random { state: case.state };
            assert_words(&case.words, || random.next());
        }
        for case in vectors.purposes {
            let purpose = match case.purpose.as_str() {
                "size" => Purpose::Size,
                "inter_departure" => Purpose::InterDeparture,
                "on" => Purpose::On,
                "off" => Purpose::Off,
                other => panic!("unknown purpose {other}"),
            };
            let mut random = Random::new(case.seed, purpose);
            assert_words(&case.words, || random.next());
        }
    }

    #[test]
    fn numbers_below_a_bound_are_evenly_spread() {
        let mut random = Random::new(1, Purpose::Size);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // Six standard deviations of a binomial count; the seed is fixed, so this never fails by chance.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 570), "{counts:?}");
        assert_eq!(random.below(1), 0);
    }
}
