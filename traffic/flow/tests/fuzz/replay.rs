// SPDX-License-Identifier: Apache-2.0
//! Replays the committed corpora, and each input with bytes changed, so that what a fuzzer once found stays found.

use std::path::Path;

use crate::{control_body, payload_body, transports_body};

/// Changed copies of each input.
const NEIGHBOURS: usize = 500;

/// Every input of a corpus, in one order on every host.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{} holds only {} files", folder.display(), paths.len());
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// splitmix64: the same numbers on every host.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// The input with up to four bytes changed, or cut short.
fn neighbour(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..=random.below(4) {
        let place = random.below(changed.len());
        match random.below(8) {
            0 => changed.truncate(place + 1),
            1 => changed.insert(place, random.next() as u8),
            _ => changed[place] = random.next() as u8,
        }
    }
    changed
}

fn replay(name: &str, target: fn(&[u8])) {
    let mut random = Random(11);
    for input in corpus(name) {
        target(&input);
        for _ in 0..NEIGHBOURS {
            target(&neighbour(&input, &mut random));
        }
    }
}

#[test]
fn the_control_corpus_and_its_neighbours_pass() {
    replay("control", control_body::control);
}

#[test]
fn the_payload_corpus_and_its_neighbours_pass() {
    replay("payload", payload_body::payload);
}

#[test]
fn the_transports_corpus_and_its_neighbours_pass() {
    replay("transports", transports_body::transports);
}
