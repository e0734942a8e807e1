// SPDX-License-Identifier: Apache-2.0
//! CCID 3's two ends against each other in simulated time, without a connection around them.

mod closed_loop;
mod link;
mod properties;
mod receiver;
mod sender;

use super::{Receiver, Sender};
use crate::ccid::{Ecn, Incoming, ReceivingCcid};
use crate::options::loss_intervals::{LossInterval, LossIntervals};
use crate::options::{DccpOption, OptionIter};
use crate::packet::{Packet, PacketType, WireSeq};
use crate::seqno::Seq48;

const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

fn packet<'a>(kind: PacketType, ccval: u8, option_bytes: &'a [u8], payload: &'a [u8]) -> Packet<'a> {
    Packet {
        source_port: 1,
        destination_port: 2,
        ccval,
        checksum_coverage: 0,
        checksum: 0,
        kind,
        seq: WireSeq::Long(Seq48::new(0)),
        ack: None,
        service_code: None,
        reset: None,
        option_bytes,
        payload,
    }
}

fn emit(options: &[DccpOption<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        option.emit(&mut bytes);
    }
    bytes
}

/// What one acknowledgement says.
#[derive(Debug, Clone, PartialEq)]
struct Ack {
    bytes: Vec<u8>,
    elapsed: u32,
    receive_rate: u32,
    loss_event_rate: u32,
    skip: u8,
    intervals: Vec<LossInterval>,
}

/// Have the receiver write the options of an acknowledgement of `ack`.
fn acknowledge(receiver: &mut Receiver, now_ns: i64, ack: u64) -> Ack {
    let mut bytes = Vec::new();
    receiver.ack_options(now_ns, Seq48::new(1), Seq48::new(ack), 200, &mut |option| option.emit(&mut bytes));
    let mut said = Ack {
        bytes: bytes.clone(),
        elapsed: 0,
        receive_rate: 0,
        loss_event_rate: 0,
        skip: 0,
        intervals: Vec::new(),
    };
    for option in OptionIter::new(&bytes) {
        match option {
            DccpOption::ElapsedTime(time) => said.elapsed = time,
            DccpOption::ReceiveRate(rate) => said.receive_rate = rate,
            DccpOption::LossEventRate(inverse) => said.loss_event_rate = inverse,
            DccpOption::LossIntervals(contents) => {
                let list = LossIntervals::parse(contents).expect("valid intervals");
                said.skip = list.skip;
                said.intervals = list.iter().collect();
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    said
}

/// Hand the receiver a packet.
fn arrive(receiver: &mut Receiver, now_ns: i64, seq: u64, ecn: Ecn, packet: &Packet<'_>) {
    let incoming = Incoming { arrived_ns: now_ns, seq: Seq48::new(seq), ack: None, ecn, packet };
    receiver.on_incoming(&incoming).expect("no violation");
}

/// Figure `name`.
fn figure(figures: &[(&'static str, f64)], name: &str) -> f64 {
    figures.iter().find(|(found, _)| *found == name).map(|(_, value)| *value).expect(name)
}
