// SPDX-License-Identifier: Apache-2.0
//! Contents of CCID 3's Loss Intervals option (RFC 4342 section 8.6).

/// Bytes of one interval.
pub const INTERVAL_BYTES: usize = 9;
/// Most intervals in one option.
pub const MAX_INTERVALS: usize = 28;
/// Largest valid Skip Length (NDUPACK).
pub const MAX_SKIP: u8 = 3;
/// Largest length of a lossless part and of data: 24 bits.
pub const MAX_LENGTH: u32 = (1 << 24) - 1;
/// Largest length of a lossy part: 23 bits.
pub const MAX_LOSS_LENGTH: u32 = (1 << 23) - 1;

/// One loss interval: a lossy part followed by a lossless part, both counted in sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossInterval {
    /// Packets in the lossless part (the newer one).
    pub lossless_length: u32,
    /// Packets in the lossy part; may be 0 only in a connection's first interval.
    pub loss_length: u32,
    /// ECN nonce echo of the lossless part's data packets.
    pub nonce_echo: bool,
    /// Data packets in the interval.
    pub data_length: u32,
}

impl LossInterval {
    /// Both parts together; cannot overflow as both have at most 24 bits.
    pub const fn sequence_length(&self) -> u32 {
        self.lossless_length + self.loss_length
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let field = |at: usize| u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]]);
        Self {
            lossless_length: field(0),
            loss_length: field(3) & MAX_LOSS_LENGTH,
            nonce_echo: bytes[3] & 0x80 != 0,
            data_length: field(6),
        }
    }

    /// Its nine bytes; lengths that do not fit are capped.
    pub fn to_bytes(self) -> [u8; INTERVAL_BYTES] {
        let mut bytes = [0; INTERVAL_BYTES];
        let loss = self.loss_length.min(MAX_LOSS_LENGTH) | u32::from(self.nonce_echo) << 23;
        bytes[..3].copy_from_slice(&self.lossless_length.min(MAX_LENGTH).to_be_bytes()[1..]);
        bytes[3..6].copy_from_slice(&loss.to_be_bytes()[1..]);
        bytes[6..].copy_from_slice(&self.data_length.min(MAX_LENGTH).to_be_bytes()[1..]);
        bytes
    }
}

/// Contents of the option, taken apart.
#[derive(Debug, Clone, Copy)]
pub struct LossIntervals<'a> {
    /// Packets up to and including the acknowledgement number that belong to no interval, 0 to 3.
    pub skip: u8,
    intervals: &'a [u8],
}

impl<'a> LossIntervals<'a> {
    /// Take the contents of [`crate::options::DccpOption::LossIntervals`] apart. `None`: invalid, to be ignored (a length that is
    /// not 1 + 9n with n from 1 to 28, or a Skip Length over 3).
    pub fn parse(contents: &'a [u8]) -> Option<Self> {
        let (&skip, intervals) = contents.split_first()?;
        (has_valid_length(contents) && skip <= MAX_SKIP).then_some(Self { skip, intervals })
    }

    /// The intervals, newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = LossInterval> + ExactSizeIterator + 'a {
        self.intervals.chunks_exact(INTERVAL_BYTES).map(LossInterval::from_bytes)
    }
}

/// Write contents for [`crate::options::DccpOption::LossIntervals`] to the end of `out`: `skip` (capped at 3) and the first
/// 28 of `intervals`, newest first. RFC 4342 wants at least one.
pub fn write(skip: u8, intervals: impl IntoIterator<Item = LossInterval>, out: &mut Vec<u8>) {
    out.push(skip.min(MAX_SKIP));
    for interval in intervals.into_iter().take(MAX_INTERVALS) {
        out.extend_from_slice(&interval.to_bytes());
    }
}

/// Skip Length and 1 to 28 intervals.
pub(super) const fn has_valid_length(contents: &[u8]) -> bool {
    contents.len() > INTERVAL_BYTES
        && (contents.len() - 1).is_multiple_of(INTERVAL_BYTES)
        && contents.len() <= 1 + MAX_INTERVALS * INTERVAL_BYTES
}
