// SPDX-License-Identifier: Apache-2.0
//! The committed inputs of the fuzz target `connection`, and random ones.

use crate::fuzz_body;
use crate::world::Random;

#[test]
fn the_committed_corpus_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/connection");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is committed") {
        let path = entry.expect("readable").path();
        fuzz_body::connection(&std::fs::read(path).expect("readable"));
        count += 1;
    }
    assert!(count >= 10, "{count} inputs");
}

/// Each committed input with bytes changed, many times.
#[test]
fn neighbours_of_the_corpus_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/connection");
    let mut random = Random::new(11);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is committed")
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    for path in paths {
        let input = std::fs::read(path).expect("readable");
        for _ in 0..2_000 {
            let mut changed = input.clone();
            for _ in 0..=random.below(4) {
                if changed.is_empty() {
                    break;
                }
                let place = random.below(changed.len() as u64) as usize;
                changed[place] = random.next() as u8;
            }
            fuzz_body::connection(&changed);
        }
    }
}
