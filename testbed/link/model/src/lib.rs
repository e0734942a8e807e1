// SPDX-License-Identifier: Apache-2.0
//! An 802.11n/ac link by arithmetic: packets go in with the time, decisions come out. No socket, clock or thread, and all
//! chance comes from a seed.
//!
//! [`model`] is the whole: [`station`]s with their [`queue`]s contend ([`contention`]) for [`airtime`] at the rates of
//! [`mcs`], a [`path`] of elements lies behind them, some of which scale their rate ([`scaling`]), and [`stats`] counts. [`radio`] and [`presets`] are its parameters,
//! [`saturation`] is the closed form that it is held against. An [`access`] network may stand before the air: its radio
//! sleeps between packets ([`radio_states`]).

#![forbid(unsafe_code)]

pub mod access;
pub mod airtime;
pub mod contention;
pub mod mcs;
pub mod model;
pub mod path;
pub mod port;
pub mod presets;
pub mod queue;
pub mod radio;
pub mod radio_states;
pub mod range;
pub mod rng;
pub mod saturation;
pub mod scaling;
pub mod station;
pub mod stats;
pub mod tally;
