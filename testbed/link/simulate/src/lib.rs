// SPDX-License-Identifier: Apache-2.0
//! netjoule-simulate: flows between model endpoints over the elements of netjoule_link_model, in simulated time; and
//! what a radio would have cost under a trace of packets.

#![forbid(unsafe_code)]

pub mod config;
pub mod dccp;
pub mod ends;
pub mod outcome;
pub mod radio_states;
pub mod segment;
pub mod tcp;
pub mod transfer;
pub mod world;
