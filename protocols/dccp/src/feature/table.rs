// SPDX-License-Identifier: Apache-2.0
//! The features: numbers, rules, first values, forms (RFC 4340 table 4, RFC 4342 section 8.4, RFC 6323 section 3).

/// How two ends come to one value (section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// First entry of the server's list that is in the client's too.
    ServerPriority,
    /// The end where the feature is located says the value.
    NonNegotiable,
}

/// A feature that this stack understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Feature {
    /// Congestion Control ID of the data that the feature's end sends.
    Ccid = 1,
    /// The feature's end may send short sequence numbers.
    AllowShortSeqnos = 2,
    /// W of the packets that the feature's end sends.
    SequenceWindow = 3,
    /// The feature's end cannot read ECN marks.
    EcnIncapable = 4,
    /// Data packets of the feature's end per acknowledgement.
    AckRatio = 5,
    /// The feature's end sends Ack Vectors.
    SendAckVector = 6,
    /// The feature's end sends NDP Counts.
    SendNdpCount = 7,
    /// Least CsCov that the feature's end accepts.
    MinChecksumCoverage = 8,
    /// The feature's end checks Data Checksums.
    CheckDataChecksum = 9,
    /// The feature's end, a sender of data, sends its RTT (RFC 6323).
    SendRttEstimate = 128,
    /// The feature's end, a receiver of data, sends Loss Event Rates (RFC 4342).
    SendLossEventRate = 192,
}

/// All of them, in the order of their numbers, which is the order in which options are written: the CCID comes before
/// the features that hang on it.
//= rfc4340#6.4
//# a DCCP that implements CCID 2 MUST support Ack Ratio and Send Ack Vector, for example.
pub const ALL: [Feature; 11] = [
    Feature::Ccid,
    Feature::AllowShortSeqnos,
    Feature::SequenceWindow,
    Feature::EcnIncapable,
    Feature::AckRatio,
    Feature::SendAckVector,
    Feature::SendNdpCount,
    Feature::MinChecksumCoverage,
    Feature::CheckDataChecksum,
    Feature::SendRttEstimate,
    Feature::SendLossEventRate,
];

/// Least Sequence Window (section 7.5.2).
pub const MIN_SEQUENCE_WINDOW: u64 = 32;
/// Greatest Sequence Window (section 7.5.2).
pub const MAX_SEQUENCE_WINDOW: u64 = (1 << 46) - 1;

impl Feature {
    /// From its number; `None` when unknown here.
    pub fn from_number(number: u8) -> Option<Self> {
        ALL.into_iter().find(|feature| feature.number() == number)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ccid => "CCID",
            Self::AllowShortSeqnos => "Allow Short Seqnos",
            Self::SequenceWindow => "Sequence Window",
            Self::EcnIncapable => "ECN Incapable",
            Self::AckRatio => "Ack Ratio",
            Self::SendAckVector => "Send Ack Vector",
            Self::SendNdpCount => "Send NDP Count",
            Self::MinChecksumCoverage => "Minimum Checksum Coverage",
            Self::CheckDataChecksum => "Check Data Checksum",
            Self::SendRttEstimate => "Send RTT Estimate",
            Self::SendLossEventRate => "Send Loss Event Rate",
        }
    }

    /// Place in [`ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::SendRttEstimate => 9,
            Self::SendLossEventRate => 10,
            _ => self as usize - 1,
        }
    }

    /// Reconciliation rule.
    pub const fn rule(self) -> Rule {
        match self {
            Self::SequenceWindow | Self::AckRatio => Rule::NonNegotiable,
            _ => Rule::ServerPriority,
        }
    }

    /// Value of a new connection.
    pub const fn first_value(self) -> u64 {
        match self {
            //= rfc4340#7.5.2
            //# New connections start with Sequence Window 100 for both endpoints.
            Self::SequenceWindow => 100,
            Self::Ccid | Self::AckRatio => 2,
            _ => 0,
        }
    }

    //= rfc4340#6.4
    //# This column is "Y" if and only if every DCCP implementation MUST understand the feature.
    /// Every DCCP understands it (table 4).
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Ccid | Self::AllowShortSeqnos | Self::SequenceWindow)
    }

    /// Length of one value in bytes.
    pub const fn value_bytes(self) -> usize {
        match self {
            Self::SequenceWindow => 6,
            Self::AckRatio => 2,
            _ => 1,
        }
    }

    /// The one value of a non-negotiable feature, if length and range are right (section 6.6.8).
    ///
    /// Ack Ratio 0 is valid (erratum 1049): the half-connection does not use Ack Ratio.
    pub fn read_number(self, value: &[u8]) -> Option<u64> {
        if value.len() != self.value_bytes() {
            return None;
        }
        let number = big_endian(value);
        //= rfc4340#7.5.2
        //# Change options suggesting Sequence Window values out of this range are invalid and MUST be handled accordingly.
        let valid =
            self != Self::SequenceWindow || (MIN_SEQUENCE_WINDOW..=MAX_SEQUENCE_WINDOW).contains(&number);
        valid.then_some(number)
    }

    /// Append `number` as this feature's value; what does not fit is capped at the largest that does.
    pub fn write_number(self, number: u64, out: &mut Vec<u8>) {
        let width = self.value_bytes();
        let largest = u64::MAX >> (64 - 8 * width);
        out.extend_from_slice(&number.min(largest).to_be_bytes()[8 - width..]);
    }
}

/// The values in a Change or Confirm option of the feature with this number, the first one first; those of features
/// that this crate does not know count as one byte. `None` when `value` is no whole number of values.
pub fn values(feature: u8, value: &[u8]) -> Option<impl ExactSizeIterator<Item = u64> + '_> {
    let width = Feature::from_number(feature).map_or(1, Feature::value_bytes);
    value.len().is_multiple_of(width).then(|| value.chunks_exact(width).map(big_endian))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_the_place_in_the_list() {
        for (place, feature) in ALL.into_iter().enumerate() {
            assert_eq!(feature.index(), place);
            assert_eq!(Feature::from_number(feature.number()), Some(feature));
        }
        assert_eq!(Feature::from_number(0), None);
        assert_eq!(Feature::from_number(10), None);
    }

    #[test]
    fn numbers_have_their_length_and_range() {
        let window = Feature::SequenceWindow;
        assert_eq!(window.read_number(&[0, 0, 0, 0, 4, 0]), Some(1024));
        assert_eq!(window.read_number(&[0, 0, 0, 0, 0, 31]), None);
        assert_eq!(window.read_number(&[0x40, 0, 0, 0, 0, 0]), None);
        assert_eq!(window.read_number(&[4, 0]), None);
        assert_eq!(Feature::AckRatio.read_number(&[0, 0]), Some(0));
        let mut out = Vec::new();
        window.write_number(1024, &mut out);
        assert_eq!(out, [0, 0, 0, 0, 4, 0]);
    }
}
