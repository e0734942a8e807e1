// SPDX-License-Identifier: Apache-2.0
//! Reset codes (RFC 4340 section 5.6, RFC 6773 section 3.8).

/// Why a connection was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCode {
    /// 0
    Unspecified,
    /// 1: normal close.
    Closed,
    /// 2
    Aborted,
    /// 3
    NoConnection,
    /// 4; data 1 is the packet type.
    PacketError,
    /// 5; data 1 is the option, data 2 and 3 its first bytes.
    OptionError,
    /// 6; data 1 is the option that was mandatory, data 2 and 3 its first bytes.
    MandatoryError,
    /// 7
    ConnectionRefused,
    /// 8
    BadServiceCode,
    /// 9
    TooBusy,
    /// 10
    BadInitCookie,
    /// 11
    AggressionPenalty,
    /// 12 (RFC 6773)
    EncapsulatedPortReuse,
    /// 13 to 127, not assigned.
    Reserved(u8),
    /// 128 to 191: said by the sender's CCID. 192 to 255: by the receiver's.
    Ccid(u8),
}

impl ResetCode {
    /// From its number on the wire.
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Unspecified,
            1 => Self::Closed,
            2 => Self::Aborted,
            3 => Self::NoConnection,
            4 => Self::PacketError,
            5 => Self::OptionError,
            6 => Self::MandatoryError,
            7 => Self::ConnectionRefused,
            8 => Self::BadServiceCode,
            9 => Self::TooBusy,
            10 => Self::BadInitCookie,
            11 => Self::AggressionPenalty,
            12 => Self::EncapsulatedPortReuse,
            13..=127 => Self::Reserved(number),
            128..=255 => Self::Ccid(number),
        }
    }

    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::Closed => 1,
            Self::Aborted => 2,
            Self::NoConnection => 3,
            Self::PacketError => 4,
            Self::OptionError => 5,
            Self::MandatoryError => 6,
            Self::ConnectionRefused => 7,
            Self::BadServiceCode => 8,
            Self::TooBusy => 9,
            Self::BadInitCookie => 10,
            Self::AggressionPenalty => 11,
            Self::EncapsulatedPortReuse => 12,
            Self::Reserved(number) | Self::Ccid(number) => number,
        }
    }

    /// Its name as in the RFCs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::Closed => "Closed",
            Self::Aborted => "Aborted",
            Self::NoConnection => "No Connection",
            Self::PacketError => "Packet Error",
            Self::OptionError => "Option Error",
            Self::MandatoryError => "Mandatory Error",
            Self::ConnectionRefused => "Connection Refused",
            Self::BadServiceCode => "Bad Service Code",
            Self::TooBusy => "Too Busy",
            Self::BadInitCookie => "Bad Init Cookie",
            Self::AggressionPenalty => "Aggression Penalty",
            Self::EncapsulatedPortReuse => "Encapsulated Port Reuse",
            Self::Reserved(_) => "Reserved",
            Self::Ccid(_) => "CCID-specific",
        }
    }
}
