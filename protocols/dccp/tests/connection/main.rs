// SPDX-License-Identifier: Apache-2.0
//! Two ends of a connection over a simulated path.

mod agreement;
mod corpus;
mod fuzz_body;
mod hostile;
mod life;
mod linux;
mod rough;
mod trains;
mod world;
