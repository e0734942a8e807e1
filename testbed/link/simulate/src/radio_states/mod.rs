// SPDX-License-Identifier: Apache-2.0
//! What would a radio that sleeps between packets have cost under a trace? A trace and a machine come as text, the
//! answer is a document.

pub mod answer;
pub mod machine;
pub mod trace;
