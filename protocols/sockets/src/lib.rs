// SPDX-License-Identifier: Apache-2.0
//! What Linux sockets can do for a measurement, for every transport: datagrams and trains of them in one call, the kernel's
//! time stamps of arrivals and departures, ECN fields, launch times and the queueing discipline that obeys them.
//!
//! Nothing here knows a transport (but for how one fails), a flow or a message, and nothing blocks. Times are nanoseconds of `CLOCK_MONOTONIC`.

mod ancillary;
pub mod datagram;
mod error;
mod ip_version;
pub mod launch_times;
mod poll_fd;
mod qdisc;
pub mod random;
pub mod send_batch;
pub mod send_call;
pub mod socket;
pub mod stream;
pub mod timestamps;
pub mod tx_timestamps;

pub use error::{Result, TransportError};
pub use ip_version::IpVersion;
pub use poll_fd::PollFd;
