// SPDX-License-Identifier: Apache-2.0
//! The wire format from outside: golden vectors, properties, replay of the fuzz corpus.

mod arbitrary;
mod checksums;
mod corpus;
mod description;
mod encapsulation;
mod fuzz_body;
mod golden;
mod kernel;
mod options;
mod packets;
mod sequence_numbers;
