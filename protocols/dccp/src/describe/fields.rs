// SPDX-License-Identifier: Apache-2.0
//! Names and values for machines.

use serde_json::{json, Value};

use super::{ack_state_name, drop_name, option_name, ten_us};
use crate::feature::table::{self, Feature};
use crate::options::loss_intervals::{LossInterval, LossIntervals};
use crate::options::{ack_vector, data_dropped, DccpOption};
use crate::packet::{Packet, PacketType, WireSeq};

/// What a packet says, an object. Always: `type`, `source_port`, `destination_port`, `seq`, `options` (each an object with
/// `name`), `payload_bytes`. Where present: `ack`, `short_seq`, `ccval`, `checksum_coverage`, `service_code`, `reset_code`,
/// `reset_data`, `reset_text`, `malformed_options` (hexadecimal). Numbers are below 2^53.
pub fn fields(packet: &Packet<'_>) -> Value {
    let mut options = packet.options();
    let mut fields = json!({
        "type": packet.kind.name(),
        "source_port": packet.source_port,
        "destination_port": packet.destination_port,
        "seq": packet.seq.digits(),
        "options": options.by_ref().map(|option| option_fields(&option)).collect::<Value>(),
        "payload_bytes": packet.payload.len(),
    });
    if !options.rest().is_empty() {
        fields["malformed_options"] = hex(options.rest());
    }
    if let Some(ack) = packet.ack {
        fields["ack"] = json!(ack.digits());
    }
    if matches!(packet.seq, WireSeq::Short(_)) {
        fields["short_seq"] = json!(1);
    }
    if packet.ccval != 0 {
        fields["ccval"] = json!(packet.ccval);
    }
    if packet.checksum_coverage != 0 {
        fields["checksum_coverage"] = json!(packet.checksum_coverage);
    }
    if let Some(code) = packet.service_code {
        fields["service_code"] = json!(code);
    }
    if let Some((code, data)) = packet.reset {
        fields["reset_code"] = json!(code.number());
        fields["reset_name"] = json!(code.name());
        fields["reset_data"] = json!(data);
    }
    if packet.kind == PacketType::Reset && !packet.payload.is_empty() {
        fields["reset_text"] = json!(String::from_utf8_lossy(packet.payload));
    }
    fields
}

fn option_fields(option: &DccpOption<'_>) -> Value {
    let mut fields = match *option {
        DccpOption::Padding | DccpOption::Mandatory | DccpOption::SlowReceiver => json!({}),
        DccpOption::ChangeL { feature, value }
        | DccpOption::ChangeR { feature, value }
        | DccpOption::ConfirmL { feature, value }
        | DccpOption::ConfirmR { feature, value } => feature_fields(feature, value),
        DccpOption::InitCookie(cookie) => json!({ "cookie": hex(cookie) }),
        DccpOption::NdpCount(count) => json!({ "packets": count }),
        DccpOption::AckVector { nonce, vector } => {
            let run = |cell: ack_vector::Cell| json!({ "state": ack_state_name(cell.state), "packets": cell.packets });
            json!({ "nonce": u8::from(nonce), "runs": ack_vector::cells(vector).map(run).collect::<Value>() })
        }
        DccpOption::DataDropped(vector) => {
            let run = |block: data_dropped::Block| json!({ "fate": drop_name(block.dropped), "packets": block.packets });
            json!({ "runs": data_dropped::blocks(vector).map(run).collect::<Value>() })
        }
        DccpOption::Timestamp(value) => json!({ "value": value }),
        DccpOption::TimestampEcho { echo, elapsed } => {
            json!({ "echo": echo, "elapsed_us": ten_us(elapsed) })
        }
        DccpOption::ElapsedTime(elapsed) => json!({ "elapsed_us": ten_us(elapsed) }),
        DccpOption::DataChecksum(crc) => json!({ "crc32c": crc }),
        DccpOption::RttEstimate(rtt_us) => json!({ "rtt_us": rtt_us }),
        DccpOption::LossEventRate(inverse) => json!({ "packets_per_loss_event": inverse }),
        DccpOption::LossIntervals(contents) => loss_interval_fields(contents),
        DccpOption::ReceiveRate(rate) => json!({ "receive_rate_bytes_per_s": rate }),
        DccpOption::Unknown { kind, contents } => json!({ "number": kind, "contents": hex(contents) }),
    };
    fields["name"] = json!(option_name(option));
    fields
}

/// `values` in order: of a Change the preferences, of a Confirm the agreed value and then the preferences.
fn feature_fields(feature: u8, value: &[u8]) -> Value {
    let mut fields = json!({ "feature_number": feature });
    if let Some(known) = Feature::from_number(feature) {
        fields["feature"] = json!(known.name());
    }
    match table::values(feature, value) {
        Some(values) => fields["values"] = values.collect(),
        None => fields["contents"] = hex(value),
    }
    fields
}

fn loss_interval_fields(contents: &[u8]) -> Value {
    let Some(intervals) = LossIntervals::parse(contents) else {
        return json!({ "contents": hex(contents) });
    };
    let interval = |interval: LossInterval| {
        json!({
            "lossless_length": interval.lossless_length,
            "loss_length": interval.loss_length,
            "data_length": interval.data_length,
            "nonce": u8::from(interval.nonce_echo),
        })
    };
    json!({ "skip": intervals.skip, "intervals": intervals.iter().map(interval).collect::<Value>() })
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
