// SPDX-License-Identifier: Apache-2.0
//! Any bytes through every reader of the wire format.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/wire/fuzz_body.rs"]
mod fuzz_body;

fuzz_target!(|bytes: &[u8]| fuzz_body::wire(bytes));
