// SPDX-License-Identifier: Apache-2.0
//! Any bytes as what arrives on the data path.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[path = "../../tests/fuzz/payload_body.rs"]
mod payload_body;

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| payload_body::payload(bytes));

#[cfg(not(feature = "libfuzzer"))]
fn main() {
    payload_body::payload(&[]);
}
