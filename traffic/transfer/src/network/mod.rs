// SPDX-License-Identifier: Apache-2.0
//! Connections to servers, and what their answers say. Nothing here knows files, storage or the scheduler.

pub(crate) mod connection;
pub(crate) mod http3;
pub(crate) mod options;
pub(crate) mod origin;
pub(crate) mod pool;
pub(crate) mod response;
pub(crate) mod socket;
pub(crate) mod tls;
