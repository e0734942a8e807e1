// SPDX-License-Identifier: Apache-2.0
//! Options (RFC 4340 section 5.8; CCID 3: RFC 4342 section 8, RFC 6323 section 3): parse and emit.

pub mod ack_vector;
pub mod data_dropped;
mod emit;
pub mod loss_intervals;
mod parse;

pub use parse::OptionIter;

use crate::packet_type::PacketType;

/// Longest contents of an option: its length byte counts type and length too.
pub const MAX_CONTENTS_BYTES: usize = 253;

/// Numbers of the options.
pub mod number {
    #![allow(missing_docs)]
    pub const PADDING: u8 = 0;
    pub const MANDATORY: u8 = 1;
    pub const SLOW_RECEIVER: u8 = 2;
    pub const CHANGE_L: u8 = 32;
    pub const CONFIRM_L: u8 = 33;
    pub const CHANGE_R: u8 = 34;
    pub const CONFIRM_R: u8 = 35;
    pub const INIT_COOKIE: u8 = 36;
    pub const NDP_COUNT: u8 = 37;
    pub const ACK_VECTOR_NONCE_0: u8 = 38;
    pub const ACK_VECTOR_NONCE_1: u8 = 39;
    pub const DATA_DROPPED: u8 = 40;
    pub const TIMESTAMP: u8 = 41;
    pub const TIMESTAMP_ECHO: u8 = 42;
    pub const ELAPSED_TIME: u8 = 43;
    pub const DATA_CHECKSUM: u8 = 44;
    pub const RTT_ESTIMATE: u8 = 128;
    pub const LOSS_EVENT_RATE: u8 = 192;
    pub const LOSS_INTERVALS: u8 = 193;
    pub const RECEIVE_RATE: u8 = 194;
}

/// One option. Borrowed contents are what follows type and length on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DccpOption<'a> {
    /// 0
    Padding,
    /// 1: the next option must be understood.
    Mandatory,
    /// 2
    SlowReceiver,
    /// 32: feature located at the sender of the option.
    ChangeL {
        /// Feature number.
        feature: u8,
        /// Preference list (server-priority) or one value (non-negotiable). The wire can carry an empty one, which is invalid.
        value: &'a [u8],
    },
    /// 33
    ConfirmL {
        /// Feature number.
        feature: u8,
        /// Value, then the confirming end's preference list; empty for an unknown feature.
        value: &'a [u8],
    },
    /// 34
    ChangeR {
        /// Feature number.
        feature: u8,
        /// As in ChangeL.
        value: &'a [u8],
    },
    /// 35
    ConfirmR {
        /// Feature number.
        feature: u8,
        /// As in ConfirmL.
        value: &'a [u8],
    },
    /// 36
    InitCookie(&'a [u8]),
    /// 37: run of non-data packets before this one.
    NdpCount(u64),
    /// 38 (nonce 0) and 39 (nonce 1): run-length bytes, newest first; see [`ack_vector`].
    AckVector {
        /// ECN nonce echo.
        nonce: bool,
        /// Bytes of state << 6 | (packets - 1), section 11.4.
        vector: &'a [u8],
    },
    /// 40: blocks, newest first; see [`data_dropped`].
    DataDropped(&'a [u8]),
    /// 41: in 10 us.
    Timestamp(u32),
    /// 42: the echoed timestamp and the time it waited here, in 10 us.
    TimestampEcho {
        /// Echoed value.
        echo: u32,
        /// Elapsed time in 10 us, 0 when absent.
        elapsed: u32,
    },
    /// 43: time between receiving the acknowledged packet and this one, in 10 us; u32::MAX: more.
    ElapsedTime(u32),
    /// 44: CRC-32c of the application data; see [`crate::checksum::crc32c`].
    DataChecksum(u32),
    /// 128 on CCID 3 (RFC 6323): sender's RTT estimate in us; 0: none yet, 0xffffff: longer than 16.7 s.
    RttEstimate(u32),
    /// 192 on CCID 3: 1/p rounded up; u32::MAX: no loss yet.
    LossEventRate(u32),
    /// 193 on CCID 3: skip length, then 9-byte intervals; see [`loss_intervals`].
    LossIntervals(&'a [u8]),
    /// 194 on CCID 3: bytes per second.
    ReceiveRate(u32),
    /// Any other option, and one of the above whose contents have no valid length (to be ignored, or, after Mandatory
    /// and for RTT Estimate, punished).
    Unknown {
        /// Type.
        kind: u8,
        /// Contents (empty for types below 32).
        contents: &'a [u8],
    },
}

impl DccpOption<'_> {
    /// Its type number.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Padding => number::PADDING,
            Self::Mandatory => number::MANDATORY,
            Self::SlowReceiver => number::SLOW_RECEIVER,
            Self::ChangeL { .. } => number::CHANGE_L,
            Self::ConfirmL { .. } => number::CONFIRM_L,
            Self::ChangeR { .. } => number::CHANGE_R,
            Self::ConfirmR { .. } => number::CONFIRM_R,
            Self::InitCookie(_) => number::INIT_COOKIE,
            Self::NdpCount(_) => number::NDP_COUNT,
            Self::AckVector { nonce: false, .. } => number::ACK_VECTOR_NONCE_0,
            Self::AckVector { nonce: true, .. } => number::ACK_VECTOR_NONCE_1,
            Self::DataDropped(_) => number::DATA_DROPPED,
            Self::Timestamp(_) => number::TIMESTAMP,
            Self::TimestampEcho { .. } => number::TIMESTAMP_ECHO,
            Self::ElapsedTime(_) => number::ELAPSED_TIME,
            Self::DataChecksum(_) => number::DATA_CHECKSUM,
            Self::RttEstimate(_) => number::RTT_ESTIMATE,
            Self::LossEventRate(_) => number::LOSS_EVENT_RATE,
            Self::LossIntervals(_) => number::LOSS_INTERVALS,
            Self::ReceiveRate(_) => number::RECEIVE_RATE,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// May stand on a Data packet (table 3 in section 5.8).
    pub const fn allowed_on_data(&self) -> bool {
        matches!(
            self.kind(),
            number::PADDING
                | number::SLOW_RECEIVER
                | number::NDP_COUNT
                | number::TIMESTAMP
                | number::TIMESTAMP_ECHO
                | number::DATA_CHECKSUM
                | number::RTT_ESTIMATE
        )
    }

    /// May stand on a packet of this type; where not, a receiver ignores it and a sender does not send it.
    pub const fn allowed_on(&self, packet: PacketType) -> bool {
        match packet {
            //= rfc4340#5.8
            //# when the DCCP-Data? column value is N, the corresponding option MUST be ignored
            //# when received on a DCCP-Data packet.
            PacketType::Data => self.allowed_on_data(),
            //= rfc5596#2.2.1
            //# Clients MUST ignore all options in received DCCP-Listen packets.
            PacketType::Listen => false,
            //= rfc4340#8.1.4
            //# Any Init Cookie options received on DCCP-Request or DCCP-Data packets
            PacketType::Request => !self.needs_ack_number() && self.kind() != number::INIT_COOKIE,
            _ => true,
        }
    }

    /// Says something relative to the packet's acknowledgement number, or answers packets that a Request cannot have
    /// received (RFC 4340 sections 11.4, 11.7, 13.2; RFC 4342 section 8.6.1).
    const fn needs_ack_number(&self) -> bool {
        //= rfc4340#11.4
        //# Ack Vector MUST NOT be sent on DCCP-Data and DCCP-Request packets, which lack an Acknowledgement Number,
        //# and any Ack Vector options encountered on such packets MUST be ignored.

        //= rfc4340#11.7
        //# Data Dropped MUST NOT be sent on DCCP-Data or DCCP-Request packets, which lack an Acknowledgement Number,
        //# and any Data Dropped options received on such packets MUST be ignored.

        //= rfc4340#13.2
        //# This option is permitted in any DCCP packet that contains an Acknowledgement Number;
        //# such options received on other packet types MUST be ignored.

        //= rfc4342#8.6.1
        //# Loss Intervals options MUST NOT be sent on packets without an Acknowledgement Number, and any
        //# Loss Intervals options received on such packets MUST be ignored.
        matches!(
            self.kind(),
            number::ACK_VECTOR_NONCE_0
                | number::ACK_VECTOR_NONCE_1
                | number::DATA_DROPPED
                | number::ELAPSED_TIME
                | number::LOSS_INTERVALS
        )
    }
}
