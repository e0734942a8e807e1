// SPDX-License-Identifier: Apache-2.0
//! ECN nonces of the packets sent, to check the receiver's Nonce Echo (RFC 4340 section 12.2).

use crate::ccid::ack_vector::Placed;
use crate::ccid::Ecn;
use crate::options::ack_vector::AckState;
use crate::seqno::Seq48;

/// Packets remembered.
const PACKETS: u64 = 1 << 16;
const WORD_BITS: u64 = 64;

/// One bit per packet: the parity of all nonces up to and with it.
#[derive(Debug)]
pub struct Nonces {
    /// Empty until the first nonce of 1 is sent: until then every right echo is 0 and nothing is checked.
    parities: Vec<u64>,
    oldest: Seq48,
    newest: Seq48,
    parity: bool,
}

impl Nonces {
    /// Before the first packet, which has number `first`.
    pub const fn new(first: Seq48) -> Self {
        Self { parities: Vec::new(), oldest: first, newest: first.sub(1), parity: false }
    }

    /// A packet left with this ECN field.
    pub fn on_sent(&mut self, seq: Seq48, ecn: Ecn) {
        if self.parities.is_empty() {
            if ecn != Ecn::Ect1 {
                self.newest = seq;
                return;
            }
            self.parities = vec![0; (PACKETS / WORD_BITS) as usize];
            self.oldest = seq.sub(1);
            self.newest = seq.sub(1);
            self.set(self.newest, false);
        }
        let ahead = self.newest.distance_to(seq);
        if ahead <= 0 {
            return;
        }
        for skipped in 1..ahead.unsigned_abs().min(PACKETS) {
            self.set(seq.sub(skipped), self.parity);
        }
        self.parity ^= ecn == Ecn::Ect1;
        self.set(seq, self.parity);
        self.newest = seq;
    }

    /// `packets` packets with numbers from `first` on left with this ECN field.
    pub fn on_followers_sent(&mut self, first: Seq48, packets: u64, ecn: Ecn) {
        // Only the newest counts until nonces are sent.
        let from = if self.parities.is_empty() && ecn != Ecn::Ect1 { packets.saturating_sub(1) } else { 0 };
        for step in from..packets {
            self.on_sent(first.add(step), ecn);
        }
    }

    fn set(&mut self, seq: Seq48, parity: bool) {
        let bit = seq.value() % PACKETS;
        let mask = 1 << (bit % WORD_BITS);
        let word = &mut self.parities[(bit / WORD_BITS) as usize];
        *word = if parity { *word | mask } else { *word & !mask };
    }

    fn get(&self, seq: Seq48) -> bool {
        let bit = seq.value() % PACKETS;
        self.parities[(bit / WORD_BITS) as usize] >> (bit % WORD_BITS) & 1 == 1
    }

    /// Whether the echo of this option agrees with what was sent. `true` also when that is no longer known.
    pub fn agrees(&self, placed: &Placed<'_>) -> bool {
        if self.parities.is_empty() {
            return true;
        }
        let mut expected = false;
        for run in placed.runs().filter(|run| run.state == AckState::Received) {
            let before = run.oldest.sub(1);
            let age = before.distance_to(self.newest);
            if before.is_before(self.oldest) || age >= PACKETS as i64 || self.newest.is_before(run.newest) {
                return true;
            }
            expected ^= self.get(run.newest) ^ self.get(before);
        }
        expected == placed.nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(newest: u64, nonce: bool, vector: &[u8]) -> Placed<'_> {
        Placed { newest: Seq48::new(newest), nonce, vector }
    }

    fn sent(marks: &[Ecn]) -> Nonces {
        let mut nonces = Nonces::new(Seq48::new(1));
        (1..).zip(marks).for_each(|(seq, ecn)| nonces.on_sent(Seq48::new(seq), *ecn));
        nonces
    }

    #[test]
    fn a_receiver_that_hides_a_loss_is_found_out() {
        let nonces = sent(&[Ecn::Ect1, Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0]);
        assert!(nonces.agrees(&placed(5, true, &[4])));
        assert!(!nonces.agrees(&placed(5, false, &[4])));
        assert!(nonces.agrees(&placed(5, false, &[1, 192, 1])));
        assert!(!nonces.agrees(&placed(5, true, &[1, 192, 1])));
        assert!(nonces.agrees(&placed(5, false, &[1, 64, 1])));
    }

    #[test]
    fn without_nonces_nothing_is_checked() {
        let nonces = sent(&[Ecn::Ect0; 5]);
        assert!(nonces.agrees(&placed(5, true, &[4])));
    }

    #[test]
    fn what_is_forgotten_or_was_never_sent_is_not_held_against_anybody() {
        let mut nonces = sent(&[Ecn::Ect0, Ecn::Ect1]);
        assert!(nonces.agrees(&placed(2, false, &[5])));
        assert!(nonces.agrees(&placed(9, false, &[9])));
        nonces.on_sent(Seq48::new(1 << 30), Ecn::Ect1);
        assert!(nonces.agrees(&placed(2, false, &[0])));
        assert!(nonces.agrees(&placed(1 << 30, true, &[0])) && !nonces.agrees(&placed(1 << 30, false, &[0])));
    }
}
