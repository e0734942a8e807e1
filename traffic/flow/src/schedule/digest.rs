// SPDX-License-Identifier: Apache-2.0
//! A short name for a schedule: equal schedules have equal digests, whatever transport and machine computed them.
//!
//! FNV-1a with 64 bits (Fowler, Noll and Vo). It tells honest schedules apart; it is no defence against a forger.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Running FNV-1a of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Of a schedule of this form (what is digested is then unambiguous).
    pub(crate) fn new(form: &str) -> Self {
        Self(OFFSET).with(form.as_bytes())
    }

    /// With these bytes behind what came before.
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)))
    }

    /// As reports have it.
    pub(crate) fn text(self) -> String {
        format!("fnv1a64:{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_test_vectors_hold() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(Digest::new(text), Digest(hash), "{text:?}");
        }
        assert_eq!(Digest::new("foo").with(b"bar"), Digest::new("foobar"));
        assert_eq!(Digest(0xab).text(), "fnv1a64:00000000000000ab");
    }
}
