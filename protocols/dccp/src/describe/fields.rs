// SPDX-License-Identifier: Apache-2.0
//! Names and values for machines, to be written in any notation (JSON has a use for all of them).

use super::{ack_state_name, drop_name, option_name, ten_us};
use crate::feature::table::{self, Feature};
use crate::options::loss_intervals::{LossInterval, LossIntervals};
use crate::options::{ack_vector, data_dropped, DccpOption};
use crate::packet::{Packet, PacketType};

/// A value. Numbers are below 2^53.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A word, a text or hexadecimal digits.
    Text(String),
    /// Several of a kind.
    List(Vec<Self>),
    /// Named values in order.
    Object(Vec<(&'static str, Self)>),
}

type Fields = Vec<(&'static str, Value)>;

/// What a packet says. Always: `type`, `source_port`, `destination_port`, `seq`, `options` (each an object with `name`),
/// `payload_bytes`. Where present: `ack`, `short_seq`, `ccval`, `checksum_coverage`, `service_code`, `reset_code`,
/// `reset_data`, `reset_text`, `malformed_options` (hexadecimal).
pub fn fields(packet: &Packet<'_>) -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        ("type", word(packet.kind.name())),
        ("source_port", number(packet.source_port)),
        ("destination_port", number(packet.destination_port)),
        ("seq", number(packet.seq.digits())),
    ];
    if let Some(ack) = packet.ack {
        fields.push(("ack", number(ack.digits())));
    }
    if matches!(packet.seq, crate::packet::WireSeq::Short(_)) {
        fields.push(("short_seq", number(1_u8)));
    }
    if packet.ccval != 0 {
        fields.push(("ccval", number(packet.ccval)));
    }
    if packet.checksum_coverage != 0 {
        fields.push(("checksum_coverage", number(packet.checksum_coverage)));
    }
    if let Some(code) = packet.service_code {
        fields.push(("service_code", number(code)));
    }
    if let Some((code, data)) = packet.reset {
        fields.push(("reset_code", number(code.number())));
        fields.push(("reset_name", word(code.name())));
        fields.push(("reset_data", list(data.into_iter().map(number))));
    }
    if packet.kind == PacketType::Reset && !packet.payload.is_empty() {
        fields.push(("reset_text", Value::Text(String::from_utf8_lossy(packet.payload).into_owned())));
    }
    let mut options = packet.options();
    fields.push(("options", list(options.by_ref().map(|option| Value::Object(option_fields(&option))))));
    if !options.rest().is_empty() {
        fields.push(("malformed_options", hex(options.rest())));
    }
    fields.push(("payload_bytes", number(packet.payload.len() as u64)));
    fields
}

fn option_fields(option: &DccpOption<'_>) -> Fields {
    let mut fields = vec![("name", word(option_name(option)))];
    match *option {
        DccpOption::Padding | DccpOption::Mandatory | DccpOption::SlowReceiver => {}
        DccpOption::ChangeL { feature, value }
        | DccpOption::ChangeR { feature, value }
        | DccpOption::ConfirmL { feature, value }
        | DccpOption::ConfirmR { feature, value } => feature_fields(feature, value, &mut fields),
        DccpOption::InitCookie(cookie) => fields.push(("cookie", hex(cookie))),
        DccpOption::NdpCount(count) => fields.push(("packets", number(count))),
        DccpOption::AckVector { nonce, vector } => {
            fields.push(("nonce", number(nonce)));
            let cells = ack_vector::cells(vector);
            fields.push((
                "runs",
                list(cells.map(|cell| run("state", ack_state_name(cell.state), cell.packets))),
            ));
        }
        DccpOption::DataDropped(vector) => {
            let blocks = data_dropped::blocks(vector);
            fields.push((
                "runs",
                list(blocks.map(|block| run("fate", drop_name(block.dropped), block.packets))),
            ));
        }
        DccpOption::Timestamp(value) => fields.push(("value", number(value))),
        DccpOption::TimestampEcho { echo, elapsed } => {
            fields.push(("echo", number(echo)));
            fields.push(("elapsed_us", number(ten_us(elapsed))));
        }
        DccpOption::ElapsedTime(elapsed) => fields.push(("elapsed_us", number(ten_us(elapsed)))),
        DccpOption::DataChecksum(crc) => fields.push(("crc32c", number(crc))),
        DccpOption::RttEstimate(rtt_us) => fields.push(("rtt_us", number(rtt_us))),
        DccpOption::LossEventRate(inverse) => fields.push(("packets_per_loss_event", number(inverse))),
        DccpOption::LossIntervals(contents) => loss_interval_fields(contents, &mut fields),
        DccpOption::ReceiveRate(rate) => fields.push(("receive_rate_bytes_per_s", number(rate))),
        DccpOption::Unknown { kind, contents } => {
            fields.push(("number", number(kind)));
            fields.push(("contents", hex(contents)));
        }
    }
    fields
}

/// `values` in order: of a Change the preferences, of a Confirm the agreed value and then the preferences.
fn feature_fields(feature: u8, value: &[u8], fields: &mut Fields) {
    fields.push(("feature_number", number(feature)));
    if let Some(known) = Feature::from_number(feature) {
        fields.push(("feature", word(known.name())));
    }
    fields.push(match table::values(feature, value) {
        Some(values) => ("values", list(values.map(number))),
        None => ("contents", hex(value)),
    });
}

fn loss_interval_fields(contents: &[u8], fields: &mut Fields) {
    let Some(intervals) = LossIntervals::parse(contents) else {
        return fields.push(("contents", hex(contents)));
    };
    fields.push(("skip", number(intervals.skip)));
    fields.push(("intervals", list(intervals.iter().map(interval_value))));
}

fn interval_value(interval: LossInterval) -> Value {
    Value::Object(vec![
        ("lossless_length", number(interval.lossless_length)),
        ("loss_length", number(interval.loss_length)),
        ("data_length", number(interval.data_length)),
        ("nonce", number(interval.nonce_echo)),
    ])
}

fn run(what: &'static str, name: &str, packets: u8) -> Value {
    Value::Object(vec![(what, word(name)), ("packets", number(packets))])
}

fn number(value: impl Into<u64>) -> Value {
    Value::Number(value.into())
}

fn word(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    Value::List(values.collect())
}

fn hex(bytes: &[u8]) -> Value {
    Value::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
