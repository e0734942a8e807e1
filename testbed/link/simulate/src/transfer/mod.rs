// SPDX-License-Identifier: Apache-2.0
//! Files over connections of HTTP/1.1 whose ends are models, scheduled by the code that schedules real ones.

pub mod config;
pub mod connection;
pub mod run;
