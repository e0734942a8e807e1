// SPDX-License-Identifier: Apache-2.0
//! Ack Vectors (RFC 4340 section 11.4): reading them here, keeping what becomes one in [`record`].

pub mod record;

use crate::options::ack_vector::{cells, packets, AckState};
use crate::options::DccpOption;
use crate::packet::Packet;
use crate::seqno::Seq48;

/// Most bytes of vector in one option: the length octet counts type and length too.
pub const OPTION_CELLS: usize = 253;

/// Consecutive packets of one state, `oldest..=newest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The last of them.
    pub newest: Seq48,
    /// The first of them.
    pub oldest: Seq48,
    /// State of all of them.
    pub state: AckState,
}

impl Run {
    /// The packets arrived.
    pub const fn is_received(&self) -> bool {
        matches!(self.state, AckState::Received | AckState::ReceivedEcnMarked)
    }
}

/// The runs of one vector that begins at `newest`, newest first.
pub fn runs(newest: Seq48, vector: &[u8]) -> impl Iterator<Item = Run> + '_ {
    cells(vector).scan(newest, |next, cell| {
        let newest = *next;
        *next = newest.sub(u64::from(cell.packets));
        Some(Run { newest, oldest: next.add(1), state: cell.state })
    })
}

/// One Ack Vector option of a packet, placed on the number line.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// The packet that its first byte speaks of.
    pub newest: Seq48,
    /// ECN Nonce Echo.
    pub nonce: bool,
    /// Its bytes.
    pub vector: &'a [u8],
}

impl<'a> Placed<'a> {
    /// Its runs, newest first.
    pub fn runs(&self) -> impl Iterator<Item = Run> + 'a {
        runs(self.newest, self.vector)
    }
}

/// The Ack Vector options of a packet with acknowledgement number `ack`. Each begins where the one before left off.
pub fn of_packet<'a>(packet: &Packet<'a>, ack: Seq48) -> impl Iterator<Item = Placed<'a>> {
    packet
        .options()
        .filter_map(|option| match option {
            DccpOption::AckVector { nonce, vector } => Some((nonce, vector)),
            _ => None,
        })
        .scan(ack, |next, (nonce, vector)| {
            let newest = *next;
            *next = newest.sub(packets(vector));
            Some(Placed { newest, nonce, vector })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_reads_as_it_says() {
        let run =
            |newest, oldest, state| Run { newest: Seq48::new(newest), oldest: Seq48::new(oldest), state };
        let read: Vec<Run> = runs(Seq48::new(100), &[0, 192, 3, 64, 5]).collect();
        assert_eq!(
            read,
            [
                run(100, 100, AckState::Received),
                run(99, 99, AckState::NotYetReceived),
                run(98, 95, AckState::Received),
                run(94, 94, AckState::ReceivedEcnMarked),
                run(93, 88, AckState::Received),
            ]
        );
    }

    #[test]
    fn runs_wrap_around_zero() {
        let read: Vec<Run> = runs(Seq48::new(1), &[3]).collect();
        assert_eq!(read[0].oldest, Seq48::new((1 << 48) - 2));
    }
}
