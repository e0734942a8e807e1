// SPDX-License-Identifier: Apache-2.0
//! Captures of every kind, built here; and hostile ones.

mod build;

use build::*;
use netjoule_dccp::encapsulation::UDP_HEADER_BYTES;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn lines(file: &[u8], ports: &[u16], style: Style) -> (Vec<String>, Option<String>) {
    let mut out = Vec::new();
    let damage = dissect(file, ports, style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    (text.lines().map(str::to_owned).collect(), damage)
}

fn plain(file: &[u8]) -> Vec<String> {
    let (lines, damage) = lines(file, &[PORT], Style::Plain);
    assert_eq!(damage, None);
    lines
}

fn json(file: &[u8]) -> Vec<Value> {
    let (lines, _) = lines(file, &[PORT], Style::Json);
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of a capture with one Ethernet frame that holds these contents of an IPv4 packet.
fn one(protocol: u8, contents: &[u8]) -> Vec<String> {
    plain(&pcap(1, &[&ethernet(&ipv4(protocol, contents))]))
}

const WORDS: &str = "Sync 1000 > 2000 seq 7 ack 9 [slow_receiver; padding 3] checksum ok";

#[test]
fn every_link_type_leads_to_the_packet() {
    let packet = sync(V4);
    let ip = ipv4(33, &packet);
    let sll = [&[0; 14][..], &[0x08, 0x00], &ip].concat();
    let sll2 = [&[0x08, 0x00][..], &[0; 18], &ip].concat();
    let mut tagged = ethernet(&ip);
    tagged.splice(12..12, [0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2]);
    let ppp = [&[0x00, 0x21][..], &ip].concat();
    let session = [&[0x11, 0, 0, 7, 0, 0][..], &ppp].concat();
    let mut pppoe = ethernet(&session);
    pppoe[12..14].copy_from_slice(&[0x88, 0x64]);
    let mut tagged_pppoe = pppoe.clone();
    tagged_pppoe.splice(12..12, [0x81, 0x00, 0, 2]);
    let table: [(u32, Vec<u8>); 17] = [
        (1, ethernet(&ip)),
        (1, tagged),
        (101, ip.clone()),
        (12, ip.clone()),
        (14, ip.clone()),
        (228, ip.clone()),
        (113, sll),
        (276, sll2),
        (1, pppoe),
        (1, tagged_pppoe),
        (9, ppp.clone()),
        (9, [&[0x21][..], &ip].concat()),
        (50, [&[0xff, 0x03][..], &ppp].concat()),
        (166, [&[0x01, 0x03][..], &ppp].concat()),
        (51, session),
        (0, [&[2, 0, 0, 0][..], &ip].concat()),
        (108, [&[0, 0, 0, 2][..], &ip].concat()),
    ];
    for (link_type, frame) in table {
        let wanted = [
            format!("1 0.000000 192.0.2.1 > 192.0.2.2 {WORDS}"),
            "packets 1 bad_checksums 0 undecodable 0 frames 1".to_owned(),
        ];
        assert_eq!(plain(&pcap(link_type, &[&frame])), wanted, "link type {link_type}");
    }
    let six = ipv6(33, &[], &sync(V6));
    assert_eq!(plain(&pcap(229, &[&six]))[0], format!("1 0.000000 2001:db8::1 > 2001:db8::2 {WORDS}"));
}

#[test]
fn all_formats_of_files_say_the_same_time() {
    let frame = ethernet(&ipv4(33, &sync(V4)));
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let file = classic(big_endian, nanoseconds, 1, &[&frame, &frame]);
            let seen = json(&file);
            assert_eq!(seen[0]["time_utc"], "2026-11-21T17:00:00.000005000Z", "{big_endian} {nanoseconds}");
            assert_eq!(seen[1]["time_s"], 1.0);
        }
        for resolution in [None, Some(9), Some(3), Some(0x80 | 10)] {
            let seen = json(&pcapng(big_endian, resolution, &[&frame, &frame]));
            assert_eq!(seen.len(), 3, "{resolution:?}");
            let text = seen[0]["time_utc"].as_str().unwrap();
            assert!(text.starts_with("2026-11-21T17:00:00.00"), "{resolution:?}: {text}");
            assert_eq!(seen[1]["time_s"], 1.0);
        }
    }
}

#[test]
fn simple_packets_of_pcapng_have_no_time() {
    let file = simple_pcapng(&ethernet(&ipv4(33, &sync(V4))));
    assert_eq!(plain(&file)[0], format!("1 - 192.0.2.1 > 192.0.2.2 {WORDS}"));
    assert!(json(&file)[0].get("time_s").is_none());
}

#[test]
fn checksums_are_judged() {
    let mut packet = sync(V4);
    packet[15] ^= 1;
    let lines = one(33, &packet);
    assert!(lines[0].ends_with("checksum bad"), "{lines:?}");
    assert_eq!(lines[1], "packets 1 bad_checksums 1 undecodable 0 frames 1");

    let mut partly = data(V4, 2, b"abcdefgh");
    *partly.last_mut().unwrap() ^= 1;
    assert!(one(33, &partly)[0].ends_with("8 bytes checksum ok (covers 20 of 24 bytes)"));
    partly[17] ^= 1;
    assert!(one(33, &partly)[0].ends_with("8 bytes checksum bad (covers 20 of 24 bytes)"));
}

#[test]
fn frames_cut_off_by_the_capture_are_told_as_far_as_they_go() {
    let frame = ethernet(&ipv4(33, &data(V4, 0, &[7; 100])));
    let line = &plain(&pcap(1, &[&frame[..60]]))[0];
    assert!(
        line.ends_with("Data 1000 > 2000 seq 7 100 bytes checksum unchecked (cut off by the capture)"),
        "{line}"
    );
    let partly = ethernet(&ipv4(33, &data(V4, 2, &[7; 100])));
    let line = &plain(&pcap(1, &[&partly[..60]]))[0];
    assert!(line.ends_with("cscov 2 100 bytes checksum ok (covers 20 of 116 bytes)"), "{line}");
    let lines = plain(&pcap(1, &[&frame[..45]]));
    assert!(lines[0].ends_with("undecodable: cut off by the capture before its header ends"), "{lines:?}");
    assert_eq!(lines[1], "packets 0 bad_checksums 0 undecodable 1 frames 1");
}

#[test]
fn udp_encapsulation_is_seen_on_the_given_ports_only() {
    let frame = ethernet(&ipv4(17, &udp(V4, &data(V4, 0, b"hi"))));
    let file = pcap(1, &[&frame]);
    let wanted =
        "1 0.000000 192.0.2.1 > 192.0.2.2 udp 40000 > 6511 Data 1000 > 2000 seq 7 2 bytes checksum ok (UDP)";
    assert_eq!(plain(&file)[0], wanted);
    let (others, _) = lines(&file, &[7000], Style::Plain);
    assert_eq!(others, ["packets 0 bad_checksums 0 undecodable 0 frames 1"]);
    let seen = &json(&file)[0];
    assert_eq!((&seen["udp_source_port"], &seen["udp_destination_port"]), (&40000.into(), &PORT.into()));
    let six = ipv6(17, &[], &udp(V6, &data(V6, 0, b"hi")));
    assert!(plain(&pcap(101, &[&six]))[0].ends_with("checksum ok (UDP)"));
}

#[test]
fn udp_checksums_and_lengths_are_judged_by_rfc_6773() {
    let good = udp(V4, &data(V4, 0, b"hi"));
    let with_checksum = |checksum: u16| {
        let mut udp = good.clone();
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        one(17, &udp)
    };
    assert!(with_checksum(0)[0].ends_with("checksum bad (UDP checksum is zero)"));
    assert_eq!(with_checksum(0)[1], "packets 1 bad_checksums 1 undecodable 0 frames 1");
    assert!(with_checksum(0x1234)[0].ends_with("checksum bad (UDP)"));
    let pseudo = netjoule_dccp::checksum::pseudo_header_sum(V4.0, V4.1, 17, good.len()).unwrap();
    let unfinished = with_checksum(netjoule_dccp::checksum::fold(pseudo));
    assert!(unfinished[0].ends_with("checksum unchecked (UDP, left to the network device)"));

    let short = udp(V4, &[0; 11]);
    assert!(one(17, &short)[0].contains("undecodable: UDP Length 19 is shorter than the 20 bytes"));
    let mut long = good.clone();
    long[4..6].copy_from_slice(&200_u16.to_be_bytes());
    assert!(one(17, &long)[0].contains("undecodable: UDP Length 200 does not fit 26 bytes"));

    let frame = ethernet(&ipv4(17, &udp(V4, &data(V4, 0, &[7; 100]))));
    let line = &plain(&pcap(1, &[&frame[..14 + 20 + UDP_HEADER_BYTES + 30]]))[0];
    assert!(line.ends_with("seq 7 100 bytes checksum unchecked (cut off by the capture)"), "{line}");
}

#[test]
fn ipv6_extension_headers_are_stepped_over() {
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let options = [33, 0, 1, 4, 0, 0, 0, 0];
    let packet = ipv6(0, &[hop_by_hop, options].concat(), &sync(V6));
    assert_eq!(plain(&pcap(101, &[&packet]))[0], format!("1 0.000000 2001:db8::1 > 2001:db8::2 {WORDS}"));
}

#[test]
fn fragments_are_told_as_far_as_they_go() {
    let packet = data(V4, 0, &[7; 100]);
    let fragment = |offset_words: u16, more: bool, part: &[u8]| {
        let mut ip = ipv4(33, part);
        ip[6..8].copy_from_slice(&(offset_words | u16::from(more) << 13).to_be_bytes());
        ip
    };
    let first = fragment(0, true, &packet[..64]);
    let later = fragment(8, false, &packet[64..]);
    let lines = plain(&pcap(101, &[&first, &later]));
    assert!(
        lines[0].ends_with("Data 1000 > 2000 seq 7 48 bytes checksum unchecked (first fragment)"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with("undecodable: a fragment without the header"), "{lines:?}");
    assert_eq!(lines[2], "packets 1 bad_checksums 0 undecodable 1 frames 2");

    let six = data(V6, 0, &[7; 100]);
    let header =
        |offset: u16, more: u16| [&[33, 0][..], &(offset | more).to_be_bytes(), &[0, 0, 0, 9]].concat();
    let first = ipv6(44, &header(0, 1), &six[..64]);
    let later = ipv6(44, &header(64, 0), &six[64..]);
    let lines = plain(&pcap(101, &[&first, &later]));
    assert!(lines[0].ends_with("checksum unchecked (first fragment)"), "{lines:?}");
    assert!(lines[1].ends_with("undecodable: a fragment without the header"), "{lines:?}");
}

#[test]
fn what_is_no_dccp_is_counted_and_not_told() {
    let frames = [ethernet(&ipv4(6, &[0; 20])), vec![1, 2, 3], ethernet(&[0; 20])];
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    assert_eq!(plain(&pcap(1, &frames)), ["packets 0 bad_checksums 0 undecodable 0 frames 3"]);
}

#[test]
fn malformed_packets_and_unknown_links_are_undecodable() {
    let mut packet = sync(V4);
    packet[4] = 2;
    let lines = one(33, &packet);
    let wanted = "1 0.000000 192.0.2.1 > 192.0.2.2 undecodable: Data Offset of 8 bytes does not fit a header of 24 and a packet of 28";
    assert_eq!(lines, [wanted, "packets 0 bad_checksums 0 undecodable 1 frames 1"]);
    let lines = plain(&pcap(147, &[&[1, 2, 3]]));
    assert_eq!(lines[0], "1 0.000000 undecodable: link type 147 is not known (a private one)");
}

#[test]
fn json_has_the_fields_and_ends_with_the_totals() {
    let seen = json(&pcap(1, &[&ethernet(&ipv4(33, &sync(V4)))]));
    let wanted = serde_json::json!({
        "number": 1, "time_s": 0.0, "time_utc": "2026-11-21T17:00:00.000005000Z",
        "source": "192.0.2.1", "destination": "192.0.2.2", "checksum": "ok",
        "type": "Sync", "source_port": 1000, "destination_port": 2000, "seq": 7, "ack": 9,
        "options": [{"name": "slow_receiver"}, {"name": "padding"}, {"name": "padding"}, {"name": "padding"}],
        "payload_bytes": 0,
    });
    assert_eq!(seen[0], wanted);
    let totals = serde_json::json!({"packets": 1, "bad_checksums": 0, "undecodable": 0, "frames": 1});
    assert_eq!(seen[1..], [totals]);
}

#[test]
fn damaged_files_end_in_a_clause_after_what_was_readable() {
    let frame = ethernet(&ipv4(33, &sync(V4)));
    let whole = pcap(1, &[&frame, &frame]);
    let (told, damage) = lines(&whole[..whole.len() - 3], &[], Style::Plain);
    assert_eq!(damage.as_deref(), Some("is cut off in the block after frame 1"));
    assert_eq!(told.len(), 2);
    assert!(told[1].starts_with("packets 1 "));

    let ng = pcapng(false, None, &[&frame, &frame]);
    let (told, damage) = lines(&ng[..ng.len() - 3], &[], Style::Json);
    assert_eq!(damage.as_deref(), Some("is cut off in the block after frame 1"));
    let totals: Value = serde_json::from_str(&told[1]).unwrap();
    assert_eq!(totals["damage"], "is cut off in the block after frame 1");

    let cases: [(&[u8], &str); 4] = [
        (b"", "is empty, not a capture file"),
        (b"x", "is neither a pcap nor a pcapng file"),
        (b"#!/bin/sh\necho this is no capture at all\n", "is neither a pcap nor a pcapng file"),
        (&whole[..20], "is neither a pcap nor a pcapng file"),
    ];
    for (file, wanted) in cases {
        let (told, damage) = lines(file, &[], Style::Plain);
        assert_eq!(damage.as_deref(), Some(wanted));
        assert_eq!(told, ["packets 0 bad_checksums 0 undecodable 0 frames 0"]);
    }
}

#[test]
fn blocks_that_claim_to_be_huge_do_not_take_memory() {
    let mut file = pcap(1, &[]);
    file.extend([0; 8]);
    file.extend(0x7fff_ffff_u32.to_le_bytes());
    file.extend(0x7fff_ffff_u32.to_le_bytes());
    file.resize(6 << 20, 0);
    let (_, damage) = lines(&file, &[], Style::Plain);
    assert_eq!(damage.as_deref(), Some("has a block of more than 4 MiB after frame 0"));
    file.truncate(3 << 20);
    let (_, damage) = lines(&file, &[], Style::Plain);
    assert_eq!(damage.as_deref(), Some("is cut off in the block after frame 0"));
}

#[test]
fn large_frames_are_read() {
    let packet = data(V4, 0, &vec![1; 60_000]);
    let frame = ethernet(&ipv4(33, &packet));
    let frames = vec![frame.as_slice(); 9];
    let told = plain(&pcap(1, &frames));
    assert!(told[8].ends_with("60000 bytes checksum ok"), "{}", told[8]);
    let mut padded = frame.clone();
    padded.resize(1 << 20, 0);
    assert!(plain(&pcap(1, &[&padded]))[0].ends_with("60000 bytes checksum ok"));
}

#[test]
fn paths_that_cannot_be_read_are_usage_errors() {
    let args = |file: &str| DissectArgs { file: file.into(), udp_ports: Vec::new(), json: false };
    let missing = run(&args("/nonexistent/capture.pcap")).unwrap_err();
    assert_eq!(missing.code, Code::Usage);
    assert!(missing.message.starts_with("/nonexistent/capture.pcap: cannot be opened: "), "{missing}");
    let directory = run(&args("/")).unwrap_err();
    assert_eq!(
        (directory.code, directory.message.as_str()),
        (Code::Usage, "/: is a directory, give a capture file")
    );
}

/// A capture that holds something of everything.
fn rich(ng: bool) -> Vec<u8> {
    let hop_by_hop = [33, 0, 1, 4, 0, 0, 0, 0];
    let frames = [
        ethernet(&ipv4(33, &sync(V4))),
        ethernet(&ipv4(17, &udp(V4, &data(V4, 3, &[5; 40])))),
        ethernet_six(&ipv6(0, &hop_by_hop, &sync(V6))),
        ethernet_six(&ipv6(44, &[33, 0, 0, 1, 0, 0, 0, 1], &data(V6, 0, &[1; 30]))),
    ];
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    if ng {
        pcapng(false, Some(9), &frames)
    } else {
        pcap(1, &frames)
    }
}

#[test]
fn the_mixed_capture_is_read_to_the_end() {
    for ng in [false, true] {
        let told = plain(&rich(ng));
        assert_eq!(told.last().unwrap(), "packets 4 bad_checksums 0 undecodable 0 frames 4", "{told:?}");
    }
}

proptest! {
    #[test]
    fn random_bytes_end_in_totals(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let (told, _) = lines(&bytes, &[PORT], Style::Plain);
        prop_assert!(told.last().unwrap().starts_with("packets "));
    }

    #[test]
    fn mutated_captures_end_in_totals(
        ng in any::<bool>(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<proptest::sample::Index>(),
        cut_it in any::<bool>(),
    ) {
        let mut file = rich(ng);
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cut_it {
            file.truncate(cut.index(file.len()));
        }
        for style in [Style::Plain, Style::Json] {
            let (told, damage) = lines(&file, &[PORT], style);
            prop_assert!(told.last().unwrap().contains("packets"));
            prop_assert!(told.iter().all(|line| !line.chars().any(char::is_control)));
            prop_assert!(damage.is_none_or(|damage| !damage.is_empty()));
        }
    }

    #[test]
    fn random_frames_of_every_link_type_end_in_totals(
        link_type in prop_oneof![Just(0_u32), Just(1), Just(101), Just(108), Just(113), Just(229), Just(276), 0..300_u32],
        frame in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let told = plain(&pcap(link_type, &[&frame]));
        prop_assert!(told.last().unwrap().ends_with("frames 1"));
    }
}
