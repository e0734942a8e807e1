// SPDX-License-Identifier: Apache-2.0
//! Any bytes as what a transport reads before and below its messages.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[path = "../../tests/fuzz/transports_body.rs"]
mod transports_body;

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| transports_body::transports(bytes));

#[cfg(not(feature = "libfuzzer"))]
fn main() {
    transports_body::transports(&[]);
}
