// SPDX-License-Identifier: Apache-2.0
//! What a server and a client do when others misbehave, or the host or the path does: the real binary, real connections.

#[path = "../harness/mod.rs"]
mod harness;

mod clocks;
mod conversation;
mod forged_quic;
mod long_schedules;
mod many_clients;
mod outages;
mod ports;
mod reflection;
mod rubbish;
mod secrets;
mod slow_devices;
mod slow_receivers;
mod soak;
mod stops;
