// SPDX-License-Identifier: Apache-2.0
//! netjoule's traffic engine: paced flows over any transport, and one honest report of both ends.
//!
//! Pure parts (no socket, no clock): [`units`], [`schedule`], [`pacing`], [`certificate`], [`tracker`], [`jitter`],
//! [`delay`], [`ipdv`], [`loss`], [`distribution`], [`departure`], [`intervals`], [`clock_offset`], [`control`], [`report`], `batch`. Parts that touch the system: [`host`]
//! (clocks, CPU, identity), [`usage`], [`cycles`] and [`costs`] (what a flow takes of its host), [`traces`], [`capture`],
//! [`wait`] (sleeping and polling), [`channel`] (the control connection), [`session`] (all of
//! one flow's descriptors), `lobby` (where clients wait), `target` (names and addresses). On top: [`sender`] and
//! [`receiver`] are the two ends of a flow (`pump` hands its messages over), [`client`] and [`server`] the two programs;
//! `assemble` joins both halves into the report, [`selftest`] certifies a host.

mod assemble;
mod batch;
pub mod capture;
pub mod carriers;
pub mod catalogue;
pub mod certificate;
pub mod channel;
pub mod cli;
pub mod client;
pub mod clock_offset;
pub mod control;
pub mod costs;
pub mod cycles;
pub mod delay;
pub mod departure;
pub mod dissect;
pub mod distribution;
mod event_log;
pub mod failure;
pub mod host;
mod instruments;
pub mod intervals;
pub mod ipdv;
pub mod jitter;
mod lobby;
pub mod loss;
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
pub mod traces;
pub mod tracker;
pub mod transport_options;
pub mod units;
pub mod usage;
pub mod wait;
