// SPDX-License-Identifier: Apache-2.0
//! Which UDP datagrams carry DCCP, and what their checksums say (RFC 6773 section 3.3).

use std::net::IpAddr;

use netjoule_dccp::checksum::{fold, ones_sum, pseudo_header_sum};
use netjoule_dccp::encapsulation::{contents, udp_checksum, DropReason, UdpChecksum};

const DATA: [u8; 18] = [0, 1, 0, 2, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 9, b'h', b'i'];

fn ends() -> (IpAddr, IpAddr) {
    ([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
}

/// A datagram with a right checksum.
fn datagram(contents: &[u8]) -> Vec<u8> {
    let length = (contents.len() + 8) as u16;
    let mut udp = [&[0x30, 0x39, 0x19, 0x6f], length.to_be_bytes().as_slice(), &[0, 0], contents].concat();
    let sum = pseudo_header_sum(ends().0, ends().1, 17, udp.len()).unwrap() + ones_sum(&udp);
    let checksum = match !fold(sum) {
        0 => 0xffff,
        checksum => checksum,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    udp
}

fn checksum(udp: &[u8]) -> UdpChecksum {
    udp_checksum(ends().0, ends().1, udp)
}

#[test]
fn a_sound_datagram_opens_to_its_packet() {
    assert_eq!(contents(&datagram(&DATA)), Ok(&DATA[..]));
    assert_eq!(checksum(&datagram(&DATA)), UdpChecksum::Valid);
    // What follows the UDP length (link-layer padding) is no part of it.
    let padded = [datagram(&DATA), vec![0; 6]].concat();
    assert_eq!(contents(&padded), Ok(&DATA[..]));
}

#[test]
fn a_zero_or_wrong_checksum_shows() {
    let mut udp = datagram(&DATA);
    udp[25] ^= 1;
    assert_eq!(checksum(&udp), UdpChecksum::Wrong);
    udp[6..8].fill(0);
    assert_eq!(checksum(&udp), UdpChecksum::Zero);
    assert_eq!(contents(&udp).map(<[u8]>::len), Ok(18));
}

#[test]
fn a_checksum_left_to_the_device_is_told_from_a_wrong_one() {
    let mut udp = datagram(&DATA);
    let pseudo = fold(pseudo_header_sum(ends().0, ends().1, 17, udp.len()).unwrap());
    udp[6..8].copy_from_slice(&pseudo.to_be_bytes());
    assert_eq!(checksum(&udp), UdpChecksum::Unfinished);
}

#[test]
fn lengths_that_do_not_fit_drop() {
    assert_eq!(contents(&datagram(&DATA[..11])), Err(DropReason::TooShort(19)));
    assert_eq!(contents(&datagram(&DATA[..12])), Ok(&DATA[..12]));
    let udp = datagram(&DATA);
    let cut = &udp[..udp.len() - 1];
    assert_eq!(contents(cut), Err(DropReason::Length { udp_length: 26, present_bytes: 25 }));
    for length in 0..8 {
        assert_eq!(
            contents(&udp[..length]),
            Err(DropReason::Length { udp_length: 0, present_bytes: length })
        );
    }
}
