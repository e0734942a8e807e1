// SPDX-License-Identifier: Apache-2.0
//! Which packets are on their way, and what became of them (RFC 4341 section 5; RFC 4340 section 11.4.1).
//!
//! One entry per sequence number from the oldest whose fate is unknown to the newest sent. A packet leaves at the old end as
//! soon as its fate is known, at the latest when three later ones have arrived. So an acknowledgement costs as much as it
//! says news, however much it repeats.

use std::collections::VecDeque;

use crate::ccid::ack_vector::Run;
use crate::options::ack_vector::AckState;
use crate::seqno::Seq48;

/// Duplicate acknowledgements needed to infer a loss.
const NUMDUPACK: usize = 3;
/// Most packets remembered; beyond that the oldest counts as lost.
const MOST_PACKETS: usize = 1 << 18;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unknown,
    Received,
    Marked,
    /// Arrived, but the peer told that it dropped the data.
    Dropped,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    at_ns: i64,
    is_data: bool,
    fate: Fate,
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct News {
    /// Data packets newly acknowledged as received without mark (State 0).
    pub received: u64,
    /// Data packets newly acknowledged as received with a mark (State 1).
    pub marked: u64,
    /// Data packets newly inferred lost.
    pub lost: u64,
    /// The oldest packet newly acknowledged.
    pub oldest_received: Option<Seq48>,
    /// The newest data packet newly lost or marked.
    pub newest_congested: Option<Seq48>,
    /// Data Dropped has reduced the window already.
    pub reduced: bool,
}

impl News {
    fn congested(&mut self, seq: Seq48) {
        self.newest_congested = Some(self.newest_congested.map_or(seq, |before| before.latest(seq)));
    }
}

/// The packets under way.
#[derive(Debug)]
pub struct Flight {
    /// Number of the first entry.
    first: Seq48,
    packets: VecDeque<Sent>,
    /// Data packets that are neither acknowledged nor inferred lost.
    pipe: u64,
    /// The newest packets known to have arrived, newest first.
    arrived: [Option<Seq48>; NUMDUPACK],
}

impl Flight {
    /// Nothing sent; the next packet has number `first`.
    pub const fn new(first: Seq48) -> Self {
        Self { first, packets: VecDeque::new(), pipe: 0, arrived: [None; NUMDUPACK] }
    }

    /// Estimate of the data packets in the network.
    pub const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Number of the next packet to be sent.
    pub fn next_seq(&self) -> Seq48 {
        self.first.add(self.packets.len() as u64)
    }

    /// A packet left.
    pub fn on_sent(&mut self, now_ns: i64, seq: Seq48, is_data: bool) {
        let skipped = self.next_seq().distance_to(seq);
        if skipped < 0 {
            return;
        }
        if self.pipe == 0 {
            // Nobody asks what became of the packets before this one.
            self.packets.clear();
            self.first = seq;
        } else {
            let room = MOST_PACKETS.saturating_sub(self.packets.len());
            let fill = (skipped.unsigned_abs() as usize).min(room);
            let unsent = Sent { at_ns: now_ns, is_data: false, fate: Fate::Unknown };
            self.packets.extend(std::iter::repeat_n(unsent, fill));
            if self.next_seq() != seq {
                self.forget_all(seq);
            }
        }
        if !is_data && self.pipe == 0 {
            self.first = seq.add(1);
            return;
        }
        //= rfc4341#5
        //# Every data packet sent increases pipe by 1.
        self.pipe += u64::from(is_data);
        self.packets.push_back(Sent { at_ns: now_ns, is_data, fate: Fate::Unknown });
        if self.packets.len() > MOST_PACKETS {
            self.give_up_oldest();
        }
    }

    /// Data packets left at once, with the numbers behind the newest.
    pub fn on_followers_sent(&mut self, now_ns: i64, packets: u64) {
        let sent = Sent { at_ns: now_ns, is_data: true, fate: Fate::Unknown };
        self.pipe += packets;
        self.packets.extend(std::iter::repeat_n(sent, packets as usize));
        while self.packets.len() > MOST_PACKETS {
            self.give_up_oldest();
        }
    }

    fn give_up_oldest(&mut self) {
        if let Some(sent) = self.packets.pop_front() {
            self.first = self.first.add(1);
            self.pipe -= u64::from(sent.is_data && sent.fate == Fate::Unknown);
        }
    }

    /// After a timeout: "the sender sets pipe to zero". Acknowledgements of what was sent so far no longer count.
    pub fn forget_all(&mut self, next: Seq48) {
        self.packets.clear();
        self.first = next;
        self.pipe = 0;
        self.arrived = [None; NUMDUPACK];
    }

    /// When packet `seq` left, if it is still remembered and was not known to have arrived.
    pub fn sent_unless_known(&self, seq: Seq48) -> Option<i64> {
        let sent = self.packets.get(self.index(seq)?)?;
        (sent.fate == Fate::Unknown).then_some(sent.at_ns)
    }

    fn index(&self, seq: Seq48) -> Option<usize> {
        usize::try_from(self.first.distance_to(seq)).ok().filter(|index| *index < self.packets.len())
    }

    /// A run of an Ack Vector says what became of its packets. `false`: this run and all older ones are old news.
    pub fn on_run(&mut self, run: Run, news: &mut News) -> bool {
        let Some(newest) = usize::try_from(self.first.distance_to(run.newest)).ok() else { return false };
        //= rfc4340#11.4.1
        //# An HC-Sender MAY choose to throw away old information gleaned from the HC-Receiver's Ack Vectors, in which case it
        //# MUST ignore newly received acknowledgements from the HC-Receiver for those old packets.
        let oldest = usize::try_from(self.first.distance_to(run.oldest)).unwrap_or(0);
        if !run.is_received() || self.packets.is_empty() {
            return true;
        }
        let arrived = (oldest..=newest.min(self.packets.len() - 1)).rev();
        for (later, index) in arrived.enumerate() {
            // Of a run only the first few can be among the newest of all.
            self.on_arrived(index, run.state, later < NUMDUPACK, news);
        }
        true
    }

    fn on_arrived(&mut self, index: usize, state: AckState, is_new: bool, news: &mut News) {
        let seq = self.first.add(index as u64);
        let sent = &mut self.packets[index];
        let marked = state == AckState::ReceivedEcnMarked;
        let before = sent.fate;
        if before == Fate::Dropped {
            return;
        }
        // The sender's table of section 11.4.1: a mark is never taken back, and marks what was received plain.
        sent.fate = if marked || before == Fate::Marked { Fate::Marked } else { Fate::Received };
        let is_data = sent.is_data;
        if is_data && marked && before != Fate::Marked {
            news.marked += 1;
            news.congested(seq);
        }
        //= rfc4341#5
        //# The sender MUST NOT decrement pipe more than once per data packet. True duplicate acknowledgements, for example,
        //# MUST NOT affect pipe.
        if before != Fate::Unknown {
            return;
        }
        if is_new {
            self.note_arrived(seq);
        }
        //= rfc4341#5
        //# Furthermore, the sender MUST NOT decrement pipe for non-data packets, such as DCCP-Acks, even though the Ack Vector
        //# will contain information about them.
        if is_data {
            self.pipe -= 1;
            news.received += u64::from(!marked);
            news.oldest_received = Some(seq);
        }
    }

    fn note_arrived(&mut self, seq: Seq48) {
        let mut moving = Some(seq);
        for slot in &mut self.arrived {
            match (*slot, moving) {
                (_, None) => return,
                (None, _) => {
                    *slot = moving;
                    return;
                }
                (Some(there), Some(new)) if there.is_before(new) => {
                    *slot = moving;
                    moving = Some(there);
                }
                _ => {}
            }
        }
    }

    /// After the runs of an acknowledgement: infer losses and forget packets whose fate is known.
    pub fn settle(&mut self, news: &mut News) {
        //= rfc4341#5
        //# A packet P is inferred to be lost, rather than delayed, when at least NUMDUPACK packets transmitted after P have been
        //# acknowledged as received (Ack Vector State 0 or 1) by the receiver.
        while let Some(sent) = self.packets.front() {
            let lost = self.arrived[NUMDUPACK - 1].is_some_and(|third| self.first.is_before(third));
            let was_data = sent.is_data;
            match sent.fate {
                Fate::Unknown if !lost => return,
                Fate::Unknown if was_data => {
                    //= rfc4341#5
                    //# The sender also MUST NOT decrement pipe again upon receiving acknowledgement of a packet previously
                    //# inferred as lost.
                    self.pipe -= 1;
                    news.lost += 1;
                    news.congested(self.first);
                }
                _ => {}
            }
            self.packets.pop_front();
            self.first = self.first.add(1);
        }
    }

    /// Packets of `oldest..=newest` that are data, known to have arrived and still remembered; each is told once.
    pub fn take_dropped(&mut self, newest: Seq48, oldest: Seq48) -> u64 {
        let Some(last) = usize::try_from(self.first.distance_to(newest)).ok() else { return 0 };
        let first = usize::try_from(self.first.distance_to(oldest)).unwrap_or(0);
        let mut dropped = 0;
        for sent in self.packets.iter_mut().take(last.saturating_add(1)).skip(first) {
            if sent.is_data && matches!(sent.fate, Fate::Received | Fate::Marked) {
                dropped += 1;
                sent.fate = Fate::Dropped;
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccid::ack_vector::runs;

    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::new(Seq48::new(0));
        (0..packets).for_each(|seq| flight.on_sent(seq as i64, Seq48::new(seq), true));
        flight
    }

    fn ack(flight: &mut Flight, newest: u64, vector: &[u8]) -> News {
        let mut news = News::default();
        let _ = runs(Seq48::new(newest), vector).take_while(|run| flight.on_run(*run, &mut news)).count();
        flight.settle(&mut news);
        news
    }

    #[test]
    fn received_packets_leave_the_pipe_once() {
        let mut flight = flight(10);
        assert_eq!(ack(&mut flight, 1, &[1]).received, 2);
        assert_eq!(flight.pipe(), 8);
        assert_eq!(ack(&mut flight, 1, &[1]), News::default());
        assert_eq!(ack(&mut flight, 3, &[3]).received, 2);
        assert_eq!(flight.pipe(), 6);
    }

    #[test]
    fn three_later_packets_make_a_loss_and_its_late_arrival_changes_nothing() {
        let mut flight = flight(10);
        assert_eq!(ack(&mut flight, 2, &[1, 192]).lost, 0);
        assert_eq!(flight.pipe(), 8);
        let news = ack(&mut flight, 3, &[2, 192]);
        assert_eq!((news.received, news.lost, news.newest_congested), (1, 1, Some(Seq48::new(0))));
        assert_eq!(flight.pipe(), 6);
        assert_eq!(ack(&mut flight, 3, &[3]), News::default());
        assert_eq!(flight.pipe(), 6);
    }

    #[test]
    fn a_reordered_packet_is_not_lost() {
        let mut flight = flight(10);
        ack(&mut flight, 2, &[1, 192]);
        let news = ack(&mut flight, 4, &[4]);
        assert_eq!((news.received, news.lost), (3, 0));
    }

    #[test]
    fn a_packet_without_data_counts_as_later_packet_but_not_in_the_pipe() {
        let mut flight = flight(2);
        (2..5).for_each(|seq| flight.on_sent(9, Seq48::new(seq), false));
        assert_eq!(flight.pipe(), 2);
        let news = ack(&mut flight, 4, &[2, 192, 0]);
        assert_eq!((news.received, news.lost, flight.pipe()), (1, 1, 0));
    }

    #[test]
    fn a_lost_packet_without_data_is_no_congestion_event() {
        let mut flight = flight(1);
        flight.on_sent(9, Seq48::new(1), false);
        (2..6).for_each(|seq| flight.on_sent(9, Seq48::new(seq), true));
        let news = ack(&mut flight, 5, &[3, 192, 0]);
        assert_eq!((news.lost, news.newest_congested, flight.pipe()), (0, None, 0));
    }

    #[test]
    fn marks_are_told_once_and_never_taken_back() {
        let mut flight = flight(10);
        // Packet 0 stays unknown, so that the others are remembered.
        let news = ack(&mut flight, 2, &[64, 0, 192]);
        assert_eq!((news.marked, news.received, news.newest_congested), (1, 1, Some(Seq48::new(2))));
        assert_eq!(ack(&mut flight, 2, &[0, 0, 192]), News::default());
        let news = ack(&mut flight, 2, &[64, 64, 192]);
        assert_eq!((news.marked, news.received, flight.pipe()), (1, 0, 8));
    }

    #[test]
    fn nothing_is_left_after_forgetting() {
        let mut flight = flight(10);
        flight.forget_all(Seq48::new(10));
        assert_eq!((flight.pipe(), ack(&mut flight, 9, &[9])), (0, News::default()));
        flight.on_sent(0, Seq48::new(10), true);
        assert_eq!(ack(&mut flight, 10, &[10]).received, 1);
    }

    #[test]
    fn numbers_of_packets_without_data_cost_no_memory_while_nothing_is_under_way() {
        let mut flight = Flight::new(Seq48::new(0));
        (0..1000).for_each(|seq| flight.on_sent(0, Seq48::new(seq), false));
        assert_eq!((flight.packets.len(), flight.next_seq()), (0, Seq48::new(1000)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flight = flight(MOST_PACKETS as u64 + 1000);
        assert_eq!((flight.packets.len(), flight.pipe()), (MOST_PACKETS, MOST_PACKETS as u64));
        flight.on_sent(0, Seq48::new(1 << 40), true);
        assert_eq!((flight.packets.len(), flight.pipe()), (1, 1));
    }
}
