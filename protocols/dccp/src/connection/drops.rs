// SPDX-License-Identifier: Apache-2.0
//! Data that arrived and was not delivered: Data Dropped options (RFC 4340 section 11.7).

use crate::seqno::Seq48;

/// Most packets that are reported at a time.
const MAX_REPORTED: usize = 32;
/// Longest vector in one option.
const MAX_VECTOR_BYTES: usize = 253;
/// Longest run of a Normal Block.
const NORMAL_RUN: u64 = 128;

/// Why (table 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DropCode {
    /// Data on a packet that must not bring any, or before it is allowed.
    ProtocolConstraints = 0,
    /// The Data Checksum was wrong.
    Corrupt = 3,
}

/// Packets whose data was dropped lately, oldest number first.
#[derive(Debug, Default)]
pub(super) struct Drops {
    list: Vec<(Seq48, DropCode)>,
    /// First packet that carried the report of all that is listed.
    reported: Option<Seq48>,
}

impl Drops {
    /// Data of packet `seq` was not delivered.
    pub(super) fn note(&mut self, seq: Seq48, code: DropCode) {
        if self.list.iter().any(|(other, _)| *other == seq) {
            return;
        }
        if self.list.len() == MAX_REPORTED {
            self.list.remove(0);
        }
        let place = self.list.iter().position(|(other, _)| seq.is_before(*other)).unwrap_or(self.list.len());
        self.list.insert(place, (seq, code));
        self.reported = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The peer acknowledged `ack`: reports that were on it or before have arrived.
    pub(super) fn on_ack(&mut self, ack: Seq48) {
        if self.reported.is_some_and(|seq| !ack.is_before(seq)) {
            self.list.clear();
            self.reported = None;
        }
    }

    //= rfc4340#11.7
    //# Packets reported as "not yet received" MUST be included in Normal Blocks;
    /// Vector for a packet with number `seq` and acknowledgement number `ack`, at most `room_bytes` long.
    pub(super) fn vector(&mut self, seq: Seq48, ack: Seq48, room_bytes: usize) -> Vec<u8> {
        let limit = room_bytes.min(MAX_VECTOR_BYTES);
        let mut vector = Vec::new();
        let mut next = ack;
        for &(dropped, code) in self.list.iter().rev() {
            let normal = dropped.distance_to(next);
            if normal < 0 {
                continue;
            }
            let mut normal = normal as u64;
            let blocks = normal.div_ceil(NORMAL_RUN) as usize;
            if vector.len().saturating_add(blocks) >= limit {
                break;
            }
            while normal > 0 {
                let run = normal.min(NORMAL_RUN);
                vector.push((run - 1) as u8);
                normal -= run;
            }
            vector.push(0x80 | ((code as u8) << 4));
            next = dropped.sub(1);
        }
        if !vector.is_empty() && self.reported.is_none() {
            self.reported = Some(seq);
        }
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_counts_back_from_the_acknowledgement_number() {
        let mut drops = Drops::default();
        drops.note(Seq48::new(95), DropCode::Corrupt);
        drops.note(Seq48::new(99), DropCode::ProtocolConstraints);
        drops.note(Seq48::new(99), DropCode::Corrupt);
        let vector = drops.vector(Seq48::new(7), Seq48::new(100), 100);
        assert_eq!(vector, [0, 0x80, 2, 0xb0]);
        drops.on_ack(Seq48::new(6));
        assert!(!drops.is_empty());
        drops.on_ack(Seq48::new(7));
        assert!(drops.is_empty());
    }

    #[test]
    fn long_runs_take_several_blocks_and_the_room_is_kept() {
        let mut drops = Drops::default();
        drops.note(Seq48::new(1000 - 300), DropCode::Corrupt);
        let vector = drops.vector(Seq48::new(7), Seq48::new(1000), 100);
        assert_eq!(vector, [127, 127, 43, 0xb0]);
        assert!(drops.vector(Seq48::new(7), Seq48::new(1000), 3).is_empty());
        drops.note(Seq48::new(1), DropCode::Corrupt);
        for seq in 0..1000 {
            drops.note(Seq48::new(2000 + seq), DropCode::Corrupt);
        }
        assert!(drops.list.len() <= MAX_REPORTED);
    }
}
