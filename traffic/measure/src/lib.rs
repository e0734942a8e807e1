// SPDX-License-Identifier: Apache-2.0
//! What any program that measures traffic needs, whatever it sends.
//!
//! | question | module |
//! | --- | --- |
//! | what time is it, and which host is this? | [`host`] |
//! | how does one sleep until a descriptor or a time, and hear signals? | [`wait`] |
//! | how far are two hosts' clocks apart? | [`clock_offset`] |
//! | what did this process take of its host? | [`cpu`] |
//! | how are many figures kept in little memory? | [`distribution`] |
//! | how are numbers with units read and printed? | [`units`] |
//! | who prints what, as lines of JSON or for people? | [`output`], by turns on a stdout that is shared: [`stdout_lock`] |
//! | what ends a command early? | [`failure`] |
//! | which packets passed? | [`capture`] |
//! | how does a process begin, leave its terminal, keep others off its CPU? | [`process`], [`background`], [`realtime`] |

pub mod background;
pub mod capture;
pub mod clock_offset;
pub mod cpu;
pub mod distribution;
pub mod failure;
pub mod host;
pub mod output;
pub mod process;
pub mod realtime;
mod second_signal;
pub mod stdout_lock;
pub mod units;
pub mod wait;
