// SPDX-License-Identifier: Apache-2.0
//! Packets and options of every shape, for properties.

use netjoule_dccp::options::DccpOption;
use netjoule_dccp::packet::{Packet, WireSeq};
use netjoule_dccp::{PacketType, ResetCode, Seq48};
use proptest::collection::vec;
use proptest::prelude::*;

/// A packet with bytes of its own.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    fields: Packet<'static>,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Owned {
    /// The packet, borrowed.
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet { option_bytes: &self.options, payload: &self.payload, ..self.fields }
    }
}

/// Packets that can be emitted: every type and form, any options, any data, any valid coverage.
pub(crate) fn packet() -> impl Strategy<Value = Owned> {
    let header = (any::<u16>(), any::<u16>(), 0_u8..16, any::<u16>(), 0_u8..=10, any::<bool>());
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<[u8; 4]>(), any::<u8>());
    (header, numbers, vec(any::<u8>(), 0..200), vec(any::<u8>(), 0..200)).prop_map(
        |((source_port, destination_port, ccval, checksum, kind, short), numbers, options, payload)| {
            let kind = PacketType::from_number(kind).unwrap();
            let short = short && kind.may_be_short();
            let (seq, ack, service_code, [code, reset_data @ ..], coverage) = numbers;
            let wire = |value: u64| match short {
                true => WireSeq::Short((value & 0xff_ffff) as u32),
                false => WireSeq::Long(Seq48::new(value)),
            };
            let fields = Packet {
                source_port,
                destination_port,
                ccval,
                checksum_coverage: coverage % (payload.len() / 4 + 2).min(16) as u8,
                checksum,
                kind,
                seq: wire(seq),
                ack: kind.has_ack().then(|| wire(ack)),
                service_code: kind.has_service_code().then_some(service_code),
                reset: (kind == PacketType::Reset).then(|| (ResetCode::from_number(code), reset_data)),
                option_bytes: &[],
                payload: &[],
            };
            Owned { fields, options, payload }
        },
    )
}

/// Bytes that look like a packet more often than random ones do: a sound type and Data Offset in random bytes.
pub(crate) fn plausible_bytes() -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), 12..400), any::<u8>(), 3_u8..20, 0_u8..4).prop_map(
        |(mut bytes, kind, offset, coverage)| {
            bytes[8] = kind;
            bytes[4] = offset;
            bytes[5] = bytes[5] & 0xf0 | coverage;
            bytes
        },
    )
}

/// Options in the value range that the wire can hold, with their bytes; `contents` is what variable ones borrow.
pub(crate) fn option(selector: u8, number: u64, contents: &[u8]) -> DccpOption<'_> {
    let (feature, value) = ((number >> 32) as u8, &contents[..contents.len().min(252)]);
    let word = number as u32;
    match selector % 21 {
        0 => DccpOption::Padding,
        1 => DccpOption::Mandatory,
        2 => DccpOption::SlowReceiver,
        3 => DccpOption::ChangeL { feature, value },
        4 => DccpOption::ConfirmL { feature, value },
        5 => DccpOption::ChangeR { feature, value },
        6 => DccpOption::ConfirmR { feature, value },
        7 => DccpOption::InitCookie(contents),
        8 => DccpOption::NdpCount(number >> (number % 48) & 0xffff_ffff_ffff),
        9 => DccpOption::AckVector { nonce: number & 1 == 1, vector: contents },
        10 => DccpOption::DataDropped(contents),
        11 => DccpOption::Timestamp(word),
        12 => DccpOption::TimestampEcho { echo: word, elapsed: (number >> 32) as u32 >> (word % 32) },
        13 => DccpOption::ElapsedTime(word >> (feature % 32)),
        14 => DccpOption::DataChecksum(word),
        15 => DccpOption::RttEstimate((word & 0xff_ffff) >> (feature % 24)),
        16 => DccpOption::LossEventRate(word),
        17 if contents.len() >= 10 => {
            DccpOption::LossIntervals(&contents[..1 + (contents.len() - 1) / 9 * 9])
        }
        17 | 18 => DccpOption::ReceiveRate(word),
        19 => DccpOption::Unknown { kind: 45 + feature % 83, contents },
        _ => DccpOption::Unknown { kind: 3 + feature % 29, contents: &[] },
    }
}
