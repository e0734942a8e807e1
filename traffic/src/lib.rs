// SPDX-License-Identifier: Apache-2.0
//! netjoule's traffic engine: paced flows over any transport, and one honest report of both ends.
//!
//! Pure parts (no socket, no clock): [`units`], [`schedule`], [`pacing`], [`certificate`], [`tracker`], [`jitter`],
//! [`delay`], [`ipdv`], [`loss`], [`distribution`], [`departure`], [`fairness`], [`intervals`], [`clock_offset`],
//! [`report`], `batch`, `accepted`. Parts that touch the system: [`host`] (clocks, CPU, identity), [`usage`], [`cycles`]
//! and [`costs`] (what a flow takes of its host), [`traces`], [`capture`], [`wait`] (sleeping and polling), [`session`]
//! (all of one flow's descriptors), `places` (the flows that are on), `stdout_turns` (who writes to a shared stdout),
//! `target` (names and addresses), [`background`] (leaving the terminal), [`load`] (what is to be sent). [`control`] is what the two ends say to each other
//! beside the data: pure but for its `channel`.
//!
//! On top: [`sender`] and [`receiver`] are the two ends of a flow (`pump` hands its messages over), [`client`] and
//! [`server`] the two programs, [`several`] is `send` with several flows; `assemble` joins both halves into the report,
//! `partial` prints what there is when a flow fails, [`selftest`] certifies a host, [`profile`] makes profiles of
//! captures.

pub mod arguments;
mod assemble;
pub mod background;
pub mod capture;
pub mod carriers;
pub mod catalogue;
pub mod certificate;
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
pub mod fairness;
pub mod host;
pub mod intervals;
pub mod ipdv;
pub mod iperf3;
pub mod jitter;
pub mod load;
pub mod loss;
pub mod output;
pub mod pacing;
mod partial;
mod process;
pub mod profile;
pub mod realtime;
pub mod receiver;
pub mod registry;
pub mod report;
pub mod schedule;
mod second_signal;
pub mod selftest;
pub mod sender;
pub mod server;
pub mod session;
pub mod several;
mod stdout_turns;
mod target;
pub mod traces;
pub mod tracker;
pub mod transport_options;
pub mod units;
pub mod usage;
pub mod wait;
