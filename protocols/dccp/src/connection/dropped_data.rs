// SPDX-License-Identifier: Apache-2.0
//! Data that arrived and was not delivered: Data Dropped options (RFC 4340 section 11.7).

use crate::options::data_dropped::{Block, DropCode};
use crate::seqno::Seq48;

/// Most runs that are reported at a time.
const MAX_REPORTED: usize = 32;
/// Longest vector in one option.
pub(super) const MAX_VECTOR_BYTES: usize = 253;
/// Longest run of a Normal Block.
const NORMAL_RUN: u64 = 128;
/// Longest run of a Drop Block.
const DROP_RUN: u64 = 16;

/// Packets in a row whose data was dropped for one reason.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: Seq48,
    last: Seq48,
    code: DropCode,
}

impl Run {
    fn holds(&self, seq: Seq48) -> bool {
        !seq.is_before(self.first) && !self.last.is_before(seq)
    }
}

/// Packets whose data was dropped lately, oldest number first.
#[derive(Debug, Default)]
pub(super) struct DroppedData {
    runs: Vec<Run>,
    /// First packet that carried the report of all that is listed.
    reported: Option<Seq48>,
}

impl DroppedData {
    //= rfc4340#11.7
    //# The interface SHOULD NOT let applications reduce the "seriousness" of a packet's Drop Code;
    /// Data of packet `seq` was not delivered. What was said first of a packet stays.
    pub(super) fn note(&mut self, seq: Seq48, code: DropCode) {
        if self.runs.iter().any(|run| run.holds(seq)) {
            return;
        }
        self.reported = None;
        let before = |run: &Run| run.last.is_before(seq);
        if let Some(run) = self.runs.iter_mut().rev().find(|run| before(run)) {
            if run.code == code && run.last.add(1) == seq {
                run.last = seq;
                return;
            }
        }
        if self.runs.len() == MAX_REPORTED {
            self.runs.remove(0);
        }
        let place = self.runs.partition_point(before);
        self.runs.insert(place, Run { first: seq, last: seq, code });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    //= rfc4340#11.7
    //# endpoints SHOULD continue to transmit Data Dropped options until receiving an acknowledgement
    //# indicating that the relevant options have been processed.
    /// The peer acknowledged `ack`: reports that were on it or before have arrived.
    pub(super) fn on_ack(&mut self, ack: Seq48) {
        if self.reported.is_some_and(|seq| !ack.is_before(seq)) {
            self.runs.clear();
            self.reported = None;
        }
    }

    //= rfc4340#11.7
    //# Packets reported as "not yet received" MUST be included in Normal Blocks;
    /// The vector for a packet with number `seq` and acknowledgement number `ack`, as much of it as `vector` has room for; its
    /// length.
    pub(super) fn write(&mut self, seq: Seq48, ack: Seq48, vector: &mut [u8]) -> usize {
        let (mut length, mut next) = (0, ack);
        for run in self.runs.iter().rev() {
            let last = if ack.is_before(run.last) { ack } else { run.last };
            let Ok(dropped @ 1..) = u64::try_from(run.first.distance_to(last) + 1) else { continue };
            let normal = last.distance_to(next).max(0) as u64;
            // Normal Blocks say something only with a Drop Block behind them.
            if vector.len() - length <= normal.div_ceil(NORMAL_RUN) as usize {
                break;
            }
            length += fill(&mut vector[length..], None, normal, NORMAL_RUN);
            length += fill(&mut vector[length..], Some(run.code), dropped, DROP_RUN);
            next = run.first.sub(1);
        }
        //= rfc4340#11.7
        //# the receiver SHOULD NOT send a Data Dropped option when all relevant packets fit into Normal Blocks.
        if length > 0 && self.reported.is_none() {
            self.reported = Some(seq);
        }
        length
    }
}

/// Blocks for `packets` with the same fate, of `most` packets each, while there is room; how many.
fn fill(vector: &mut [u8], dropped: Option<DropCode>, packets: u64, most: u64) -> usize {
    let blocks = (packets.div_ceil(most) as usize).min(vector.len());
    for (byte, done) in vector[..blocks].iter_mut().zip((0..).step_by(most as usize)) {
        *byte = Block { dropped, packets: (packets - done).min(most) as u8 }.byte();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(drops: &mut DroppedData, ack: u64, room_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; room_bytes];
        let length = drops.write(Seq48::new(7), Seq48::new(ack), &mut bytes);
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn vector_counts_back_from_the_acknowledgement_number() {
        let mut drops = DroppedData::default();
        drops.note(Seq48::new(95), DropCode::Corrupt);
        drops.note(Seq48::new(99), DropCode::ProtocolConstraints);
        drops.note(Seq48::new(99), DropCode::Corrupt);
        assert_eq!(vector(&mut drops, 100, 100), [0, 0x80, 2, 0xb0]);
        drops.on_ack(Seq48::new(6));
        assert!(!drops.is_empty());
        drops.on_ack(Seq48::new(7));
        assert!(drops.is_empty());
    }

    #[test]
    fn long_runs_take_several_blocks_and_the_room_is_kept() {
        let mut drops = DroppedData::default();
        drops.note(Seq48::new(1000 - 300), DropCode::Corrupt);
        assert_eq!(vector(&mut drops, 1000, 100), [127, 127, 43, 0xb0]);
        assert!(vector(&mut drops, 1000, 3).is_empty());
        drops.note(Seq48::new(1), DropCode::Corrupt);
        for seq in 0..1000 {
            drops.note(Seq48::new(2000 + 2 * seq), DropCode::Corrupt);
        }
        assert!(drops.runs.len() <= MAX_REPORTED);
    }

    #[test]
    fn a_burst_without_room_is_one_run_however_long_and_its_newest_part_is_said_first() {
        let mut drops = DroppedData::default();
        for seq in 100..140 {
            drops.note(Seq48::new(seq), DropCode::ReceiveBuffer);
        }
        drops.note(Seq48::new(98), DropCode::Corrupt);
        assert_eq!(drops.runs.len(), 2);
        assert_eq!(vector(&mut drops, 141, 100), [1, 0xaf, 0xaf, 0xa7, 0, 0xb0]);
        assert_eq!(vector(&mut drops, 119, 100), [0xaf, 0xa3, 0, 0xb0]);
        assert_eq!(vector(&mut drops, 141, 2), [1, 0xaf]);
        assert!(vector(&mut drops, 90, 100).is_empty());
    }
}
