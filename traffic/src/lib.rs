// SPDX-License-Identifier: Apache-2.0
//! netjoule's traffic engine: paced flows over any transport, and one honest report of both ends.
//!
//! Pure parts (no socket, no clock): [`units`], [`schedule`], [`pacing`], [`certificate`], [`tracker`], [`jitter`],
//! [`delay`], [`intervals`], [`clock_offset`], [`control`], [`report`], `batch`. Parts that touch the system: [`host`]
//! (clocks, CPU, identity), [`wait`] (sleeping and polling), [`channel`] (the control connection), [`session`] (all of
//! one flow's descriptors), `lobby` (where clients wait), `target` (names and addresses). On top: [`sender`] and
//! [`receiver`] are the two ends of a flow (`pump` hands its messages over), [`client`] and [`server`] the two programs;
//! `assemble` joins both halves into the report, [`selftest`] certifies a host.

mod assemble;
mod batch;
pub mod carriers;
pub mod certificate;
pub mod channel;
pub mod cli;
pub mod client;
pub mod clock_offset;
pub mod control;
pub mod delay;
pub mod dissect;
pub mod failure;
pub mod host;
pub mod intervals;
pub mod jitter;
mod lobby;
pub mod output;
pub mod pacing;
mod pump;
pub mod receiver;
pub mod registry;
pub mod report;
pub mod schedule;
pub mod selftest;
pub mod sender;
pub mod server;
pub mod session;
mod target;
pub mod tracker;
pub mod units;
pub mod wait;
