// SPDX-License-Identifier: Apache-2.0
//! Cells of an Ack Vector (RFC 4340 section 11.4): one byte is a state and how many packets in a row have it.

/// Most packets that one cell can speak for.
pub const MAX_RUN_PACKETS: u8 = 64;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AckState {
    /// Arrived.
    Received = 0,
    /// Arrived with the ECN code point Congestion Experienced.
    ReceivedEcnMarked = 1,
    /// Not assigned.
    Reserved = 2,
    /// Not arrived so far.
    NotYetReceived = 3,
}

/// A state and the number of packets in a row that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// State of all of them.
    pub state: AckState,
    /// How many, 1 to 64.
    pub packets: u8,
}

impl Cell {
    /// From its byte. Every byte is a cell.
    pub const fn from_byte(byte: u8) -> Self {
        Self {
            state: match byte >> 6 {
                0 => AckState::Received,
                1 => AckState::ReceivedEcnMarked,
                2 => AckState::Reserved,
                _ => AckState::NotYetReceived,
            },
            //= rfc4340#11.4
            //# Run Length zero says the corresponding State applies to one packet only; Run Length
            //# 63 says it applies to 64 consecutive packets.
            packets: (byte & 63) + 1,
        }
    }

    /// Its byte; `packets` outside 1 to 64 counts as the nearest of these.
    pub const fn byte(self) -> u8 {
        let run = match self.packets {
            0 => 0,
            packets if packets > MAX_RUN_PACKETS => MAX_RUN_PACKETS - 1,
            packets => packets - 1,
        };
        (self.state as u8) << 6 | run
    }
}

/// The cells of a vector, newest packet first: the first cell of a packet's first Ack Vector starts at its
/// acknowledgement number and goes down.
pub fn cells(vector: &[u8]) -> impl DoubleEndedIterator<Item = Cell> + ExactSizeIterator + '_ {
    vector.iter().map(|byte| Cell::from_byte(*byte))
}

/// How many packets a vector speaks for.
pub fn packets(vector: &[u8]) -> u64 {
    cells(vector).map(|cell| u64::from(cell.packets)).sum()
}
