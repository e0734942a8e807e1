// SPDX-License-Identifier: Apache-2.0
//! Numbers, names and value widths of features on the wire (RFC 4340 section 6.4, RFC 6323 section 3.2.2, RFC 4342
//! section 8.4). What a negotiation concludes is [`crate::feature`]'s.

/// 1: server-priority, one byte.
pub const CCID: u8 = 1;
/// 2: server-priority, one byte.
pub const ALLOW_SHORT_SEQNOS: u8 = 2;
/// 3: non-negotiable, six bytes.
pub const SEQUENCE_WINDOW: u8 = 3;
/// 4: server-priority, one byte.
pub const ECN_INCAPABLE: u8 = 4;
/// 5: non-negotiable, two bytes.
pub const ACK_RATIO: u8 = 5;
/// 6: server-priority, one byte.
pub const SEND_ACK_VECTOR: u8 = 6;
/// 7: server-priority, one byte.
pub const SEND_NDP_COUNT: u8 = 7;
/// 8: server-priority, one byte.
pub const MIN_CHECKSUM_COVERAGE: u8 = 8;
/// 9: server-priority, one byte.
pub const CHECK_DATA_CHECKSUM: u8 = 9;
/// 128 with CCID 3 (RFC 6323): server-priority, one byte.
pub const SEND_RTT_ESTIMATE: u8 = 128;
/// 192 with CCID 3: server-priority, one byte.
pub const SEND_LOSS_EVENT_RATE: u8 = 192;

/// Name of a feature in words.
pub const fn name(feature: u8) -> Option<&'static str> {
    Some(match feature {
        CCID => "CCID",
        ALLOW_SHORT_SEQNOS => "Allow Short Seqnos",
        SEQUENCE_WINDOW => "Sequence Window",
        ECN_INCAPABLE => "ECN Incapable",
        ACK_RATIO => "Ack Ratio",
        SEND_ACK_VECTOR => "Send Ack Vector",
        SEND_NDP_COUNT => "Send NDP Count",
        MIN_CHECKSUM_COVERAGE => "Minimum Checksum Coverage",
        CHECK_DATA_CHECKSUM => "Check Data Checksum",
        SEND_RTT_ESTIMATE => "Send RTT Estimate",
        SEND_LOSS_EVENT_RATE => "Send Loss Event Rate",
        _ => return None,
    })
}

/// Bytes of one value; features that this crate does not know count as one byte.
pub const fn value_bytes(feature: u8) -> usize {
    match feature {
        SEQUENCE_WINDOW => 6,
        ACK_RATIO => 2,
        _ => 1,
    }
}

/// The values in a Change or Confirm option, first one first. `None` when `value` is no whole number of values.
pub fn values(feature: u8, value: &[u8]) -> Option<impl ExactSizeIterator<Item = u64> + '_> {
    let width = value_bytes(feature);
    value.len().is_multiple_of(width).then(|| {
        value
            .chunks_exact(width)
            .map(|bytes| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    })
}

/// The one value of a non-negotiable feature; `None` when `value` is not exactly one value.
pub fn single(feature: u8, value: &[u8]) -> Option<u64> {
    let mut all = values(feature, value)?;
    let first = all.next()?;
    (all.len() == 0).then_some(first)
}

/// Append one value of `feature` in its width; what does not fit is capped at the largest that does.
pub fn write(feature: u8, value: u64, out: &mut Vec<u8>) {
    let width = value_bytes(feature);
    let largest = u64::MAX >> (64 - 8 * width);
    out.extend_from_slice(&value.min(largest).to_be_bytes()[8 - width..]);
}
