// SPDX-License-Identifier: Apache-2.0
//! `serve`: what all its flows share. A flow runs in a process of its own, which does nothing else, so that its run time is
//! the flow's.
//!
//! | question | module |
//! | --- | --- |
//! | who comes in when? | `accept_loop` |
//! | where do clients wait? | `accept_queue`; who has most of it: `peer_counts` |
//! | how many may wait? | `descriptors` |
//! | which flows are on, and is there room for another? | `admission` |
//! | what becomes of a flow? | `flow` |
//! | what is a person told of it? | `log_lines` |

mod accept_loop;
mod accept_queue;
mod admission;
mod descriptors;
mod flow;
mod log_lines;
mod peer_counts;
mod shared;

use crate::arguments::ServeArgs;
use netjoule_measure::background::Background;
use netjoule_measure::failure::Outcome;
use netjoule_measure::output::Output;
use netjoule_measure::wait::Signals;
use shared::Server;

/// Run `serve`; the exit code. `background`: where it leaves its terminal once it listens.
pub fn run(
    args: &ServeArgs,
    signals: &Signals,
    output: Output,
    background: Option<Background>,
) -> Outcome<u8> {
    accept_loop::run(Server { args, signals, output }, background)
}
