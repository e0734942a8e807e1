// SPDX-License-Identifier: Apache-2.0
//! Blocks of the Data Dropped option (RFC 4340 section 11.7).

/// Why data of a received packet did not reach the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCode {
    /// 0
    ProtocolConstraints,
    /// 1
    ApplicationNotListening,
    /// 2
    ReceiveBuffer,
    /// 3
    Corrupt,
    /// 4 to 6, not assigned.
    Reserved(u8),
    /// 7: it did reach the application, which knows that it is corrupt.
    DeliveredCorrupt,
}

impl DropCode {
    /// From the low three bits of `number`.
    pub const fn from_number(number: u8) -> Self {
        match number & 7 {
            0 => Self::ProtocolConstraints,
            1 => Self::ApplicationNotListening,
            2 => Self::ReceiveBuffer,
            3 => Self::Corrupt,
            7 => Self::DeliveredCorrupt,
            code => Self::Reserved(code),
        }
    }

    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::ProtocolConstraints => 0,
            Self::ApplicationNotListening => 1,
            Self::ReceiveBuffer => 2,
            Self::Corrupt => 3,
            Self::Reserved(code) => code & 7,
            Self::DeliveredCorrupt => 7,
        }
    }
}

/// Packets in a row with the same fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// `None` in a Normal Block: those received were delivered.
    pub dropped: Option<DropCode>,
    /// How many: 1 to 128 in a Normal Block, 1 to 16 in a Drop Block.
    pub packets: u8,
}

impl Block {
    /// From its byte. Every byte is a block.
    pub const fn from_byte(byte: u8) -> Self {
        if byte & 0x80 == 0 {
            Self { dropped: None, packets: byte + 1 }
        } else {
            Self { dropped: Some(DropCode::from_number(byte >> 4)), packets: (byte & 0xf) + 1 }
        }
    }

    /// Its byte; `packets` out of range counts as the nearest in range.
    pub const fn byte(self) -> u8 {
        let run = self.packets.saturating_sub(1);
        match self.dropped {
            None => {
                if run > 127 {
                    127
                } else {
                    run
                }
            }
            Some(code) => 0x80 | code.number() << 4 | if run > 15 { 15 } else { run },
        }
    }
}

/// The blocks, newest packet first: the first block of a packet's first Data Dropped option starts at its
/// acknowledgement number and goes down.
pub fn blocks(vector: &[u8]) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + '_ {
    vector.iter().map(|byte| Block::from_byte(*byte))
}
