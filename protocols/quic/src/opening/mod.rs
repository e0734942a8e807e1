// SPDX-License-Identifier: Apache-2.0
//! How a flow opens: the client's way there, and whom the server's end lets in.

pub(crate) mod client;
pub(crate) mod listener;
