// SPDX-License-Identifier: Apache-2.0
//! What a packet says, in words: one line for people, names for machines.
//!
//! ```
//! use netjoule_dccp::{describe::Summary, Packet};
//!
//! let close = [0xde, 0x4f, 0x13, 0x89, 6, 0, 0, 0, 0x0d, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4];
//! let packet = Packet::parse(&close).unwrap();
//! assert_eq!(Summary(&packet).to_string(), "Close 56911 > 5001 seq 9 ack 4");
//! ```
//!
//! Options from 128 on mean what they mean with CCID 3; which CCID is in use, a packet does not say.

mod fields;
mod summary;

pub use fields::fields;
pub use summary::{Printable, Summary};

use crate::options::ack_vector::AckState;
use crate::options::data_dropped::DropCode;
use crate::options::DccpOption;

/// Name of an option; `option` when it is unknown or its contents are not valid.
pub const fn option_name(option: &DccpOption<'_>) -> &'static str {
    match option {
        DccpOption::Padding => "padding",
        DccpOption::Mandatory => "mandatory",
        DccpOption::SlowReceiver => "slow_receiver",
        DccpOption::ChangeL { .. } => "change_l",
        DccpOption::ConfirmL { .. } => "confirm_l",
        DccpOption::ChangeR { .. } => "change_r",
        DccpOption::ConfirmR { .. } => "confirm_r",
        DccpOption::InitCookie(_) => "init_cookie",
        DccpOption::NdpCount(_) => "ndp_count",
        DccpOption::AckVector { .. } => "ack_vector",
        DccpOption::DataDropped(_) => "data_dropped",
        DccpOption::Timestamp(_) => "timestamp",
        DccpOption::TimestampEcho { .. } => "timestamp_echo",
        DccpOption::ElapsedTime(_) => "elapsed_time",
        DccpOption::DataChecksum(_) => "data_checksum",
        DccpOption::RttEstimate(_) => "rtt_estimate",
        DccpOption::LossEventRate(_) => "loss_event_rate",
        DccpOption::LossIntervals(_) => "loss_intervals",
        DccpOption::ReceiveRate(_) => "receive_rate",
        DccpOption::Unknown { .. } => "option",
    }
}

const fn ack_state_name(state: AckState) -> &'static str {
    match state {
        AckState::Received => "received",
        AckState::ReceivedEcnMarked => "ecn marked",
        AckState::Reserved => "reserved",
        AckState::NotYetReceived => "not received",
    }
}

const fn drop_name(dropped: Option<DropCode>) -> &'static str {
    match dropped {
        None => "delivered",
        Some(DropCode::ProtocolConstraints) => "protocol constraints",
        Some(DropCode::ApplicationNotListening) => "application not listening",
        Some(DropCode::ReceiveBuffer) => "receive buffer",
        Some(DropCode::Corrupt) => "corrupt",
        Some(DropCode::Reserved(_)) => "reserved",
        Some(DropCode::DeliveredCorrupt) => "delivered corrupt",
    }
}

/// Timestamps and elapsed times count tens of microseconds.
const fn ten_us(units: u32) -> u64 {
    units as u64 * 10
}
