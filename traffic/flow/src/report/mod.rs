// SPDX-License-Identifier: Apache-2.0
//! The flow report: both ends of one flow in one document (protocols/contracts/schemas/flow_report.schema.json). Pure.

mod document;
mod ends;
mod plain;
mod reconcile;
mod sums;

pub use document::{Direction, EndReason, FlowReport, Generator, Pacing, PathFacts, SCHEMA_VERSION};
pub use ends::{arrival_stamp_source, ReceiverPart, SenderPart};
pub(crate) use plain::{offered, plain_details, plain_report};
pub use reconcile::{reconciles, Sizes};
pub use sums::{goodput_mbps, Sums};
