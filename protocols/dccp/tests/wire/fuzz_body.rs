// SPDX-License-Identifier: Apache-2.0
//! What the fuzz target `wire` asserts about any bytes. Shared by path with the fuzz crate.

use netjoule_dccp::describe::{fields, Summary};
use netjoule_dccp::options::loss_intervals::LossIntervals;
use netjoule_dccp::options::{DccpOption, OptionIter};
use netjoule_dccp::{checksum, encapsulation, Packet};

/// Every reader on these bytes: none panics, and what was read can be written and read again.
pub(crate) fn wire(bytes: &[u8]) {
    options(bytes);
    datagram(bytes);
    let Ok(packet) = Packet::parse(bytes) else {
        return;
    };
    options(packet.option_bytes);
    let line = Summary(&packet).to_string();
    assert!(!line.chars().any(char::is_control), "{line:?}");
    assert_eq!(fields(&packet)["type"], packet.kind.name());

    let mut once = Vec::new();
    assert!(packet.emit(&mut once), "{packet:?} parsed but is not emitted");
    assert_eq!(once, without_reserved_bits(bytes, &packet));
    let again = Packet::parse(&once).expect("what was emitted parses");
    assert_eq!(again, packet);
    let mut twice = Vec::new();
    assert!(again.emit(&mut twice));
    assert_eq!(twice, once);

    let localhost = [127, 0, 0, 1].into();
    assert!(checksum::fill(localhost, localhost, &mut once));
    assert!(checksum::verify(localhost, localhost, &once));
}

/// The bytes with the bits zero that a sender sets to zero and a receiver ignores.
fn without_reserved_bits(bytes: &[u8], packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let long = bytes[8] & 1 == 1;
    bytes[8] &= 0x1f;
    if long {
        bytes[9] = 0;
    }
    match (packet.ack.is_some(), long) {
        (true, true) => bytes[16..18].fill(0),
        (true, false) => bytes[12] = 0,
        (false, _) => {}
    }
    bytes
}

fn options(area: &[u8]) {
    let mut iter = OptionIter::new(area);
    let mut total = 0;
    let mut emitted = Vec::new();
    for option in iter.by_ref() {
        let start = emitted.len();
        option.emit(&mut emitted);
        let own = &emitted[start..];
        assert_eq!(own.len(), option.wire_bytes());
        let mut back = OptionIter::new(own);
        assert_eq!(back.next(), Some(option), "{own:?}");
        assert!(back.next().is_none() && back.rest().is_empty());
        if let DccpOption::LossIntervals(contents) = option {
            assert!(LossIntervals::parse(contents).is_none_or(|all| (1..=28).contains(&all.iter().len())));
        }
        total += option.wire_bytes();
    }
    // The shortest form is never longer than what was read.
    assert!(total + iter.rest().len() <= area.len());
    assert!(iter.next().is_none());
}

fn datagram(bytes: &[u8]) {
    let localhost = [127, 0, 0, 1].into();
    if let Ok(packet) = encapsulation::contents(bytes) {
        assert!(packet.len() + 8 <= bytes.len() && packet.len() >= 12);
    }
    encapsulation::udp_checksum(localhost, localhost, bytes);
}
