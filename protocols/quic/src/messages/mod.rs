// SPDX-License-Identifier: Apache-2.0
//! How messages travel: in a stream or in DATAGRAM frames, and what packets they become.

pub(crate) mod datagram;
pub(crate) mod packetisation;
pub(crate) mod stream;
