// SPDX-License-Identifier: Apache-2.0
//! Replays the committed fuzz corpus, so that what a fuzzer once found stays found.

use std::path::Path;

#[test]
fn the_corpus_of_the_wire_target_holds() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/wire");
    let mut replayed = 0;
    for entry in
        std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
    {
        let path = entry.unwrap().path();
        crate::fuzz_body::wire(
            &std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        );
        replayed += 1;
    }
    assert!(replayed >= 30, "{} holds only {replayed} files", directory.display());
}
