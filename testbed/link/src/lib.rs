// SPDX-License-Identifier: Apache-2.0
//! netjoule-link: an emulated 802.11n/ac link that serves packets by air time.
//!
//! Three rooms. *Decisions*: [`mcs`], [`airtime`], [`queue`], [`contention`], [`wired`], [`station`], [`model`],
//! [`saturation`], [`stats`]; pure, seeded, they take `now`. *Inputs*: [`config`], [`end`], [`radio`], [`presets`],
//! [`ip_header`], [`routes`]. *Sockets*: [`netns`], [`port`], [`tun`], [`veth`], [`publisher`], [`clock`], and
//! [`relay`], which joins them.

pub mod airtime;
pub mod clock;
pub mod config;
pub mod contention;
pub mod end;
pub mod error;
pub mod ip_header;
pub mod mcs;
pub mod model;
pub mod netns;
pub mod port;
pub mod presets;
pub mod publisher;
pub mod queue;
pub mod radio;
pub mod relay;
pub mod rng;
pub mod routes;
pub mod saturation;
pub mod station;
pub mod stats;
pub mod tun;
pub mod veth;
pub mod wired;
