// SPDX-License-Identifier: Apache-2.0
//! What is between a connection and the wire: how large its packets may be, when one may leave, the socket, the clock.

pub(crate) mod clock;
pub(crate) mod pacer;
pub(crate) mod packet_io;
pub mod packet_size;
