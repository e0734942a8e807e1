// SPDX-License-Identifier: Apache-2.0
//! From options to bytes, each in the shortest valid form.

use super::{DccpOption, MAX_CONTENTS_BYTES};

/// Largest NDP Count that the option can carry.
const MAX_NDP_COUNT: u64 = (1 << 48) - 1;
/// RTT Estimate that says "longer than 16.7 s".
const MAX_RTT_ESTIMATE: u32 = 0xff_ffff;

/// Contents of an option: a number or a feature number first, then borrowed bytes.
struct Contents<'a> {
    front: [u8; 8],
    front_bytes: usize,
    rest: &'a [u8],
}

impl DccpOption<'_> {
    /// Append this option to `out`. Numbers too large for the option are capped (NDP Count at 2^48 - 1, RTT Estimate at
    /// 0xffffff, which stands for longer ones). An option of more than 253 bytes of contents cannot be written: nothing is appended.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let kind = self.kind();
        if kind < 32 {
            out.push(kind);
            return;
        }
        let contents = self.contents();
        let bytes = contents.bytes();
        if bytes > MAX_CONTENTS_BYTES {
            return;
        }
        out.extend_from_slice(&[kind, bytes as u8 + 2]);
        out.extend_from_slice(&contents.front[..contents.front_bytes]);
        out.extend_from_slice(contents.rest);
    }

    /// [`Self::emit`], if `out` stays within `limit` bytes; whether it does.
    pub(crate) fn emit_within(&self, limit: usize, out: &mut Vec<u8>) -> bool {
        let fits = out.len() + self.wire_bytes() <= limit;
        if fits {
            self.emit(out);
        }
        fits
    }

    /// Bytes that [`Self::emit`] appends.
    pub fn wire_bytes(&self) -> usize {
        if self.kind() < 32 {
            return 1;
        }
        match self.contents().bytes() {
            bytes if bytes > MAX_CONTENTS_BYTES => 0,
            bytes => bytes + 2,
        }
    }

    /// What follows type and length.
    fn contents(&self) -> Contents<'_> {
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => Contents::borrowed(&[]),
            Self::ChangeL { feature, value }
            | Self::ConfirmL { feature, value }
            | Self::ChangeR { feature, value }
            | Self::ConfirmR { feature, value } => {
                Contents { rest: value, ..Contents::number(u64::from(feature), 1) }
            }
            Self::InitCookie(bytes)
            | Self::AckVector { vector: bytes, .. }
            | Self::DataDropped(bytes)
            | Self::LossIntervals(bytes)
            | Self::Unknown { contents: bytes, .. } => Contents::borrowed(bytes),
            //= rfc4340#7.7
            //# The smallest option format that can hold the NDP Count SHOULD be used.
            Self::NdpCount(count) => Contents::shortest(count.min(MAX_NDP_COUNT)),
            //= rfc6323#3.3
            //# If the RTT is larger than the maximum representable value (0xFFFFFE), the sender MUST set the
            //# value of the RTT Estimate Option to 0xFFFFFF.
            //= rfc6323#3.2.1
            //# The sender SHOULD select the smallest format suitable to carry the RTT estimate
            Self::RttEstimate(rtt_us) => Contents::shortest(u64::from(rtt_us.min(MAX_RTT_ESTIMATE))),
            Self::TimestampEcho { echo, elapsed } => Contents::timestamp_echo(echo, elapsed),
            Self::ElapsedTime(elapsed) => Contents::number(u64::from(elapsed), elapsed_bytes(elapsed)),
            Self::Timestamp(word)
            | Self::DataChecksum(word)
            | Self::LossEventRate(word)
            | Self::ReceiveRate(word) => Contents::number(u64::from(word), 4),
        }
    }
}

impl<'a> Contents<'a> {
    const fn borrowed(rest: &'a [u8]) -> Self {
        Self { front: [0; 8], front_bytes: 0, rest }
    }

    /// The low `bytes` bytes of `number`.
    fn number(number: u64, bytes: usize) -> Self {
        let mut front = [0; 8];
        front[..bytes].copy_from_slice(&number.to_be_bytes()[8 - bytes..]);
        Self { front, front_bytes: bytes, rest: &[] }
    }

    /// As many bytes as `number` needs, at least one.
    fn shortest(number: u64) -> Self {
        Self::number(number, (8 - number.leading_zeros() as usize / 8).max(1))
    }

    fn timestamp_echo(echo: u32, elapsed: u32) -> Self {
        //= rfc4340#13.3
        //# A missing Elapsed Time field is equivalent to an Elapsed Time of zero.  The smallest version of the
        //# option SHOULD be used that can hold the relevant Elapsed Time value.
        let bytes = if elapsed == 0 { 0 } else { elapsed_bytes(elapsed) };
        Self::number(u64::from(echo) << (8 * bytes) | u64::from(elapsed), 4 + bytes)
    }

    const fn bytes(&self) -> usize {
        self.front_bytes + self.rest.len()
    }
}

const fn elapsed_bytes(elapsed: u32) -> usize {
    //= rfc4340#13.2
    //# If Elapsed Time is less than a half-second, the first, smaller form of the option
    //# SHOULD be used.  Elapsed Times of more than 0.65535 seconds MUST be
    //# sent using the second form of the option.
    if elapsed <= 0xffff {
        2
    } else {
        4
    }
}
