// SPDX-License-Identifier: Apache-2.0
//! What a process takes of its host: CPU time and context switches, cycles, and the account of both over a flow.

pub mod costs;
pub mod cycles;
pub mod usage;
