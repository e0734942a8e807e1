// SPDX-License-Identifier: Apache-2.0
//! netjoule's traffic engine: paced flows over any transport, and one honest report of both ends.
//!
//! | question | module |
//! | --- | --- |
//! | what is to be sent, and when? | [`schedule`], [`load`] |
//! | when does each message leave, and how well was that kept? | [`pacing`], [`certificate`] |
//! | what do the two ends say to each other beside the data? | [`control`] |
//! | what does one end wait for? | [`session`] (all descriptors of one flow) |
//! | how are messages sent and received? | [`sender`], [`receiver`] |
//! | what is told of a flow? | [`metrics`], [`intervals`], [`traces`], [`report`] |
//! | what are the programs? | [`client`], [`parallel`] (several flows at once), [`server`] |
//! | which transports are there, and with what options? | [`registry`], [`transport_options`], [`catalogue`], [`carriers`] |
//! | what else can the program do? | [`selftest`], [`dissect`], [`profile`] |
//! | how is it called? | [`cli`], [`arguments`], [`iperf3`] |
//!
//! Clocks, waits, CPU accounting, output and capture are netjoule-measure's. Pure (no socket, no clock) are schedule,
//! pacing, certificate, metrics, intervals, report, and control but for its channel.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod carriers;
pub mod catalogue;
pub mod certificate;
pub mod cli;
pub mod client;
pub mod control;
pub mod dissect;
mod event_log;
pub mod intervals;
pub mod iperf3;
pub mod load;
pub mod metrics;
pub mod pacing;
pub mod parallel;
pub mod profile;
pub mod receiver;
pub mod registry;
pub mod report;
pub mod schedule;
pub mod selftest;
pub mod sender;
pub mod server;
pub mod session;
pub mod stdin_lines;
pub mod traces;
pub mod transport_options;
