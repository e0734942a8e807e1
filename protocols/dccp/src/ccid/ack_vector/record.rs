// SPDX-License-Identifier: Apache-2.0
//! What has arrived and not yet been acknowledged for good: the receiver's side of Ack Vectors
//! (RFC 4340 section 11.4 and appendix A).
//!
//! The record is a queue of cells, each of which is one byte of an Ack Vector: at most 64 packets of one state, with the
//! parity of their ECN nonces. So an option can end behind any cell and its Nonce Echo is still known.

use std::collections::VecDeque;

use super::{Placed, OPTION_CELLS};
use crate::ccid::Ecn;
use crate::options::ack_vector::{self, AckState, MAX_RUN_PACKETS};
use crate::options::DccpOption;
use crate::seqno::Seq48;

/// Most cells kept; the oldest go first. Four options of 253 cells are the most that fit a header.
const MAX_CELLS: usize = 4096;
/// A jump in sequence numbers by more than this starts a new record instead of one cell per 64 missing packets.
const MAX_GAP: u64 = MAX_CELLS as u64 * MAX_RUN_PACKETS as u64 / 2;
/// Most acknowledgements remembered until one of them is acknowledged; then every second one is forgotten.
const MAX_SENT: usize = 2048;
/// Type and length of an option.
const OPTION_HEADER: usize = 2;

/// How a packet fitted into the order of those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It was the next one.
    InOrder,
    /// Packets before it are missing.
    Gap,
    /// It had been missing.
    Late,
    /// It had been received before, or is too old to be in the record.
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    state: AckState,
    packets: u8,
    nonce: bool,
}

impl Cell {
    /// Of packets that arrived with one ECN field.
    fn received(packets: u8, ecn: Ecn) -> Self {
        //= rfc4340#11.4
        //# packets received with this ECN code point MUST be reported using State 1, Received ECN Marked.
        //= rfc4340#11.4
        //# Packets received with ECN code points 00, 01, or 10 (Non-ECT, ECT(0), or ECT(1), respectively) MUST be
        //# reported using State 0, Received.
        //= rfc4340#11.4
        //# Packets dropped in the application's receive buffer MUST be reported as Received or Received
        //# ECN Marked (States 0 and 1), depending on their ECN state; such packets' ECN Nonces MUST be
        //# included in the Nonce Echo.
        let state = if ecn == Ecn::Ce { AckState::ReceivedEcnMarked } else { AckState::Received };
        Self { state, packets, nonce: ecn == Ecn::Ect1 && packets % 2 == 1 }
    }
}

/// An acknowledgement that left, for when it is acknowledged.
#[derive(Debug, Clone, Copy)]
struct SentAck {
    seq: Seq48,
    /// All packets up to this one can be forgotten when the acknowledgement has arrived.
    covers: Seq48,
}

/// The record.
#[derive(Debug, Default)]
pub struct Record {
    newest: Option<Seq48>,
    /// Oldest first.
    cells: VecDeque<Cell>,
    packets: u64,
    /// In order of sending; `covers` never decreases.
    sent: VecDeque<SentAck>,
}

impl Record {
    /// The newest packet received: the Acknowledgement Number that belongs to the record.
    pub const fn newest(&self) -> Option<Seq48> {
        self.newest
    }

    /// Bytes that the whole record needs as Ack Vector, without the options' headers.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The record says something about packet `seq`.
    pub fn covers(&self, seq: Seq48) -> bool {
        self.newest.is_some_and(|newest| {
            let back = seq.distance_to(newest);
            back >= 0 && back.unsigned_abs() < self.packets
        })
    }

    /// Forget all but the newest cell.
    pub fn keep_newest(&mut self) {
        while self.cells.len() > 1 {
            self.forget_oldest();
        }
        self.sent.clear();
    }

    /// Note a packet that arrived, whatever its type and whatever becomes of its data.
    pub fn insert(&mut self, seq: Seq48, ecn: Ecn) -> Arrival {
        let cell = Cell::received(1, ecn);
        let Some(newest) = self.newest else {
            self.restart(seq, cell);
            return Arrival::InOrder;
        };
        let ahead = newest.distance_to(seq);
        if ahead <= 0 {
            return self.insert_late(seq, ahead.unsigned_abs(), cell);
        }
        let missing = ahead.unsigned_abs() - 1;
        if missing > MAX_GAP {
            self.restart(seq, cell);
            return Arrival::Gap;
        }
        self.push_missing(missing);
        self.push(cell);
        self.newest = Some(seq);
        if missing == 0 {
            Arrival::InOrder
        } else {
            Arrival::Gap
        }
    }

    /// Note packets that arrived in order behind the newest, with the same ECN field.
    pub fn insert_followers(&mut self, packets: u64, ecn: Ecn) {
        let Some(newest) = self.newest else { return };
        let mut left = packets;
        while left > 0 {
            // What the last cell has room for, then whole cells.
            let used = self.cells.back().map_or(0, |cell| cell.packets % MAX_RUN_PACKETS);
            let count = left.min(u64::from(MAX_RUN_PACKETS - used));
            self.push(Cell::received(count as u8, ecn));
            left -= count;
        }
        self.newest = Some(newest.add(packets));
    }

    fn restart(&mut self, seq: Seq48, cell: Cell) {
        self.cells.clear();
        self.sent.clear();
        self.packets = 0;
        self.push(cell);
        self.newest = Some(seq);
    }

    fn push_missing(&mut self, mut missing: u64) {
        while missing > 0 {
            let packets = missing.min(u64::from(MAX_RUN_PACKETS)) as u8;
            self.push(Cell { state: AckState::NotYetReceived, packets, nonce: false });
            missing -= u64::from(packets);
        }
    }

    /// Append on the new side, to the last cell if it has room.
    fn push(&mut self, cell: Cell) {
        self.packets += u64::from(cell.packets);
        match self.cells.back_mut() {
            Some(last) if joins(*last, cell) => *last = joined(*last, cell),
            _ => self.cells.push_back(cell),
        }
        while self.cells.len() > MAX_CELLS {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(cell) = self.cells.pop_front() {
            self.packets -= u64::from(cell.packets);
        }
    }

    /// A packet `back` before the newest. Nothing that was received ever becomes less received (section 11.4.1).
    fn insert_late(&mut self, seq: Seq48, back: u64, cell: Cell) -> Arrival {
        if back >= self.packets {
            return Arrival::Known;
        }
        let mut newer = back;
        let mut index = self.cells.len() - 1;
        while newer >= u64::from(self.cells[index].packets) {
            newer -= u64::from(self.cells[index].packets);
            index -= 1;
        }
        if self.cells[index].state != AckState::NotYetReceived {
            return Arrival::Known;
        }
        self.split(index, newer as u8, cell);
        // An acknowledgement that said "missing" must not let this packet be forgotten (appendix A.3).
        for sent in self.sent.iter_mut().rev().take_while(|sent| !sent.covers.is_before(seq)) {
            sent.covers = seq.sub(1);
        }
        Arrival::Late
    }

    /// Put `cell` into the missing packets of cell `index`, of which `newer` come after it.
    fn split(&mut self, index: usize, newer: u8, cell: Cell) {
        let missing = self.cells[index];
        let older = missing.packets - newer - 1;
        self.cells[index] = cell;
        if newer > 0 {
            self.cells.insert(index + 1, Cell { packets: newer, ..missing });
        } else {
            self.join(index);
        }
        if older > 0 {
            self.cells.insert(index, Cell { packets: older, ..missing });
        } else if index > 0 {
            self.join(index - 1);
        }
        while self.cells.len() > MAX_CELLS {
            self.forget_oldest();
        }
    }

    /// Make one cell of `index` and the next newer one, if they can be one.
    fn join(&mut self, index: usize) {
        let (Some(older), Some(newer)) = (self.cells.get(index), self.cells.get(index + 1)) else { return };
        if joins(*older, *newer) {
            self.cells[index] = joined(*older, *newer);
            self.cells.remove(index + 1);
        }
    }

    /// Emit the record, from the newest packet back, as one or more Ack Vector options in at most `room_bytes`; what does not
    /// fit is the oldest. `false`: not even one cell fits.
    pub fn emit(&self, room_bytes: usize, put: &mut dyn FnMut(DccpOption<'_>)) -> bool {
        let mut vector = [0; OPTION_CELLS];
        let mut cells = self.cells.iter().rev().peekable();
        let mut room = room_bytes;
        let mut any = false;
        while room > OPTION_HEADER && cells.peek().is_some() {
            let most = OPTION_CELLS.min(room - OPTION_HEADER);
            let (mut used, mut nonce) = (0, false);
            for cell in cells.by_ref().take(most) {
                vector[used] = ack_vector::Cell { state: cell.state, packets: cell.packets }.byte();
                used += 1;
                //= rfc4340#12.2
                //# Each DCCP receiver MUST calculate and use the correct value for ECN Nonce Echo when sending acknowledgement options.
                nonce ^= cell.nonce;
            }
            put(DccpOption::AckVector { nonce, vector: &vector[..used] });
            room -= OPTION_HEADER + used;
            any = true;
        }
        any
    }

    /// A packet with number `seq` left that carried the record.
    pub fn on_sent(&mut self, seq: Seq48) {
        let Some(newest) = self.newest else { return };
        if self.sent.len() >= MAX_SENT {
            let mut keep = false;
            self.sent.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.sent.push_back(SentAck { seq, covers: newest });
    }

    /// The peer has received packet `ack` and what `vectors` say: forget what it surely knows.
    pub fn on_acknowledged<'a>(&mut self, ack: Seq48, vectors: impl Iterator<Item = Placed<'a>>) {
        let Some(index) = self.newest_arrived(ack, vectors) else { return };
        let covers = self.sent[index].covers;
        self.sent.drain(..=index);
        self.trim(covers);
    }

    /// Index of the newest acknowledgement that has arrived.
    fn newest_arrived<'a>(&self, ack: Seq48, vectors: impl Iterator<Item = Placed<'a>>) -> Option<usize> {
        let mut index = self.sent.partition_point(|sent| !ack.is_before(sent.seq)).checked_sub(1)?;
        if self.sent[index].seq == ack {
            return Some(index);
        }
        for run in vectors.flat_map(|placed| placed.runs()) {
            while run.newest.is_before(self.sent[index].seq) {
                index = index.checked_sub(1)?;
            }
            let covered = self.sent[index].seq.is_within(run.oldest, run.newest);
            if covered && run.is_received() {
                return Some(index);
            }
        }
        None
    }

    /// Forget the cells that lie wholly at or before `covers`, but never the newest one.
    fn trim(&mut self, covers: Seq48) {
        let Some(newest) = self.newest else { return };
        while self.cells.len() > 1 {
            let oldest_packets = u64::from(self.cells[0].packets);
            let last_of_oldest = newest.sub(self.packets - oldest_packets);
            if covers.is_before(last_of_oldest) {
                return;
            }
            self.forget_oldest();
        }
    }
}

fn joins(older: Cell, newer: Cell) -> bool {
    older.state == newer.state && older.packets + newer.packets <= MAX_RUN_PACKETS
}

const fn joined(older: Cell, newer: Cell) -> Cell {
    Cell { state: older.state, packets: older.packets + newer.packets, nonce: older.nonce ^ newer.nonce }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(record: &Record, room: usize) -> Vec<(bool, Vec<u8>)> {
        let mut all = Vec::new();
        record.emit(room, &mut |option| {
            if let DccpOption::AckVector { nonce, vector } = option {
                all.push((nonce, vector.to_vec()));
            }
        });
        all
    }

    fn record(packets: &[(u64, Ecn)]) -> Record {
        let mut record = Record::default();
        for (seq, ecn) in packets {
            record.insert(Seq48::new(*seq), *ecn);
        }
        record
    }

    fn plain(numbers: impl IntoIterator<Item = u64>) -> Record {
        record(&numbers.into_iter().map(|seq| (seq, Ecn::NotEct)).collect::<Vec<_>>())
    }

    #[test]
    fn the_example_of_the_rfc_is_written_as_it_stands_there() {
        let mut packets: Vec<_> = (88..=93).map(|seq| (seq, Ecn::Ect0)).collect();
        packets.push((94, Ecn::Ce));
        packets.extend((95..=98).map(|seq| (seq, Ecn::Ect0)));
        packets.push((100, Ecn::Ect0));
        assert_eq!(vectors(&record(&packets), 100), [(false, vec![0, 192, 3, 64, 5])]);
    }

    #[test]
    fn the_nonce_is_the_parity_of_unmarked_packets() {
        let packets = [(1, Ecn::Ect1), (2, Ecn::Ce), (3, Ecn::Ect1), (4, Ecn::Ect0), (6, Ecn::Ect1)];
        assert_eq!(vectors(&record(&packets), 100), [(true, vec![0, 192, 1, 64, 0])]);
    }

    #[test]
    fn followers_are_noted_as_if_one_by_one() {
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            for (before, followers) in
                [(1, 0), (1, 1), (63, 1), (64, 1), (64, 130), (10, 54), (10, 55), (100, 300)]
            {
                let numbers = |count| (0..count).map(|seq| (seq, ecn)).collect::<Vec<_>>();
                let mut run = record(&numbers(before));
                run.insert_followers(followers, ecn);
                let singly = record(&numbers(before + followers));
                assert_eq!(vectors(&run, 100), vectors(&singly, 100), "{ecn:?} {before} {followers}");
                assert_eq!((run.newest(), run.packets), (singly.newest(), singly.packets));
            }
        }
    }

    #[test]
    fn a_late_packet_fills_its_hole() {
        let mut record = plain([1, 2, 6]);
        assert_eq!(record.insert(Seq48::new(4), Ecn::NotEct), Arrival::Late);
        assert_eq!(vectors(&record, 100), [(false, vec![0, 192, 0, 192, 1])]);
        assert_eq!(record.insert(Seq48::new(3), Ecn::NotEct), Arrival::Late);
        assert_eq!(record.insert(Seq48::new(5), Ecn::NotEct), Arrival::Late);
        assert_eq!(vectors(&record, 100), [(false, vec![5])]);
        assert_eq!(record.insert(Seq48::new(5), Ecn::Ce), Arrival::Known);
    }

    #[test]
    fn long_records_are_split_into_options_and_cut_at_the_old_end() {
        // Every second packet is lost: one cell per packet.
        let record = plain((0..600).map(|index| 2 * index));
        let whole = vectors(&record, 2000);
        assert_eq!(
            whole.iter().map(|(_, vector)| vector.len()).collect::<Vec<_>>(),
            [253, 253, 253, 253, 187]
        );
        let cut = vectors(&record, 300);
        assert_eq!(cut.iter().map(|(_, vector)| vector.len()).collect::<Vec<_>>(), [253, 43]);
        assert_eq!((&cut[0].1, &cut[1].1[..]), (&whole[0].1, &whole[1].1[..43]));
        assert!(vectors(&record, 2).is_empty());
    }

    #[test]
    fn acknowledged_acknowledgements_free_the_record() {
        let mut record = plain((0..200).map(|index| 2 * index));
        record.on_sent(Seq48::new(7));
        record.insert(Seq48::new(399), Ecn::NotEct);
        record.on_acknowledged(Seq48::new(6), std::iter::empty());
        assert_eq!(record.cells(), 399);
        record.on_acknowledged(Seq48::new(7), std::iter::empty());
        assert_eq!(vectors(&record, 100), [(false, vec![1])]);
    }

    #[test]
    fn an_ack_vector_of_the_peer_also_says_which_acknowledgement_arrived() {
        let mut record = plain([1, 3, 5]);
        record.on_sent(Seq48::new(50));
        record.insert(Seq48::new(7), Ecn::NotEct);
        record.on_sent(Seq48::new(52));
        record.insert(Seq48::new(9), Ecn::NotEct);
        // 54 is data; 52 did not arrive, 50 did.
        let placed = Placed { newest: Seq48::new(54), nonce: false, vector: &[1, 192, 3] };
        record.on_acknowledged(Seq48::new(54), std::iter::once(placed));
        assert_eq!(vectors(&record, 100), [(false, vec![0, 192, 0, 192])]);
    }

    #[test]
    fn a_packet_that_was_reported_missing_is_kept_until_reported_received() {
        let mut record = plain([1, 2, 5]);
        record.on_sent(Seq48::new(50));
        record.insert(Seq48::new(4), Ecn::NotEct);
        record.on_acknowledged(Seq48::new(50), std::iter::empty());
        assert_eq!(vectors(&record, 100), [(false, vec![1])]);
        let mut record = plain([1, 2, 5]);
        record.on_sent(Seq48::new(50));
        record.insert(Seq48::new(3), Ecn::NotEct);
        record.on_acknowledged(Seq48::new(50), std::iter::empty());
        assert_eq!(vectors(&record, 100), [(false, vec![0, 192, 2])]);
    }

    #[test]
    fn memory_stays_bounded_whatever_the_numbers() {
        let mut record = plain([0]);
        for index in 1..20_000 {
            record.insert(Seq48::new(2 * index), Ecn::NotEct);
            record.on_sent(Seq48::new(index));
        }
        assert!(record.cells() <= MAX_CELLS && record.sent.len() <= MAX_SENT);
        assert_eq!(record.insert(Seq48::new(1 << 45), Ecn::NotEct), Arrival::Gap);
        assert_eq!(record.cells(), 1);
        assert_eq!(record.insert(Seq48::new(3), Ecn::NotEct), Arrival::Known);
    }
}
