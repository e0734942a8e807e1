// SPDX-License-Identifier: Apache-2.0
//! netjoule-link: an emulated 802.11n/ac link that serves packets by air time, as netjoule_link_model decides.
//!
//! Two rooms. *Inputs*: [`config`], [`end`], [`ip_header`], [`routes`]. *Sockets*: [`netns`], [`interface`], [`port`],
//! [`tun`], [`veth`], [`publisher`], [`clock`], and [`relay`], which joins them.

pub mod clock;
pub mod commands;
pub mod config;
pub mod end;
pub mod error;
pub mod interface;
pub mod ip_header;
pub mod netns;
pub mod port;
pub mod publisher;
pub mod relay;
pub mod routers;
pub mod routes;
pub mod tun;
pub mod veth;
