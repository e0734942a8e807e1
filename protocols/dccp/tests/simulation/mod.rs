// SPDX-License-Identifier: Apache-2.0
//! Connections over a seeded path in simulated time.
//!
//! | question | module |
//! | --- | --- |
//! | two ends, a path, a clock | [`world`] |
//! | what should the throughput be? | [`equations`] |
//! | loss x RTT x CCID | [`tables`] |

pub(crate) mod equations;
pub(crate) mod tables;
pub(crate) mod world;
