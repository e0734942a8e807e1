// SPDX-License-Identifier: Apache-2.0
//! Any bytes, cut into packets, into a listener and a client.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/connection/fuzz_body.rs"]
mod fuzz_body;

fuzz_target!(|bytes: &[u8]| fuzz_body::connection(bytes));
