// SPDX-License-Identifier: Apache-2.0
//! `serve`: what all its flows share. A flow runs in a process of its own, which does nothing else, so that its run time is
//! the flow's.
//!
//! | question | module |
//! | --- | --- |
//! | who comes in when? | `doorkeeper` |
//! | where do clients wait? | `lobby`; who crowds it: `crowd` |
//! | how many may wait? | `descriptors` |
//! | what becomes of a flow? | `flow` |
//! | what is a person told of it? | `visit` |

mod crowd;
mod descriptors;
mod doorkeeper;
mod flow;
mod lobby;
mod places;
mod shared;
mod visit;

use crate::arguments::ServeArgs;
use crate::background::Background;
use crate::failure::Outcome;
use crate::output::Output;
use crate::wait::Signals;
use shared::Server;

/// Run `serve`; the exit code. `background`: where it leaves its terminal once it listens.
pub fn run(
    args: &ServeArgs,
    signals: &Signals,
    output: Output,
    background: Option<Background>,
) -> Outcome<u8> {
    doorkeeper::run(Server { args, signals, output }, background)
}
