// SPDX-License-Identifier: Apache-2.0
//! From bytes to options.

use super::{loss_intervals, number, DccpOption};

/// Iterator over an option area.
#[derive(Debug, Clone, Copy)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    /// Over these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read. Not empty after the last option: it starts with a malformed one.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = DccpOption<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        //= rfc4340#5.8
        //# Options MUST be processed sequentially, starting with the first option in the packet header.
        let (&kind, after) = self.rest.split_first()?;
        //= rfc4340#5.8
        //# Options with types 0 through 31 are single-byte options.
        if kind < 32 {
            self.rest = after;
            return Some(single_byte(kind));
        }
        //= rfc4340#5.8
        //# options with nonsensical lengths (length byte less
        //# than two or more than the remaining space in the options portion of
        //# the header) MUST be ignored, and any option space following an option
        //# with nonsensical length MUST likewise be ignored.
        let length = usize::from(*after.first()?);
        let contents = self.rest.get(2..length)?;
        self.rest = &self.rest[length..];
        //= rfc4340#5.8
        //# Options with invalid values MUST be ignored unless otherwise specified.
        Some(with_contents(kind, contents).unwrap_or(DccpOption::Unknown { kind, contents }))
    }
}

const fn single_byte<'a>(kind: u8) -> DccpOption<'a> {
    match kind {
        number::PADDING => DccpOption::Padding,
        number::MANDATORY => DccpOption::Mandatory,
        number::SLOW_RECEIVER => DccpOption::SlowReceiver,
        _ => DccpOption::Unknown { kind, contents: &[] },
    }
}

/// The option of this type, if it is known and its contents have a valid length.
fn with_contents(kind: u8, contents: &[u8]) -> Option<DccpOption<'_>> {
    Some(match kind {
        number::CHANGE_L..=number::CONFIRM_R => return negotiation(kind, contents),
        number::INIT_COOKIE => DccpOption::InitCookie(contents),
        number::NDP_COUNT => DccpOption::NdpCount(big_endian(contents, 1..=6)?),
        number::ACK_VECTOR_NONCE_0 | number::ACK_VECTOR_NONCE_1 => {
            DccpOption::AckVector { nonce: kind == number::ACK_VECTOR_NONCE_1, vector: contents }
        }
        number::DATA_DROPPED => DccpOption::DataDropped(contents),
        number::TIMESTAMP => DccpOption::Timestamp(word(contents)?),
        number::TIMESTAMP_ECHO => timestamp_echo(contents)?,
        number::ELAPSED_TIME => DccpOption::ElapsedTime(elapsed(contents)?),
        //= rfc4340#5.8
        //# any Data Checksum option with option length 4 MUST be ignored, since all valid Data Checksum
        //# options have option length 6.
        number::DATA_CHECKSUM => DccpOption::DataChecksum(word(contents)?),
        number::RTT_ESTIMATE => DccpOption::RttEstimate(big_endian(contents, 1..=3)? as u32),
        number::LOSS_EVENT_RATE => DccpOption::LossEventRate(word(contents)?),
        number::LOSS_INTERVALS if loss_intervals::has_valid_length(contents) => {
            DccpOption::LossIntervals(contents)
        }
        number::RECEIVE_RATE => DccpOption::ReceiveRate(word(contents)?),
        _ => return None,
    })
}

fn negotiation(kind: u8, contents: &[u8]) -> Option<DccpOption<'_>> {
    let (&feature, value) = contents.split_first()?;
    Some(match kind {
        number::CHANGE_L => DccpOption::ChangeL { feature, value },
        number::CONFIRM_L => DccpOption::ConfirmL { feature, value },
        number::CHANGE_R => DccpOption::ChangeR { feature, value },
        _ => DccpOption::ConfirmR { feature, value },
    })
}

/// 4 bytes of echo, then none, 2 or 4 of elapsed time.
fn timestamp_echo(contents: &[u8]) -> Option<DccpOption<'static>> {
    let (echo, rest) = contents.split_at_checked(4)?;
    Some(DccpOption::TimestampEcho {
        echo: word(echo)?,
        elapsed: if rest.is_empty() { 0 } else { elapsed(rest)? },
    })
}

fn elapsed(contents: &[u8]) -> Option<u32> {
    match contents {
        [high, low] => Some(u32::from(u16::from_be_bytes([*high, *low]))),
        _ => word(contents),
    }
}

fn word(contents: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(contents.try_into().ok()?))
}

/// A number of as many bytes as `contents` has, if that is among `lengths` (at most 8).
fn big_endian(contents: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<u64> {
    lengths
        .contains(&contents.len())
        .then(|| contents.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
