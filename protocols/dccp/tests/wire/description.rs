// SPDX-License-Identifier: Apache-2.0
//! Packets in words and as fields. The golden vectors hold more lines.

use netjoule_dccp::describe::{fields, Printable, Summary};
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{Packet, PacketType, ResetCode, Seq48};
use serde_json::json;

fn ack<'a>(option_bytes: &'a [u8], payload: &'a [u8]) -> Packet<'a> {
    Packet {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind: PacketType::Ack,
        seq: WireSeq::Long(Seq48::new(10)),
        ack: Some(WireSeq::Long(Seq48::new(20))),
        service_code: None,
        reset: None,
        option_bytes,
        payload,
    }
}

/// The words of one option on an Ack.
fn words(option: DccpOption<'_>) -> String {
    let mut bytes = Vec::new();
    option.emit(&mut bytes);
    let line = Summary(&ack(&bytes, &[])).to_string();
    let inner = line.strip_prefix("Ack 1 > 2 seq 10 ack 20 [").unwrap_or_else(|| panic!("{line}"));
    inner.strip_suffix(']').unwrap().to_owned()
}

#[test]
fn every_option_has_words() {
    let table: [(DccpOption<'_>, &str); 27] = [
        (DccpOption::Padding, "padding 1"),
        (DccpOption::Mandatory, "mandatory"),
        (DccpOption::SlowReceiver, "slow_receiver"),
        (DccpOption::ChangeL { feature: 1, value: &[2, 3] }, "change_l CCID 2 3"),
        (DccpOption::ConfirmL { feature: 1, value: &[2, 2, 3] }, "confirm_l CCID 2 (2 3)"),
        (DccpOption::ConfirmR { feature: 5, value: &[0, 2] }, "confirm_r Ack Ratio 2"),
        (DccpOption::ChangeR { feature: 5, value: &[2] }, "change_r Ack Ratio 0x02"),
        (DccpOption::ConfirmL { feature: 126, value: &[] }, "confirm_l feature 126 empty"),
        (DccpOption::InitCookie(&[0xab, 1]), "init_cookie 0xab01"),
        (DccpOption::NdpCount(7), "ndp_count 7"),
        (DccpOption::AckVector { nonce: false, vector: &[2, 192] }, "ack_vector received 3, not received 1"),
        (
            DccpOption::AckVector { nonce: true, vector: &[63, 0, 64] },
            "ack_vector nonce 1 received 65, ecn marked 1",
        ),
        (DccpOption::DataDropped(&[1, 0xa0]), "data_dropped delivered 2, receive buffer 1"),
        (DccpOption::Timestamp(5), "timestamp 5"),
        (DccpOption::TimestampEcho { echo: 5, elapsed: 12 }, "timestamp_echo 5 elapsed 120 us"),
        (DccpOption::ElapsedTime(3), "elapsed_time 30 us"),
        (DccpOption::ElapsedTime(u32::MAX), "elapsed_time over 11.9 h"),
        (DccpOption::DataChecksum(0xabc), "data_checksum 0x00000abc"),
        (DccpOption::RttEstimate(0), "rtt_estimate none"),
        (DccpOption::RttEstimate(0xff_ffff), "rtt_estimate over 16.7 s"),
        (DccpOption::RttEstimate(1200), "rtt_estimate 1200 us"),
        (DccpOption::LossEventRate(100), "loss_event_rate 1/100"),
        (DccpOption::LossEventRate(u32::MAX), "loss_event_rate no loss"),
        (
            DccpOption::LossIntervals(&[2, 0, 0, 10, 128, 0, 1, 0, 0, 9]),
            "loss_intervals skip 2, lossless 10 loss 1 data 9 nonce 1",
        ),
        (DccpOption::ReceiveRate(12_500), "receive_rate 12500 B/s"),
        (DccpOption::Unknown { kind: 3, contents: &[] }, "option 3"),
        (DccpOption::Unknown { kind: 99, contents: &[1, 2] }, "option 99 0x0102"),
    ];
    for (option, wanted) in table {
        assert_eq!(words(option), wanted);
    }
}

#[test]
fn malformed_options_and_ignored_data_show() {
    let packet = ack(&[0, 0, 0, 37, 1, 9], b"abc");
    assert_eq!(
        Summary(&packet).to_string(),
        "Ack 1 > 2 seq 10 ack 20 [padding 3; malformed 0x250109] 3 bytes ignored"
    );
    assert_eq!(fields(&packet)["malformed_options"], "250109");
}

#[test]
fn a_reset_says_why() {
    let reset = Packet {
        kind: PacketType::Reset,
        reset: Some((ResetCode::Closed, [0; 3])),
        ..ack(&[], b"bye \x1b[2J\xff")
    };
    let line = Summary(&reset).to_string();
    assert_eq!(line, "Reset 1 > 2 seq 10 ack 20 reset code Closed \"bye \\u{1b}[2J\u{fffd}\"");
    let other = Packet { reset: Some((ResetCode::Ccid(130), [1, 0, 2])), payload: &[], ..reset };
    assert_eq!(
        Summary(&other).to_string(),
        "Reset 1 > 2 seq 10 ack 20 reset code CCID-specific 130 data 1 0 2"
    );
}

#[test]
fn long_text_is_cut() {
    let line = Printable(&[b'a'; 5000]).to_string();
    assert_eq!(line.len(), 205);
    assert!(line.ends_with("...\""));
}

#[test]
fn fields_name_what_they_hold() {
    let packet = ack(&[38, 4, 0, 192, 43, 4, 0, 5], &[]);
    let wanted = json!({
        "type": "Ack",
        "source_port": 1,
        "destination_port": 2,
        "seq": 10,
        "ack": 20,
        "options": [
            {
                "name": "ack_vector",
                "nonce": 0,
                "runs": [{ "state": "received", "packets": 1 }, { "state": "not received", "packets": 1 }],
            },
            { "name": "elapsed_time", "elapsed_us": 50 },
        ],
        "payload_bytes": 0,
    });
    assert_eq!(fields(&packet), wanted);
}
