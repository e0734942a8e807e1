// SPDX-License-Identifier: Apache-2.0
//! The fuzz targets' assertions over the committed corpus and its neighbours.

mod control_body;
mod payload_body;
mod replay;
mod transports_body;
