// SPDX-License-Identifier: Apache-2.0
//! CCID 2, TCP-like congestion control (RFC 4341).
//!
//! | question | module |
//! | --- | --- |
//! | which packets are on their way, which arrived, which are lost? | [`flight`] |
//! | how large is the window? | [`window`] |
//! | how long is a round trip, when is it a timeout? | [`rto`] |
//! | does the receiver tell the truth? | [`nonces`] |
//! | how often should the peer acknowledge? | [`ack_ratio`] |
//! | all of it together, as a half-connection | [`sender`], [`receiver`] |

pub mod ack_ratio;
pub mod flight;
pub mod nonces;
pub mod receiver;
pub mod rto;
pub mod sender;
pub mod window;

pub use receiver::Receiver;
pub use sender::Sender;
