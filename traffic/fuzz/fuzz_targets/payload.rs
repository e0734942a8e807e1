// SPDX-License-Identifier: Apache-2.0
//! Any bytes as what arrives on the data path.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/payload_body.rs"]
mod payload_body;

fuzz_target!(|bytes: &[u8]| payload_body::payload(bytes));
