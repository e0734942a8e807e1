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

/// The assigned codes, each at the place of its number, with their names as in the RFCs.
const ASSIGNED: [(ResetCode, &str); 13] = [
    (ResetCode::Unspecified, "Unspecified"),
    (ResetCode::Closed, "Closed"),
    (ResetCode::Aborted, "Aborted"),
    (ResetCode::NoConnection, "No Connection"),
    (ResetCode::PacketError, "Packet Error"),
    (ResetCode::OptionError, "Option Error"),
    (ResetCode::MandatoryError, "Mandatory Error"),
    (ResetCode::ConnectionRefused, "Connection Refused"),
    (ResetCode::BadServiceCode, "Bad Service Code"),
    (ResetCode::TooBusy, "Too Busy"),
    (ResetCode::BadInitCookie, "Bad Init Cookie"),
    (ResetCode::AggressionPenalty, "Aggression Penalty"),
    (ResetCode::EncapsulatedPortReuse, "Encapsulated Port Reuse"),
];

impl ResetCode {
    /// From its number on the wire.
    pub fn from_number(number: u8) -> Self {
        match (ASSIGNED.get(usize::from(number)), number) {
            (Some((code, _)), _) => *code,
            (None, ..=127) => Self::Reserved(number),
            (None, 128..) => Self::Ccid(number),
        }
    }

    /// Its number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Reserved(number) | Self::Ccid(number) => number,
            _ => ASSIGNED.iter().take_while(|(code, _)| *code != self).count() as u8,
        }
    }

    /// Its name as in the RFCs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved(_) => "Reserved",
            Self::Ccid(_) => "CCID-specific",
            _ => ASSIGNED[usize::from(self.number())].1,
        }
    }
}
