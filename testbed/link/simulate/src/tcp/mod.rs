// SPDX-License-Identifier: Apache-2.0
//! TCP without sockets, in whole segments: the sender has no end of data, the receiver reads at once.

pub mod choice;
pub mod control;
pub mod cubic;
pub mod ends;
pub mod receiver;
pub mod rto;
pub mod scoreboard;
pub mod sender;
