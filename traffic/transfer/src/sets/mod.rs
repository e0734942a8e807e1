// SPDX-License-Identifier: Apache-2.0
//! Which files a data set has, and what must stand in them. Pure but for reading what describes one.

pub(crate) mod dataset;
pub(crate) mod manifest;
pub(crate) mod signature;
