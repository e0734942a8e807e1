// SPDX-License-Identifier: Apache-2.0
//! netjoule over DCCP: what carries the packets of the user-space stack (UDP after RFC 6773, raw IP protocol 33), and
//! the socket of kernels up to 6.15.
//!
//! | carrier | needs | used by |
//! | --- | --- | --- |
//! | `udp` | nothing | `dccp` (default) |
//! | `raw` | CAP_NET_RAW at both ends | `dccp --carrier raw` |
//! | `kernel` | Linux up to 6.15 with `dccp_ipv4` loaded | `dccp-kernel` |
//!
//! Each end may have a carrier of its own (`--peer-carrier`), where both speak IP protocol 33: that is how the user-space
//! stack meets the kernel's. DCCP's own ports are those of the carrier's socket: over UDP the DCCP port equals
//! the UDP port, so that one connection is one UDP 4-tuple.
//!
//! **ECN** (RFC 6773 section 3.5) over UDP unless the option `ecn` is false: Data, DataAck and Ack leave as ECT(0), other
//! packets, which are rare, as not ECN-capable, and congestion control hears of marks. The field is the socket's
//! (`IP_TOS`, `IPV6_TCLASS`) and changes with the packets' type, because a control message with every packet would cost
//! more. ECN nonces, ECT(1), are never sent: a train has one field, and RFC 8311 took the nonce back. A
//! platform without these options makes the flow ECN-incapable. The raw carrier and the kernel's socket always are,
//! for Linux's DCCP is.
//!
//! **Don't fragment** is set on every packet. RFC 4340 section 14 would leave it off Request, Response and Reset; these
//! are at most some hundred bytes long here, and Linux sets it on them as well.
//!
//! **Queue**: at most 10 ms of the offered load, between 16 and 256 messages (64 with GSO), wait for congestion control. What
//! comes on top is refused and counts as not sent.
//!
//! **Raw carrier beside the kernel's DCCP**: a kernel with `dccp_ipv4` loaded sees the same packets, finds no
//! socket of its own and answers with Reset. In the raw end's network namespace its answers must be kept back:
//!
//! ```text
//! nft add table inet netjoule
//! nft add chain inet netjoule out '{ type filter hook output priority 0; }'
//! nft add rule inet netjoule out meta l4proto 33 meta skuid != 4294967295 accept
//! nft add rule inet netjoule out meta l4proto 33 drop
//! ```
//! Only packets of a process's socket have a `skuid`; the kernel's own Resets have none and meet the last rule.

#![forbid(unsafe_code)]

mod accept_queue;
mod availability;
mod carrier;
mod congestion;
mod early_data;
mod ecn;
mod end;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
mod kernel_socket;
mod link;
mod options;
mod protocol;
mod queue_length;
mod raw;
mod retry;
mod send_queue;
mod token;
mod udp;

pub use availability::{carriers, CarrierStatus};
pub use protocol::{DccpProtocol, DCCP, DCCP_KERNEL};

/// Service code of netjoule's flows, "NJOU", over every carrier.
pub const SERVICE_CODE: u32 = 0x4e4a_4f55;
