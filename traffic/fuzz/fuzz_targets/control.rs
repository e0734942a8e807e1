// SPDX-License-Identifier: Apache-2.0
//! Any bytes as what a peer says on the control connection.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/control_body.rs"]
mod control_body;

fuzz_target!(|bytes: &[u8]| control_body::control(bytes));
