// SPDX-License-Identifier: Apache-2.0
//! Which part of which file goes over how many connections, and when: the decisions of a download, without its I/O.
//!
//! The caller owns sockets and clock: it tells what happened and when, and does what [`scheduler::Scheduler::poll`]
//! asks for. So the same decisions drive real connections and model ones, and a log of what a decision rested on
//! repeats it.
//!
//! | question | module |
//! | --- | --- |
//! | how much does the path hold, and how many connections fill it? | [`path`] |
//! | which files are treated alike? | [`partition`] |
//! | how many connections does each chunk get? | [`policy`], which reads and answers what stands in [`level`] |
//! | what makes one level better than another? | [`objective`] |
//! | which bytes of which file are next? | [`dispatch`] |
//! | what was decided, from what, and would it be again? | [`log`] |
//! | all of it together | [`scheduler`], with its [`settings`] |

#![forbid(unsafe_code)]

pub mod dispatch;
pub mod level;
pub mod log;
pub mod objective;
pub mod partition;
pub mod path;
pub mod policy;
pub mod scheduler;
pub mod settings;
