// SPDX-License-Identifier: Apache-2.0
//! Any bytes as what a peer says on the control connection.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[path = "../../tests/fuzz/control_body.rs"]
mod control_body;

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control_body::control(bytes));

#[cfg(not(feature = "libfuzzer"))]
fn main() {
    control_body::control(&[]);
}
