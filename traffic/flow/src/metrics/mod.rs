// SPDX-License-Identifier: Apache-2.0
//! What the messages of a flow tell of its path: loss, delay, jitter and their relatives. Pure.

pub mod delay;
pub mod departure;
pub mod ipdv;
pub mod jitter;
pub mod loss;
pub mod tracker;
